// Verifies the heat program on an installed holdfast.
//
//   outside_test [--device D] [--plant FAULT]   (and GoogleTest's own flags)
#include <chrono>

#include "gmock/gmock.h"
#include "heat/rods.h"

namespace heat {
namespace {

std::string g_device = "host";
Mistake g_mistake = Mistake::kNone;

class OutsideTest : public testing::Test {
 protected:
  void SetUp() override {
    auto device = holdfast::OpenDevice(g_device);
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = *std::move(device);
  }
  std::unique_ptr<holdfast::Device> device_;
};

TEST_F(OutsideTest, WarmthIsTheSameAfterSleepAndWake) {
  auto rods = Rods::Create(*device_, g_mistake);
  ASSERT_TRUE(rods.ok()) << rods.status();
  const auto before = (*rods)->Step({.seed = 5});
  ASSERT_TRUE(before.ok()) << before.status();
  for (const auto& [graph, warmth] : *before) {
    const int bucket = std::stoi(graph.substr(graph.find('/') + 1));
    EXPECT_EQ(warmth, Rods::Expected(5, bucket)) << graph;
  }
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  const auto asleep = (*rods)->residency().Sleep((*rods)->arena().tags(), deadline);
  ASSERT_TRUE(asleep.ok()) << asleep.status();
  EXPECT_TRUE(
      holdfast::IsErrorKind((*rods)->Step({.seed = 5}).status(), holdfast::ErrorKind::kAsleep));
  const auto awake = (*rods)->residency().Wake((*rods)->arena().tags());
  ASSERT_TRUE(awake.ok()) << awake.status();
  const auto after = (*rods)->Step({.seed = 5});
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_EQ(*after, *before);
}

}  // namespace
}  // namespace heat

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::string(argv[i]) == "--device") heat::g_device = argv[i + 1];
    if (std::string(argv[i]) == "--plant") heat::g_mistake = heat::Mistake::kStalePointer;
  }
  return RUN_ALL_TESTS();
}
