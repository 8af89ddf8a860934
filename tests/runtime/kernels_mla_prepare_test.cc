#include <cmath>
#include <complex>
#include <cstring>

#include "gtest/gtest.h"
#include "runtime/kernels/mla_prepare.h"
#include "tests/attention/numbers.h"
#include "tests/attention/test_memory.h"
#include "tests/device/test_device.h"

namespace holdfast {
namespace {

constexpr int kPages = 6, kLayers = 3, kLayer = 1, kMaxPosition = 100;
constexpr float kEpsilon = 0.125f;

struct Shape {
  int heads = 5, latent = 64, nope = 24, rope = 16, page_tokens = 4, interleaved = 1;
  int width() const { return latent + rope; }
  std::int64_t layer_elements() const { return std::int64_t{page_tokens} * width(); }
  std::int64_t page_stride() const { return kLayers * layer_elements() + 8; }
};

struct Row {
  std::int32_t position;
  std::int64_t slot;
};

template <typename T>
struct Problem {
  Shape shape;
  std::vector<Row> rows;
  std::vector<float> kv;     // (rows, latent + rope)
  std::vector<T> weight, q;  // (latent), (rows, heads, nope + rope)
  std::vector<float> table;  // (kMaxPosition, rope)
};

template <typename T>
Problem<T> MakeProblem(const Shape& shape, const std::vector<Row>& rows) {
  std::mt19937 random(1);
  Problem<T> p{.shape = shape, .rows = rows};
  p.kv = Normal(random, rows.size() * shape.width(), 0.3f);
  p.weight = Stored<T>(Normal(random, shape.latent, 1, 0.3f));
  p.q = Stored<T>(Normal(random, rows.size() * shape.heads * (shape.nope + shape.rope)));
  for (int position = 0; position < kMaxPosition; ++position) {
    for (int i = 0; i < shape.rope; ++i) {
      const int pair = i % (shape.rope / 2);
      const double angle = position * std::pow(10000.0, -2.0 * pair / shape.rope);
      p.table.push_back(static_cast<float>(i < shape.rope / 2 ? std::cos(angle) : std::sin(angle)));
    }
  }
  return p;
}

template <typename T>
struct Result {
  std::vector<T> q_full;  // (rows, heads, latent + rope)
  std::vector<T> cache;   // (kPages, page_stride)
  bool guards_intact = false;
};

template <typename T>
Result<T> RunOnDevice(const Problem<T>& p) {
  const std::unique_ptr<Device> device = TestDevice();
  TestMemory memory(*device, 4 * kMiB);
  const Shape& s = p.shape;
  std::vector<std::int32_t> positions;
  std::vector<std::int64_t> slots;
  for (const Row& row : p.rows) {
    positions.push_back(row.position);
    slots.push_back(row.slot);
  }
  const std::uint64_t q_elements = p.rows.size() * s.heads * s.width();
  T* q_full = memory.Allocate<T>(q_elements);
  T* cache = memory.Allocate<T>(kPages * s.page_stride());
  const MlaPrepareParams params = {.kv = memory.Upload(p.kv),
                                   .weight = memory.Upload(p.weight),
                                   .q = memory.Upload(p.q),
                                   .q_full = q_full,
                                   .cache = cache,
                                   .positions = memory.Upload(positions),
                                   .slots = memory.Upload(slots),
                                   .rope_table = memory.Upload(p.table),
                                   .page_stride = s.page_stride(),
                                   .layer_offset = kLayer * s.layer_elements(),
                                   .rows = static_cast<std::int32_t>(p.rows.size()),
                                   .heads = s.heads,
                                   .latent = s.latent,
                                   .nope = s.nope,
                                   .rope = s.rope,
                                   .page_tokens = s.page_tokens,
                                   .interleaved = s.interleaved,
                                   .epsilon = kEpsilon};
  memory.Run(MlaPrepareOp(kTypeOf<T>), MlaPrepareShape(params), params);
  return {.q_full = memory.Read(q_full, q_elements),
          .cache = memory.Read(cache, kPages * s.page_stride()),
          .guards_intact = memory.GuardsIntact()};
}

enum class Mistake { kNone, kRopePairing, kPositionOffByOne };

// Rotates `x` as pairs of complex numbers: an independent way to write the formulas of
// mla_prepare.h.
std::vector<double> RotatedReference(const std::vector<double>& x, std::int32_t position,
                                     bool interleaved, Mistake mistake) {
  const int rope = static_cast<int>(x.size()), half = rope / 2;
  if (mistake == Mistake::kRopePairing) interleaved = !interleaved;
  if (mistake == Mistake::kPositionOffByOne) ++position;
  std::vector<double> out(rope);
  for (int i = 0; i < half; ++i) {
    const std::complex<double> z = interleaved ? std::complex<double>(x[2 * i], x[2 * i + 1])
                                               : std::complex<double>(x[i], x[i + half]);
    const std::complex<double> turned =
        z * std::polar(1.0, position * std::pow(10000.0, -2.0 * i / rope));
    out[i] = turned.real();
    out[i + half] = turned.imag();
  }
  return out;
}

template <typename T>
std::vector<double> RotatedQReference(const Problem<T>& p, Mistake mistake = Mistake::kNone) {
  std::vector<double> out;
  const int q_width = p.shape.nope + p.shape.rope;
  for (std::size_t n = 0; n < p.rows.size() * p.shape.heads; ++n) {
    const std::vector<double> q = Widened(p.q);
    const std::vector<double> x(q.begin() + n * q_width + p.shape.nope,
                                q.begin() + (n + 1) * q_width);
    const std::vector<double> turned =
        RotatedReference(x, p.rows[n / p.shape.heads].position, p.shape.interleaved != 0, mistake);
    out.insert(out.end(), turned.begin(), turned.end());
  }
  return out;
}

template <typename T>
std::vector<double> KeyReference(const Problem<T>& p, std::size_t row,
                                 Mistake mistake = Mistake::kNone) {
  const float* kv = p.kv.data() + row * p.shape.width();
  double square = 0;
  for (int i = 0; i < p.shape.latent; ++i) square += double(kv[i]) * kv[i] / p.shape.latent;
  std::vector<double> key;
  for (int i = 0; i < p.shape.latent; ++i) {
    key.push_back(kv[i] / std::sqrt(square + kEpsilon) * ToFloat(p.weight[i]));
  }
  const std::vector<double> x(kv + p.shape.latent, kv + p.shape.width());
  const std::vector<double> turned =
      RotatedReference(x, p.rows[row].position, p.shape.interleaved != 0, mistake);
  key.insert(key.end(), turned.begin(), turned.end());
  return key;
}

// Where the key of `slot` begins in the cache.
std::size_t KeyBegin(const Shape& s, std::int64_t slot) {
  return slot / s.page_tokens * s.page_stride() + kLayer * s.layer_elements() +
         slot % s.page_tokens * s.width();
}

template <typename T>
std::vector<double> KeyOf(const Result<T>& result, const Shape& s, std::int64_t slot) {
  const std::vector<double> cache = Widened(result.cache);
  return {cache.begin() + KeyBegin(s, slot), cache.begin() + KeyBegin(s, slot) + s.width()};
}

// The rope parts of q_full, (rows, heads, rope).
template <typename T>
std::vector<double> RopePartsOf(const Result<T>& result, const Shape& s) {
  std::vector<double> out;
  for (std::size_t begin = s.latent; begin < result.q_full.size(); begin += s.width()) {
    for (int i = 0; i < s.rope; ++i) out.push_back(ToFloat(result.q_full[begin + i]));
  }
  return out;
}

// First and last slot of pages, out of order; a pad between.
const std::vector<Row> kRows = {{17, 23}, {0, 0}, {5, -1}, {99, 7}, {18, 12}};

template <typename T>
class MlaPrepareTest : public testing::Test {};
using Types = testing::Types<float, Bf16>;
TYPED_TEST_SUITE(MlaPrepareTest, Types);

TYPED_TEST(MlaPrepareTest, AgreesWithFloat64InBothPairings) {
  for (int interleaved : {0, 1}) {
    for (const Shape& base :
         {Shape{}, Shape{.heads = 128, .latent = 512, .nope = 128, .rope = 64},
          Shape{.heads = 1, .latent = 8, .nope = 0, .rope = 8, .page_tokens = 5}}) {
      Shape shape = base;
      shape.interleaved = interleaved;
      const Problem<TypeParam> p = MakeProblem<TypeParam>(shape, kRows);
      const Result<TypeParam> result = RunOnDevice(p);
      EXPECT_LE(RelativeL2(RopePartsOf(result, shape), RotatedQReference(p)),
                kThreshold<TypeParam>);
      for (std::size_t r = 0; r < kRows.size(); ++r) {
        if (kRows[r].slot < 0) continue;
        EXPECT_LE(RelativeL2(KeyOf(result, shape, kRows[r].slot), KeyReference(p, r)),
                  kThreshold<TypeParam>);
      }
      EXPECT_TRUE(result.guards_intact);
    }
  }
}

// Only the named slots of this layer and the rope parts of q_full are written; a pad writes no key.
TYPED_TEST(MlaPrepareTest, WritesNothingElse) {
  const Shape shape;
  Result<TypeParam> result = RunOnDevice(MakeProblem<TypeParam>(shape, kRows));
  for (const Row& row : kRows) {
    if (row.slot < 0) continue;
    std::memset(static_cast<void*>(&result.cache[KeyBegin(shape, row.slot)]), 0xFF,
                shape.width() * sizeof(TypeParam));
  }
  const std::vector<std::uint8_t> unwritten(result.cache.size() * sizeof(TypeParam), 0xFF);
  EXPECT_EQ(std::memcmp(result.cache.data(), unwritten.data(), unwritten.size()), 0);
  for (std::size_t begin = 0; begin < result.q_full.size(); begin += shape.width()) {
    EXPECT_EQ(
        std::memcmp(&result.q_full[begin], unwritten.data(), shape.latent * sizeof(TypeParam)), 0);
  }
}

// The same row at another place, beside other rows, gives the same bits.
TYPED_TEST(MlaPrepareTest, RowsAreIndependent) {
  const Shape shape;
  const Problem<TypeParam> all = MakeProblem<TypeParam>(shape, kRows);
  Problem<TypeParam> one = all;
  const std::size_t q_row = std::size_t(shape.heads) * (shape.nope + shape.rope);
  one.rows = {kRows[3]};
  one.kv.assign(all.kv.begin() + 3 * shape.width(), all.kv.begin() + 4 * shape.width());
  one.q.assign(all.q.begin() + 3 * q_row, all.q.begin() + 4 * q_row);
  const Result<TypeParam> together = RunOnDevice(all), alone = RunOnDevice(one);
  EXPECT_EQ(KeyOf(together, shape, kRows[3].slot), KeyOf(alone, shape, kRows[3].slot));
  const std::size_t out_row = std::size_t(shape.heads) * shape.width();
  EXPECT_EQ(
      std::memcmp(&together.q_full[3 * out_row], alone.q_full.data(), out_row * sizeof(TypeParam)),
      0);
}

// Negative control: mistakes are ten times over the threshold, in q and in the key.
TYPED_TEST(MlaPrepareTest, PlantedMistakesExceedTheThresholdTenfold) {
  const Problem<TypeParam> p = MakeProblem<TypeParam>({}, kRows);
  const Result<TypeParam> result = RunOnDevice(p);
  for (Mistake mistake : {Mistake::kRopePairing, Mistake::kPositionOffByOne}) {
    EXPECT_GE(RelativeL2(RopePartsOf(result, p.shape), RotatedQReference(p, mistake)),
              10 * kThreshold<TypeParam>);
    EXPECT_GE(RelativeL2(KeyOf(result, p.shape, kRows[0].slot), KeyReference(p, 0, mistake)),
              10 * kThreshold<TypeParam>);
  }
}

}  // namespace
}  // namespace holdfast
