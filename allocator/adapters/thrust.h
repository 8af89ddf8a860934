// Thrust's temporary storage from a step's scratch: an allocator, and the execution policy that
// uses it on the step's stream without waiting. For .cu files.
//
//   WithThrust(step, "sort", 64 * kMiB, [&](const auto& policy) {
//     thrust::sort_by_key(policy, keys, keys + count, values);
//   });
//
// Thrust says what it wants only when it runs, which it does not while a step is measured: the most
// it may take is given by the caller.
#ifndef HOLDFAST_ALLOCATOR_ADAPTERS_THRUST_H_
#define HOLDFAST_ALLOCATOR_ADAPTERS_THRUST_H_

#include <thrust/system/cuda/execution_policy.h>
#include <thrust/system_error.h>

#include <cstddef>
#include <string>

#include "allocator/adapters/library_call.h"
#include "allocator/adapters/range_resource.h"

namespace holdfast {

// What Thrust asks of an allocator. The resource outlives it.
class ThrustAllocator {
 public:
  using value_type = char;
  explicit ThrustAllocator(RangeResource* resource) : resource_(resource) {}
  char* allocate(std::ptrdiff_t bytes) {
    return static_cast<char*>(
        resource_->allocate(static_cast<std::size_t>(bytes), kScratchAlignment));
  }
  void deallocate(char* address, std::size_t bytes) {
    resource_->deallocate(address, bytes, kScratchAlignment);
  }

 private:
  RangeResource* resource_;
};

// Runs call(policy) with at most `bytes` of temporary storage. Algorithms that return a value wait
// for it and cannot be captured. kOutOfExtent if Thrust wants more, kDriver if it fails.
template <typename Call>
absl::Status WithThrust(StepContext& step, const std::string& name, std::size_t bytes,
                        Call&& call) {
  HOLDFAST_ASSIGN_OR_RETURN(const ScratchBuffer storage, step.Scratch(name, bytes));
  return step.Enqueue(name, [&]() -> absl::Status {
    RangeResource resource(name, storage);
    ThrustAllocator allocator(&resource);
    try {
      call(thrust::cuda::par_nosync(allocator).on(NativeStream(step)));
    } catch (const std::bad_alloc& e) {
      return MakeError({.kind = ErrorKind::kOutOfExtent, .object = name, .have = bytes}, e.what());
    } catch (const thrust::system_error& e) {
      return MakeError(
          {.kind = ErrorKind::kDriver, .object = name, .call = "thrust", .code = e.code().value()},
          e.what());
    }
    return absl::OkStatus();
  });
}

}  // namespace holdfast

#endif  // HOLDFAST_ALLOCATOR_ADAPTERS_THRUST_H_
