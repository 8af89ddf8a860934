// Verifies that nobody who refers to pages is left with pages that are gone: holders let go first
// and take hold again, or sleep refuses and names them.
#include "gtest/gtest.h"
#include "tests/allocator/residency_rig.h"

namespace holdfast {
namespace {

// Writes down what its hooks were called for.
class Holders {
 public:
  explicit Holders(ResidencyRig& rig) : rig_(rig) {}

  RegistrationId Add(const std::string& name, const std::vector<std::string>& spans) {
    Registration holder{.holder = name, .kind = HolderKind::kCommunicator};
    for (const std::string& span : spans) holder.spans.push_back(*rig_.arena->Find(span));
    holder.before_unmap = [this, name](const SpanInfo& span) { return Call("-" + name, span); };
    holder.after_map = [this, name](const SpanInfo& span) { return Call("+" + name, span); };
    absl::StatusOr<RegistrationId> id = rig_.arena->registrations().Add(std::move(holder));
    EXPECT_OK(id);
    return id.ok() ? *id : RegistrationId{};
  }
  std::vector<std::string> Take() { return std::exchange(calls_, {}); }
  // What this call answers, e.g. "-a w0"; anything else succeeds.
  std::string failing;

 private:
  absl::Status Call(const std::string& what, const SpanInfo& span) {
    calls_.push_back(what + " " + span.spec.name);
    // The pages are there and are still, or again, asleep for everybody else.
    EXPECT_TRUE(rig_.device->Query(span.range.base).mapped);
    if (calls_.back() != failing) return absl::OkStatus();
    return MakeError({.kind = ErrorKind::kInternal, .object = what}, "planted");
  }

