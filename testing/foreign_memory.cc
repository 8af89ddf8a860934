#include "testing/foreign_memory.h"

#include "device/bytes.h"

namespace holdfast::testing {

absl::StatusOr<std::unique_ptr<ForeignMemory>> ForeignMemory::Create(Device& device,
                                                                     std::uint64_t bytes) {
  bytes = AlignUp(bytes, device.info().granularity);
  std::unique_ptr<ForeignMemory> self(new ForeignMemory(device));
  HOLDFAST_ASSIGN_OR_RETURN(self->range_, device.ReserveAddress(bytes, {}));
  HOLDFAST_ASSIGN_OR_RETURN(self->chunk_, device.CreateChunk(bytes));
  HOLDFAST_RETURN_IF_ERROR(device.Map(self->range_.base, bytes, self->chunk_));
  self->mapped_ = true;
  HOLDFAST_RETURN_IF_ERROR(device.SetAccess(self->range_, Access::kReadWrite));
  return self;
}

ForeignMemory::~ForeignMemory() {
  // What cannot be given back shows in the call table.
  if (mapped_) device_.Unmap(range_).IgnoreError();
  if (chunk_) device_.ReleaseChunk(chunk_).IgnoreError();
  if (range_.bytes > 0) device_.FreeAddress(range_).IgnoreError();
}

}  // namespace holdfast::testing
