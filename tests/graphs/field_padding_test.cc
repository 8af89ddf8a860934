// Field cases of padding and staging: a pad row that poisons real ones (39), staging overwritten
// before it was read (52), arrays filled for the real rows only (58).
#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>

#include "allocator/residency.h"
#include "graphs/padding.h"
#include "graphs/staging_ring.h"
#include "testing/gate.h"
#include "tests/graphs/field_rig.h"

namespace holdfast {
namespace {

constexpr std::int32_t kWidth = 8;

class FieldPadding : public FieldTest {
 protected:
  FieldPadding()
      : x_(State("x", 128 * kWidth * 4)),
        out_(State("out", 128 * kWidth * 4)),
        slots_(State("slots", 4096)),
        real_(State("real", 4)),
        kv_(Reserve("kv", "kv", Role::kCache, 4096)),
        set_(*lane_, [this](const GraphKey& key) { return absl::StatusOr<Step>(Make(key)); }) {}

  Step Make(const GraphKey& key) {
    return [this, key](StepContext& step) {
      return step.Launch(QuantizeRowsOp(), ShapeFor(1),
                         QuantizeRowsParams{.x = step.Resolve(x_).As<float>(),
                                            .out = step.Resolve(out_).As<float>(),
                                            .kv = step.Resolve(kv_).As<float>(),
                                            .slots = step.Resolve(slots_).As<std::int32_t>(),
                                            .real = step.Resolve(real_).As<std::int32_t>(),
                                            .rows = key.size,
                                            .width = kWidth,
                                            .pads_count = pads_count_});
    };
  }
  void Capture(std::vector<int> sizes) {
    ASSERT_OK(set_.AddPhase(Phase::kDecode, *BucketList::Of(std::move(sizes), 128)));
    ASSERT_OK(set_.Measure());
    ASSERT_OK(set_.Capture({}));
  }
  std::vector<float> Rows(int rows, float factor) {
    std::vector<float> x(static_cast<std::size_t>(rows) * kWidth);
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = factor * std::sin(static_cast<float>(i));
    }
    return x;
  }
  // The slots of `rows` real rows, in an array of `bucket` whose tail is pads.
  std::vector<std::int32_t> Slots(int rows, int bucket) {
    std::vector<std::int32_t> slots(static_cast<std::size_t>(bucket), 77);  // stale
    std::iota(slots.begin(), slots.begin() + rows, 0);
    FillPads(slots.data(), rows, bucket, -1);
    return slots;
  }
  // Runs `rows` in the bucket that fits; what x holds beyond them stays.
  std::vector<float> Run(const std::vector<float>& x, int rows) {
    Upload(At(x_), x);
    Upload(At(real_), std::vector<std::int32_t>{rows});
    absl::StatusOr<Graph*> graph = set_.Dispatch(Phase::kDecode, rows);
    EXPECT_OK(graph);
    Upload(At(slots_), Slots(rows, (*graph)->key().size));
    EXPECT_OK((*graph)->Replay());
    EXPECT_OK(lane_->Synchronize());
    return Download<float>(At(out_), static_cast<std::size_t>((*graph)->key().size) * kWidth);
  }

