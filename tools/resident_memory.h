// Host memory of this process, as the system counts it.
#ifndef HOLDFAST_TOOLS_RESIDENT_MEMORY_H_
#define HOLDFAST_TOOLS_RESIDENT_MEMORY_H_

#include <cstdint>

namespace holdfast {

// Anonymous resident bytes, after what the allocator holds idle was given back; 0 if the system
// does not say. A host device's chunks are shared memory and do not count; pinned buffers do.
std::int64_t ResidentHostBytes();

}  // namespace holdfast

#endif  // HOLDFAST_TOOLS_RESIDENT_MEMORY_H_
