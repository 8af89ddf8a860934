// Verifies that part of a wake can be waited for and published while the rest still comes.
#include <condition_variable>
#include <mutex>
#include <thread>

#include "gtest/gtest.h"
#include "tests/allocator/residency_rig.h"

namespace holdfast {
namespace {

// A refill hook that waits until the test lets it go on, or fail.
class HeldRefill {
 public:
  explicit HeldRefill(ResidencyRig& rig) {
    rig.refill_override = [this]() -> absl::Status {
      std::unique_lock<std::mutex> lock(mutex_);
      reached_ = true;
      changed_.notify_all();
      changed_.wait(lock, [this] { return result_.has_value(); });
      return *result_;
    };
  }
  void WaitUntilReached() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return reached_; });
  }
  void End(absl::Status result) {
    std::lock_guard<std::mutex> lock(mutex_);
    result_ = std::move(result);
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool reached_ = false;
  std::optional<absl::Status> result_;
};

const Residency::Deadline kNow = Residency::Deadline::min();

TEST(ResidencyWaitTest, ASpanIsBackWhileTheRestStillComes) {
  ResidencyRig rig;
  ASSERT_OK(rig.residency->Sleep(AllTags(), Soon()));
  const SpanId w1 = *rig.arena->Find("w1");
  EXPECT_THAT(rig.residency->WaitSpan(w1, kNow), IsErrorKind(ErrorKind::kDeadlineExceeded));
  HeldRefill refill(rig);
  std::thread waker([&] { EXPECT_OK(rig.residency->Wake(AllTags())); });
  EXPECT_OK(rig.residency->WaitSpan(w1, Soon()));
  refill.WaitUntilReached();
  // The contents are there and verified; graphs wait for the tag.
  EXPECT_OK(rig.residency->WaitSpan(*rig.arena->Find("state"), kNow));
  EXPECT_EQ(rig.Read("w1"), rig.Expected("w1", 2));
  EXPECT_TRUE(rig.residency->asleep("weights"));
  EXPECT_THAT(rig.arena->CheckReady({"weights"}), IsErrorKind(ErrorKind::kAsleep));
  EXPECT_THAT(rig.residency->WaitSpan(*rig.arena->Find("table"), kNow),
              IsErrorKind(ErrorKind::kDeadlineExceeded));
  EXPECT_THAT(rig.residency->WaitAwake("weights", kNow), IsErrorKind(ErrorKind::kDeadlineExceeded));
  refill.End(absl::OkStatus());
  EXPECT_OK(rig.residency->WaitAwake("weights", Soon()));
  waker.join();
  EXPECT_OK(rig.residency->WaitAwake("tables", kNow));
  EXPECT_OK(rig.residency->WaitSpan(w1, kNow));
}

// What was back is gone again when the wake fails; waiters hear why.
TEST(ResidencyWaitTest, WaitersHearOfTheFailure) {
  ResidencyRig rig;
  ASSERT_OK(rig.residency->Sleep(AllTags(), Soon()));
  HeldRefill refill(rig);
  std::thread waker([&] { EXPECT_FALSE(rig.residency->Wake(AllTags()).ok()); });
  refill.WaitUntilReached();
  std::atomic<int> heard{0};
  std::vector<std::thread> waiters;
  for (int i = 0; i < 2; ++i) {
    waiters.emplace_back([&rig, &heard, i] {
      const absl::Status status =
          i == 0 ? rig.residency->WaitAwake("state", Soon())
                 : rig.residency->WaitSpan(*rig.arena->Find("kv.zero"), Soon());
      EXPECT_THAT(status, IsErrorKind(ErrorKind::kNotFound));
      heard.fetch_add(1);
    });
  }
  // Either they wait by now, or they come later and the next failure tells them.
  while (heard.load() < 2) {
    refill.End(MakeError({.kind = ErrorKind::kNotFound, .object = "table"}, "no source"));
    if (waker.joinable()) waker.join();
    EXPECT_FALSE(rig.residency->Wake(AllTags()).ok());
  }
  for (std::thread& waiter : waiters) waiter.join();
  EXPECT_THAT(rig.residency->WaitSpan(*rig.arena->Find("w0"), kNow),
              IsErrorKind(ErrorKind::kDeadlineExceeded));
  rig.refill_override = nullptr;
  ASSERT_OK(rig.residency->Wake(AllTags()));
  // Asleep again: what came back in an earlier wake says nothing of it.
  ASSERT_OK(rig.residency->Sleep({"weights"}, Soon()));
  EXPECT_THAT(rig.residency->WaitSpan(*rig.arena->Find("w0"), kNow),
              IsErrorKind(ErrorKind::kDeadlineExceeded));
  ASSERT_OK(rig.residency->Wake({"weights"}));
}

