// Launches __global__ functions that take one struct by value.
#ifndef HOLDFAST_DEVICE_CUDA_KERNEL_LAUNCH_H_
#define HOLDFAST_DEVICE_CUDA_KERNEL_LAUNCH_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>

#include "absl/status/status.h"
#include "device/op.h"

namespace holdfast {

// Thread-safe. The context is current in every calling thread.
class KernelLauncher {
 public:
  KernelLauncher() = default;
  KernelLauncher(const KernelLauncher&) = delete;
  KernelLauncher& operator=(const KernelLauncher&) = delete;

  // Loads `function` and checks that its only parameter has `params_bytes` bytes; kInternal if the
  // CUDA twin and the parameter struct disagree. Does nothing the second time. Launch does this by
  // itself: call it for kernels that must not be loaded late, since a load waits for running
  // kernels.
  absl::Status Prepare(const std::string& name, const void* function, std::uint32_t params_bytes);

  // Enqueues it; `params` is copied before the call returns.
  absl::Status Launch(cudaStream_t stream, const std::string& name, const void* function,
                      const LaunchShape& shape, const void* params, std::uint32_t params_bytes);

 private:
  struct Function {
    bool may_use_all_shared = false;  // it has been allowed all dynamic shared memory there is
  };

  // The entry of `function`, checked. mutex_ is held.
  absl::Status Know(const std::string& name, const void* function, std::uint32_t params_bytes,
                    Function** entry);

  std::mutex mutex_;
  std::unordered_map<const void*, Function> known_;  // guarded by mutex_
};

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_CUDA_KERNEL_LAUNCH_H_
