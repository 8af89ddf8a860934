// Where the caches of a stack's layers lie in the blocks of one pool, and how their rows lie in a
// page.
#ifndef HOLDFAST_RUNTIME_SYNTHETIC_CACHE_MAP_H_
#define HOLDFAST_RUNTIME_SYNTHETIC_CACHE_MAP_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/declared_layer.h"
#include "runtime/kernels/synthetic_cache.h"
#include "runtime/kv_groups.h"
#include "runtime/kv_tables.h"

namespace holdfast {

// One cache of one layer. Of the op's parameters only addresses, stride and key are missing.
struct SyntheticCache {
  std::size_t layer = 0;
  bool extra = false;  // the layer's second cache
  KvPageSpec page;
  SyntheticCacheLayout layout;
};

struct SyntheticCacheMap {
  KvGroups groups;
  SequenceLimits longest;
  KvTables tables;
  std::vector<SyntheticCache> caches;  // in the order of CachesOf
};

// kInvalidArgument as GroupCaches; kUnsupported naming backend and page if a page is no multiple of
// 4 bytes, or if a row or state is too small for its header.
absl::StatusOr<SyntheticCacheMap> MapCaches(const std::vector<DeclaredLayer>& layers);

}  // namespace holdfast

#endif  // HOLDFAST_RUNTIME_SYNTHETIC_CACHE_MAP_H_
