// The engine: a model, its captured graphs and its arena, taken through the life cycle
//
//   Loading -> Profiling -> Planned -> Locked -> Serving <-> Draining -> Asleep
//
// Create does everything up to Serving: loads and seals the weights, measures and warms up every
// bucket with all rows on the null page, plans scratch, captures and audits largest first, locks,
// and only then sizes the KV cache from what is really left. Afterwards Generate, Sleep and Wake,
// any number of times.
#ifndef HOLDFAST_RUNTIME_ENGINE_H_
#define HOLDFAST_RUNTIME_ENGINE_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/arena.h"
#include "allocator/ledger.h"
#include "allocator/residency.h"
#include "allocator/workspace.h"
#include "graphs/graph_set.h"
#include "runtime/generate.h"
#include "runtime/kv_budget.h"
#include "runtime/kv_pages.h"
#include "runtime/kv_plan.h"
#include "runtime/kv_tables.h"
#include "runtime/memory_profile.h"
#include "runtime/model.h"

namespace holdfast {

inline constexpr char kCacheTag[] = "kv_cache";
inline constexpr char kWorkspaceTag[] = "workspace";
inline constexpr char kStateTag[] = "state";

struct EngineOptions {
  // Shapes
  std::int32_t max_batch = 64;            // sequences decoded together
  std::int32_t max_prefill_tokens = 128;  // tokens of one prefill pass; longer prompts take several
  std::int32_t max_sequence = 256;   // prompt and output together; cut to the model's own limit
  std::vector<int> decode_buckets;   // empty: the default rule
  std::vector<int> prefill_buckets;  // empty: powers of two from 16
  // Memory
  // Share of the device that this process may hold once KV is committed; what neighbours hold is
  // theirs. Or, instead of it, what the cache itself gets.
  double utilization = 0.9;
  std::optional<std::variant<CacheBytes, CacheBlocks>> kv_amount;
  std::int32_t draft_tokens = 0;  // proposed ahead: the longest sequence has as many slots more
  std::uint64_t chunk_bytes = 256 * kMiB;
  ResidencyOptions residency;
  // Slots of the workspace; all of the same bytes, committed and locked together. The engine's own
  // graphs run in the first: the others are for whoever runs micro-batches beside them.
  std::int32_t micro_batches = 1;
  WorkspaceOverride workspace_override;  // from ReadWorkspaceOverride
  SettingSink on_setting;                // told the workspace's values in effect; may be null
  // Weights are read into the backing pool and stay there: host memory is taken at the start, and
  // the first sleep copies nothing.
  bool load_through_pool = false;
  // Outputs
  bool deterministic = false;  // equal rows give equal bits in every bucket and batch
  // Called with each step of Create and what is known of it; may be null.
  std::function<void(const std::string& stage)> on_stage;
  void (*on_load)(std::uint64_t done, std::uint64_t total) = nullptr;  // weights; may be null
  // Planted by a negative control: the graphs get a pointer to memory outside the arena.
  bool plant_stale_pointer = false;
  // Planted by a negative control: neighbours' bytes count as ours.
  bool plant_neighbours_bytes = false;

  KvBudget kv_budget() const;  // the one of utilization and kv_amount that counts
  void set_kv_budget(const KvBudget& budget);
};

enum class EngineState { kLoading, kProfiling, kPlanned, kLocked, kServing, kDraining, kAsleep };
const char* EngineStateName(EngineState state);

// What ResizeCache did.
struct CacheResize {
  std::int32_t pages_before = 0, pages = 0;
  std::uint64_t committed_bytes = 0;   // behind the cache now
  std::uint64_t taken_bytes = 0;       // from the device
  std::uint64_t given_back_bytes = 0;  // to it: whole chunks only, so often fewer than were asked
};

class Engine {
 public:
  // Errors leave nothing behind. The device must outlive the engine. kOutOfMemory (need, have: in
  // pages) if not even one sequence of max_sequence fits beside what was measured, or if not all of
  // kv_amount is free; no page of the cache but the null page was taken then.
  static absl::StatusOr<std::unique_ptr<Engine>> Create(Device& device,
                                                        std::unique_ptr<Model> model,
                                                        EngineOptions options);
  ~Engine();

  // Generates to the end of every request, in waves of at most max_batch sequences.
  // kInvalidArgument naming the request for an empty prompt, a token outside the vocabulary, or a
  // sequence longer than the maximum, before any work; kAsleep naming the tag. One call at a time.
  absl::StatusOr<std::vector<Completion>> Generate(const std::vector<GenerateRequest>& requests);

