// Events, as every device must do them: order between streams, and waiting for a point of one.
#include <chrono>
#include <cstdint>
#include <vector>

#include "testing/gate.h"
#include "tests/device/device_fixture.h"

namespace holdfast {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

class EventConformance : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    auto other = device_->CreateStream("other");
    ASSERT_OK(other.status());
    other_ = *std::move(other);
    auto event = device_->CreateEvent();
    ASSERT_OK(event.status());
    event_ = *std::move(event);
  }
  void TearDown() override {
    other_.reset();
    event_.reset();
    DeviceTest::TearDown();
  }
  static steady_clock::time_point In(int ms) { return steady_clock::now() + milliseconds(ms); }

  std::unique_ptr<Stream> other_;
  std::unique_ptr<Event> event_;
};

TEST_F(EventConformance, OrdersOneStreamBehindAnother) {
  MappedMemory memory(*device_, granularity());
  ASSERT_OK(device_->Fill(*stream_, memory.base(), 1, 64));
  ASSERT_OK(device_->Synchronize(*stream_));
  Gate gate(*device_, *stream_);
  ASSERT_OK(device_->Fill(*stream_, memory.base(), 2, 64));
  ASSERT_OK(device_->Record(*event_, *stream_));
  ASSERT_OK(device_->Wait(*other_, *event_));
  ASSERT_OK(device_->CopyOnDevice(*other_, memory.base() + 64, memory.base(), 64));
  EXPECT_THAT(device_->SynchronizeBy(*other_, In(20)), IsErrorKind(ErrorKind::kDeadlineExceeded));
  gate.Open();
  ASSERT_OK(device_->Synchronize(*other_));
  EXPECT_EQ(Download<std::uint8_t>(memory.base() + 64, 1)[0], 2);
}

TEST_F(EventConformance, IsDoneWhenTheMarkedWorkIsAndNotLater) {
  ASSERT_OK(device_->Record(*event_, *stream_));
  Gate gate(*device_, *stream_);  // behind the mark
  EXPECT_OK(device_->SynchronizeBy(*event_, In(5000)));
  ASSERT_OK(device_->Record(*event_, *stream_));  // the mark moves behind the gate
  EXPECT_THAT(device_->SynchronizeBy(*event_, In(20)), IsErrorKind(ErrorKind::kDeadlineExceeded));
  gate.Open();
  EXPECT_OK(device_->SynchronizeBy(*event_, steady_clock::time_point::max()));
}

TEST_F(EventConformance, NeverRecordedMarksNothing) {
  EXPECT_OK(device_->Wait(*other_, *event_));
  EXPECT_OK(device_->Synchronize(*other_));
  EXPECT_OK(device_->SynchronizeBy(*event_, In(0)));
}

TEST_F(EventConformance, MayDieBeforeTheWorkThatWaitsForIt) {
  {
    Gate gate(*device_, *stream_);
    ASSERT_OK(device_->Record(*event_, *stream_));
    ASSERT_OK(device_->Wait(*other_, *event_));
    event_.reset();
    EXPECT_THAT(device_->SynchronizeBy(*other_, In(10)), IsErrorKind(ErrorKind::kDeadlineExceeded));
  }
  EXPECT_OK(device_->Synchronize(*other_));
}

}  // namespace
}  // namespace holdfast