TEST(ResidencyWaitTest, UnknownNamesAreRefused) {
  ResidencyRig rig;
  EXPECT_THAT(rig.residency->WaitAwake("nobody", Soon()), IsErrorKind(ErrorKind::kNotFound));
  EXPECT_THAT(rig.residency->WaitSpan(SpanId{}, Soon()), IsErrorKind(ErrorKind::kNotFound));
  EXPECT_OK(rig.residency->WaitAwake("state", kNow));
}

// Tag by tag: the first serves while the second still comes.
TEST(ResidencyWaitTest, TagsArePublishedOneByOne) {
  ResidencyRig rig;
  ASSERT_OK(rig.residency->Sleep(AllTags(), Soon()));
  const std::uint64_t epoch = rig.arena->epoch();
  HeldRefill refill(rig);
  absl::StatusOr<TransitionReport> woken;
  std::thread waker([&] {
    woken =
        rig.residency->Wake({"kv_cache", "weights", "tables", "state"}, {.publish_each_tag = true});
  });
  refill.WaitUntilReached();
  EXPECT_OK(rig.arena->CheckReady({"kv_cache", "weights"}));
  EXPECT_TRUE(rig.residency->asleep("tables"));
  EXPECT_TRUE(rig.residency->asleep("state"));
  EXPECT_EQ(rig.Read("w0"), rig.Expected("w0", 1));
  refill.End(absl::OkStatus());
  waker.join();
  ASSERT_OK(woken);
  EXPECT_EQ(woken->tags.size(), 4u);
  EXPECT_EQ(rig.arena->epoch(), epoch + 4);
  ASSERT_OK(rig.residency->Wake(AllTags()));
}

// The second tag fails: the first stays, the others are as before.
TEST(ResidencyWaitTest, AFailureTakesBackOnlyWhatWasNotPublished) {
  ResidencyRig rig;
  const ResidencyRig::State awake = rig.Look();
  ASSERT_OK(rig.residency->Sleep(AllTags(), Soon()));
  const WakeOptions each{.publish_each_tag = true};
  rig.refill_override = [] {
    return MakeError({.kind = ErrorKind::kNotFound, .object = "file"}, "gone");
  };
  EXPECT_THAT(rig.residency->Wake({"weights", "tables", "state"}, each),
              IsErrorKind(ErrorKind::kNotFound));
  EXPECT_FALSE(rig.residency->asleep("weights"));
  EXPECT_TRUE(rig.residency->asleep("tables"));
  EXPECT_TRUE(rig.residency->asleep("state"));
  EXPECT_EQ(rig.device->Memory()->own_bytes, 2 * rig.device->info().granularity);
  EXPECT_EQ(rig.Read("w1"), rig.Expected("w1", 2));
  rig.refill_override = nullptr;
  ASSERT_OK(rig.residency->Wake(AllTags(), each));
  EXPECT_EQ(rig.Look(), awake);
  EXPECT_EQ(rig.Read("state"), rig.Expected("state", 3));
}

TEST(ResidencyWaitTest, PublishingEachTagFailsSafelyAtAnyCall) {
  for (std::uint64_t k = 1;; ++k) {
    SCOPED_TRACE("call " + std::to_string(k));
    ResidencyRig rig;
    const ResidencyRig::State awake = rig.Look();
    ASSERT_OK(rig.residency->Sleep(AllTags(), Soon()));
    rig.device->calls().FailAt(k);
    const auto woken = rig.residency->Wake(AllTags(), {.publish_each_tag = true});
    if (!rig.device->calls().Disarm()) {
      EXPECT_OK(woken);
      break;
    }
    // Each tag is whole or asleep; those that came are the first ones.
    bool asleep = false;
    std::uint64_t pages = 0;
    for (const TagBytes& row : rig.arena->bytes_by_tag()) pages += row.resident_bytes;
    EXPECT_EQ(rig.device->Memory()->own_bytes, pages);
    for (const std::string& tag : AllTags()) {
      EXPECT_TRUE(!asleep || rig.residency->asleep(tag)) << tag;
      asleep = rig.residency->asleep(tag);
    }
    ASSERT_OK(rig.residency->Wake(AllTags()));
    EXPECT_EQ(rig.Look(), awake);
    EXPECT_EQ(rig.Read("w0"), rig.Expected("w0", 1));
    if (testing::Test::HasFailure()) break;
  }
}

}  // namespace
}  // namespace holdfast
