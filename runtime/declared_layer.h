// A layer with its declaration: the one object by which its buffers are reserved and its calls run.
#ifndef HOLDFAST_RUNTIME_DECLARED_LAYER_H_
#define HOLDFAST_RUNTIME_DECLARED_LAYER_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "attention/declaration.h"
#include "runtime/synthetic_spec.h"

namespace holdfast {

class DeclaredLayer {
 public:
  // Errors as Declare.
  static absl::StatusOr<DeclaredLayer> Of(const SyntheticLayer& layer);

  const std::string& backend() const { return layer_.backend; }
  const AttentionConfig& config() const { return layer_.config; }
  // What is reserved: with path_gating off, also what no call of this layer touches.
  const AttentionDeclaration& declaration() const { return declaration_; }
  // Bytes of scratch request i that the selected path touches: all of them, or, with path_gating
  // off, none of a request that only another path reads.
  std::uint64_t touched_bytes(std::size_t i) const { return touched_[i]; }
  // Bytes of the scratch requests in one slot, each packed to kScratchAlignment.
  std::uint64_t packed_bytes() const { return packed_bytes_; }

  // Asked by each call with the configuration it runs with, before it asks for scratch.
  // kPlanMismatch naming the backend and both paths if `config` selects another than was declared;
  // errors as Declare if it is none of the backend's. Nothing is kept of a refusal.
  absl::Status CheckCall(const AttentionConfig& config) const;

 private:
  SyntheticLayer layer_;
  AttentionDeclaration declaration_;
  std::vector<std::uint64_t> touched_;
  std::uint64_t packed_bytes_ = 0;
};

// Sum of the requests, each packed to kScratchAlignment. kInvalidArgument if it leaves 64 bits.
absl::StatusOr<std::uint64_t> PackedBytes(const std::vector<DeclaredRequest>& requests);

}  // namespace holdfast

#endif  // HOLDFAST_RUNTIME_DECLARED_LAYER_H_
