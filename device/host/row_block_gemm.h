// The host's matrix product, eight rows at a time. A row's bits depend on that row of A and on B,
// never on the other rows, their number, or where the row stands: the eight rows are the lanes of
// one vector, every lane goes through the same operations in the same order, and absent rows are
// zero lanes.
#ifndef HOLDFAST_DEVICE_HOST_ROW_BLOCK_GEMM_H_
#define HOLDFAST_DEVICE_HOST_ROW_BLOCK_GEMM_H_

#include <cstdint>

namespace holdfast {

inline constexpr std::int64_t kRowBlock = 8;

// Up to kRowBlock rows of A and D, row-major.
struct RowBlock {
  const float* a;  // (rows, k), lda apart
  float* d;        // (rows, n), ldd apart
  std::int64_t rows;
  std::int64_t lda, ldd;
};

struct MatrixB {
  const float* data;  // (n, k) if is_nk, else (k, n); ld apart
  std::int64_t ld;
  bool is_nk;
};

// d = a * op(b), or d += if `accumulate`. Uses the stack only.
void MultiplyRowBlock(const RowBlock& block, const MatrixB& b, std::int64_t n, std::int64_t k,
                      bool accumulate);

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_HOST_ROW_BLOCK_GEMM_H_
