// The reserve for kernels' stacks: the driver's own, sized by the stack limit.
//
// Seen on an H200 (driver 580): the limit follows the largest stack of all kernels that ran (16 KiB
// a thread: 3.9 GiB for the whole GPU). Setting it to 0 gives everything back, also what the driver
// had from the start (264 MiB), in about 2 ms, with graphs alive that need it; setting it to what
// it was takes everything again within the call (0.3 ms), so that the next launch finds its stack.
// Lowering waits for running kernels. So the limit alone is enough: nothing has to be launched.
#ifndef HOLDFAST_DEVICE_CUDA_LOCAL_MEMORY_H_
#define HOLDFAST_DEVICE_CUDA_LOCAL_MEMORY_H_

#include <cstddef>

#include "absl/status/status.h"
#include "device/cuda/cuda_context.h"

namespace holdfast {

// Not thread-safe: Device serialises the calls. The context is current in every calling thread.
class LocalMemory {
 public:
  explicit LocalMemory(const CudaContext* context) : context_(context) {}

  absl::Status Release();
  // After Release. kOutOfMemory: kernels that need a stack would fail to launch now.
  absl::Status Restore();

 private:
  absl::Status SetLimit(std::size_t bytes) const;

  const CudaContext* context_;
  std::size_t limit_ = 0;  // bytes a thread, when it was released
};

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_CUDA_LOCAL_MEMORY_H_
