// 0xFF under scratch that nobody has leased: a read through a kept address gives NaN, a write is
// found by the next lease. Private to allocator/.
#ifndef HOLDFAST_ALLOCATOR_WORKSPACE_POISON_H_
#define HOLDFAST_ALLOCATOR_WORKSPACE_POISON_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "device/device.h"

namespace holdfast {

inline constexpr std::uint8_t kPoisonByte = 0xFF;

// The first leaf (kHashLeafBytes) of the range in which any byte is not poison; nullopt if there is
// none. Waits for the stream. The range begins at a multiple of 8 B.
absl::StatusOr<std::optional<std::uint64_t>> FirstTouchedLeaf(Device& device, Stream& stream,
                                                              AddressRange range);

}  // namespace holdfast

#endif  // HOLDFAST_ALLOCATOR_WORKSPACE_POISON_H_
