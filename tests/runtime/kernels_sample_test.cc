#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "gtest/gtest.h"
#include "runtime/kernels/philox.h"
#include "runtime/kernels/sample.h"
#include "tests/attention/numbers.h"
#include "tests/attention/test_memory.h"
#include "tests/device/test_device.h"

namespace holdfast {
namespace {

SamplingRow Greedy() { return {.active = 1}; }
SamplingRow Seeded(float temperature, std::int32_t top_k = 0, std::uint64_t seed = 42,
                   std::int32_t position = 0, std::uint64_t request = 0) {
  return {.seed = seed,
          .request = request,
          .position = position,
          .top_k = top_k,
          .temperature = temperature,
          .active = 1};
}

class SampleTest : public testing::Test {
 protected:
  // Token of each row; `logits` is (rows, vocab).
  std::vector<std::int32_t> Sample(const std::vector<float>& logits,
                                   const std::vector<SamplingRow>& rows) {
    TestMemory memory(*device_, logits.size() * 4 + rows.size() * sizeof(SamplingRow) + kMiB);
    std::int32_t* tokens = memory.Allocate<std::int32_t>(rows.size());
    const SampleParams params = {.logits = memory.Upload(logits),
                                 .rows = memory.Upload(rows),
                                 .tokens = tokens,
                                 .step_count = nullptr,
                                 .count = static_cast<std::int32_t>(rows.size()),
                                 .vocab = static_cast<std::int32_t>(logits.size() / rows.size())};
    memory.Run(SampleOp(), SampleShape(params), params);
    EXPECT_TRUE(memory.GuardsIntact());
    return memory.Read(tokens, rows.size());
  }
  std::int32_t SampleOne(const std::vector<float>& logits, const SamplingRow& row) {
    return Sample(logits, {row})[0];
  }
  // `draws` tokens from the same logits at positions 0, 1, 2, ...
  std::vector<std::int32_t> Draws(const std::vector<float>& logits, SamplingRow row, int draws) {
    std::vector<float> repeated;
    std::vector<SamplingRow> rows;
    for (row.position = 0; row.position < draws; ++row.position) {
      repeated.insert(repeated.end(), logits.begin(), logits.end());
      rows.push_back(row);
    }
    return Sample(repeated, rows);
  }

