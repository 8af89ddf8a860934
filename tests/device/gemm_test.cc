// Matrix products: right, and on the host (or when deterministic) a row's bits depend on that row
// alone.
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "tests/device/device_fixture.h"

namespace holdfast {
namespace {

std::vector<float> RandomFloats(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

GemmSpec Dense(std::int64_t m, std::int64_t n, std::int64_t k, bool b_is_nk) {
  return {.name = "w",
          .m = m,
          .n = n,
          .k = k,
          .lda = k,
          .ldb = b_is_nk ? k : n,
          .ldd = n,
          .b_is_nk = b_is_nk,
          .deterministic = true};
}

// The product in double precision, by its definition.
std::vector<double> Reference(const GemmSpec& s, const std::vector<float>& a,
                              const std::vector<float>& b, const std::vector<float>& d) {
  std::vector<double> out(d.begin(), d.end());
  for (std::int64_t batch = 0; batch < s.batch; ++batch) {
    for (std::int64_t i = 0; i < s.m; ++i) {
      for (std::int64_t j = 0; j < s.n; ++j) {
        double sum = s.accumulate ? out[batch * s.stride_d + i * s.ldd + j] : 0.0;
        for (std::int64_t l = 0; l < s.k; ++l) {
          const std::int64_t at = s.b_is_nk ? j * s.ldb + l : l * s.ldb + j;
          sum += double{a[batch * s.stride_a + i * s.lda + l]} * b[batch * s.stride_b + at];
        }
        out[batch * s.stride_d + i * s.ldd + j] = sum;
      }
    }
  }
  return out;
}

double RelativeL2(const std::vector<float>& got, const std::vector<double>& want) {
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    error += (got[i] - want[i]) * (got[i] - want[i]);
    norm += want[i] * want[i];
  }
  return std::sqrt(error / norm);
}

class GemmTest : public DeviceTest {
 protected:
  GemmTest() : memory_(*device_, 16 * kMiB) {}

  // d after the product; a, b and d are uploaded first.
  std::vector<float> Run(const GemmSpec& spec, const std::vector<float>& a,
                         const std::vector<float>& b, const std::vector<float>& d) {
    const DeviceAddress at_b = memory_.base() + 4 * kMiB;
    const DeviceAddress at_d = memory_.base() + 8 * kMiB;
    Upload(memory_.base(), a);
    Upload(at_b, b);
    Upload(at_d, d);
    auto plan = device_->PlanGemm(spec);
    EXPECT_THAT(plan, IsOk());
    EXPECT_LE((*plan)->workspace_bytes(), 4 * kMiB);
    EXPECT_THAT(
        device_->Gemm(
            *stream_, **plan,
            {.a = memory_.base(), .b = at_b, .d = at_d, .workspace = memory_.base() + 12 * kMiB}),
        IsOk());
    return Download<float>(at_d, d.size());
  }

  // cuBLASLt in f32 may use other roundings; the host's bound is stated.
  double Bound() const { return device_->info().is_cuda ? 1e-5 : 1e-6; }

