// Captures over several streams, and what a capture cannot hold, as every device must do them.
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/device/device_fixture.h"
#include "tests/device/test_ops.h"

namespace holdfast {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class CaptureConformance : public DeviceTest {
 protected:
  CaptureConformance() : memory_(*device_, granularity(), kTestBase) {
    side_ = *device_->CreateStream("side");
    fork_ = *device_->CreateEvent();
    join_ = *device_->CreateEvent();
  }

  DeviceAddress At(std::uint64_t offset) const { return memory_.base() + offset; }
  // data[0..4) at `offset` becomes data * factor + add.
  absl::Status Scale(Stream& stream, std::uint64_t offset, float factor, float add) {
    return Launch(*device_, stream, ScaleOp(), ShapeFor(4),
                  ScaleParams{At(offset).As<float>(), 4, factor, add});
  }
  absl::Status Fork(Stream& from, Stream& to) {
    HOLDFAST_RETURN_IF_ERROR(device_->Record(*fork_, from));
    return device_->Wait(to, *fork_);
  }
  absl::Status Join(Stream& from, Stream& to) {
    HOLDFAST_RETURN_IF_ERROR(device_->Record(*join_, from));
    return device_->Wait(to, *join_);
  }
  // A capture of work on one stream succeeds and replays.
  void ExpectUsable(Stream& stream) {
    Upload(At(0), std::vector<float>(4, 1.0f));
    ASSERT_OK(device_->BeginCapture(stream));
    ASSERT_OK(Scale(stream, 0, 2, 1));
    ASSERT_OK_AND_ASSIGN(const auto graph, device_->EndCapture(stream));
    ASSERT_OK_AND_ASSIGN(const auto executable, device_->Instantiate(*graph));
    ASSERT_OK(device_->LaunchGraph(stream, *executable));
    ASSERT_OK(device_->Synchronize(stream));
    EXPECT_EQ(Download<float>(At(0), 4), std::vector<float>(4, 3.0f));
  }