  std::int32_t pads_count_ = 0;
  SpanId x_, out_, slots_, real_, kv_;
  GraphSet set_;
};

const std::vector<float> kNans(128 * kWidth, std::numeric_limits<float>::quiet_NaN());

TEST_F(FieldPadding, FieldCase39PadRowsAreInert) {
  Capture({3, 4});
  const std::vector<float> x = Rows(3, 2);
  const std::vector<float> unpadded = Run(x, 3);
  // The same rows in the next bucket: everything that was there before is NaN.
  GraphSet padded(*lane_, [this](const GraphKey& key) { return absl::StatusOr<Step>(Make(key)); });
  ASSERT_OK(padded.AddPhase(Phase::kDecode, *BucketList::Of({4}, 4)));
  ASSERT_OK(padded.Measure());
  ASSERT_OK(padded.Capture({}));
  Upload(At(x_), kNans);
  Upload(At(out_), kNans);
  Upload(At(kv_), std::vector<float>(128, -5.0f));
  Upload(At(x_), x);
  Upload(At(slots_), Slots(3, 4));
  ASSERT_OK_AND_ASSIGN(Graph* const graph, padded.Dispatch(Phase::kDecode, 3));
  ASSERT_OK(graph->Replay());
  ASSERT_OK(lane_->Synchronize());
  const std::vector<float> out = Download<float>(At(out_), 4 * kWidth);
  EXPECT_EQ(std::vector<float>(out.begin(), out.begin() + 3 * kWidth), unpadded);
  EXPECT_EQ(std::vector<float>(out.begin() + 3 * kWidth, out.end()),
            std::vector<float>(kWidth, 0.0f))
      << "a pad row's output is defined";
  const std::vector<float> kv = Download<float>(At(kv_), 128);
  EXPECT_EQ(std::count(kv.begin(), kv.end(), -5.0f), 125) << "pads write no slot";
  EXPECT_EQ(padded.counts().pad_rows, 1u);
}

// The negative control: pads that take part in the scale poison every row.
TEST_F(FieldPadding, PadsThatCountPoisonEveryRow) {
  pads_count_ = 1;
  Capture({4});
  Upload(At(x_), kNans);
  const std::vector<float> out = Run(Rows(3, 2), 3);
  EXPECT_TRUE(std::isnan(out[0]));
}

TEST_F(FieldPadding, FieldCase58TheTailIsFilledAnewForEveryBatch) {
  Capture({104, 112});
  const std::vector<float> hundred = Run(Rows(100, 1), 100);
  EXPECT_EQ(hundred.size(), 104u * kWidth);
  Upload(At(kv_), std::vector<float>(128, -5.0f));
  // Three rows in the largest bucket, by way of its own graph; slots 3.. held 3..99 before.
  const std::vector<float> x = Rows(3, 3);
  Upload(At(x_), x);
  Upload(At(real_), std::vector<std::int32_t>{3});
  Upload(At(slots_), Slots(3, 112));
  Graph* const largest = set_.Find({.phase = Phase::kDecode, .size = 112});
  ASSERT_NE(largest, nullptr);
  ASSERT_OK(largest->Replay());
  ASSERT_OK(lane_->Synchronize());
  const std::vector<float> out = Download<float>(At(out_), 112 * kWidth);
  const std::vector<float> few = Run(x, 3);  // in bucket 104
  EXPECT_EQ(std::vector<float>(out.begin(), out.begin() + 3 * kWidth),
            std::vector<float>(few.begin(), few.begin() + 3 * kWidth));
  EXPECT_EQ(std::count(out.begin() + 3 * kWidth, out.end(), 0.0f), 109 * kWidth);
  const std::vector<float> kv = Download<float>(At(kv_), 128);
  EXPECT_EQ(std::count(kv.begin(), kv.end(), -5.0f), 125);
  EXPECT_EQ(set_.counts().pad_rows, 4u + 101u);
}

TEST(Padding, CumulativeTailsRepeatTheLastEnd) {
  std::vector<std::int32_t> ends(113, 99);
  ends[0] = 0;
  for (int i = 1; i <= 3; ++i) ends[static_cast<std::size_t>(i)] = 4 * i;
  FillCumulativePads(ends.data(), 3, 112);
  EXPECT_EQ(std::count(ends.begin() + 3, ends.end(), 12), 110);
  std::vector<std::int32_t> none(5, 99);
  none[0] = 0;
  FillCumulativePads(none.data(), 0, 4);
  EXPECT_EQ(none, std::vector<std::int32_t>(5, 0));
}

class FieldStaging : public FieldTest {
 protected:
  FieldStaging() : input_(State("input", 64)), sum_(State("sum", 64)) {
    // sum += input
    const Step step = [this](StepContext& context) {
      return AddRows(context, context.Resolve(input_), context.Resolve(sum_), context.Resolve(sum_),
                     4);
    };
    graph_ = *Graph::Capture(*lane_, {.size = 4}, step, {});
    Upload(At(sum_), std::vector<float>(16, 0.0f));
  }
  static void Write(std::byte* slot, float value) {
    const std::vector<float> values(4, value);
    std::memcpy(slot, values.data(), 16);
  }
  float Sum() { return Download<float>(At(sum_), 1)[0]; }

