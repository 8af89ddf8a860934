// The engine's addresses: its arena, and the spans that are not the model's.
#include <algorithm>
#include <vector>

#include "allocator/chunk_sizes.h"
#include "device/bytes.h"
#include "runtime/engine.h"

namespace holdfast {

absl::Status Engine::MakeArena() {
  std::vector<GroupSpec> groups = model_->groups();
  std::uint64_t scratch = 0, blocks = 0;
  for (const GraphKey& key : {GraphKey{Phase::kPrefill, options_.max_prefill_tokens, 1, ""},
                              GraphKey{Phase::kDecode, options_.max_batch, 1, ""}}) {
    const BatchShape shape = ShapeOf(key);
    scratch = std::max(scratch, model_->ScratchBound(shape) + 4 * kScratchAlignment);
    blocks += InputBlock(shape).bytes + OutputBlock(shape).bytes + 4 * kScratchAlignment;
  }
  scratch = std::max(scratch * 2, options_.workspace_override.slot_bytes.value_or(0));
  HOLDFAST_ASSIGN_OR_RETURN(const std::vector<GroupSpec> slots,
                            WorkspaceManager::Groups(WorkspaceOf(scratch)));
  groups.push_back({.tag = kWorkspaceTag, .role = Role::kScratch, .extent_bytes = blocks});
  groups.insert(groups.end(), slots.begin(), slots.end());
  groups.push_back({.tag = kStateTag, .role = Role::kMutable, .extent_bytes = 64 * kKiB});
  HOLDFAST_ASSIGN_OR_RETURN(const std::uint64_t cache,
                            CheckedMultiply(static_cast<std::uint64_t>(kv_plan_.most_pages),
                                            kv_plan_.page_bytes, "KV cache"));
  groups.push_back({.tag = kCacheTag, .role = Role::kCache, .extent_bytes = cache});
  for (GroupSpec& group : groups) {
    group.chunk_bytes = options_.chunk_bytes;
    if (group.role == Role::kCache) group.chunk_bytes *= kDroppedChunkFactor;
  }
  HOLDFAST_ASSIGN_OR_RETURN(
      arena_, Arena::Create(device_, {.name = "engine", .groups = groups, .candidate_bases = {}}));
  HOLDFAST_ASSIGN_OR_RETURN(residency_, Residency::Create(*arena_, options_.residency));
  HOLDFAST_ASSIGN_OR_RETURN(lane_, Lane::Create(*arena_, "lane0"));
  return absl::OkStatus();
}

WorkspaceOptions Engine::WorkspaceOf(std::uint64_t extent_bytes) const {
  return {.micro_batches = options_.micro_batches,
          .extent_bytes = extent_bytes,
          .chunk_bytes = options_.chunk_bytes,
          .tag = kWorkspaceTag,
          .overrides = options_.workspace_override,
          .on_setting = options_.on_setting};
}

absl::Status Engine::MakeWorkspaces() {
  const std::uint64_t need = std::max(graphs_->scratch_bytes(), kScratchAlignment);
  const WorkspaceOverride& override = options_.workspace_override;
  // A slot that is forced to be too small has no addresses beyond that: whoever asks for more is
  // refused, and nobody meets addresses without pages.
  std::uint64_t bytes = std::max(need, override.slot_bytes.value_or(0));
  if (override.force) bytes = override.slot_bytes.value_or(need);
  HOLDFAST_ASSIGN_OR_RETURN(workspaces_, WorkspaceManager::Create(*arena_, WorkspaceOf(bytes)));
  if (need <= bytes) {
    HOLDFAST_RETURN_IF_ERROR(workspaces_->Reserve("graphs lane0", {{"planned scratch", need}}));
  }
  HOLDFAST_ASSIGN_OR_RETURN(workspace_, workspaces_->CaptureSpan({}));
  return absl::OkStatus();
}

absl::Status Engine::ReserveSpans() {
  std::uint64_t input = 0, output = 0;
  for (const GraphKey& key : {GraphKey{Phase::kPrefill, options_.max_prefill_tokens, 1, ""},
                              GraphKey{Phase::kDecode, options_.max_batch, 1, ""}}) {
    input = std::max(input, InputBlock(ShapeOf(key)).bytes);
    output = std::max(output, OutputBlock(ShapeOf(key)).bytes);
  }
  const auto reserve = [this](SpanId& id, const char* name, const char* tag, Role role,
                              std::uint64_t bytes) -> absl::Status {
    HOLDFAST_ASSIGN_OR_RETURN(id, arena_->Reserve({.name = name,
                                                   .tag = tag,
                                                   .role = role,
                                                   .bytes = bytes,
                                                   .owner = "engine",
                                                   .refill = nullptr}));
    return absl::OkStatus();
  };
  HOLDFAST_RETURN_IF_ERROR(reserve(input_, "lane0.input", kWorkspaceTag, Role::kScratch, input));
  HOLDFAST_RETURN_IF_ERROR(reserve(output_, "lane0.output", kWorkspaceTag, Role::kScratch, output));
  HOLDFAST_RETURN_IF_ERROR(
      reserve(step_count_, "lane0.step_count", kStateTag, Role::kMutable, sizeof(std::uint64_t)));
  HOLDFAST_RETURN_IF_ERROR(
      reserve(cache_, "kv", kCacheTag, Role::kCache,
              static_cast<std::uint64_t>(kv_plan_.most_pages) * kv_plan_.page_bytes));
  HOLDFAST_ASSIGN_OR_RETURN(host_input_, arena_->AddHostSpan("lane0.host_input", input));
  HOLDFAST_ASSIGN_OR_RETURN(host_output_, arena_->AddHostSpan("lane0.host_output", output));
  if (options_.plant_stale_pointer) HOLDFAST_RETURN_IF_ERROR(PlantForeignMemory());
  return absl::OkStatus();
}

absl::Status Engine::PlantForeignMemory() {
  const std::uint64_t bytes = device_.info().granularity;
  HOLDFAST_ASSIGN_OR_RETURN(foreign_, device_.ReserveAddress(bytes, {}));
  HOLDFAST_ASSIGN_OR_RETURN(foreign_chunk_, device_.CreateChunk(bytes));
  HOLDFAST_RETURN_IF_ERROR(device_.Map(foreign_.base, bytes, foreign_chunk_));
  return device_.SetAccess(foreign_, Access::kReadWrite);
}

}  // namespace holdfast
