// CUB's temporary storage from a step's scratch.
//
//   WithCubStorage(step, "scan", [&](void* storage, std::size_t& bytes, cudaStream_t stream) {
//     return cub::DeviceScan::ExclusiveSum(storage, bytes, in, out, count, stream);
//   });
//
// CUB works in two phases, both made by the same call: without storage it says how much it wants,
// with storage it enqueues.
#ifndef HOLDFAST_ALLOCATOR_ADAPTERS_CUB_H_
#define HOLDFAST_ALLOCATOR_ADAPTERS_CUB_H_

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "allocator/adapters/library_call.h"

namespace holdfast {

// `call` as above; the storage lives for the length of it. The size must not depend on contents: it
// is asked for while measuring and has to be the same again.
template <typename Call>
absl::Status WithCubStorage(StepContext& step, const std::string& name, Call&& call) {
  std::size_t bytes = 0;
  HOLDFAST_RETURN_IF_ERROR(
      LibraryStatus(call(nullptr, bytes, NativeStream(step)), name, "cub size query"));
  // A null pointer would ask for the size again.
  bytes = std::max<std::size_t>(bytes, 1);
  HOLDFAST_ASSIGN_OR_RETURN(const ScratchBuffer storage, step.Scratch(name, bytes));
  return step.Enqueue(name, [&] {
    return LibraryStatus(call(storage.As<void>(), bytes, NativeStream(step)), name, "cub");
  });
}

}  // namespace holdfast

#endif  // HOLDFAST_ALLOCATOR_ADAPTERS_CUB_H_
