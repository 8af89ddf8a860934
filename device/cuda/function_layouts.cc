#include "device/cuda/function_layouts.h"

#include <utility>

namespace holdfast {

absl::StatusOr<const FunctionLayout*> FunctionLayouts::Of(CUfunction function, CUkernel kernel) {
  const void* const key =
      function != nullptr ? static_cast<const void*>(function) : static_cast<const void*>(kernel);
  if (key == nullptr) {
    return MakeError({.kind = ErrorKind::kUnauditable, .object = "kernel node"},
                     "the node names no function");
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (const auto known = known_.find(key); known != known_.end()) return known->second.get();
  HOLDFAST_ASSIGN_OR_RETURN(FunctionLayout layout, Read(function, kernel));
  auto& entry = known_[key];
  entry = std::make_unique<const FunctionLayout>(std::move(layout));
  return entry.get();
}

absl::StatusOr<FunctionLayout> FunctionLayouts::Read(CUfunction function, CUkernel kernel) const {
  const DriverTable& driver = context_->driver();
  FunctionLayout layout;
  const char* name = nullptr;
  if (function != nullptr) {
    HOLDFAST_RETURN_IF_ERROR(ToStatus(driver.FuncGetName(&name, function), "cuFuncGetName"));
  } else {
    HOLDFAST_RETURN_IF_ERROR(ToStatus(driver.KernelGetName(&name, kernel), "cuKernelGetName"));
  }
  layout.name = name != nullptr ? name : "unnamed kernel";
  // There is no call for the count: one past the last parameter answers "invalid value".
  for (std::size_t index = 0;; ++index) {
    std::size_t offset = 0;
    std::size_t bytes = 0;
    const CUresult code = function != nullptr
                              ? driver.FuncGetParamInfo(function, index, &offset, &bytes)
                              : driver.KernelGetParamInfo(kernel, index, &offset, &bytes);
    if (code == CUDA_ERROR_INVALID_VALUE) return layout;
    HOLDFAST_RETURN_IF_ERROR(
        ToStatus(code, function != nullptr ? "cuFuncGetParamInfo" : "cuKernelGetParamInfo",
                 {.object = layout.name}));
    layout.parameters.push_back(
        {static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(bytes)});
  }
}

}  // namespace holdfast
