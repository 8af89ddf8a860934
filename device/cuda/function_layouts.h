// What is known of kernel functions: name and parameter layout, asked for once a function.
#ifndef HOLDFAST_DEVICE_CUDA_FUNCTION_LAYOUTS_H_
#define HOLDFAST_DEVICE_CUDA_FUNCTION_LAYOUTS_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "device/cuda/cuda_context.h"

namespace holdfast {

struct FunctionLayout {
  struct Parameter {
    std::uint32_t offset = 0;  // as reported; the first need not be 0
    std::uint32_t bytes = 0;
  };
  std::string name;  // mangled
  std::vector<Parameter> parameters;
};

// Thread-safe. Entries live as long as it does: a function's handle must not be given to another
// function, so code that has been captured must not be unloaded.
class FunctionLayouts {
 public:
  explicit FunctionLayouts(const CudaContext* context) : context_(context) {}
  FunctionLayouts(const FunctionLayouts&) = delete;
  FunctionLayouts& operator=(const FunctionLayouts&) = delete;

  // Of `function`, or of `kernel` where that is null, as in the driver's node parameters. Failures
  // are not remembered.
  absl::StatusOr<const FunctionLayout*> Of(CUfunction function, CUkernel kernel);

 private:
  absl::StatusOr<FunctionLayout> Read(CUfunction function, CUkernel kernel) const;

  const CudaContext* context_;
  std::mutex mutex_;
  std::unordered_map<const void*, std::unique_ptr<const FunctionLayout>>
      known_;  // guarded by mutex_
};

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_CUDA_FUNCTION_LAYOUTS_H_