  MappedMemory memory_;
  std::unique_ptr<Stream> side_;
  std::unique_ptr<Event> fork_, join_;
};

TEST_F(CaptureConformance, AForkThatIsJoinedBecomesADiamond) {
  ASSERT_OK(device_->BeginCapture(*stream_));
  ASSERT_OK(Scale(*stream_, 0, 1, 1));
  ASSERT_OK(Fork(*stream_, *side_));
  ASSERT_OK(Scale(*side_, 256, 1, 10));
  ASSERT_OK(Scale(*stream_, 512, 1, 100));
  ASSERT_OK(Join(*side_, *stream_));
  ASSERT_OK(device_->CopyOnDevice(*stream_, At(768), At(256), 16));
  ASSERT_OK_AND_ASSIGN(const auto graph, device_->EndCapture(*stream_));
  ASSERT_OK_AND_ASSIGN(const GraphView view, graph->View());
  ASSERT_EQ(view.nodes.size(), 4u);
  EXPECT_EQ(view.edges.size(), 4u) << "0 before 1 and 2, both before 3";
  for (const auto& [from, to] : view.edges) {
    EXPECT_TRUE(from == 0 || to == 3) << from << " -> " << to;
  }
  // Both streams run at once again.
  Upload(At(0), std::vector<float>(256, 0.0f));
  ASSERT_OK_AND_ASSIGN(const auto executable, device_->Instantiate(*graph));
  for (int i = 0; i < 3; ++i) ASSERT_OK(device_->LaunchGraph(*side_, *executable));
  ASSERT_OK(device_->Synchronize(*side_));
  EXPECT_EQ(Download<float>(At(0), 1)[0], 3.0f);
  EXPECT_EQ(Download<float>(At(768), 1)[0], 30.0f);
  EXPECT_EQ(Download<float>(At(512), 1)[0], 300.0f);
}

TEST_F(CaptureConformance, AForkBeforeAnyWorkAndASecondForkAreHeld) {
  ASSERT_OK(device_->BeginCapture(*stream_));
  ASSERT_OK(Fork(*stream_, *side_));
  ASSERT_OK(Scale(*side_, 0, 1, 1));
  ASSERT_OK(Join(*side_, *stream_));
  ASSERT_OK(Scale(*stream_, 0, 2, 0));
  ASSERT_OK(Fork(*stream_, *side_));  // the same events again
  ASSERT_OK(Scale(*side_, 0, 1, 5));
  ASSERT_OK(Join(*side_, *stream_));
  ASSERT_OK(Scale(*stream_, 0, 10, 0));
  ASSERT_OK_AND_ASSIGN(const auto graph, device_->EndCapture(*stream_));
  Upload(At(0), std::vector<float>(4, 1.0f));
  ASSERT_OK_AND_ASSIGN(const auto executable, device_->Instantiate(*graph));
  ASSERT_OK(device_->LaunchGraph(*stream_, *executable));
  EXPECT_EQ(Download<float>(At(0), 1)[0], 90.0f);
}

TEST_F(CaptureConformance, UnjoinedWorkIsReportedByStreamAndOperation) {
  for (int round = 0; round < 2; ++round) {
    ASSERT_OK(device_->BeginCapture(*stream_));
    ASSERT_OK(Scale(*stream_, 0, 1, 1));
    ASSERT_OK(Fork(*stream_, *side_));
    ASSERT_OK(Scale(*side_, 256, 1, 1));
    ASSERT_OK(Join(*side_, *stream_));
    ASSERT_OK(Launch(*device_, *side_, PokeOp(), ShapeFor(1),  // after the join
                     PokeParams{At(512).As<std::uint64_t>(), 7}));
    const auto graph = device_->EndCapture(*stream_);
    ASSERT_THAT(graph, IsErrorKind(ErrorKind::kUncapturable));
    EXPECT_THAT(std::string(graph.status().message()),
                AllOf(HasSubstr("never joined"), HasSubstr("'side'")));
    EXPECT_THAT(std::string(graph.status().message()), testing::ContainsRegex("[pP]oke"));
    // Nothing is left behind, on either stream.
    ExpectUsable(*stream_);
    ExpectUsable(*side_);
  }
}

TEST_F(CaptureConformance, AllocationsAndWaitsOfTheCapturingThreadAreNamedAndSpoilIt) {
  ASSERT_OK_AND_ASSIGN(const auto other, device_->CreateStream("other"));
  ASSERT_OK(device_->Record(*join_, *other));
  struct Case {
    Call call;
    std::function<absl::Status()> make;
  };
  const std::vector<Case> cases = {
      {Call::kAllocateHost, [&] { return device_->AllocateHost(64).status(); }},
      {Call::kCreateChunk, [&] { return device_->CreateChunk(granularity()).status(); }},
      {Call::kSynchronize, [&] { return device_->Synchronize(*stream_); }},
      {Call::kSynchronize, [&] { return device_->Synchronize(*other); }},
      {Call::kSynchronize,
       [&] { return device_->SynchronizeBy(*join_, std::chrono::steady_clock::now()); }},
  };
  for (const Case& c : cases) {
    const std::uint64_t own = device_->Memory()->own_bytes;
    const std::uint64_t made = device_->calls().succeeded(c.call);
    ASSERT_OK(device_->BeginCapture(*stream_));
    ASSERT_OK(Scale(*stream_, 0, 1, 1));
    const absl::Status refused = c.make();
    ASSERT_THAT(refused, IsErrorKind(ErrorKind::kUncapturable));
    EXPECT_EQ(GetErrorInfo(refused)->call, CallName(c.call));
    // A step that hides the error gets no graph.
    const auto graph = device_->EndCapture(*stream_);
    ASSERT_THAT(graph, IsErrorKind(ErrorKind::kUncapturable));
    EXPECT_EQ(GetErrorInfo(graph.status())->call, CallName(c.call));
    EXPECT_EQ(device_->calls().succeeded(c.call), made);
    EXPECT_EQ(device_->Memory()->own_bytes, own);
    ExpectUsable(*stream_);
  }
}

TEST_F(CaptureConformance, OtherThreadsAllocateAndWaitMeanwhile) {
  ASSERT_OK_AND_ASSIGN(const auto other, device_->CreateStream("other"));
  ASSERT_OK(device_->BeginCapture(*stream_));
  absl::Status allocated, waited, ended;
  std::thread([&] {
    allocated = device_->AllocateHost(64).status();
    waited = device_->Synchronize(*other);
    ended = device_->EndCapture(*stream_).status();  // not theirs to end
  }).join();
  EXPECT_OK(allocated);
  EXPECT_OK(waited);
  EXPECT_THAT(ended, IsErrorKind(ErrorKind::kInvalidArgument));
  ASSERT_OK(Scale(*stream_, 0, 1, 1));
  EXPECT_OK(device_->EndCapture(*stream_));
}

TEST_F(CaptureConformance, EventsDoNotCrossTheEdgeOfACapture) {
  // Waiting in a capture for what is outside.
  ASSERT_OK(device_->Record(*fork_, *side_));
  ASSERT_OK(device_->BeginCapture(*stream_));
  EXPECT_FALSE(device_->Wait(*stream_, *fork_).ok());
  EXPECT_THAT(device_->EndCapture(*stream_), IsErrorKind(ErrorKind::kUncapturable));
  // Waiting outside for a place in a capture that is over.
  ASSERT_OK(device_->BeginCapture(*stream_));
  ASSERT_OK(Scale(*stream_, 0, 1, 1));
  ASSERT_OK(device_->Record(*fork_, *stream_));
  ASSERT_OK(device_->EndCapture(*stream_));
  EXPECT_FALSE(device_->Wait(*side_, *fork_).ok());
  EXPECT_FALSE(device_->SynchronizeBy(*fork_, std::chrono::steady_clock::now()).ok());
  // Recorded anew it is an event like any other.
  ASSERT_OK(device_->Record(*fork_, *stream_));
  EXPECT_OK(device_->Wait(*side_, *fork_));
  EXPECT_OK(device_->SynchronizeBy(*fork_, std::chrono::steady_clock::time_point::max()));
  ExpectUsable(*stream_);
  ExpectUsable(*side_);
}

TEST_F(CaptureConformance, ASideStreamDoesNotEndTheCaptureAndItsDeathSpoilsIt) {
  ASSERT_OK(device_->BeginCapture(*stream_));
  ASSERT_OK(Scale(*stream_, 0, 1, 1));
  ASSERT_OK(Fork(*stream_, *side_));
  EXPECT_THAT(device_->EndCapture(*side_), IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(device_->BeginCapture(*side_), IsErrorKind(ErrorKind::kBusy));
  ASSERT_OK(Scale(*side_, 256, 1, 1));
  side_.reset();
  EXPECT_THAT(device_->EndCapture(*stream_), IsErrorKind(ErrorKind::kUncapturable));
  ExpectUsable(*stream_);
}

TEST_F(CaptureConformance, AStreamThatDiesCapturingLeavesItsThreadFree) {
  ASSERT_OK(device_->BeginCapture(*side_));
  ASSERT_OK(Scale(*side_, 0, 1, 1));
  side_.reset();
  EXPECT_OK(device_->AllocateHost(64));
  ExpectUsable(*stream_);
}

TEST_F(CaptureConformance, TheBareLaunchIsALaunch) {
  ASSERT_OK(device_->BeginCapture(*stream_));
  ASSERT_OK(Scale(*stream_, 0, 1, 1));
  ASSERT_OK_AND_ASSIGN(const auto graph, device_->EndCapture(*stream_));
  ASSERT_OK_AND_ASSIGN(const auto executable, device_->Instantiate(*graph));
  Upload(At(0), std::vector<float>(4, 0.0f));
  const std::uint64_t counted = device_->calls().succeeded(Call::kLaunchGraph);
  const BareLaunch launch = device_->GetBareLaunch(*stream_, *executable);
  EXPECT_EQ(launch(), 0);
  EXPECT_EQ(launch(), 0);
  EXPECT_EQ(Download<float>(At(0), 1)[0], 2.0f);
  EXPECT_EQ(device_->calls().succeeded(Call::kLaunchGraph), counted);
}

}  // namespace
}  // namespace holdfast
