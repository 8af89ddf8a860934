// What the adapters of CUDA libraries have in common: the stream as those libraries take it, and
// their status as ours. No CUDA header is needed.
#ifndef HOLDFAST_ALLOCATOR_ADAPTERS_LIBRARY_CALL_H_
#define HOLDFAST_ALLOCATOR_ADAPTERS_LIBRARY_CALL_H_

#include <string>

#include "absl/status/status.h"
#include "allocator/step_context.h"

struct CUstream_st;  // cudaStream_t is a pointer to it

namespace holdfast {

// The context's stream; null on the host device, where no CUDA library runs.
inline CUstream_st* NativeStream(const StepContext& step) {
  return static_cast<CUstream_st*>(step.stream().native());
}

// OK for 0, as all CUDA libraries mean it; else kDriver with the call's name and code.
template <typename Code>
absl::Status LibraryStatus(Code code, const std::string& object, const std::string& call) {
  if (static_cast<int>(code) == 0) return absl::OkStatus();
  return MakeError(
      {.kind = ErrorKind::kDriver, .object = object, .call = call, .code = static_cast<int>(code)},
      "the library refused");
}

}  // namespace holdfast

#endif  // HOLDFAST_ALLOCATOR_ADAPTERS_LIBRARY_CALL_H_