  ResidencyRig& rig_;
  std::vector<std::string> calls_;
};

using Calls = std::vector<std::string>;

TEST(ResidencyHoldersTest, AHolderWithoutHooksRefusesSleepAndIsNamed) {
  ResidencyRig rig;
  const ResidencyRig::State before = rig.Look();
  ASSERT_OK_AND_ASSIGN(
      const RegistrationId id,
      rig.arena->registrations().Add(
          {.holder = "rank 3", .kind = HolderKind::kExport, .spans = {*rig.arena->Find("w1")}}));
  const auto refused = rig.residency->Sleep(AllTags(), Soon());
  EXPECT_THAT(refused, IsErrorKind(ErrorKind::kHeld));
  EXPECT_EQ(GetErrorInfo(refused.status())->object, "rank 3");
  const std::string message(refused.status().message());
  EXPECT_THAT(message, testing::HasSubstr("export"));
  EXPECT_THAT(message, testing::HasSubstr("w1"));
  EXPECT_EQ(rig.residency->backing_bytes(), 0u);  // not even host memory was ordered
  EXPECT_EQ(rig.Look(), before);
  EXPECT_OK(rig.residency->Sleep({"state"}, Soon()));  // not his
  ASSERT_OK(rig.arena->registrations().Remove(id));
  EXPECT_OK(rig.residency->Sleep(AllTags(), Soon()));
  EXPECT_OK(rig.residency->Wake(AllTags()));
}

TEST(ResidencyHoldersTest, HooksAreCalledInOrderAndOnlyForWhatMoves) {
  ResidencyRig rig;
  Holders holders(rig);
  holders.Add("a", {"w0", "state"});
  const RegistrationId b = holders.Add("b", {"w1", "kv.zero"});
  ASSERT_OK(rig.residency->Sleep({"weights", "kv_cache"}, Soon()));
  EXPECT_EQ(holders.Take(), (Calls{"-a w0", "-b w1", "-b kv.zero"}));
  ASSERT_OK(rig.residency->Wake({"weights"}));
  EXPECT_EQ(holders.Take(), (Calls{"+b w1", "+a w0"}));
  ASSERT_OK(rig.arena->registrations().Remove(b));
  ASSERT_OK(rig.residency->Wake({"kv_cache"}));
  EXPECT_EQ(holders.Take(), Calls{});
  // The control: without the calls sleep goes on as if there were no holder.
  rig.residency->PlantFaults({.skip_holders = true});
  ASSERT_OK(rig.residency->Sleep({"weights"}, Soon()));
  ASSERT_OK(rig.residency->Wake({"weights"}));
  EXPECT_EQ(holders.Take(), Calls{});
}

// The page a holder took hold of again holds its contents, before the tag counts as awake.
TEST(ResidencyHoldersTest, ContentsAreBackWhenHoldersTakeHold) {
  ResidencyRig rig;
  Bytes seen;
  bool asleep = false;
  ASSERT_OK(rig.arena->registrations().Add(
      {.holder = "reader",
       .spans = {*rig.arena->Find("w0")},
       .writes = false,
       .before_unmap = [](const SpanInfo&) { return absl::OkStatus(); },
       .after_map =
           [&](const SpanInfo&) {
             seen = rig.Read("w0");
             asleep = rig.residency->asleep("weights");
             return absl::OkStatus();
           }}));
  ASSERT_OK(rig.residency->Sleep({"weights"}, Soon()));
  ASSERT_OK(rig.residency->Wake({"weights"}));
  EXPECT_EQ(seen, rig.Expected("w0", 1));
  EXPECT_TRUE(asleep);
}

// What a holder writes until it lets go is part of what is kept.
TEST(ResidencyHoldersTest, LastWritesOfAHolderAreKept) {
  ResidencyRig rig;
  ASSERT_OK(rig.residency->Sleep({"state"}, Soon()));
  ASSERT_OK(rig.residency->Wake({"state"}));
  ASSERT_OK(rig.arena->registrations().Add(
      {.holder = "writer",
       .kind = HolderKind::kRdma,
       .spans = {*rig.arena->Find("state")},
       .before_unmap =
           [&](const SpanInfo&) {
             rig.Write("state", 99);
             return absl::OkStatus();
           },
       .after_map = [](const SpanInfo&) { return absl::OkStatus(); }}));
  ASSERT_OK(rig.residency->Sleep({"state"}, Soon()));
  ASSERT_OK(rig.residency->Wake({"state"}));
  EXPECT_EQ(rig.Read("state"), rig.Expected("state", 99));
}

TEST(ResidencyHoldersTest, AHolderThatCannotLetGoFailsTheSleep) {
  ResidencyRig rig;
  const ResidencyRig::State before = rig.Look();
  Holders holders(rig);
  holders.Add("a", {"w0"});
  holders.Add("b", {"state"});
  holders.Add("c", {"w1"});
  holders.failing = "-b state";
  const auto slept = rig.residency->Sleep(AllTags(), Soon());
  EXPECT_THAT(slept, IsErrorKind(ErrorKind::kInternal));
  EXPECT_THAT(std::string(slept.status().message()), testing::HasSubstr("'b'"));
  EXPECT_EQ(holders.Take(), (Calls{"-a w0", "-b state", "+a w0"}));
  EXPECT_EQ(rig.Look(), before);
}

TEST(ResidencyHoldersTest, AHolderThatCannotTakeHoldFailsTheWake) {
  ResidencyRig rig;
  const ResidencyRig::State before = rig.Look();
  Holders holders(rig);
  for (const std::string name : {"a", "b", "c"}) holders.Add(name, {"state"});
  ASSERT_OK(rig.residency->Sleep(AllTags(), Soon()));
  holders.Take();
  holders.failing = "+a state";
  EXPECT_THAT(rig.residency->Wake(AllTags()), IsErrorKind(ErrorKind::kInternal));
  EXPECT_EQ(holders.Take(), (Calls{"+c state", "+b state", "+a state", "-b state", "-c state"}));
  EXPECT_EQ(rig.device->Memory()->own_bytes, 0u);
  EXPECT_TRUE(rig.residency->asleep("state"));
  holders.failing.clear();
  ASSERT_OK(rig.residency->Wake(AllTags()));
  EXPECT_EQ(rig.Look(), before);
}

// Whatever call fails, at the end every holder holds if and only if its tag is awake.
TEST(ResidencyHoldersTest, HoldersFollowTheStateThroughAnyFailure) {
  for (const bool waking : {false, true}) {
    for (std::uint64_t k = 1;; ++k) {
      SCOPED_TRACE((waking ? "wake, call " : "sleep, call ") + std::to_string(k));
      ResidencyRig rig;
      int held = 1;
      ASSERT_OK(rig.arena->registrations().Add({.holder = "one",
                                                .spans = {*rig.arena->Find("state")},
                                                .before_unmap =
                                                    [&](const SpanInfo&) {
                                                      --held;
                                                      return absl::OkStatus();
                                                    },
                                                .after_map =
                                                    [&](const SpanInfo&) {
                                                      ++held;
                                                      return absl::OkStatus();
                                                    }}));
      if (waking) {
        ASSERT_OK(rig.residency->Sleep({"state"}, Soon()));
      }
      rig.device->calls().FailAt(k);
      const bool ok = waking ? rig.residency->Wake({"state"}).ok()
                             : rig.residency->Sleep({"state"}, Soon()).ok();
      const bool fired = rig.device->calls().Disarm();
      EXPECT_TRUE(ok || fired);
      EXPECT_EQ(held, rig.residency->asleep("state") ? 0 : 1);
      if (!fired || testing::Test::HasFailure()) break;
    }
  }
}

}  // namespace
}  // namespace holdfast
