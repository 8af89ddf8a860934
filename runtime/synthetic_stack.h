// A model of any declared attention backends, without a checkpoint: small seeded weights, caches
// and scratch as declared, and a step that writes and reads back every byte of what the selected
// paths asked for, and nothing else.
//
// A layer's step checks its path, asks for its scratch, writes a pattern into all of it, puts the
// pass's tokens into its caches, verifies its weights and what it keeps, reads its caches back, and
// verifies the scratch. What is wrong changes the logits and is put down under the buffer's name.
// Without faults the logits of a row are a function of the seed and of its sequence's tokens alone.
#ifndef HOLDFAST_RUNTIME_SYNTHETIC_STACK_H_
#define HOLDFAST_RUNTIME_SYNTHETIC_STACK_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/declared_layer.h"
#include "runtime/model.h"
#include "runtime/synthetic_cache_map.h"
#include "runtime/synthetic_spec.h"

namespace holdfast {

// What backends keep beside scratch and cache; kept across sleep.
inline constexpr char kPersistentTag[] = "persistent";

// Of each layer.
inline constexpr std::uint64_t kSyntheticWeightBytes = 64 * kKiB;

struct SyntheticOptions {
  std::uint64_t seed = 1;
  std::int32_t vocab = 256;
};

// Faults that negative controls plant. They act on steps that are enqueued from then on.
struct SyntheticPlants {
  struct Call {
    std::size_t layer = 0;
    AttentionConfig config;
  };
  std::optional<Call> call;  // the layer is called with this configuration
  struct Overlap {
    std::size_t layer = 0, first = 0, second = 0;
  };
  std::optional<Overlap> overlap;  // scratch request `second` is put where `first` is
};

// A buffer whose bytes were not what its owner had put there.
struct SyntheticFinding {
  std::string buffer;           // "layers.1.mla_sparse.prefill_context"
  std::uint64_t differing = 0;  // words, over all steps since the model was loaded
  std::uint64_t first = 0;      // offset of the first, in bytes; in the whole pool for a cache

  bool operator==(const SyntheticFinding&) const = default;
};

class SyntheticStack : public Model {
 public:
  // Declares every layer. kInvalidArgument for no layers, layers of different limits, or none that
  // keeps a cache; errors as Declare and MapCaches.
  static absl::StatusOr<std::unique_ptr<SyntheticStack>> Create(
      const std::vector<SyntheticLayer>& layers, const SyntheticOptions& options = {});

  const ModelLimits& limits() const override { return limits_; }
  KvSpec kv() const override;
  std::vector<AttentionDeclaration> declarations() const override;
  std::vector<GroupSpec> groups() const override;
  std::uint64_t ScratchBound(const BatchShape& shape) const override;
  absl::Status ReserveSpans(Arena& arena) override;
  absl::Status Load(Arena& arena, const LoadOptions& options) override;
  // kInvalidArgument (need, have) for a shape beyond the limits the layers are declared for.
  absl::StatusOr<std::unique_ptr<ModelPass>> PlanPass(const BatchShape& shape,
                                                      bool deterministic) override;

  const std::vector<DeclaredLayer>& layers() const { return layers_; }
  const SyntheticCacheMap& caches() const { return caches_; }
  // Whether a profiling run makes sense for this mixture, and who decides that.
  ProfilingDecision profiling() const { return DecideProfiling(declarations()); }

  void Plant(const SyntheticPlants& plants) { plants_ = plants; }
  // What verification found, in layer order; empty: nothing. After Load, while the arena is awake;
  // waits for `stream`, on which the steps ran.
  absl::StatusOr<std::vector<SyntheticFinding>> Findings(Stream& stream) const;

 private:
  friend class SyntheticPass;
  // One verified buffer: its pattern's key and its row of the table of faults.
  struct Buffer {
    std::string name;
    std::uint64_t key = 0;
    std::size_t fault = 0;
  };
  struct Layer {
    Buffer weight;
    std::vector<Buffer> scratch, persistent;  // as declared
    SpanId weight_span;
    std::vector<SpanId> persistent_spans;
  };

  SyntheticStack(std::vector<DeclaredLayer> layers, SyntheticCacheMap caches,
                 const SyntheticOptions& options);
  Buffer MakeBuffer(const std::string& name);
  // A tensor of the weights, all of them in one order.
  struct Weight {
    const Buffer* buffer;
    SpanId* span;
    std::uint64_t bytes;
  };
  std::vector<Weight> Weights();
  absl::Status LoadWeights(Arena& arena, const LoadOptions& options);
  absl::Status LoadPersistent(Arena& arena, Stream& stream);

  std::vector<DeclaredLayer> layers_;
  SyntheticCacheMap caches_;
  SyntheticOptions options_;
  ModelLimits limits_;
  SyntheticPlants plants_;

  std::vector<std::string> fault_names_;  // rows of the table of faults
  std::vector<Layer> parts_;              // [layer]
  std::vector<Buffer> cache_buffers_;     // [cache]
  Buffer embed_, head_;
  bool reserved_ = false;
  Arena* arena_ = nullptr;  // set by Load
  SpanId embed_span_, head_span_, faults_span_;
};

}  // namespace holdfast

#endif  // HOLDFAST_RUNTIME_SYNTHETIC_STACK_H_
