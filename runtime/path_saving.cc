#include "runtime/path_saving.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "device/bytes.h"
#include "device/error.h"
#include "runtime/declared_layer.h"
#include "runtime/kv_sizing.h"
#include "runtime/synthetic_cache_map.h"

namespace holdfast {
namespace {

// The layers as declared with path gating on or off, and whose scratch is the largest.
struct Declared {
  std::vector<DeclaredLayer> layers;
  std::uint64_t slot_bytes = 0;
  std::string owner = "nobody";
};

absl::StatusOr<Declared> DeclareAll(const std::vector<SyntheticLayer>& layers, bool gated) {
  Declared all;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    SyntheticLayer layer = layers[i];
    layer.config.path_gating = gated;
    HOLDFAST_ASSIGN_OR_RETURN(DeclaredLayer declared, DeclaredLayer::Of(layer));
    if (declared.packed_bytes() > all.slot_bytes) {
      all.slot_bytes = declared.packed_bytes();
      all.owner = absl::StrCat("layer ", i, " ", layer.backend);
    }
    all.layers.push_back(std::move(declared));
  }
  return all;
}

void CountUnread(const DeclaredLayer& layer, std::vector<UnreadRequest>& unread) {
  const AttentionDeclaration& declaration = layer.declaration();
  for (std::size_t i = 0; i < declaration.scratch.size(); ++i) {
    const DeclaredRequest& request = declaration.scratch[i];
    const std::uint64_t bytes = request.bytes - layer.touched_bytes(i);
    if (bytes == 0) continue;
    const auto known = std::find_if(unread.begin(), unread.end(), [&](const UnreadRequest& u) {
      return u.backend == layer.backend() && u.name == request.name && u.bytes == bytes;
    });
    if (known != unread.end()) {
      ++known->layers;
      continue;
    }
    unread.push_back({.backend = layer.backend(),
                      .name = request.name,
                      .why = request.why,
                      .selected_path = declaration.path,
                      .bytes = bytes,
                      .layers = 1});
  }
}

// Pages of the workspace whose slots have `slot_bytes` each.
absl::StatusOr<std::uint64_t> WorkspacePages(std::uint64_t slot_bytes, const PathBudget& budget) {
  HOLDFAST_ASSIGN_OR_RETURN(std::uint64_t bytes,
                            CheckedMultiply(slot_bytes, budget.slots, "workspace slots"));
  HOLDFAST_ASSIGN_OR_RETURN(bytes, CheckedAdd(bytes, budget.beside_bytes, "workspace"));
  const std::uint64_t rest = bytes % budget.granularity;
  if (rest == 0) return bytes;
  return CheckedAdd(bytes, budget.granularity - rest, "workspace");
}

absl::StatusOr<std::int64_t> BlocksBeside(std::uint64_t workspace, const PathBudget& budget,
                                          std::uint64_t block_bytes) {
  const auto total = static_cast<std::int64_t>(budget.bytes);
  HOLDFAST_ASSIGN_OR_RETURN(
      const std::uint64_t non_kv,
      CheckedAdd(workspace, budget.other_bytes, "what is not cache"));
  HOLDFAST_ASSIGN_OR_RETURN(
      const KvSizing sizing,
      ClassicKvBlocks({.total = total,
                       .free = total,
                       .non_kv = static_cast<std::int64_t>(non_kv),
                       .block_bytes = static_cast<std::int64_t>(block_bytes)}));
  return sizing.blocks;
}

}  // namespace

bool PathSaving::Agrees() const {
  const auto gained = static_cast<std::int64_t>(block_bytes) * gained_blocks();
  const std::int64_t difference = gained - static_cast<std::int64_t>(net_bytes);
  return difference < static_cast<std::int64_t>(block_bytes) &&
         -difference < static_cast<std::int64_t>(block_bytes);
}

absl::StatusOr<PathSaving> SavingOfPaths(const std::vector<SyntheticLayer>& layers,
                                         const PathBudget& budget) {
  if (layers.empty() || budget.granularity == 0 || budget.slots == 0) {
    return MakeError({.kind = ErrorKind::kInvalidArgument, .object = "path saving"},
                     "needs at least one layer, one slot and a granularity");
  }
  HOLDFAST_ASSIGN_OR_RETURN(const Declared ungated, DeclareAll(layers, false));
  HOLDFAST_ASSIGN_OR_RETURN(const Declared gated, DeclareAll(layers, true));
  HOLDFAST_ASSIGN_OR_RETURN(const SyntheticCacheMap caches, MapCaches(gated.layers));
  PathSaving saving{.ungated_slot_bytes = ungated.slot_bytes,
                    .gated_slot_bytes = gated.slot_bytes,
                    .ungated_owner = ungated.owner,
                    .gated_owner = gated.owner,
                    .block_bytes = caches.groups.block_bytes};
  if (caches.groups.groups.size() == 1) {
    saving.block_tokens = caches.groups.groups.front().page.page_tokens;
  }
  for (std::size_t i = 0; i < layers.size(); ++i) {
    CountUnread(ungated.layers[i], saving.unread);
    const std::uint64_t more =
        ungated.layers[i].packed_bytes() - gated.layers[i].packed_bytes();
    saving.gross_bytes = std::max(saving.gross_bytes, more);
  }
  HOLDFAST_ASSIGN_OR_RETURN(saving.gross_bytes,
                            CheckedMultiply(saving.gross_bytes, budget.slots, "gross saving"));
  HOLDFAST_ASSIGN_OR_RETURN(const std::uint64_t ungated_pages,
                            WorkspacePages(ungated.slot_bytes, budget));
  HOLDFAST_ASSIGN_OR_RETURN(const std::uint64_t gated_pages,
                            WorkspacePages(gated.slot_bytes, budget));
  saving.net_bytes = ungated_pages - gated_pages;
  HOLDFAST_ASSIGN_OR_RETURN(saving.ungated_blocks,
                            BlocksBeside(ungated_pages, budget, saving.block_bytes));
  HOLDFAST_ASSIGN_OR_RETURN(saving.gated_blocks,
                            BlocksBeside(gated_pages, budget, saving.block_bytes));
  return saving;
}

std::string PathSavingText(const PathSaving& s) {
  std::string text = "path gating\n";
  for (const UnreadRequest& u : s.unread) {
    absl::StrAppendFormat(&text, "  not reserved  %s of %s (%d layers), %s: %s; path %s is taken\n",
                          u.name, u.backend, u.layers, FormatBytes(u.bytes), u.why,
                          u.selected_path);
  }
  if (s.unread.empty()) text += "  every declared buffer is read by the paths taken\n";
  absl::StrAppendFormat(&text, "  gross saving  %s\n", FormatBytes(s.gross_bytes));
  absl::StrAppendFormat(&text, "  net saving    %s: a slot's maximum is %s (%s), was %s (%s)\n",
                        FormatBytes(s.net_bytes), FormatBytes(s.gated_slot_bytes), s.gated_owner,
                        FormatBytes(s.ungated_slot_bytes), s.ungated_owner);
  absl::StrAppendFormat(&text, "  KV blocks     %d, was %d: %d more of %s", s.gated_blocks,
                        s.ungated_blocks, s.gained_blocks(), FormatBytes(s.block_bytes));
  if (s.block_tokens > 0) {
    absl::StrAppendFormat(&text, ", %d tokens", s.gained_blocks() * s.block_tokens);
  }
  return text + "\n";
}

}  // namespace holdfast
