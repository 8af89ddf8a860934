// Verifies that transitions from several threads, readers and replays beside them lose nothing.
#include <atomic>
#include <random>
#include <thread>

#include "gtest/gtest.h"
#include "tests/allocator/residency_rig.h"

namespace holdfast {
namespace {

constexpr int kRounds = 15;

// Sleeps and wakes random tags.
void Transitions(ResidencyRig& rig, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (int i = 0; i < kRounds; ++i) {
    std::vector<std::string> tags;
    for (const std::string& tag : AllTags()) {
      if (random() % 2 == 0) tags.push_back(tag);
    }
    if (tags.empty()) continue;
    EXPECT_OK(rig.residency->Sleep(tags, Soon()));
    EXPECT_OK(rig.residency->Wake(tags));
  }
}

TEST(ResidencyConcurrencyTest, TwoThreadsSleepAndWakeAtOnce) {
  ResidencyRig rig;
  const ResidencyRig::State before = rig.Look();
  std::thread first([&] { Transitions(rig, 1); });
  std::thread second([&] { Transitions(rig, 2); });
  first.join();
  second.join();
  ASSERT_OK(rig.residency->Wake(AllTags()));
  EXPECT_EQ(rig.Look(), before);
  EXPECT_EQ(rig.Read("w0"), rig.Expected("w0", 1));
  EXPECT_EQ(rig.Read("state"), rig.Expected("state", 3));
}

// Replays that obey gate and readiness never touch a page that is gone: the device would be lost.
TEST(ResidencyConcurrencyTest, AdmittedWorkNeverMeetsAMissingPage) {
  ResidencyRig rig;
  ASSERT_OK_AND_ASSIGN(auto lane, rig.device->CreateStream("lane"));
  rig.arena->gate().RegisterStream(lane.get());
  const AddressRange workspace = rig.arena->range(*rig.arena->Find("workspace"));
  std::atomic<bool> stop{false};
  std::atomic<int> replays{0}, refusals{0};
  std::thread replayer([&] {
    while (!stop.load()) {
      auto pass = rig.arena->gate().Enter();
      if (!pass.ok() || !rig.arena->CheckReady({"workspace", "kv_cache"}).ok()) {
        refusals.fetch_add(1);
        std::this_thread::yield();
        continue;
      }
      EXPECT_OK(rig.device->Fill(*lane, workspace.base, 7, 4096));
      if (replays.fetch_add(1) % 64 == 0) {
        // Keeps the queue short; outside the gate, as a host that waits for results would be.
        { AdmissionGate::Pass leaving(*std::move(pass)); }
        EXPECT_OK(rig.device->Synchronize(*lane));
      }
    }
  });
  std::thread reader([&] {
    while (!stop.load()) {
      for (const std::string& tag : AllTags()) rig.residency->asleep(tag);
      rig.residency->backing_bytes();
      rig.arena->bytes_by_tag();
      rig.arena->epoch();
      std::this_thread::yield();
    }
  });
  Transitions(rig, 3);
  while (replays.load() == 0) std::this_thread::yield();
  stop.store(true);
  replayer.join();
  reader.join();
  EXPECT_OK(rig.device->Synchronize(*lane));
  EXPECT_GT(refusals.load(), 0);
  rig.arena->gate().UnregisterStream(lane.get());
}

}  // namespace
}  // namespace holdfast
