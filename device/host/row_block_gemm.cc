#include "device/host/row_block_gemm.h"

#define EIGEN_DONT_PARALLELIZE
#include <Eigen/Core>
#include <algorithm>
#include <utility>

namespace holdfast {
namespace {

// One float of each of the eight rows.
using Lanes = Eigen::Array<float, kRowBlock, 1>;

// Products are summed over 256 values of k before they are added to D: the panel stays in the first
// cache, and the rounding error grows with 256, not with k.
constexpr std::int64_t kDepth = 256;
// Columns of D whose sums are kept in registers at once: 12 of the 16 that AVX2 has.
constexpr int kTile = 12;

struct Panel {
  alignas(64) float values[kDepth][kRowBlock];  // [k][row]
};

void FillPanel(const RowBlock& block, std::int64_t k0, std::int64_t depth, Panel& panel) {
  for (std::int64_t row = 0; row < kRowBlock; ++row) {
    if (row < block.rows) {
      const float* a = block.a + row * block.lda + k0;
      for (std::int64_t kk = 0; kk < depth; ++kk) panel.values[kk][row] = a[kk];
    } else {
      for (std::int64_t kk = 0; kk < depth; ++kk) panel.values[kk][row] = 0.0f;
    }
  }
}

// Element (kk, column + J) of B lies at b[J * column_step + kk * depth_step].
template <int... J>
void SumTile(const Panel& panel, std::int64_t depth, const float* b, std::int64_t column_step,
             std::int64_t depth_step, float (*sums)[kRowBlock], std::integer_sequence<int, J...>) {
  Lanes acc[sizeof...(J)];
  ((acc[J] = Lanes::Zero()), ...);
  for (std::int64_t kk = 0; kk < depth; ++kk, b += depth_step) {
    const Lanes a = Eigen::Map<const Lanes, Eigen::Aligned32>(panel.values[kk]);
    ((acc[J] += a * b[J * column_step]), ...);
  }
  ((Eigen::Map<Lanes, Eigen::Aligned32>(sums[J]) = acc[J]), ...);
}

// Writes or adds the sums of `columns` columns to the rows that exist.
void Store(const RowBlock& block, std::int64_t column, int columns, const float (*sums)[kRowBlock],
           bool add) {
  for (std::int64_t row = 0; row < block.rows; ++row) {
    float* d = block.d + row * block.ldd + column;
    for (int j = 0; j < columns; ++j) d[j] = add ? d[j] + sums[j][row] : sums[j][row];
  }
}

}  // namespace

void MultiplyRowBlock(const RowBlock& block, const MatrixB& b, std::int64_t n, std::int64_t k,
                      bool accumulate) {
  const std::int64_t column_step = b.is_nk ? b.ld : 1;
  const std::int64_t depth_step = b.is_nk ? 1 : b.ld;
  Panel panel;
  alignas(64) float sums[kTile][kRowBlock];
  for (std::int64_t k0 = 0; k0 < k; k0 += kDepth) {
    const std::int64_t depth = std::min(kDepth, k - k0);
    const bool add = accumulate || k0 > 0;
    FillPanel(block, k0, depth, panel);
    const float* b_rows = b.data + k0 * depth_step;
    std::int64_t column = 0;
    for (; column + kTile <= n; column += kTile) {
      SumTile(panel, depth, b_rows + column * column_step, column_step, depth_step, sums,
              std::make_integer_sequence<int, kTile>());
      Store(block, column, kTile, sums, add);
    }
    for (; column < n; ++column) {
      SumTile(panel, depth, b_rows + column * column_step, column_step, depth_step, sums,
              std::make_integer_sequence<int, 1>());
      Store(block, column, 1, sums, add);
    }
  }
}

}  // namespace holdfast
