// Tensors of a checkpoint on their way into spans: read, converted, copied to the device.
//
// Either through two halves of pinned staging (one is read from the file while the other is
// copied), or through the backing pool: then each tensor is read into the very room that will be
// its backup, and the first sleep finds everything there.
#ifndef HOLDFAST_RUNTIME_WEIGHT_UPLOAD_H_
#define HOLDFAST_RUNTIME_WEIGHT_UPLOAD_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/arena.h"
#include "allocator/residency.h"
#include "device/dtype.h"
#include "runtime/safetensors.h"

namespace holdfast {

class WeightUpload {
 public:
  // `through` may be null; else the residency of `arena`. Both must outlive it.
  static absl::StatusOr<WeightUpload> Create(Arena& arena, Residency* through);

  // Fills the committed span with the tensor's elements as `type` (kF32 or kBF16). The tensor
  // exists and is F32 or BF16.
  absl::Status Upload(const Checkpoint& checkpoint, const std::string& name, DType type,
                      SpanId span);
  // After the last tensor: waits, seals the tag, and hands the rooms over as backups. kCorrupted if
  // they differ from what the device holds.
  absl::Status Finish(const std::string& tag);

 private:
  WeightUpload(Arena& arena, Residency* through) : arena_(&arena), through_(through) {}
  // Elements [first, first + count) of a tensor, as `type`, to host memory.
  absl::Status Read(const Checkpoint& checkpoint, const std::string& name, DType type,
                    std::uint64_t first, std::uint64_t count, std::byte* out);
  absl::StatusOr<std::byte*> NextHalf();
  absl::Status UploadStaged(const Checkpoint& checkpoint, const std::string& name, DType type,
                            AddressRange to);
  absl::Status UploadThrough(const Checkpoint& checkpoint, const std::string& name, DType type,
                             SpanId span);

  Arena* arena_;
  Residency* through_;
  HostBuffer staging_[2];           // without a pool
  std::unique_ptr<Stream> stream_;  // after what it copies from: destroyed first, which waits
  std::vector<std::byte> raw_;      // a tensor's own bytes, before conversion
  int turn_ = 0;
  int pending_ = 0;
};

}  // namespace holdfast

#endif  // HOLDFAST_RUNTIME_WEIGHT_UPLOAD_H_
