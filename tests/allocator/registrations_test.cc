// Verifies what may be registered as a holder of pages, in which order holders are listed, and who
// is found.
#include "allocator/registrations.h"

#include "gtest/gtest.h"
#include "tests/device/status_matchers.h"

namespace holdfast {
namespace {

constexpr SpanId kA{0}, kB{1};

absl::Status Nothing(const SpanInfo&) { return absl::OkStatus(); }

Registration Holder(const std::string& name, std::vector<SpanId> spans) {
  return {.holder = name, .spans = std::move(spans), .before_unmap = {}, .after_map = {}};
}

TEST(RegistrationsTest, ListsHoldersInTheOrderTheyCame) {
  Registrations registrations;
  ASSERT_OK_AND_ASSIGN(const RegistrationId first, registrations.Add(Holder("first", {kA})));
  ASSERT_OK_AND_ASSIGN(const RegistrationId second, registrations.Add(Holder("second", {kA, kB})));
  ASSERT_OK_AND_ASSIGN(const RegistrationId third, registrations.Add(Holder("first", {kB})));
  const auto names = [&] {
    std::string all;
    for (const RegisteredHolder& holder : registrations.all()) {
      all += holder.registration.holder + " ";
    }
    return all;
  };
  EXPECT_EQ(names(), "first second first ");
  ASSERT_OK(registrations.Remove(first));
  EXPECT_EQ(names(), "second first ");
  EXPECT_THAT(registrations.Remove(first), IsErrorKind(ErrorKind::kNotFound));
  ASSERT_OK_AND_ASSIGN(const RegistrationId fourth, registrations.Add(Holder("late", {kA})));
  EXPECT_NE(fourth, first);
  EXPECT_EQ(registrations.all().back().id, fourth);
  ASSERT_OK(registrations.Remove(second));
  ASSERT_OK(registrations.Remove(third));
}

TEST(RegistrationsTest, FindsWhoHoldsASpan) {
  Registrations registrations;
  EXPECT_FALSE(registrations.HolderOf(kA));
  ASSERT_OK_AND_ASSIGN(const RegistrationId id, registrations.Add(Holder("ring", {kB, kA})));
  ASSERT_TRUE(registrations.HolderOf(kA));
  EXPECT_EQ(registrations.HolderOf(kA)->registration.holder, "ring");
  EXPECT_EQ(registrations.HolderOf(kB)->id, id);
  ASSERT_OK(registrations.Remove(id));
  EXPECT_FALSE(registrations.HolderOf(kA));
}

TEST(RegistrationsTest, RefusesWhatCannotBeNamedOrCalled) {
  Registrations registrations;
  EXPECT_THAT(registrations.Add(Holder("", {kA})), IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(registrations.Add(Holder("x", {})), IsErrorKind(ErrorKind::kInvalidArgument));
  Registration half = Holder("half", {kA});
  half.before_unmap = Nothing;
  EXPECT_THAT(registrations.Add(half), IsErrorKind(ErrorKind::kInvalidArgument));
  half.before_unmap = nullptr;
  half.after_map = Nothing;
  const auto refused = registrations.Add(half);
  EXPECT_THAT(refused, IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_EQ(GetErrorInfo(refused.status())->object, "half");
  half.before_unmap = Nothing;
  EXPECT_OK(registrations.Add(half));
  EXPECT_EQ(registrations.all().size(), 1u);
}

TEST(RegistrationsTest, CountsThoseThatMayWrite) {
  Registrations registrations;
  Registration reader = Holder("reader", {kA});
  reader.writes = false;
  ASSERT_OK(registrations.Add(reader));
  EXPECT_EQ(registrations.writers_added(), 0u);
  ASSERT_OK_AND_ASSIGN(const RegistrationId writer, registrations.Add(Holder("writer", {kA})));
  ASSERT_OK(registrations.Remove(writer));
  EXPECT_EQ(registrations.writers_added(), 1u);  // it may have written before it went
}

TEST(RegistrationsTest, KindsHaveNames) {
  EXPECT_STREQ(HolderKindName(HolderKind::kExport), "export");
  EXPECT_STREQ(HolderKindName(HolderKind::kRdma), "rdma");
  EXPECT_STREQ(HolderKindName(HolderKind::kWritableAlias), "writable alias");
}

}  // namespace
}  // namespace holdfast
