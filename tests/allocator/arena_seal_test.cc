// Verifies that a seal maps read-only, that Unseal takes it back, and that a failure leaves neither
// half done.
#include "allocator/arena.h"
#include "gtest/gtest.h"
#include "tests/device/status_matchers.h"
#include "tests/device/test_device.h"

namespace holdfast {
namespace {

// A tag with two immutable groups: plain, and refilled.
class ArenaSealTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::uint64_t g = device_->info().granularity;
    ASSERT_OK_AND_ASSIGN(arena_,
                         Arena::Create(*device_, {.groups = {{"w", Role::kImmutable, g, g},
                                                             {"w", Role::kImmutable, g, g, true},
                                                             {"kv", Role::kCache, g, g}}}));
    ASSERT_OK_AND_ASSIGN(
        plain_,
        arena_->Reserve({.name = "plain", .tag = "w", .role = Role::kImmutable, .bytes = 100}));
    const Refill refill = [](Device&, Stream&, AddressRange) { return absl::OkStatus(); };
    ASSERT_OK_AND_ASSIGN(refilled_, arena_->Reserve({.name = "refilled",
                                                     .tag = "w",
                                                     .role = Role::kImmutable,
                                                     .bytes = 100,
                                                     .refill = refill}));
    ASSERT_OK(arena_->CommitTag("w"));
  }
  std::vector<Access> Accesses() {
    return {device_->Query(arena_->range(plain_).base).access,
            device_->Query(arena_->range(refilled_).base).access};
  }

  std::unique_ptr<Device> device_ = TestDevice();
  std::unique_ptr<Arena> arena_;
  SpanId plain_, refilled_;
};

using Both = std::vector<Access>;
const Both kBothRead{Access::kRead, Access::kRead};
const Both kBothWritable{Access::kReadWrite, Access::kReadWrite};

TEST_F(ArenaSealTest, UnsealTakesTheSealBack) {
  ASSERT_OK(arena_->Unseal("w"));  // nothing is sealed: nothing done
  ASSERT_OK(arena_->Seal("w"));
  EXPECT_EQ(Accesses(), kBothRead);
  const std::uint64_t epoch = arena_->groups()[0].writable_epoch;
  ASSERT_OK(arena_->Unseal("w"));
  EXPECT_EQ(Accesses(), kBothWritable);
  EXPECT_GT(arena_->groups()[0].writable_epoch, epoch);
  ASSERT_OK(arena_->Unseal("w"));
  ASSERT_OK(arena_->Seal("w"));
  EXPECT_EQ(Accesses(), kBothRead);
  EXPECT_THAT(arena_->Unseal("kv"), IsErrorKind(ErrorKind::kNotFound));
  EXPECT_THAT(arena_->Unseal("nobody"), IsErrorKind(ErrorKind::kNotFound));
}

TEST_F(ArenaSealTest, AFailedSealOrUnsealChangesNothing) {
  for (std::uint64_t k = 1; k <= 2; ++k) {
    device_->calls().FailAt(k, {Call::kSetAccess});
    EXPECT_THAT(arena_->Seal("w"), IsErrorKind(ErrorKind::kDriver));
    EXPECT_EQ(Accesses(), kBothWritable);
  }
  ASSERT_OK(arena_->Seal("w"));
  for (std::uint64_t k = 1; k <= 2; ++k) {
    device_->calls().FailAt(k, {Call::kSetAccess});
    EXPECT_THAT(arena_->Unseal("w"), IsErrorKind(ErrorKind::kDriver));
    EXPECT_EQ(Accesses(), kBothRead);
    EXPECT_TRUE(arena_->groups()[0].sealed && arena_->groups()[1].sealed);
  }
  device_->calls().Disarm();
  ASSERT_OK(arena_->Unseal("w"));
  EXPECT_EQ(Accesses(), kBothWritable);
}

}  // namespace
}  // namespace holdfast
