#include <cmath>

#include "gtest/gtest.h"
#include "runtime/kernels/dense.h"
#include "tests/attention/numbers.h"
#include "tests/attention/test_memory.h"
#include "tests/device/test_device.h"

namespace holdfast {
namespace {

template <typename T>
class DenseKernelsTest : public testing::Test {
 protected:
  std::unique_ptr<Device> device_ = TestDevice();
  TestMemory memory_{*device_, 4 * kMiB};
  std::mt19937 random_{1};
};
using Types = testing::Types<float, Bf16>;
TYPED_TEST_SUITE(DenseKernelsTest, Types);

// Rows of the table exactly; zeros for pads and for tokens the table does not have.
TYPED_TEST(DenseKernelsTest, EmbedCopiesRowsAndZeroesUnknownTokens) {
  constexpr int kVocab = 11, kWidth = 300;
  const std::vector<TypeParam> table = Stored<TypeParam>(Normal(this->random_, kVocab * kWidth));
  const std::vector<std::int32_t> tokens = {3, -1, 0, 10, 11, 3, INT32_MIN, INT32_MAX};
  TestMemory& memory = this->memory_;
  float* out = memory.template Allocate<float>(tokens.size() * kWidth);
  const EmbedParams params = {.tokens = memory.Upload(tokens),
                              .table = memory.Upload(table),
                              .out = out,
                              .rows = static_cast<std::int32_t>(tokens.size()),
                              .width = kWidth,
                              .vocab = kVocab};
  memory.Run(EmbedOp(kTypeOf<TypeParam>), EmbedShape(params), params);
  const std::vector<float> result = memory.Read(out, tokens.size() * kWidth);
  for (std::size_t r = 0; r < tokens.size(); ++r) {
    const bool known = tokens[r] >= 0 && tokens[r] < kVocab;
    for (int i = 0; i < kWidth; ++i) {
      ASSERT_EQ(result[r * kWidth + i], known ? ToFloat(table[tokens[r] * kWidth + i]) : 0.0f);
    }
  }
  EXPECT_TRUE(memory.GuardsIntact());
}

// RMS norm of selected rows, in float64; `mean_removed` plants the mistake of a layer norm.
template <typename T>
std::vector<double> NormReference(const std::vector<float>& in, int stride,
                                  const std::vector<T>& weight,
                                  const std::vector<std::int32_t>& index, double epsilon,
                                  bool mean_removed = false) {
  const int width = static_cast<int>(weight.size());
  std::vector<double> out;
  for (std::int32_t row : index) {
    double mean = 0, square = 0;
    for (int i = 0; row >= 0 && mean_removed && i < width; ++i)
      mean += double(in[row * stride + i]) / width;
    for (int i = 0; row >= 0 && i < width; ++i)
      square += std::pow(in[row * stride + i] - mean, 2) / width;
    for (int i = 0; i < width; ++i) {
      out.push_back(row < 0 ? 0
                            : (in[row * stride + i] - mean) / std::sqrt(square + epsilon) *
                                  ToFloat(weight[i]));
    }
  }
  return out;
}

TYPED_TEST(DenseKernelsTest, RmsNormAgreesWithFloat64) {
  constexpr int kRows = 5, kGap = 3;
  TestMemory& memory = this->memory_;
  for (int width : {1, 7, 64, 257, 5120}) {
    const int stride = width + kGap;
    const std::vector<float> in = Normal(this->random_, kRows * stride, 0.5f, 2);
    const std::vector<TypeParam> weight = Stored<TypeParam>(Normal(this->random_, width, 1, 0.3f));
    TypeParam* out = memory.template Allocate<TypeParam>(kRows * stride);
    RmsNormParams params = {.in = memory.Upload(in),
                            .weight = memory.Upload(weight),
                            .out = out,
                            .row_index = nullptr,
                            .in_stride = stride,
                            .out_stride = stride,
                            .rows = kRows,
                            .width = width,
                            .epsilon = 0.125f};
    const auto run = [&] {
      memory.Run(RmsNormOp(kTypeOf<TypeParam>), RmsNormShape(params), params);
      std::vector<double> result;
      const std::vector<double> all = Widened(memory.Read(out, kRows * stride));
      for (int r = 0; r < kRows; ++r) {
        result.insert(result.end(), all.begin() + r * stride, all.begin() + r * stride + width);
        for (int g = 0; g < kGap; ++g)
          EXPECT_TRUE(std::isnan(all[r * stride + width + g])) << "gap written";
      }
      return result;
    };
    const std::vector<std::int32_t> all_rows = {0, 1, 2, 3, 4};
    EXPECT_LE(RelativeL2(run(), NormReference(in, stride, weight, all_rows, 0.125)),
              kThreshold<TypeParam>);
    // Chosen rows, twice the same, and a pad.
    const std::vector<std::int32_t> chosen = {4, -1, 0, 4, 2};
    params.row_index = memory.Upload(chosen);
    const std::vector<double> result = run();
    EXPECT_LE(RelativeL2(result, NormReference(in, stride, weight, chosen, 0.125)),
              kThreshold<TypeParam>);
    for (int i = 0; i < width; ++i) EXPECT_EQ(result[width + i], 0) << "pad row is not zero";
    // Negative controls: the threshold tells mistakes apart.
    EXPECT_GE(RelativeL2(result, NormReference(in, stride, weight, chosen, 0.125, true)),
              10 * kThreshold<TypeParam>);
    EXPECT_GE(RelativeL2(result, NormReference(in, stride, weight, chosen, 1.0)),
              10 * kThreshold<TypeParam>);
  }
  EXPECT_TRUE(memory.GuardsIntact());
}

// A row of NaN spoils itself only, and a row's bits are the same at another place.
TYPED_TEST(DenseKernelsTest, RmsNormRowsAreIndependent) {
  constexpr int kWidth = 300;
  TestMemory& memory = this->memory_;
  std::vector<float> in = Normal(this->random_, 3 * kWidth);
  std::fill_n(in.begin() + kWidth, kWidth, kNaN);
  TypeParam* out = memory.template Allocate<TypeParam>(4 * kWidth);
  const RmsNormParams params = {
      .in = memory.Upload(in),
      .weight = memory.Upload(Stored<TypeParam>(Normal(this->random_, kWidth))),
      .out = out,
      .row_index = memory.Upload(std::vector<std::int32_t>{2, 1, 0, 2}),
      .in_stride = kWidth,
      .out_stride = kWidth,
      .rows = 4,
      .width = kWidth,
      .epsilon = 1e-6f};
  memory.Run(RmsNormOp(kTypeOf<TypeParam>), RmsNormShape(params), params);
  const std::vector<double> result = Widened(memory.Read(out, 4 * kWidth));
  for (int i = 0; i < kWidth; ++i) {
    EXPECT_TRUE(std::isnan(result[kWidth + i]));
    EXPECT_FALSE(std::isnan(result[2 * kWidth + i]));
    EXPECT_EQ(result[i], result[3 * kWidth + i]);
  }
}

TYPED_TEST(DenseKernelsTest, SiluMulAgreesWithFloat64AtAnySize) {
  TestMemory& memory = this->memory_;
  for (std::int64_t count : {1, 255, 256, 257, 100'000}) {
    std::vector<float> gate_values = Normal(this->random_, count, 0, 4);
    gate_values[0] = -200;  // exp(200) is infinite in float: the result is 0, not NaN
    const std::vector<TypeParam> gate = Stored<TypeParam>(gate_values);
    const std::vector<TypeParam> up = Stored<TypeParam>(Normal(this->random_, count));
    TypeParam* out = memory.template Allocate<TypeParam>(count);
    const SiluMulParams params = {
        .gate = memory.Upload(gate), .up = memory.Upload(up), .out = out, .count = count};
    memory.Run(SiluMulOp(kTypeOf<TypeParam>), SiluMulShape(params), params);
    const std::vector<double> result = Widened(memory.Read(out, count));
    EXPECT_NEAR(result[0], 0, 1e-30);
    std::vector<double> expected, swapped;
    for (std::int64_t i = 0; i < count; ++i) {
      const double g = ToFloat(gate[i]), u = ToFloat(up[i]);
      expected.push_back(i == 0 ? result[0] : g / (1 + std::exp(-g)) * u);
      swapped.push_back(u / (1 + std::exp(-u)) * g);
    }
    EXPECT_LE(RelativeL2(result, expected), kThreshold<TypeParam>);
    EXPECT_GE(RelativeL2(result, swapped), 10 * kThreshold<TypeParam>);  // negative control
  }
  EXPECT_TRUE(memory.GuardsIntact());
}

}  // namespace
}  // namespace holdfast
