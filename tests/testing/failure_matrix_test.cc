// Verifies that the published failure matrix is what the code does, and that it would show a leak
// or lost bytes.
#include "testing/failure_matrix.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "gtest/gtest.h"
#include "tests/device/status_matchers.h"
#include "tests/device/test_device.h"

namespace holdfast::testing {
namespace {

constexpr char kPage[] = "docs/failures.md";

TEST(FailureMatrixTest, EveryFailureLeavesThePreviousStateAsThePageSays) {
  auto device = TestDevice();
  ASSERT_OK_AND_ASSIGN(const FailureMatrix matrix, RunFailureMatrix(*device, {.seed = 7}));
  EXPECT_TRUE(matrix.held()) << FailureMarkdown(matrix);
  EXPECT_GT(matrix.tried(), 200);
  // The page is of the host device, and not part of a bundle. It does not depend on the seed.
  if (device->info().is_cuda || !std::filesystem::exists(kPage)) return;
  std::ifstream file(kPage);
  std::ostringstream page;
  page << file.rdbuf();
  EXPECT_EQ(page.str(), FailureMarkdown(matrix))
      << "make it again: holdfast failures --device host --markdown " << kPage;
}

TEST(FailureMatrixTest, EqualSeedsGiveEqualMatrices) {
  const auto json = [] {
    auto device = TestHostDevice();
    const auto matrix = RunFailureMatrix(*device, {.seed = 11, .roles = {"refilled"}});
    EXPECT_OK(matrix);
    return FailureJson(*matrix);
  };
  EXPECT_EQ(json(), json());
}

// Negative controls.
TEST(FailureMatrixTest, APlantedLeakShows) {
  auto device = TestHostDevice();
  ASSERT_OK_AND_ASSIGN(
      const FailureMatrix matrix,
      RunFailureMatrix(*device, {.plant = PlantedFailure::kLeak, .roles = {"scratch"}}));
  EXPECT_FALSE(matrix.held());
  std::uint64_t leaked = 0;
  for (const FailureCell& cell : matrix.cells) leaked += cell.leaked_bytes;
  EXPECT_GT(leaked, 0u);
}

TEST(FailureMatrixTest, PlantedLostBytesShow) {
  auto device = TestHostDevice();
  ASSERT_OK_AND_ASSIGN(
      const FailureMatrix matrix,
      RunFailureMatrix(*device, {.plant = PlantedFailure::kLostBytes, .roles = {"mutable"}}));
  EXPECT_FALSE(matrix.held());
  for (const FailureCell& cell : matrix.cells) EXPECT_FALSE(cell.problems.empty());
}

}  // namespace
}  // namespace holdfast::testing
