// Verifies that a hundred thousand small spans of one tag sleep and wake as a few chunks.
#include "gtest/gtest.h"
#include "tests/allocator/residency_rig.h"

namespace holdfast {
namespace {

TEST(ResidencyManySpansTest, AHundredThousandSpansOf4KiB) {
  constexpr std::uint64_t kSpans = 100'000, kBytes = 4 * kKiB, kChunk = 64 * kMiB;
  auto device = TestDevice();
  ASSERT_OK_AND_ASSIGN(auto stream, device->CreateStream("test"));
  const std::uint64_t sum = kSpans * kBytes;
  ASSERT_OK_AND_ASSIGN(
      auto arena,
      Arena::Create(*device, {.groups = {{"t", Role::kMutable, AlignUp(sum / 2, kChunk), kChunk},
                                         {"t", Role::kCache, AlignUp(sum / 2, kChunk), kChunk}}}));
  SpanId last_kept, last_dropped;
  for (std::uint64_t i = 0; i < kSpans; ++i) {
    const bool kept = i % 2 == 0;
    ASSERT_OK_AND_ASSIGN(const SpanId span,
                         arena->Reserve({.name = "s" + std::to_string(i),
                                         .tag = "t",
                                         .role = kept ? Role::kMutable : Role::kCache,
                                         .bytes = kBytes,
                                         .wake_contents = WakeContents::kPoison}));
    (kept ? last_kept : last_dropped) = span;
  }
  ASSERT_OK(arena->CommitTag("t"));
  const std::uint64_t mapped = device->Memory()->own_bytes;
  EXPECT_LE(mapped, sum + 2 * kChunk);  // at most one chunk for each group
  WriteBytes(*device, *stream, arena->range(last_kept).base, Pattern(kBytes, 1));
  ASSERT_OK_AND_ASSIGN(auto residency, Residency::Create(*arena));
  ASSERT_OK_AND_ASSIGN(const TransitionReport slept, residency->Sleep({"t"}, Soon()));
  EXPECT_EQ(slept.freed_bytes, mapped);
  EXPECT_EQ(slept.backing_bytes, sum / 2);
  const std::uint64_t fills = device->calls().succeeded(Call::kFill);
  ASSERT_OK(residency->Wake({"t"}));
  EXPECT_LE(device->calls().succeeded(Call::kFill), fills + 2);  // the tail, and one whole run
  EXPECT_EQ(ReadBytes(*device, *stream, arena->range(last_kept)), Pattern(kBytes, 1));
  EXPECT_TRUE(AllBytesAre(ReadBytes(*device, *stream, arena->range(last_dropped)), 0xFF));
}

}  // namespace
}  // namespace holdfast