  SpanId input_, sum_;
  std::unique_ptr<Graph> graph_;
};

TEST_F(FieldStaging, FieldCase52PlansAheadOfTheGpuKeepTheirOwnMetadata) {
  ASSERT_OK_AND_ASSIGN(const auto ring, StagingRing::Create(*lane_, "plan", 64, 2));
  {
    Gate gate(*device_, lane_->stream());
    for (const float batch : {100.0f, 1.0f}) {
      ASSERT_OK_AND_ASSIGN(std::byte* const slot, ring->Acquire());
      Write(slot, batch);
      ASSERT_OK(ring->Send(At(input_), 16));
      ASSERT_OK(graph_->Replay());
    }
    // Both slots are still to be read: the third plan waits.
    const auto soon = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
    EXPECT_THAT(ring->Acquire(soon), IsErrorKind(ErrorKind::kDeadlineExceeded));
  }
  ASSERT_OK(lane_->Synchronize());
  EXPECT_EQ(Sum(), 101.0f);
  EXPECT_OK(ring->Acquire());
}

// The negative control: one buffer for both, as in the report.
TEST_F(FieldStaging, OneBufferForBothPlansGivesTheFirstTheSecondsMetadata) {
  ASSERT_OK_AND_ASSIGN(const HostSpan* const buffer, arena_->AddHostSpan("plan", 64));
  {
    Gate gate(*device_, lane_->stream());
    for (const float batch : {100.0f, 1.0f}) {
      Write(buffer->buffer.data(), batch);
      ASSERT_OK(device_->CopyToDevice(lane_->stream(), At(input_), buffer->buffer.data(), 16));
      ASSERT_OK(graph_->Replay());
    }
  }
  ASSERT_OK(lane_->Synchronize());
  EXPECT_EQ(Sum(), 2.0f);
}

TEST_F(FieldStaging, MisuseOfTheRingIsRefused) {
  EXPECT_THAT(StagingRing::Create(*lane_, "r", 64, 0), IsErrorKind(ErrorKind::kInvalidArgument));
  ASSERT_OK_AND_ASSIGN(const auto ring, StagingRing::Create(*lane_, "plan", 64, 1));
  EXPECT_THAT(ring->Send(At(input_), 16), IsErrorKind(ErrorKind::kInvalidArgument));
  ASSERT_OK_AND_ASSIGN(std::byte* const slot, ring->Acquire());
  EXPECT_EQ(*ring->Acquire(), slot) << "the same until it is sent";
  EXPECT_THAT(ring->Send(At(input_), 65), IsErrorKind(ErrorKind::kInvalidArgument));
  ASSERT_OK_AND_ASSIGN(const auto residency, Residency::Create(*arena_));
  const auto later = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  ASSERT_OK(residency->Sleep({"state"}, later));
  EXPECT_THAT(ring->Send(At(input_), 16), IsErrorKind(ErrorKind::kAsleep));
  ASSERT_OK(residency->Wake({"state"}));
  Write(slot, 7);
  ASSERT_OK(ring->Send(At(input_), 16));
  ASSERT_OK(graph_->Replay());
  ASSERT_OK(lane_->Synchronize());
  EXPECT_EQ(Sum(), 7.0f);
}

}  // namespace
}  // namespace holdfast
