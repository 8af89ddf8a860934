// Verifies the neighbour's half of the line: what it takes, gives back, and refuses.
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "device/bytes.h"
#include "gtest/gtest.h"
#include "testing/scribble.h"
#include "testing/taken_memory.h"
#include "tests/device/status_matchers.h"

namespace holdfast::testing {
namespace {

std::vector<std::string> Converse(const std::string& said) {
  std::istringstream in(said);
  std::ostringstream out;
  EXPECT_OK(ServeNeighbour("host", in, out));
  std::vector<std::string> answers = absl::StrSplit(out.str(), '\n', absl::SkipEmpty());
  return answers;
}

TEST(NeighbourTest, TakesAndGivesBackOnRequest) {
  EXPECT_EQ(Converse("take 4194304\nrelease\ntake 2097152\nrelease\n"),
            (std::vector<std::string>{"ok 4194304", "ok 0", "ok 2097152", "ok 0"}));
}

TEST(NeighbourTest, RefusesWhatItCannotDoAndGoesOn) {
  const std::vector<std::string> answers =
      Converse("take 1000000000000\ntake\ntake lots\nsleep\nrelease now\n\nrelease\n");
  ASSERT_EQ(answers.size(), 7u);
  EXPECT_TRUE(absl::StrContains(answers[0], "out of memory")) << answers[0];
  for (std::size_t i = 0; i < 5; ++i) EXPECT_TRUE(absl::StartsWith(answers[i], "error ")) << i;
  EXPECT_EQ(answers.back(), "ok 0");  // a failed take holds nothing
}

TEST(NeighbourTest, FillingLeavesTheSlackAndNoMore) {
  constexpr std::uint64_t kCapacity = 200 * kMiB, kSlack = 10 * kMiB;
  ASSERT_OK_AND_ASSIGN(const auto device, OpenDevice("host", {.host_capacity_bytes = kCapacity}));
  TakenMemory taken(*device);
  ASSERT_OK_AND_ASSIGN(const std::uint64_t bytes, taken.TakeAllBut(kSlack));
  EXPECT_EQ(bytes, kCapacity - kSlack);
  EXPECT_EQ(device->Memory()->free_bytes, kSlack);
  EXPECT_OK(taken.Release());
  EXPECT_EQ(device->Memory()->own_bytes, 0u);
  EXPECT_TRUE(device->calls().Balanced());
}

}  // namespace
}  // namespace holdfast::testing
