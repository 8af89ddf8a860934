// What path gating saves: the buffers that only paths not taken would read, what leaving them out
// saves of the workspace's slots, and how many blocks of KV cache fit instead.
//
// Gross: a buffer's own bytes. Net: what the slots shrink by, which is less where another user sets
// the slot's maximum then. Blocks follow from the net saving.
#ifndef HOLDFAST_RUNTIME_PATH_SAVING_H_
#define HOLDFAST_RUNTIME_PATH_SAVING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/synthetic_spec.h"

namespace holdfast {

struct PathBudget {
  std::uint64_t bytes = 0;  // of the device, for everything
  // In use by all but scratch and cache; the pages of what lies in the workspace beside the slots
  // (input and output blocks) are counted in `beside_bytes` instead, since they share granules.
  std::uint64_t other_bytes = 0;
  std::uint64_t beside_bytes = 0;
  std::uint64_t granularity = 1;  // of pages
  std::uint64_t slots = 1;        // micro-batches times lanes
};

// A request that no call of the selected path touches.
struct UnreadRequest {
  std::string backend, name, why;
  std::string selected_path;
  std::uint64_t bytes = 0;
  std::size_t layers = 0;  // that would ask for it; they share it
};

struct PathSaving {
  std::vector<UnreadRequest> unread;
  std::uint64_t gross_bytes = 0;  // of all slots: what the most expensive layer would ask for more
  std::uint64_t ungated_slot_bytes = 0, gated_slot_bytes = 0;  // the largest layer's, packed
  std::string ungated_owner, gated_owner;                      // whose they are: "layer 1 mla_sparse"
  std::uint64_t net_bytes = 0;  // in pages of all slots
  std::uint64_t block_bytes = 0;
  std::int64_t block_tokens = 0;  // 0: its layers hold different tokens
  std::int64_t ungated_blocks = 0, gated_blocks = 0;

  std::int64_t gained_blocks() const { return gated_blocks - ungated_blocks; }
  // The gain in blocks is the net saving, to within one block.
  bool Agrees() const;
};

// Compares the layers' reservations with and without path gating, whatever their own path_gating
// says. kInvalidArgument for
// no layers, a granularity of 0 or no slots; errors as DeclaredLayer::Of, MapCaches and
// ClassicKvBlocks.
absl::StatusOr<PathSaving> SavingOfPaths(const std::vector<SyntheticLayer>& layers,
                                         const PathBudget& budget);

// A few lines for people; every figure in bytes.
std::string PathSavingText(const PathSaving& saving);

}  // namespace holdfast

#endif  // HOLDFAST_RUNTIME_PATH_SAVING_H_
