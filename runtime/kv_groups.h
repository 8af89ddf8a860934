// Which layers share the blocks of the KV pool, and what a block and a sequence take of it.
//
// All caches of a model are cut out of one pool of equal blocks; a block belongs to one group of
// layers at a time. Layers whose pages hold the same tokens form one table: if all do, a block is a
// page of every layer. If they do not (sliding windows or states beside full attention), each table
// is cut into groups of as many layers as the smallest table has, and a block is a page of each
// layer of one group, padded to the largest page.
#ifndef HOLDFAST_RUNTIME_KV_GROUPS_H_
#define HOLDFAST_RUNTIME_KV_GROUPS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "attention/declaration.h"
#include "attention/sizing/kv_pages.h"

namespace holdfast {

struct KvGroup {
  KvPageSpec page;                  // of its first layer
  std::vector<std::size_t> layers;  // indices into what was grouped; at most group_layers
};

struct KvGroups {
  std::vector<KvGroup> groups;
  std::int64_t group_layers = 0;  // page slots of a block
  std::uint64_t block_bytes = 0;
  std::uint64_t padding_bytes = 0;  // of one block of every group: slots not filled
};

// The caches of the layers' declarations in order, a second cache behind the first; layers that
// keep nothing left out.
std::vector<KvPageSpec> CachesOf(const std::vector<AttentionDeclaration>& layers);

// kInvalidArgument if there is none, if one has no bytes or (unless a state) no tokens, or if a
// block does not fit 64 bits.
absl::StatusOr<KvGroups> GroupCaches(const std::vector<KvPageSpec>& caches);

// Blocks one sequence takes: its pages in every group.
std::int64_t BlocksOfSequence(const KvGroups& groups, const SequenceLimits& limits);

// The null block is never a sequence's.
inline constexpr std::int64_t kReservedBlocks = 1;

// kOutOfMemory (need, have: blocks) naming what is missing unless `blocks`, the null block among
// them, hold one sequence that takes `sequence_blocks`.
absl::Status CheckOneSequenceFits(std::int64_t blocks, std::int64_t sequence_blocks);

// The longest sequence that `blocks` hold, up to `limits.tokens`; 0 if none.
std::int64_t LongestSequence(const KvGroups& groups, std::int64_t blocks, SequenceLimits limits);

}  // namespace holdfast

#endif  // HOLDFAST_RUNTIME_KV_GROUPS_H_
