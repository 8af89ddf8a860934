// Verifies that pointers which lie in memory are read there: tables of pointers into spans are
// counted, and each pointer that leads nowhere is named by span and offset.
#include "graphs/deep_scan.h"

#include <cstring>

#include "gmock/gmock.h"
#include "tests/device/test_ops.h"
#include "tests/graphs/audit_ops.h"
#include "tests/graphs/toy.h"

namespace holdfast {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class DeepScanTest : public testing::Test {
 protected:
  DeepScanTest() : device_(TestDevice()) {
    const std::uint64_t chunk = device_->info().granularity;
    auto arena =
        Arena::Create(*device_, {.groups = {{.tag = "state", .extent_bytes = 2 * chunk},
                                            {.tag = "tables", .extent_bytes = 2 * chunk}}});
    EXPECT_OK(arena);
    arena_ = *std::move(arena);
    first_ = Reserve("first", "state", false);
    second_ = Reserve("second", "state", false);
    table_ = Reserve("table", "tables", true);
    Reserve("plain", "tables", false);
    for (const char* tag : {"state", "tables"}) EXPECT_OK(arena_->CommitTag(tag));
    auto stream = device_->CreateStream("scan");
    EXPECT_OK(stream);
    stream_ = *std::move(stream);
    auto residency = Residency::Create(*arena_);
    EXPECT_OK(residency);
    residency_ = *std::move(residency);
    auto staging = device_->AllocateHost(kTableBytes);
    EXPECT_OK(staging);
    staging_ = *std::move(staging);
  }

  static constexpr std::uint64_t kTableBytes = 4096;

  SpanId Reserve(const char* name, const char* tag, bool contains_pointers) {
    auto id = arena_->Reserve(
        {.name = name, .tag = tag, .bytes = kTableBytes, .contains_pointers = contains_pointers});
    EXPECT_OK(id);
    return *id;
  }
  std::uint64_t At(SpanId span, std::uint64_t offset = 0) const {
    return arena_->range(span).base.value + offset;
  }
  // Puts words into a span, from its start.
  void Write(SpanId span, const std::vector<std::uint64_t>& words) {
    std::memset(staging_.data(), 0, staging_.size());
    std::memcpy(staging_.data(), words.data(), words.size() * sizeof(words[0]));
    ASSERT_OK(device_->CopyToDevice(*stream_, arena_->range(span).base, staging_.data(),
                                    staging_.size()));
    ASSERT_OK(device_->Synchronize(*stream_));
  }
  DeepScanReport Scan(const std::vector<ExternalRange>& externals = {}) {
    auto report = DeepScan(*device_, *stream_, arena_.get(), externals);
    EXPECT_OK(report);
    return report.ok() ? *std::move(report) : DeepScanReport{};
  }