  // As Residency::Sleep and Wake. Sequences do not outlive a Generate call, so nothing is lost with
  // the cache.
  absl::StatusOr<TransitionReport> Sleep(const std::vector<std::string>& tags,
                                         std::chrono::milliseconds deadline);
  absl::StatusOr<TransitionReport> Wake(const std::vector<std::string>& tags);

  // Grows or shrinks the cache in place to `pages`, the null page among them: no address changes,
  // and no graph is captured anew. Pages come from what the budget leaves now (a kv_amount of
  // blocks is only where it began), and go back in whole chunks. A Generate under way may fail as
  // kBusy. kInvalidArgument (fewer than one longest sequence needs) and kOutOfExtent (need, have:
  // pages); kAsleep; kOutOfMemory (need, have: pages) beyond the budget or the device; kHeld naming
  // the pages of sequences, or who registered the cache; kDeadlineExceeded. On failure the cache is
  // as it was.
  absl::StatusOr<CacheResize> ResizeCache(std::int32_t pages, std::chrono::milliseconds deadline);

  EngineState state() const { return state_.load(); }
  const EngineOptions& options() const { return options_; }
  const Model& model() const { return *model_; }
  Device& device() const { return device_; }
  Arena& arena() { return *arena_; }
  Residency& residency() { return *residency_; }
  GraphSet& graphs() { return *graphs_; }
  Lane& lane() { return *lane_; }
  SpanId workspace() const { return workspace_; }  // the slot that the graphs run in
  WorkspaceManager& workspaces() { return *workspaces_; }
  const KvPlan& kv_plan() const { return kv_plan_; }
  // What profiling found.
  const MemoryProfile& memory_profile() const { return profile_; }
  // Whose is the device memory that this process holds, now. Never waits for a transition.
  absl::StatusOr<LedgerReport> Memory() const { return ledger_->Report({arena_.get()}); }
  // Replays counted on the device by the graphs themselves (a `mutable` span, kept across sleep).
  absl::StatusOr<std::uint64_t> StepCount();

 private:
  friend class Generator;
  friend class StartPlanner;
  Engine(Device& device, std::unique_ptr<Model> model, EngineOptions options);

  absl::Status CheckOptions();
  // Runs `part` and puts down what the driver took meanwhile under the owner.
  absl::Status Measured(const char* owner, const std::function<absl::Status()>& part);
  absl::Status MakeArena();
  absl::Status ReserveSpans();
  // Of slots of `extent_bytes`.
  WorkspaceOptions WorkspaceOf(std::uint64_t extent_bytes) const;
  absl::Status MakeWorkspaces();
  // Leaves the graph set measured, and the workspace reserved.
  absl::Status MeasureBuckets();
  absl::Status Profile(OpenProfile open);
  absl::Status WarmUp(HeldProfile& held);
  absl::Status CaptureAndLock();
  Counting counting() const;
  std::uint64_t cache_committed_bytes() const;  // whole granules
  absl::Status SizeCache();
  absl::Status GrowCache(std::int32_t pages);
  absl::Status ShrinkCache(std::int32_t pages, std::chrono::milliseconds deadline);
  BatchShape ShapeOf(const GraphKey& key) const;
  absl::StatusOr<Step> MakeStep(const GraphKey& key);
  absl::Status PlantForeignMemory();
  void Enter(EngineState state, const std::string& stage);

  Device& device_;
  std::unique_ptr<Model> model_;
  EngineOptions options_;
  std::atomic<EngineState> state_{EngineState::kLoading};
  KvTables tables_;                // of one sequence
  std::int32_t table_stride_ = 0;  // pages of the longest sequence

  std::unique_ptr<Ledger> ledger_;
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<Residency> residency_;
  std::unique_ptr<WorkspaceManager> workspaces_;  // since the buckets are measured
  std::unique_ptr<Lane> lane_;
  std::unique_ptr<GraphSet> graphs_;
  SpanId input_, output_, workspace_, cache_, step_count_;
  const HostSpan* host_input_ = nullptr;
  const HostSpan* host_output_ = nullptr;
  MemoryProfile profile_;
  KvPlan kv_plan_;
  KvPages pages_;
  std::mutex resize_mutex_;  // one ResizeCache at a time
  AddressRange foreign_;     // only with plant_stale_pointer
  ChunkHandle foreign_chunk_;
};

}  // namespace holdfast

#endif  // HOLDFAST_RUNTIME_ENGINE_H_
