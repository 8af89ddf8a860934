// Waiting for the GPU with a deadline: the driver offers none, so it is asked again and again.
#ifndef HOLDFAST_DEVICE_CUDA_POLLING_H_
#define HOLDFAST_DEVICE_CUDA_POLLING_H_

#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "device/cuda/cuda_error.h"

namespace holdfast {

// Calls query() until it says something else than cudaErrorNotReady. `call` names it in errors.
template <typename Query>
absl::Status PollUntil(std::chrono::steady_clock::time_point deadline, const std::string& object,
                       const char* call, Query query) {
  // How long the thread sleeps between two looks: short at first, so that short waits are short;
  // then long enough not to load the driver.
  std::chrono::steady_clock::duration nap = std::chrono::microseconds(5);
  constexpr std::chrono::microseconds kLongestNap{200};
  while (true) {
    const cudaError_t code = query();
    if (code != cudaErrorNotReady) return ToStatus(code, call, {.object = object});
    const auto left = deadline - std::chrono::steady_clock::now();
    if (left <= left.zero()) {
      return MakeError({.kind = ErrorKind::kDeadlineExceeded, .object = object},
                       "the work is still running");
    }
    std::this_thread::sleep_for(std::min(nap, left));
    nap = std::min<std::chrono::steady_clock::duration>(2 * nap, kLongestNap);
  }
}

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_CUDA_POLLING_H_
