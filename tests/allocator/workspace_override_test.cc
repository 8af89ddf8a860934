// Verifies what the environment may override, and that a size below the need is refused with both
// figures unless it is forced.
#include "allocator/workspace_override.h"

#include <map>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "tests/allocator/workspace_rig.h"

namespace holdfast {
namespace {

using ::testing::HasSubstr;

Environment Given(std::map<std::string, std::string> values) {
  return [values](const std::string& name) -> std::optional<std::string> {
    const auto found = values.find(name);
    if (found == values.end()) return std::nullopt;
    return found->second;
  };
}

TEST(WorkspaceOverride, ReadsSizeAndForce) {
  ASSERT_OK_AND_ASSIGN(WorkspaceOverride none, ReadWorkspaceOverride(Given({})));
  EXPECT_FALSE(none.slot_bytes);
  EXPECT_FALSE(none.force);
  ASSERT_OK_AND_ASSIGN(
      none,
      ReadWorkspaceOverride(Given({{kWorkspaceBytesVariable, ""}, {kWorkspaceForceVariable, ""}})));
  EXPECT_FALSE(none.slot_bytes);
  const std::pair<const char*, std::uint64_t> sizes[] = {
      {"4096", 4096}, {"512KiB", 512 * kKiB}, {"256MiB", 256 * kMiB}, {"3GiB", 3 * kGiB}};
  for (const auto& [text, bytes] : sizes) {
    ASSERT_OK_AND_ASSIGN(const WorkspaceOverride read,
                         ReadWorkspaceOverride(Given({{kWorkspaceBytesVariable, text}})));
    EXPECT_EQ(read.slot_bytes, bytes);
    EXPECT_FALSE(read.force);
  }
  // Field case 54: words of a switch mean what they say.
  for (const auto& [text, on] : std::map<std::string, bool>{{"1", true},
                                                            {"true", true},
                                                            {"yes", true},
                                                            {"on", true},
                                                            {"0", false},
                                                            {"FALSE", false},
                                                            {"no", false},
                                                            {"off", false}}) {
    ASSERT_OK_AND_ASSIGN(const WorkspaceOverride read,
                         ReadWorkspaceOverride(Given({{kWorkspaceBytesVariable, "1MiB"},
                                                      {kWorkspaceForceVariable, text}})));
    EXPECT_EQ(read.force, on) << text;
  }
}

TEST(WorkspaceOverride, MalformedValuesNameVariableValueAndGrammar) {
  for (const char* text :
       {"abc", "-1", "1.5GiB", "12 MiB", "256MB", "0", "99999999999999999999", "9000000000GiB"}) {
    const absl::Status refused =
        ReadWorkspaceOverride(Given({{kWorkspaceBytesVariable, text}})).status();
    EXPECT_THAT(refused, IsErrorKind(ErrorKind::kInvalidArgument)) << text;
    EXPECT_EQ(GetErrorInfo(refused)->object, kWorkspaceBytesVariable);
    EXPECT_THAT(std::string(refused.message()), HasSubstr(text));
    EXPECT_THAT(std::string(refused.message()), HasSubstr("256MiB"));
  }
  EXPECT_THAT(ReadWorkspaceOverride(
                  Given({{kWorkspaceBytesVariable, "1MiB"}, {kWorkspaceForceVariable, "2"}})),
              IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(ReadWorkspaceOverride(Given({{kWorkspaceForceVariable, "1"}})),
              IsErrorKind(ErrorKind::kInvalidArgument));
}

class WorkspaceOverrideTest : public WorkspaceTest {
 protected:
  absl::Status OpenWith(std::uint64_t bytes, bool force) {
    WorkspaceOptions options = Options();
    options.overrides = {.slot_bytes = bytes, .force = force};
    options.on_setting = [this](const EffectiveSetting& setting) { told_.push_back(setting); };
    return Open(std::move(options));
  }
  std::vector<EffectiveSetting> told_;
};

// Field case 24: the need is known, and compared, before any memory is touched.
TEST_F(WorkspaceOverrideTest, BelowTheNeedIsRefusedWithBothFiguresBeforeMemoryIsTouched) {
  ASSERT_OK(OpenWith(4096, false));
  const absl::Status refused = workspace_->Reserve("mla", {{"q", 5000}});
  EXPECT_THAT(refused, IsErrorKind(ErrorKind::kOutOfExtent));
  EXPECT_EQ(GetErrorInfo(refused)->object, kWorkspaceBytesVariable);
  EXPECT_EQ(GetErrorInfo(refused)->need, 5120u);
  EXPECT_EQ(GetErrorInfo(refused)->have, 4096u);
  EXPECT_EQ(own_bytes(), 0u);
  EXPECT_THAT(Take("mla", 5000), IsErrorKind(ErrorKind::kOutOfExtent));
  EXPECT_TRUE(workspace_->Report().declared.empty());
}

// Field case 24, with its figures: 64 heads and 528 sequences need more than the usual default.
TEST_F(WorkspaceOverrideTest, FieldCase24TheNeedCountsNotTheDefaultAndRebindingCounts) {
  WorkspaceOptions options = Options();
  options.extent_bytes = kGiB;
  options.overrides = {.slot_bytes = 413138944, .force = false};
  ASSERT_OK(Open(options));
  const absl::Status refused = workspace_->Reserve("decode", {{"partial", 536346624}});
  EXPECT_THAT(refused, IsErrorKind(ErrorKind::kOutOfExtent));
  EXPECT_EQ(GetErrorInfo(refused)->need, 536346624u);
  EXPECT_EQ(GetErrorInfo(refused)->have, 413138944u);
  options.overrides = {};
  ASSERT_OK(Open(options));
  ASSERT_OK(workspace_->Reserve("planner", {{"plan", 64 * kMiB}}));
  ASSERT_OK(workspace_->Reserve("planner", {{"plan", 512 * kMiB}}));
  EXPECT_EQ(workspace_->slot_bytes(), 512 * kMiB);
  EXPECT_EQ(workspace_->Report().declared[0].packed_bytes, 512 * kMiB);
  EXPECT_EQ(own_bytes(), 0u);
}

TEST_F(WorkspaceOverrideTest, AboveTheNeedIsTakenAndTold) {
  ASSERT_OK(OpenWith(2 * g_, false));
  ASSERT_OK(workspace_->Reserve("mla", {{"q", 5000}}));
  ASSERT_OK(workspace_->Lock());
  EXPECT_EQ(workspace_->slot_bytes(), 2 * g_);
  EXPECT_EQ(own_bytes(), 8 * g_);
  ASSERT_EQ(told_.size(), 2u);
  EXPECT_EQ(told_[0].name, kWorkspaceBytesVariable);
  EXPECT_EQ(told_[0].value, std::to_string(2 * g_));
  EXPECT_EQ(told_[0].origin, "environment");
  EXPECT_EQ(told_[1].value, std::to_string(2 * g_));
  EXPECT_THAT(OpenWith(9 * g_, false), IsErrorKind(ErrorKind::kOutOfExtent));
}

TEST_F(WorkspaceOverrideTest, ForcedBelowTheNeedFailsCallByCall) {
  ASSERT_OK(OpenWith(4096, true));
  ASSERT_OK(workspace_->Reserve("mla", {{"q", 5000}}));
  EXPECT_EQ(workspace_->slot_bytes(), 4096u);
  EXPECT_THAT(Take("mla", 5000), IsErrorKind(ErrorKind::kOutOfExtent));
  EXPECT_OK(Take("mla", 4096));
  ASSERT_OK(workspace_->Lock());
  EXPECT_THAT(Take("mla", 5000), IsErrorKind(ErrorKind::kLocked));
  EXPECT_OK(Take("mla", 4000));
  EXPECT_EQ(told_[1].name, kWorkspaceForceVariable);
}

}  // namespace
}  // namespace holdfast
