// Verifies that the published failure matrix is what the code does, and that it would show a leak
// or lost bytes.
#include "tools/failure_matrix.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "gtest/gtest.h"
#include "tests/device/status_matchers.h"
#include "tests/device/test_device.h"

namespace holdfast {
namespace {

constexpr char kPage[] = "docs/failures.md";

TEST(FailureMatrixTest, EveryFailureLeavesThePreviousStateOnTheTestDevice) {
  auto device = TestDevice();
  ASSERT_OK_AND_ASSIGN(const FailureMatrix matrix, RunFailureMatrix(*device, {.seed = 7}));
  EXPECT_TRUE(matrix.held()) << FailureMarkdown(matrix);
  EXPECT_GT(matrix.tried(), 200);
}

TEST(FailureMatrixTest, ThePublishedPageIsWhatTheHostDeviceDoes) {
  if (!std::filesystem::exists(kPage)) GTEST_SKIP() << kPage << " is not part of this bundle";
  auto device = TestHostDevice();
  ASSERT_OK_AND_ASSIGN(const FailureMatrix matrix, RunFailureMatrix(*device, {}));
  std::ifstream file(kPage);
  std::ostringstream page;
  page << file.rdbuf();
  EXPECT_EQ(page.str(), FailureMarkdown(matrix))
      << "make it again: holdfast failures --device host --markdown " << kPage;
}

// Negative controls.
TEST(FailureMatrixTest, APlantedLeakShows) {
  auto device = TestHostDevice();
  ASSERT_OK_AND_ASSIGN(const FailureMatrix matrix,
                       RunFailureMatrix(*device, {.plant = PlantedFailure::kLeak}));
  EXPECT_FALSE(matrix.held());
  std::uint64_t leaked = 0;
  for (const FailureCell& cell : matrix.cells) leaked += cell.leaked_bytes;
  EXPECT_GT(leaked, 0u);
}

TEST(FailureMatrixTest, PlantedLostBytesShow) {
  auto device = TestHostDevice();
  ASSERT_OK_AND_ASSIGN(const FailureMatrix matrix,
                       RunFailureMatrix(*device, {.plant = PlantedFailure::kLostBytes}));
  EXPECT_FALSE(matrix.held());
  for (const FailureCell& cell : matrix.cells) {
    EXPECT_EQ(cell.problems.empty(), cell.role != "mutable" && cell.role != "all together");
  }
}

}  // namespace
}  // namespace holdfast