  std::unique_ptr<Device> device_ = TestDevice();
  std::mt19937 random_{1};
};

// The formula of sample.h in float64: each candidate's score; -inf for what is no candidate.
std::vector<double> ScoreReference(const std::vector<float>& logits, const SamplingRow& row) {
  std::vector<float> sorted = logits;
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  const auto vocab = static_cast<std::int32_t>(logits.size());
  const float least = sorted[row.top_k > 0 && row.top_k < vocab ? row.top_k - 1 : vocab - 1];
  std::vector<double> scores;
  for (std::int32_t i = 0; i < vocab; ++i) {
    const PhiloxWords words = Philox4x32(
        {static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(row.position),
         static_cast<std::uint32_t>(row.request), static_cast<std::uint32_t>(row.request >> 32)},
        row.seed);
    const double v = (words.x + 0.5) / 4294967296.0;  // u = 1 - v
    scores.push_back(logits[i] < least ? -kInfinity
                                       : (double(logits[i]) - sorted[0]) / row.temperature -
                                             std::log(-std::log1p(-v)));
  }
  return scores;
}

// The chosen token is the best by float64, or within rounding of it.
void ExpectBestScore(const std::vector<float>& logits, const SamplingRow& row, std::int32_t token) {
  const std::vector<double> scores = ScoreReference(logits, row);
  ASSERT_GE(token, 0);
  ASSERT_LT(token, static_cast<std::int32_t>(logits.size()));
  EXPECT_GE(scores[token], *std::max_element(scores.begin(), scores.end()) - 1e-4);
}

TEST_F(SampleTest, GreedyTakesTheLargestLogitAndTheLowestIndexAmongEquals) {
  std::vector<float> logits = Normal(random_, 5000);
  const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
  EXPECT_EQ(SampleOne(logits, Greedy()), best);
  logits[4999] = logits[70] = logits[4000] = 100;
  EXPECT_EQ(SampleOne(logits, Greedy()), 70);
  EXPECT_EQ(SampleOne({-3, -2, -1, -1}, Greedy()), 2);
  EXPECT_EQ(SampleOne({-0.0f, 0.0f}, Greedy()), 0);  // equal
  EXPECT_EQ(SampleOne({-kInfinity, -kInfinity, kInfinity, kInfinity}, Greedy()), 2);
  EXPECT_EQ(SampleOne({-kInfinity, -kInfinity}, Greedy()), 0);
  EXPECT_EQ(SampleOne({-1}, Greedy()), 0);
}

TEST_F(SampleTest, NaNIsNeverChosen) {
  for (const SamplingRow& row : {Greedy(), Seeded(1), Seeded(1, 2), Seeded(1, 4), Seeded(1e30f)}) {
    EXPECT_EQ(SampleOne({kNaN, kNaN, -kInfinity, kNaN, -kNaN}, row), 2);
    EXPECT_EQ(SampleOne({kNaN, -5, kNaN, -kNaN, kNaN}, row), 1);
    EXPECT_EQ(SampleOne(std::vector<float>(3000, kNaN), row), 0);
  }
}

TEST_F(SampleTest, PadsGiveMinusOne) {
  SamplingRow pad = Seeded(1);
  pad.active = 0;
  EXPECT_EQ(Sample({1, 2, kNaN, kNaN, 2, 1}, {Greedy(), pad, Greedy()}),
            (std::vector<std::int32_t>{1, -1, 0}));
}

// Every draw is the best of the formula, over sizes around the block, temperatures and limits.
TEST_F(SampleTest, SeededDrawsFollowTheFormula) {
  for (int vocab : {2, 31, 256, 1025, 50'000}) {
    std::vector<float> logits = Normal(random_, vocab, 0, 3);
    for (float temperature : {0.5f, 1.0f, 3.0f}) {
      for (int top_k : {0, 1, 2, 40, vocab - 1, vocab, vocab + 1}) {
        const SamplingRow row =
            Seeded(temperature, top_k, 0x123456789abcdefull + vocab, 17, 0xfedcba9876543210ull);
        ExpectBestScore(logits, row, SampleOne(logits, row));
      }
    }
  }
}

// Negative control: a draw by other random numbers is seldom the best of the formula.
TEST_F(SampleTest, TheFormulaTellsOtherSeedsApart) {
  const std::vector<float> logits(256, 0.0f);
  const std::vector<double> scores = ScoreReference(logits, Seeded(1, 0, 43));
  const std::int32_t token = SampleOne(logits, Seeded(1, 0, 42));
  EXPECT_LT(scores[token], *std::max_element(scores.begin(), scores.end()) - 0.01);
}

// With a flat softmax every candidate turns up and nothing else does; ties with the k-th are
// candidates.
TEST_F(SampleTest, TopKAdmitsExactlyTheLargestAndTheirTies) {
  const std::vector<float> logits = {1, 5, 3, -2, 3, 4, 3, -7};
  const auto drawn = [&](std::int32_t top_k) {
    std::vector<std::int32_t> tokens = Draws(logits, Seeded(1000, top_k), 400);
    std::sort(tokens.begin(), tokens.end());
    tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
    return tokens;
  };
  EXPECT_EQ(drawn(1), (std::vector<std::int32_t>{1}));
  EXPECT_EQ(drawn(2), (std::vector<std::int32_t>{1, 5}));
  for (int k : {3, 4, 5}) EXPECT_EQ(drawn(k), (std::vector<std::int32_t>{1, 2, 4, 5, 6})) << k;
  EXPECT_EQ(drawn(6), (std::vector<std::int32_t>{0, 1, 2, 4, 5, 6}));
  EXPECT_EQ(drawn(7), (std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 6}));
  for (int k : {8, 9, 0, -1})
    EXPECT_EQ(drawn(k), (std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 6, 7})) << k;
}

// The threshold is found to the last bit: keys that differ in one byte only, of either sign, and
// duplicates.
TEST_F(SampleTest, TopKIsExactForLogitsThatDifferInTheLastBits) {
  for (float base : {1.0f, -1.0f, 1e-40f, -3e38f}) {
    std::vector<float> logits;
    for (int i = 0; i < 2000; ++i) {
      std::uint32_t bits;
      std::memcpy(&bits, &base, sizeof(bits));
      bits += static_cast<std::uint32_t>(random_() % 700);  // many are equal
      float value;
      std::memcpy(&value, &bits, sizeof(value));
      logits.push_back(value);
    }
    std::vector<float> sorted = logits;
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    for (int top_k : {1, 2, 3, 10, 100, 1000, 1999}) {
      for (std::int32_t token : Draws(logits, Seeded(1e30f, top_k), 20)) {
        EXPECT_GE(logits[token], sorted[top_k - 1]) << "top_k " << top_k;
      }
    }
    // The smallest candidate does turn up: the limit is not too tight either.
    float smallest = kInfinity;
    for (std::int32_t token : Draws(logits, Seeded(1e38f, 3), 200)) {
      smallest = std::min(smallest, logits[token]);
    }
    EXPECT_EQ(smallest, sorted[2]);
  }
}

TEST_F(SampleTest, TopOneAndTinyTemperaturesAreGreedy) {
  const std::vector<float> logits = Normal(random_, 3000, 0, 5);
  const std::int32_t greedy = SampleOne(logits, Greedy());
  EXPECT_EQ(SampleOne(logits, Seeded(5, 1)), greedy);
  EXPECT_EQ(SampleOne(logits, Seeded(1e-30f)), greedy);  // logit / temperature would be infinite
  EXPECT_EQ(SampleOne(logits, Seeded(1e-45f)), greedy);
  EXPECT_EQ(SampleOne(logits, Seeded(0)), greedy);
  EXPECT_EQ(SampleOne(logits, Seeded(-1)), greedy);
  EXPECT_EQ(SampleOne(logits, Seeded(kNaN)), greedy);
}

// Infinite temperature is a draw among all that are possible at all; infinite logits win.
TEST_F(SampleTest, ExtremesStayInRange) {
  int seen[4] = {};
  for (std::int32_t token : Draws({-100, 50, -kInfinity, 3e38f}, Seeded(kInfinity), 300))
    ++seen[token];
  EXPECT_GT(seen[0], 50);
  EXPECT_GT(seen[1], 50);
  EXPECT_EQ(seen[2], 0);
  EXPECT_GT(seen[3], 50);
  for (std::int32_t token : Draws({-1, kInfinity, 3e38f, kInfinity}, Seeded(1), 50))
    EXPECT_EQ(token % 2, 1);
  for (std::int32_t token : Draws({-kInfinity, -kInfinity}, Seeded(1), 50))
    EXPECT_TRUE(token == 0 || token == 1);
}

// The draw is a function of logits, seed, request and position alone.
TEST_F(SampleTest, ADrawIsTheSameInAnyBatch) {
  constexpr int kVocab = 700;
  const std::vector<float> logits = Normal(random_, kVocab);
  const SamplingRow row = Seeded(1.5f, 50, 7, 21, 3);
  const std::int32_t alone = SampleOne(logits, row);
  for (std::size_t place : {0u, 1u, 4u}) {
    std::vector<float> batch = Normal(random_, 5 * kVocab);
    std::copy(logits.begin(), logits.end(), batch.begin() + place * kVocab);
    std::vector<SamplingRow> rows(5);
    rows[2] = Seeded(1, 0, 99);
    rows[place] = row;
    EXPECT_EQ(Sample(batch, rows)[place], alone);
  }
}

TEST_F(SampleTest, SeedRequestAndPositionEachChangeTheDraw) {
  const std::vector<float> flat(1 << 16, 0.0f);
  const std::int32_t base = SampleOne(flat, Seeded(1, 0, 7, 21, 3));
  EXPECT_NE(SampleOne(flat, Seeded(1, 0, 8, 21, 3)), base);
  EXPECT_NE(SampleOne(flat, Seeded(1, 0, 7 | 1ull << 40, 21, 3)), base);
  EXPECT_NE(SampleOne(flat, Seeded(1, 0, 7, 22, 3)), base);
  EXPECT_NE(SampleOne(flat, Seeded(1, 0, 7, 21, 4)), base);
  EXPECT_NE(SampleOne(flat, Seeded(1, 0, 7, 21, 3 | 1ull << 40)), base);
}

// Pearson's statistic of the draws against the softmax of logits / temperature.
double ChiSquare(const std::vector<std::int32_t>& tokens, const std::vector<float>& logits,
                 double temperature) {
  double total = 0, chi = 0;
  for (float logit : logits) total += std::exp(logit / temperature);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double expected = tokens.size() * std::exp(logits[i] / temperature) / total;
    const auto seen = std::count(tokens.begin(), tokens.end(), static_cast<std::int32_t>(i));
    chi += (seen - expected) * (seen - expected) / expected;
  }
  return chi;
}

