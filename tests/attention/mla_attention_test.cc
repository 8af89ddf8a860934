#include "attention/kernels/mla_attention.h"

#include <cstring>

#include "gtest/gtest.h"
#include "tests/attention/mla_case.h"
#include "tests/device/test_device.h"

namespace holdfast {
namespace {

constexpr double kLseThreshold = 2e-5;

template <typename T>
MlaResult<T> RunOnDevice(const MlaCase<T>& c, std::uint32_t page_seed = 7) {
  const std::unique_ptr<Device> device = TestDevice();
  TestMemory memory(*device, MlaCaseBytes(c));
  const MlaAttentionParams params = UploadMlaCase(memory, c, page_seed);
  memory.Run(MlaAttentionOp(kTypeOf<T>), MlaAttentionShape(params, kTypeOf<T>), params);
  return DownloadMlaResult<T>(memory, params);
}

template <typename T>
double OutError(const MlaResult<T>& result, const MlaReference& reference) {
  return RelativeL2(Widened(result.out), reference.out);
}

// The largest difference; infinite unless -inf stands in the same places.
double LseError(const std::vector<float>& lse, const MlaReference& reference) {
  double worst = 0;
  for (std::size_t i = 0; i < lse.size(); ++i) {
    const double error = lse[i] == reference.lse[i] ? 0 : std::abs(lse[i] - reference.lse[i]);
    worst = std::isnan(error) ? kInfinity : std::max(worst, error);
  }
  return worst;
}

template <typename T>
void ExpectAgrees(const MlaCase<T>& c) {
  SCOPED_TRACE(testing::Message() << "heads " << c.shape.heads << " latent " << c.shape.latent
                                  << " rope " << c.shape.rope << " page " << c.shape.page_tokens);
  const MlaResult<T> result = RunOnDevice(c);
  const MlaReference reference = ComputeReference(c);
  EXPECT_LE(OutError(result, reference), kThreshold<T>);
  EXPECT_LE(LseError(result.lse, reference), kLseThreshold);
  EXPECT_TRUE(result.guards_intact);
}

template <typename T>
class MlaAttentionTest : public testing::Test {};
using Types = testing::Types<float, Bf16>;
TYPED_TEST_SUITE(MlaAttentionTest, Types);

// The shape of the real kernel against float64, lengths around tile and page ends, pads between.
TYPED_TEST(MlaAttentionTest, AgreesWithFloat64) {
  const MlaShape real = {.heads = 4, .latent = 512, .rope = 64, .page_tokens = 64};
  ExpectAgrees(MakeDecodeCase<TypeParam>(real, {1, 20, 0, 31, 32, 33, 63, 64, 65, 0, 140}));
}

// Every head count that fills, underfills or overfills a block of heads.
TYPED_TEST(MlaAttentionTest, AgreesForAnyNumberOfHeads) {
  for (int heads : {1, 7, 8, 9, 63, 128}) {
    const MlaShape shape = {.heads = heads, .latent = 32, .rope = 16, .page_tokens = 16};
    ExpectAgrees(MakeDecodeCase<TypeParam>(shape, {37, 0, 64}));
  }
}

TYPED_TEST(MlaAttentionTest, AgreesForAnyWidthAndPageSize) {
  for (const MlaShape& shape :
       {MlaShape{.heads = 2, .latent = 8, .rope = 8, .page_tokens = 1},
        MlaShape{.heads = 3, .latent = 64, .rope = 0, .page_tokens = 2},
        MlaShape{.heads = 2, .latent = 104, .rope = 56, .page_tokens = 61},
        MlaShape{.heads = 2, .latent = 512, .rope = 8, .page_tokens = 69},
        MlaShape{.heads = 2, .latent = 16, .rope = 64, .page_tokens = 576}}) {
    ExpectAgrees(MakeDecodeCase<TypeParam>(shape, {1, 70, 0, 131}));
  }
}

TYPED_TEST(MlaAttentionTest, AgreesOverALongSequence) {
  ExpectAgrees(MakeDecodeCase<TypeParam>({.heads = 2, .latent = 64, .rope = 16}, {4096, 3001}));
}

TYPED_TEST(MlaAttentionTest, AgreesForPeakyAndOffsetInputs) {
  const MlaShape shape = {.heads = 4, .latent = 512, .rope = 64, .page_tokens = 64};
  ExpectAgrees(MakeDecodeCase<TypeParam>(shape, {140, 65}, Inputs::kPeaky));
  ExpectAgrees(MakeDecodeCase<TypeParam>(shape, {140, 65}, Inputs::kOffset));
}

// Prefill: rows of one sequence, each with its own causal length, and a second sequence among them.
TYPED_TEST(MlaAttentionTest, RowsOfOneSequenceSeeTheirOwnPrefix) {
  std::vector<MlaRow> rows;
  for (int length = 30; length <= 70; ++length) rows.push_back({length % 5 == 0 ? 1 : 0, length});
  ExpectAgrees(MakeMlaCase<TypeParam>({.heads = 4, .latent = 64, .rope = 16}, {70, 75}, rows));
}

// A pad is exactly zero and -inf, whatever its query, sequence and pages hold.
TYPED_TEST(MlaAttentionTest, PadRowsAreZeroAndMinusInfinity) {
  const MlaCase<TypeParam> c = MakeDecodeCase<TypeParam>({.heads = 9}, {0, 5, 0});
  const MlaResult<TypeParam> result = RunOnDevice(c);
  const std::size_t row = std::size_t(c.shape.heads) * c.shape.latent;
  const std::vector<TypeParam> zeros(row);
  for (std::size_t r : {0u, 2u}) {
    EXPECT_EQ(std::memcmp(&result.out[r * row], zeros.data(), row * sizeof(TypeParam)), 0);
    for (int h = 0; h < c.shape.heads; ++h)
      EXPECT_EQ(result.lse[r * c.shape.heads + h], -kInfinity);
  }
  EXPECT_NE(std::memcmp(&result.out[row], zeros.data(), row * sizeof(TypeParam)), 0);
}

// The same row alone, in other company, at another place, on other pages: the same bits.
TYPED_TEST(MlaAttentionTest, ARowDoesNotDependOnItsBatch) {
  const MlaShape shape = {.heads = 9, .latent = 128, .rope = 16, .page_tokens = 16};
  const MlaCase<TypeParam> all = MakeDecodeCase<TypeParam>(shape, {50, 0, 100, 33});
  const MlaResult<TypeParam> together = RunOnDevice(all);
  const std::size_t out_row = std::size_t(shape.heads) * shape.latent;
  for (std::size_t r : {0u, 2u, 3u}) {
    MlaCase<TypeParam> other =
        MakeDecodeCase<TypeParam>(shape, {77, all.rows[r].kv_length}, Inputs::kPeaky, 99);
    other.keys[1] = all.keys[r];
    std::copy_n(all.q.begin() + r * all.row_elements(), all.row_elements(),
                other.q.begin() + all.row_elements());
    const MlaResult<TypeParam> apart = RunOnDevice(other, /*page_seed=*/8);
    EXPECT_EQ(
        std::memcmp(&together.out[r * out_row], &apart.out[out_row], out_row * sizeof(TypeParam)),
        0);
    EXPECT_EQ(std::memcmp(&together.lse[r * shape.heads], &apart.lse[shape.heads],
                          shape.heads * sizeof(float)),
              0);
  }
}

TYPED_TEST(MlaAttentionTest, LseMayBeLeftOut) {
  const MlaCase<TypeParam> c = MakeDecodeCase<TypeParam>({}, {40, 0});
  const std::unique_ptr<Device> device = TestDevice();
  TestMemory memory(*device, MlaCaseBytes(c));
  MlaAttentionParams params = UploadMlaCase(memory, c, 7);
  params.lse = nullptr;
  memory.Run(MlaAttentionOp(kTypeOf<TypeParam>), MlaAttentionShape(params, kTypeOf<TypeParam>),
             params);
  EXPECT_LE(OutError(DownloadMlaResult<TypeParam>(memory, params), ComputeReference(c)),
            kThreshold<TypeParam>);
}

// Negative control of every test above: mistakes are ten times over the threshold, in each
// distribution.
TYPED_TEST(MlaAttentionTest, PlantedMistakesExceedTheThresholdTenfold) {
  const MlaShape shape = {.heads = 4, .latent = 512, .rope = 64, .page_tokens = 64};
  for (Inputs inputs : {Inputs::kUnit, Inputs::kPeaky, Inputs::kOffset}) {
    const MlaCase<TypeParam> c = MakeDecodeCase<TypeParam>(shape, {2, 3, 5, 33}, inputs);
    const MlaResult<TypeParam> result = RunOnDevice(c);
    ASSERT_LE(OutError(result, ComputeReference(c)), kThreshold<TypeParam>);
    for (Mistake mistake : {Mistake::kMaskOffByOne, Mistake::kWrongScale, Mistake::kRopePairing}) {
      EXPECT_GE(OutError(result, ComputeReference(c, mistake)), 10 * kThreshold<TypeParam>)
          << "mistake " << static_cast<int>(mistake) << " inputs " << static_cast<int>(inputs);
    }
  }
}

// Negative control of the poison: one NaN in a key that counts spoils its row and no other.
TYPED_TEST(MlaAttentionTest, ANaNInAKeyThatCountsShows) {
  MlaCase<TypeParam> c = MakeDecodeCase<TypeParam>({}, {40, 40});
  const MlaReference reference = ComputeReference(c);
  c.keys[1].back() = FromFloat<TypeParam>(kNaN);
  const MlaResult<TypeParam> result = RunOnDevice(c);
  EXPECT_EQ(OutError(result, reference), kInfinity);
  EXPECT_EQ(LseError(result.lse, reference), kInfinity);
  const std::size_t row = std::size_t(c.shape.heads) * c.shape.latent;
  for (std::size_t i = 0; i < row; ++i) {
    EXPECT_FALSE(std::isnan(ToFloat(result.out[i])));
    EXPECT_TRUE(std::isnan(ToFloat(result.out[row + i])));
  }
}

}  // namespace
}  // namespace holdfast
