// Element types of tensors.
#ifndef HOLDFAST_DEVICE_DTYPE_H_
#define HOLDFAST_DEVICE_DTYPE_H_

#include <cstdint>

namespace holdfast {

enum class DType { kF32, kBF16, kF16, kI32, kU8 };

constexpr std::uint64_t DTypeBytes(DType type) {
  switch (type) {
    case DType::kF32:
    case DType::kI32: return 4;
    case DType::kBF16:
    case DType::kF16: return 2;
    case DType::kU8: return 1;
  }
  return 0;
}

constexpr const char* DTypeName(DType type) {
  switch (type) {
    case DType::kF32: return "f32";
    case DType::kBF16: return "bf16";
    case DType::kF16: return "f16";
    case DType::kI32: return "i32";
    case DType::kU8: return "u8";
  }
  return "?";
}

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_DTYPE_H_