// 20,000 draws over 8 tokens follow the softmax. With 7 degrees of freedom the statistic
// exceeds 29.9 once in 10,000 seeds; a temperature wrong by a tenth exceeds it by far.
TEST_F(SampleTest, DrawsFollowTheSoftmax) {
  const std::vector<float> logits = {0, 1, -1, 2, 0.5f, -2, 1.5f, 0};
  for (float temperature : {0.7f, 1.0f, 2.0f}) {
    const std::vector<std::int32_t> tokens = Draws(logits, Seeded(temperature), 20'000);
    EXPECT_LT(ChiSquare(tokens, logits, temperature), 29.9) << temperature;
    EXPECT_GT(ChiSquare(tokens, logits, temperature * 1.1), 29.9) << temperature;
  }
}

TEST_F(SampleTest, EachRunRaisesTheStepCountByOne) {
  TestMemory memory(*device_, kMiB);
  const SampleParams params = {.logits = memory.Upload(std::vector<float>{1, 2, 2, 1}),
                               .rows = memory.Upload(std::vector<SamplingRow>{Greedy(), Greedy()}),
                               .tokens = memory.Allocate<std::int32_t>(2),
                               .step_count = memory.Upload(std::vector<std::uint64_t>{41}),
                               .count = 2,
                               .vocab = 2};
  memory.Run(SampleOp(), SampleShape(params), params);
  EXPECT_EQ(memory.Read(params.step_count, 1)[0], 42u);
  memory.Run(SampleOp(), SampleShape(params), params);
  EXPECT_EQ(memory.Read(params.step_count, 1)[0], 43u);
}

}  // namespace
}  // namespace holdfast
