// Verifies that random operations, with failures at random calls and replays beside them, never
// leave what the model of residency does not say. HOLDFAST_RANDOM_OPERATIONS and
// HOLDFAST_RANDOM_SEED choose a longer run, or a failed one again.
#include <cstdlib>

#include "gtest/gtest.h"
#include "tests/allocator/residency_model.h"

namespace holdfast {
namespace {

std::uint64_t FromEnvironment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr || *text == '\0' ? otherwise : std::strtoull(text, nullptr, 10);
}

TEST(ResidencyRandomTest, NoOrderOfOperationsBreaksTheModel) {
  const std::uint64_t operations = FromEnvironment("HOLDFAST_RANDOM_OPERATIONS", 600);
  const std::uint64_t seed = FromEnvironment("HOLDFAST_RANDOM_SEED", 1);
  RandomResidency random(seed);
  for (std::uint64_t i = 0; i < operations && random.problem().empty(); ++i) random.Step();
  random.End();
  EXPECT_EQ(random.problem(), "");
  for (const char* kind : {"sleep", "wake", "rewrite", "seal", "commit", "reserve", "free",
                           "prepare", "trim", "hold", "failed sleep", "failed wake"}) {
    EXPECT_GT(random.counts().contains(kind) ? random.counts().at(kind) : 0, 0) << kind;
  }
}

// Negative control: a sleep that trusts stale backups loses what was rewritten, and it shows.
TEST(ResidencyRandomTest, AStaleBackupIsNoticed) {
  RandomResidency random(2);
  random.residency().PlantFaults({.trust_stale = true});
  for (int i = 0; i < 600 && random.problem().empty(); ++i) random.Step();
  EXPECT_NE(random.problem(), "");
}

}  // namespace
}  // namespace holdfast
