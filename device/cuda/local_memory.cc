#include "device/cuda/local_memory.h"

#include "device/cuda/cuda_error.h"

namespace holdfast {

absl::Status LocalMemory::Release() {
  std::size_t limit = 0;
  HOLDFAST_RETURN_IF_ERROR(ToStatus(context_->driver().CtxGetLimit(&limit, CU_LIMIT_STACK_SIZE),
                                    "cuCtxGetLimit",
                                    {.object = context_->name() + " local memory"}));
  HOLDFAST_RETURN_IF_ERROR(SetLimit(0));
  limit_ = limit;
  return absl::OkStatus();
}

absl::Status LocalMemory::Restore() { return SetLimit(limit_); }

absl::Status LocalMemory::SetLimit(std::size_t bytes) const {
  const CUresult code = context_->driver().CtxSetLimit(CU_LIMIT_STACK_SIZE, bytes);
  if (code == CUDA_SUCCESS) return absl::OkStatus();
  const std::uint64_t free = code == CUDA_ERROR_OUT_OF_MEMORY ? context_->FreeBytes() : 0;
  return ToStatus(code, "cuCtxSetLimit",
                  {.object = context_->name() + " local memory", .have = free});
}

}  // namespace holdfast