  std::unique_ptr<Device> device_;
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Residency> residency_;
  HostBuffer staging_;
  SpanId first_, second_, table_;
};

TEST_F(DeepScanTest, CountsWhereATableLeads) {
  // Numbers, two pointers into one span, one into another, one past the end of the last.
  Write(table_, {0, 7, 65535, ~std::uint64_t{0}, At(first_), At(first_, 8), At(second_, 4095),
                 At(second_, kTableBytes), 0x3f8000003f800000});
  const DeepScanReport report = Scan();
  EXPECT_THAT(report.problems, IsEmpty());
  EXPECT_OK(report.Verdict());
  EXPECT_THAT(report.scanned, ElementsAre("table")) << "only what is flagged";
  ASSERT_THAT(report.links, SizeIs(2));
  EXPECT_EQ(report.links[0].object, "first");
  EXPECT_EQ(report.links[0].words, 2u);
  EXPECT_EQ(report.links[1].object, "second");
  EXPECT_EQ(report.links[1].words, 2u);
  EXPECT_THAT(report.spans(), ElementsAre("first", "second"));
}

TEST_F(DeepScanTest, NamesEveryPointerThatLeadsNowhere) {
  const StrayChunk stray(*device_);
  std::uint64_t freed;
  {
    const StrayChunk gone(*device_);
    freed = gone.At(64);
  }
  const std::uint64_t beyond = arena_->window().base.value + arena_->window().bytes - 64;
  Write(table_, {At(first_), stray.At(16), 3, beyond, freed});
  const DeepScanReport report = Scan();
  EXPECT_THAT(report.problems,
              ElementsAre(AllOf(HasSubstr("span 'table' + 8"), HasSubstr("foreign")),
                          AllOf(HasSubstr("span 'table' + 24"), HasSubstr("unmapped")),
                          AllOf(HasSubstr("span 'table' + 32"), HasSubstr("freed"))));
  const absl::Status verdict = report.Verdict();
  ASSERT_THAT(verdict, IsErrorKind(ErrorKind::kForeignPointer));
  EXPECT_EQ(GetErrorInfo(verdict)->object, "table");
  // Declared, the stray memory is nobody's mystery; retired, the freed one has a name.
  const std::vector<ExternalRange> declared = {
      {.name = "library", .range = stray.range()},
      {.name = "old", .range = {{freed - 64}, 128}, .retired = true}};
  EXPECT_THAT(Scan(declared).problems,
              ElementsAre(HasSubstr("unmapped"), HasSubstr("freed: 'old'")));
}

TEST_F(DeepScanTest, SaysWhenThereWasMoreThanItLookedAt) {
  const StrayChunk stray(*device_);
  auto big = arena_->Reserve(
      {.name = "big", .tag = "tables", .bytes = 2 * 8 * kMaxScanHits, .contains_pointers = true});
  ASSERT_OK(big);
  ASSERT_OK(arena_->CommitTag("tables"));
  ASSERT_OK_AND_ASSIGN(const HostBuffer words, device_->AllocateHost(2 * 8 * kMaxScanHits));
  for (std::uint64_t i = 0; i < 2 * kMaxScanHits; ++i) {
    const std::uint64_t word = stray.At(8 * i);
    std::memcpy(words.data() + 8 * i, &word, sizeof(word));
  }
  ASSERT_OK(device_->CopyToDevice(*stream_, arena_->range(*big).base, words.data(), words.size()));
  const DeepScanReport report = Scan();
  EXPECT_THAT(report.findings, SizeIs(kMaxScanHits));
  EXPECT_THAT(report.problems, testing::Contains(HasSubstr("only 1024 of them were looked at")));
}

TEST_F(DeepScanTest, MoreRangesThanOneScanHoldsAreScannedInPasses) {
  const StrayChunk stray(*device_);
  // Every eighth word of the stray memory is a range of its own.
  std::vector<ExternalRange> many;
  for (std::uint64_t i = 0; i < kMaxScanRanges + 50; ++i) {
    many.push_back({.name = "r" + std::to_string(i), .range = {{stray.At(64 * i)}, 8}});
  }
  Write(table_, {stray.At(0), stray.At(64 * (kMaxScanRanges + 49)), stray.At(64 * 700 + 32)});
  const DeepScanReport report = Scan(many);
  ASSERT_THAT(report.links, SizeIs(2));
  EXPECT_THAT(report.problems, ElementsAre(HasSubstr("span 'table' + 16")));
}

TEST_F(DeepScanTest, WhatIsAsleepIsSkippedByName) {
  Write(table_, {At(first_)});
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  ASSERT_OK(residency_->Sleep({"tables"}, deadline).status());
  const DeepScanReport report = Scan();
  EXPECT_THAT(report.skipped, ElementsAre("table"));
  EXPECT_THAT(report.scanned, IsEmpty());
  ASSERT_OK(residency_->Wake({"tables"}).status());
  EXPECT_THAT(Scan().spans(), ElementsAre("first")) << "and it came back";
}

TEST_F(DeepScanTest, RangesWithoutAnArena) {
  const StrayChunk holder(*device_);
  const std::vector<ExternalRange> ranges = {
      {.name = "peers", .range = {{holder.At()}, 64}, .contains_pointers = true}};
  const std::uint64_t words[2] = {holder.At(8), At(first_)};
  std::memcpy(staging_.data(), words, sizeof(words));
  ASSERT_OK(device_->Fill(*stream_, {holder.At()}, 0, 64));
  ASSERT_OK(device_->CopyToDevice(*stream_, {holder.At()}, staging_.data(), sizeof(words)));
  ASSERT_OK_AND_ASSIGN(const DeepScanReport report, DeepScan(*device_, *stream_, nullptr, ranges));
  EXPECT_THAT(report.problems, ElementsAre(AllOf(HasSubstr("'peers' + 8"), HasSubstr("foreign"))));
}

TEST_F(DeepScanTest, AKernelsTableIsInvisibleToTierOne) {
  // The control of it all: the same fault, in a table that a captured kernel follows.
  const StrayChunk stray(*device_);
  Write(table_, {At(first_), stray.At()});
  ASSERT_OK(device_->BeginCapture(*stream_));
  ASSERT_OK(Launch(*device_, *stream_, TableOp(), ShapeFor(2),
                   TableParams{arena_->range(table_).base.As<std::uint32_t* const>(), 2, 1}));
  ASSERT_OK_AND_ASSIGN(const auto graph, device_->EndCapture(*stream_));
  ASSERT_OK_AND_ASSIGN(const GraphView view, graph->View());
  EXPECT_OK(Audit(view, *device_, arena_.get()).Verdict("g"));
  EXPECT_THAT(Scan().Verdict(), IsErrorKind(ErrorKind::kForeignPointer));
}

}  // namespace
}  // namespace holdfast
