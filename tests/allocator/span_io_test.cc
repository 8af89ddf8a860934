// Verifies that host reads and writes of spans move exactly the bytes asked for, and refuse what is
// not there to be read or written.
#include "allocator/span_io.h"

#include <algorithm>

#include "gtest/gtest.h"
#include "tests/allocator/residency_rig.h"

namespace holdfast {
namespace {

class SpanIoTest : public testing::Test {
 protected:
  SpanIoTest() {
    // Smaller than the spans: several pieces each.
    auto io = SpanIo::Create(*rig_.arena, 100'000);
    EXPECT_OK(io);
    io_ = *std::move(io);
  }
  ~SpanIoTest() override { io_.reset(); }
  SpanId span(const std::string& name) { return *rig_.arena->Find(name); }
  std::uint64_t bytes(const std::string& name) { return rig_.arena->range(span(name)).bytes; }

  ResidencyRig rig_;
  std::unique_ptr<SpanIo> io_;
};

TEST_F(SpanIoTest, ReadsAndWritesExactlyWhatIsAsked) {
  const std::uint64_t whole = bytes("state");
  Bytes got(whole);
  ASSERT_OK(io_->Read(span("state"), 0, got.data(), whole));
  EXPECT_EQ(got, Pattern(whole, 3));
  const Bytes part = Pattern(250'001, 77);
  ASSERT_OK(io_->Write(span("state"), 12'345, part.data(), part.size()));
  Bytes expected = Pattern(whole, 3);
  std::copy(part.begin(), part.end(), expected.begin() + 12'345);
  EXPECT_EQ(rig_.Read("state"), expected);
  Bytes tail(7);
  ASSERT_OK(io_->Read(span("state"), whole - 7, tail.data(), 7));
  EXPECT_EQ(tail, Bytes(expected.end() - 7, expected.end()));
  EXPECT_OK(io_->Read(span("state"), whole, nullptr, 0));
  EXPECT_OK(io_->Write(span("state"), whole, nullptr, 0));
}

TEST_F(SpanIoTest, RefusesWhatIsOutsideTheSpan) {
  const std::uint64_t whole = bytes("state");
  Bytes room(whole + 1);
  const auto outside = io_->Read(span("state"), 1, room.data(), whole);
  EXPECT_THAT(outside, IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_EQ(GetErrorInfo(outside)->object, "state");
  EXPECT_EQ(GetErrorInfo(outside)->have, whole - 1);
  EXPECT_THAT(io_->Read(span("state"), UINT64_MAX, room.data(), 2),
              IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(io_->Write(span("state"), whole + 1, room.data(), 0),
              IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(io_->Read(SpanId{}, 0, room.data(), 1), IsErrorKind(ErrorKind::kInvalidArgument));
}

TEST_F(SpanIoTest, SealedSpansAreReadButNotWritten) {
  Bytes got(bytes("w1"));
  ASSERT_OK(io_->Read(span("w1"), 0, got.data(), got.size()));
  EXPECT_EQ(got, Pattern(got.size(), 2));
  const absl::Status refused = io_->Write(span("w1"), 0, got.data(), 4);
  EXPECT_THAT(refused, IsErrorKind(ErrorKind::kLocked));
  EXPECT_EQ(GetErrorInfo(refused)->object, "w1");
  EXPECT_OK(rig_.device->Synchronize(*rig_.stream));  // the device is well
}

TEST_F(SpanIoTest, NobodyReadsOrWritesASleepingSpan) {
  Bytes byte(1);
  ASSERT_OK(rig_.residency->Sleep({"state"}, Soon()));
  const std::uint64_t copies = rig_.device->calls().succeeded(Call::kCopy);
  EXPECT_THAT(io_->Read(span("state"), 0, byte.data(), 1), IsErrorKind(ErrorKind::kAsleep));
  EXPECT_THAT(io_->Write(span("state"), 0, byte.data(), 1), IsErrorKind(ErrorKind::kAsleep));
  EXPECT_EQ(rig_.device->calls().succeeded(Call::kCopy), copies);
  ASSERT_OK(rig_.residency->Wake({"state"}));
  ASSERT_OK(io_->Read(span("state"), 0, byte.data(), 1));
  EXPECT_EQ(byte[0], Pattern(1, 3)[0]);
}

TEST_F(SpanIoTest, UndefinedContentsAreNotReadUntilTheWholeSpanIsWritten) {
  const SpanId kv = span("kv.zero");
  rig_.arena->SetUndefined(kv, true);
  Bytes room(bytes("kv.zero"));
  const absl::Status refused = io_->Read(kv, 0, room.data(), 1);
  EXPECT_THAT(refused, IsErrorKind(ErrorKind::kUndefinedContents));
  EXPECT_EQ(GetErrorInfo(refused)->object, "kv.zero");
  ASSERT_OK(io_->Write(kv, 0, room.data(), room.size() - 1));
  EXPECT_THAT(io_->Read(kv, 0, room.data(), 1), IsErrorKind(ErrorKind::kUndefinedContents));
  EXPECT_THAT(rig_.arena->CheckReady({"kv_cache"}), IsErrorKind(ErrorKind::kUndefinedContents));
  ASSERT_OK(io_->Write(kv, 0, room.data(), room.size()));
  EXPECT_OK(io_->Read(kv, 0, room.data(), room.size()));
  EXPECT_OK(rig_.arena->CheckReady({"kv_cache"}));
}

TEST_F(SpanIoTest, StaysOutWhileATransitionHoldsTheGate) {
  ASSERT_OK(rig_.arena->gate().CloseAndDrain(*rig_.device, Soon()));
  Bytes byte(1);
  EXPECT_THAT(io_->Read(span("state"), 0, byte.data(), 1), IsErrorKind(ErrorKind::kBusy));
  EXPECT_THAT(io_->Write(span("state"), 0, byte.data(), 1), IsErrorKind(ErrorKind::kBusy));
  rig_.arena->gate().Reopen();
  EXPECT_OK(io_->Read(span("state"), 0, byte.data(), 1));
}

TEST_F(SpanIoTest, AFailedCopyIsReportedAndLeavesTheGate) {
  Bytes room(bytes("state"));
  for (const Call call : {Call::kCopy, Call::kSynchronize}) {
    rig_.device->calls().FailAt(2, {call});
    EXPECT_FALSE(io_->Read(span("state"), 0, room.data(), room.size()).ok());
    EXPECT_TRUE(rig_.device->calls().Disarm());
    EXPECT_OK(rig_.residency->Sleep({"state"}, Soon()));
    EXPECT_OK(rig_.residency->Wake({"state"}));
  }
  ASSERT_OK(io_->Read(span("state"), 0, room.data(), room.size()));
  EXPECT_EQ(room, Pattern(room.size(), 3));
}

}  // namespace
}  // namespace holdfast