  MappedMemory memory_;
};

TEST_F(GemmTest, AgreesWithDoublePrecision) {
  const std::int64_t shapes[][3] = {{1, 1, 1},      {1, 1, 7},       {3, 5, 2},
                                    {8, 12, 256},   {9, 13, 257},    {40, 77, 513},
                                    {1, 256, 1024}, {17, 300, 1023}, {64, 24, 2000}};
  for (const auto& [m, n, k] : shapes) {
    for (const bool b_is_nk : {true, false}) {
      for (const bool accumulate : {false, true}) {
        GemmSpec spec = Dense(m, n, k, b_is_nk);
        spec.accumulate = accumulate;
        const auto a = RandomFloats(m * k, 1);
        const auto b = RandomFloats(n * k, 2);
        const auto d = RandomFloats(m * n, 3);
        EXPECT_LT(RelativeL2(Run(spec, a, b, d), Reference(spec, a, b, d)), Bound())
            << m << " x " << n << " x " << k << (b_is_nk ? " nk" : " kn") << accumulate;
      }
    }
  }
}

TEST_F(GemmTest, BatchesAndStridesLeaveTheRestUntouched) {
  for (const bool b_is_nk : {true, false}) {
    // Three heads side by side in one row of A and of D.
    GemmSpec spec{.name = "heads",
                  .m = 11,
                  .n = 19,
                  .k = 33,
                  .lda = 3 * 33 + 5,
                  .ldb = 40,
                  .ldd = 3 * 20,
                  .batch = 3,
                  .stride_a = 33,
                  .stride_b = 40 * 40,
                  .stride_d = 20,
                  .b_is_nk = b_is_nk,
                  .deterministic = true};
    const auto a = RandomFloats(11 * spec.lda, 4);
    const auto b = RandomFloats(3 * spec.stride_b, 5);
    const std::vector<float> d(11 * spec.ldd, -3.0f);
    const auto got = Run(spec, a, b, d);
    EXPECT_LT(RelativeL2(got, Reference(spec, a, b, d)), Bound());
    for (std::int64_t row = 0; row < 11; ++row) {
      for (int head = 0; head < 3; ++head) EXPECT_EQ(got[row * 60 + head * 20 + 19], -3.0f);
    }
  }
}

TEST_F(GemmTest, ARowsBitsDependOnThatRowAlone) {
  constexpr std::int64_t kRows = 40;
  for (const auto& [n, k] : {std::pair<std::int64_t, std::int64_t>{37, 301}, {64, 256}, {5, 3}}) {
    for (const bool b_is_nk : {true, false}) {
      for (const bool accumulate : {false, true}) {
        const auto a = RandomFloats(kRows * k, 6);
        const auto b = RandomFloats(n * k, 7);
        const auto d = RandomFloats(kRows * n, 8);
        // Row i alone, as a product of one row.
        GemmSpec one = Dense(1, n, k, b_is_nk);
        one.accumulate = accumulate;
        std::vector<std::vector<float>> alone;
        for (std::int64_t i = 0; i < kRows; ++i) {
          alone.push_back(Run(one, {a.begin() + i * k, a.begin() + (i + 1) * k}, b,
                              {d.begin() + i * n, d.begin() + (i + 1) * n}));
        }
        // Among the first m rows, and shifted to every position by leaving `first` rows out.
        for (std::int64_t m = 1; m <= kRows; ++m) {
          const std::int64_t first = kRows - m;
          GemmSpec spec = Dense(m, n, k, b_is_nk);
          spec.accumulate = accumulate;
          const auto got =
              Run(spec, {a.begin() + first * k, a.end()}, b, {d.begin() + first * n, d.end()});
          for (std::int64_t i = 0; i < m; ++i) {
            ASSERT_EQ(std::memcmp(&got[i * n], alone[first + i].data(), n * sizeof(float)), 0)
                << "row " << i << " of " << m << ", n " << n << ", k " << k << ", nk " << b_is_nk;
          }
        }
      }
    }
  }
}

TEST_F(GemmTest, ABatchsBitsAreThoseOfItsMatrixAlone) {
  constexpr std::int64_t kM = 13, kN = 21, kK = 270, kBatch = 3;
  GemmSpec spec = Dense(kM, kN, kK, true);
  spec.batch = kBatch;
  spec.stride_a = kM * kK;
  spec.stride_b = kN * kK;
  spec.stride_d = kM * kN;
  const auto a = RandomFloats(kBatch * kM * kK, 9);
  const auto b = RandomFloats(kBatch * kN * kK, 10);
  const auto all = Run(spec, a, b, std::vector<float>(kBatch * kM * kN));
  for (std::int64_t i = 0; i < kBatch; ++i) {
    const auto alone =
        Run(Dense(kM, kN, kK, true), {a.begin() + i * kM * kK, a.begin() + (i + 1) * kM * kK},
            {b.begin() + i * kN * kK, b.begin() + (i + 1) * kN * kK}, std::vector<float>(kM * kN));
    EXPECT_EQ(std::memcmp(&all[i * kM * kN], alone.data(), kM * kN * sizeof(float)), 0) << i;
  }
}

TEST_F(GemmTest, InfinitiesOfOneRowDoNotReachAnother) {
  auto a = RandomFloats(8 * 16, 11);
  const auto b = RandomFloats(16 * 16, 12);
  const auto clean = Run(Dense(8, 16, 16, true), a, b, std::vector<float>(128));
  for (int i = 0; i < 16; ++i) a[3 * 16 + i] = i % 2 ? INFINITY : NAN;
  const auto got = Run(Dense(8, 16, 16, true), a, b, std::vector<float>(128));
  for (int row = 0; row < 8; ++row) {
    EXPECT_EQ(std::memcmp(&got[row * 16], &clean[row * 16], 64) == 0, row != 3) << row;
  }
}

TEST_F(GemmTest, WrongSpecsAreRefusedByName) {
  const GemmSpec good = Dense(4, 4, 4, true);
  const auto refused = [&](auto change) {
    GemmSpec spec = good;
    change(spec);
    const auto plan = device_->PlanGemm(spec);
    return IsErrorKind(plan.status(), ErrorKind::kInvalidArgument);
  };
  EXPECT_TRUE(refused([](GemmSpec& s) { s.m = 0; }));
  EXPECT_TRUE(refused([](GemmSpec& s) { s.lda = 3; }));
  EXPECT_TRUE(refused([](GemmSpec& s) { s.ldb = 3; }));
  EXPECT_TRUE(refused([](GemmSpec& s) { s.ldd = 3; }));
  EXPECT_TRUE(refused([](GemmSpec& s) { s.in = DType::kU8; }));
  EXPECT_TRUE(refused([](GemmSpec& s) { s.out = DType::kBF16; }));
  EXPECT_TRUE(refused([](GemmSpec& s) { s.batch = 2; }));
  EXPECT_FALSE(refused([](GemmSpec&) {}));
  ASSERT_OK_AND_ASSIGN(const auto plan, device_->PlanGemm(good));
  EXPECT_THAT(device_->Gemm(*stream_, *plan, {}), IsErrorKind(ErrorKind::kInvalidArgument));
}

TEST_F(GemmTest, TheHostMultipliesFloatsOnly) {
  const auto host = TestHostDevice();
  GemmSpec spec = Dense(4, 4, 4, true);
  spec.in = DType::kBF16;
  const auto plan = host->PlanGemm(spec);
  EXPECT_THAT(plan, IsErrorKind(ErrorKind::kUnsupported));
  EXPECT_EQ(GetErrorInfo(plan.status())->object, "w");
}

}  // namespace
}  // namespace holdfast
