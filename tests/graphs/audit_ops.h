// Kernels whose parameters the audit has a hard time with, with both twins.
#ifndef HOLDFAST_TESTS_GRAPHS_AUDIT_OPS_H_
#define HOLDFAST_TESTS_GRAPHS_AUDIT_OPS_H_

#include <cstdint>

#include "device/op.h"

namespace holdfast {

// *data += add, the pointer at offset 4: no aligned word holds it.
struct __attribute__((packed)) PackedParams {
  std::uint32_t add;
  std::uint32_t* data;
};
static_assert(sizeof(PackedParams) == 12);
const Op& PackedOp();

// *table[i] = value for i in [0, count): the pointers lie in memory.
struct TableParams {
  std::uint32_t* const* table;  // (count)
  std::int64_t count;
  std::uint32_t value;
};
const Op& TableOp();

#if HOLDFAST_WITH_CUDA
const void* PackedCuda();
const void* TableCuda();
#endif

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_GRAPHS_AUDIT_OPS_H_
