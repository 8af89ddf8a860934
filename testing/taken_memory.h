// Device memory that somebody else takes: the neighbour of a sleeping engine.
#ifndef HOLDFAST_TESTING_TAKEN_MEMORY_H_
#define HOLDFAST_TESTING_TAKEN_MEMORY_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device/device.h"

namespace holdfast::testing {

class TakenMemory {
 public:
  explicit TakenMemory(Device& device) : device_(device) {}
  ~TakenMemory() { Release().IgnoreError(); }  // an imbalance shows in the call table
  TakenMemory(const TakenMemory&) = delete;
  TakenMemory& operator=(const TakenMemory&) = delete;

  // Takes `bytes` (rounded down to the granularity), all of it held before any is written, fills it
  // with 0xA5 and checks a piece of each chunk. kOutOfMemory; on failure nothing is held.
  absl::Status TakeAndWrite(Stream& stream, std::uint64_t bytes);
  // Takes all that is free on the device but about `slack` bytes; writes nothing. Returns the
  // bytes.
  absl::StatusOr<std::uint64_t> TakeAllBut(std::uint64_t slack);
  absl::Status Release();

 private:
  struct Piece {
    AddressRange range;  // bytes 0: not mapped
    ChunkHandle chunk;
  };
  absl::Status Take(std::uint64_t bytes);
  absl::Status WriteOver(Stream& stream, const Piece& piece, HostBuffer& sample);

  Device& device_;
  AddressRange window_;  // bytes 0: none
  std::vector<Piece> pieces_;
};

}  // namespace holdfast::testing

#endif  // HOLDFAST_TESTING_TAKEN_MEMORY_H_
