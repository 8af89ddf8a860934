// A step shaped like a transformer's without being one: per layer two norms, five products and two
// gates over `width` columns, with the scratch such a layer takes. Every layer uses the same
// weights, which are zero: only shapes and counts matter.
#ifndef HOLDFAST_TOOLS_LAYERED_STEP_H_
#define HOLDFAST_TOOLS_LAYERED_STEP_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "allocator/arena.h"
#include "allocator/step_context.h"

namespace holdfast {

struct LayeredShape {
  std::int64_t layers = 1, width = 16, most_rows = 1;
  DType type = DType::kF32;  // of activations and weights
};

class LayeredStep {
 public:
  // Bytes of the spans below.
  static std::uint64_t WeightBytes(const LayeredShape& shape);
  static std::uint64_t StateBytes(const LayeredShape& shape);

  // `weights` and `state` hold at least the bytes above.
  LayeredStep(const LayeredShape& shape, SpanId weights, SpanId state)
      : shape_(shape), weights_(weights), state_(state) {}
  // The step over `rows`.
  absl::StatusOr<Step> Make(Device& device, std::int64_t rows) const;

 private:
  LayeredShape shape_;
  SpanId weights_, state_;
};

}  // namespace holdfast

#endif  // HOLDFAST_TOOLS_LAYERED_STEP_H_
