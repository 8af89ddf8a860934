#include "allocator/workspace_poison.h"

#include <algorithm>
#include <vector>

#include "device/hash.h"

namespace holdfast {
namespace {

Hash128 PoisonHash(std::uint64_t bytes) {
  static const std::vector<std::uint8_t>* const poison =
      new std::vector<std::uint8_t>(kHashLeafBytes, kPoisonByte);
  return HashLeafOnHost(poison->data(), bytes);
}

}  // namespace

absl::StatusOr<std::optional<std::uint64_t>> FirstTouchedLeaf(Device& device, Stream& stream,
                                                              AddressRange range) {
  const std::uint64_t leaves = (range.bytes + kHashLeafBytes - 1) / kHashLeafBytes;
  if (leaves == 0) return std::nullopt;
  HOLDFAST_ASSIGN_OR_RETURN(const HostBuffer room, device.AllocateHost(leaves * sizeof(Hash128)));
  auto* const hashes = reinterpret_cast<Hash128*>(room.data());
  HOLDFAST_RETURN_IF_ERROR(device.HashLeaves(stream, range, hashes));
  HOLDFAST_RETURN_IF_ERROR(device.Synchronize(stream));
  const Hash128 whole = PoisonHash(kHashLeafBytes);
  for (std::uint64_t leaf = 0; leaf < leaves; ++leaf) {
    const std::uint64_t bytes = std::min(kHashLeafBytes, range.bytes - leaf * kHashLeafBytes);
    if (hashes[leaf] != (bytes == kHashLeafBytes ? whole : PoisonHash(bytes))) return leaf;
  }
  return std::nullopt;
}

}  // namespace holdfast
