// Device memory that no arena knows, given back at its end: what a stale pointer points to, what a
// leak holds, what a ledger has not heard of.
#ifndef HOLDFAST_TESTING_FOREIGN_MEMORY_H_
#define HOLDFAST_TESTING_FOREIGN_MEMORY_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "device/device.h"

namespace holdfast::testing {

class ForeignMemory {
 public:
  // One chunk of `bytes` (rounded up to the granularity), mapped at an address of its own. The
  // device must outlive it.
  static absl::StatusOr<std::unique_ptr<ForeignMemory>> Create(Device& device,
                                                               std::uint64_t bytes = 1);
  ~ForeignMemory();
  ForeignMemory(const ForeignMemory&) = delete;
  ForeignMemory& operator=(const ForeignMemory&) = delete;

  AddressRange range() const { return range_; }

 private:
  explicit ForeignMemory(Device& device) : device_(device) {}

  Device& device_;
  AddressRange range_;  // bytes 0: none
  ChunkHandle chunk_;
  bool mapped_ = false;
};

}  // namespace holdfast::testing

#endif  // HOLDFAST_TESTING_FOREIGN_MEMORY_H_
