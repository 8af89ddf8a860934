// What an attention backend declares from configuration alone, before any memory is touched: the
// scratch of its worst case over all shapes it may be given, the path the configuration takes,
// whether it takes part in profiling, and how its cache lies in pages.
#ifndef HOLDFAST_ATTENTION_DECLARATION_H_
#define HOLDFAST_ATTENTION_DECLARATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "attention/attention_config.h"
#include "attention/attention_path.h"
#include "attention/kv_page_spec.h"

namespace holdfast {

// Bytes by name, with the reason: "q_concat", 150994944, "query rows (8192, 16, 576) bf16".
struct DeclaredRequest {
  std::string name;
  std::uint64_t bytes = 0;
  std::string why;

  bool operator==(const DeclaredRequest&) const = default;
};

// The plain sum, without packing. kInvalidArgument if it does not fit 64 bits.
absl::StatusOr<std::uint64_t> TotalBytes(const std::vector<DeclaredRequest>& requests);

// Whether a backend can take part in a profiling run, in which every cache block is the null block.
// Default: it cannot.
enum class ProfilingSupport {
  kUnsupported,  // the run would be meaningless or wrong
  kNeutral,      // runs along; what it needs is the same with and without
  kRequired,     // makes buffers or driver state that only a run brings out
};
const char* ProfilingSupportName(ProfilingSupport support);

struct AttentionDeclaration {
  std::string backend;  // "mla_sparse"
  std::string path;     // the one path this configuration takes
  // Scratch of one call, all alive together: asked of the workspace slot as one combined request.
  // Different declarations overlay each other in a slot.
  std::vector<DeclaredRequest> scratch;
  // Kept for the backend's life (counters, what graphs read): resources of their own, counted in
  // the budget beside the scratch.
  std::vector<DeclaredRequest> persistent;
  ProfilingSupport profiling = ProfilingSupport::kUnsupported;
  KvPageSpec kv;           // its cache; kNone if the layer keeps nothing
  KvPageSpec extra_kv;     // and a second one of the same layer: compressed keys
  bool gives_lse = false;  // can return the log-sum-exp of each row and head

  PathCheck Check() const { return PathCheck(backend, path); }
};

// The declaration of a backend by name (see BackendNames). kNotFound naming the known ones;
// kInvalidArgument naming field, value and limit for a configuration outside the backend's range,
// and the product for sizes beyond 64 bits; kUnsupported for combinations it does not offer.
absl::StatusOr<AttentionDeclaration> Declare(const std::string& backend,
                                             const AttentionConfig& config);
std::vector<std::string> BackendNames();  // sorted

// The profiling path runs only if every declaration is required or neutral and one is required.
struct ProfilingDecision {
  bool runs = false;
  std::string why;  // "mla_sparse requires it"; "mla_windowed does not support it"
};
ProfilingDecision DecideProfiling(const std::vector<AttentionDeclaration>& declarations);

}  // namespace holdfast

#endif  // HOLDFAST_ATTENTION_DECLARATION_H_
