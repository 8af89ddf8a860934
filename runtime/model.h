// What the runtime knows of a model: spans, a KV layout, and passes. Nothing above this interface
// sees a config file.
#ifndef HOLDFAST_RUNTIME_MODEL_H_
#define HOLDFAST_RUNTIME_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/arena.h"
#include "allocator/residency.h"
#include "allocator/step_context.h"
#include "attention/declaration.h"
#include "runtime/batch_block.h"
#include "runtime/kv_groups.h"

namespace holdfast {

// The cache is block-outermost: a page holds `page_tokens` tokens of every layer, so that it grows
// at one end only.
struct KvSpec {
  std::int32_t layers = 0;
  std::int32_t page_tokens = 64;
  std::int32_t token_width = 0;  // elements a token and layer
  DType type = DType::kF32;
  // Not empty: layers of several kinds share a pool of equal blocks, and a sequence has a table of
  // them for each group (kv_tables.h), as many as the `longest` needs. A page is then a block, and
  // layers and width mean nothing.
  KvGroups groups;
  SequenceLimits longest;

  std::int64_t layer_stride() const { return std::int64_t{page_tokens} * token_width; }
  std::int64_t page_stride() const { return layers * layer_stride(); }  // elements
  std::uint64_t page_bytes() const {
    if (!groups.groups.empty()) return groups.block_bytes;
    return static_cast<std::uint64_t>(page_stride()) * DTypeBytes(type);
  }
};

struct ModelLimits {
  std::int32_t vocab = 0;
  std::int32_t max_position = 0;  // longest sequence
};

// One captured shape of a model, planned: enqueues the work from the input block to the logits.
class ModelPass {
 public:
  virtual ~ModelPass() = default;
  // `input` and `output` are device addresses of blocks of the pass's shape; `cache` is the KV
  // span. Does the same calls every time.
  virtual absl::Status Enqueue(StepContext& step, const InputBlock& input,
                               const OutputBlock& output, SpanId cache) = 0;
};

struct LoadOptions {
  // Not null: kept contents are read into the rooms of this residency's pool and stay there as
  // their backups, so that the first sleep copies nothing. The residency of the arena.
  Residency* through = nullptr;
  // Is told bytes done and in all; may be null.
  void (*progress)(std::uint64_t done, std::uint64_t total) = nullptr;
};

class Model {
 public:
  virtual ~Model() = default;

  virtual const ModelLimits& limits() const = 0;
  virtual KvSpec kv() const = 0;
  // What its attention layers declare, in order; empty for models that declare nothing.
  virtual std::vector<AttentionDeclaration> declarations() const { return {}; }
  // The groups its spans need, with extents that hold them exactly.
  virtual std::vector<GroupSpec> groups() const = 0;
  // An upper bound of the scratch of one pass, for the window's size. Address space only.
  virtual std::uint64_t ScratchBound(const BatchShape& shape) const = 0;
  // Reserves its spans and no more: for a start that is only planned. PlanPass works afterwards,
  // and estimates what a library would ask for. kUnsupported by default.
  virtual absl::Status ReserveSpans(Arena& arena);
  // Reserves, commits, fills and seals its spans.
  virtual absl::Status Load(Arena& arena, const LoadOptions& options) = 0;
  // Plans a pass: chooses kernels and matrix algorithms. After Load or ReserveSpans; never inside a
  // capture.
  virtual absl::StatusOr<std::unique_ptr<ModelPass>> PlanPass(const BatchShape& shape,
                                                              bool deterministic) = 0;
};

}  // namespace holdfast

#endif  // HOLDFAST_RUNTIME_MODEL_H_
