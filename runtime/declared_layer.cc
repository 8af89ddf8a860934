#include "runtime/declared_layer.h"

#include "allocator/scratch_plan.h"
#include "device/bytes.h"
#include "device/error.h"

namespace holdfast {

absl::StatusOr<std::uint64_t> PackedBytes(const std::vector<DeclaredRequest>& requests) {
  std::uint64_t sum = 0;
  for (const DeclaredRequest& request : requests) {
    HOLDFAST_ASSIGN_OR_RETURN(
        const std::uint64_t padded,
        CheckedAdd(request.bytes, kScratchAlignment - 1, request.name));
    HOLDFAST_ASSIGN_OR_RETURN(
        sum, CheckedAdd(sum, AlignDown(padded, kScratchAlignment), request.name));
  }
  return sum;
}

absl::StatusOr<DeclaredLayer> DeclaredLayer::Of(const SyntheticLayer& layer) {
  DeclaredLayer declared;
  declared.layer_ = layer;
  HOLDFAST_ASSIGN_OR_RETURN(declared.declaration_, Declare(layer.backend, layer.config));
  AttentionConfig gated = layer.config;
  gated.path_gating = true;
  HOLDFAST_ASSIGN_OR_RETURN(const AttentionDeclaration taken, Declare(layer.backend, gated));
  const std::vector<DeclaredRequest>& reserved = declared.declaration_.scratch;
  declared.touched_.assign(reserved.size(), 0);
  for (const DeclaredRequest& request : taken.scratch) {
    bool found = false;
    for (std::size_t i = 0; i < reserved.size() && !found; ++i) {
      if (reserved[i].name != request.name || reserved[i].bytes < request.bytes) continue;
      declared.touched_[i] = request.bytes;
      found = true;
    }
    if (!found) {
      return MakeError({.kind = ErrorKind::kInternal,
                        .object = layer.backend + " " + request.name,
                        .need = request.bytes},
                       "the selected path asks for it, but it is not reserved without path gating");
    }
  }
  HOLDFAST_ASSIGN_OR_RETURN(declared.packed_bytes_, PackedBytes(reserved));
  return declared;
}

absl::Status DeclaredLayer::CheckCall(const AttentionConfig& config) const {
  HOLDFAST_ASSIGN_OR_RETURN(const AttentionDeclaration now, Declare(layer_.backend, config));
  return declaration_.Check().Check(now.path);
}

}  // namespace holdfast
