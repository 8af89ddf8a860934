#include "tests/graphs/audit_ops.h"

namespace holdfast {
namespace {

__global__ void Packed(PackedParams p) {
  if (blockIdx.x == 0 && threadIdx.x == 0) *p.data += p.add;
}

__global__ void Table(TableParams p) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < p.count) *p.table[i] = p.value;
}

}  // namespace

const void* PackedCuda() { return reinterpret_cast<const void*>(&Packed); }
const void* TableCuda() { return reinterpret_cast<const void*>(&Table); }

}  // namespace holdfast
