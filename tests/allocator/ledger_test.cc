// Verifies that every byte the device counts for the process has an owner in the ledger, that each
// event is put down under its own, and that a byte nobody measured is seen. Invariant 9.
#include "allocator/ledger.h"

#include "gtest/gtest.h"
#include "tests/allocator/residency_rig.h"

namespace holdfast {
namespace {

constexpr HostDriverCosts kCosts{.context_bytes = 40 * kMiB,
                                 .library_bytes = 12 * kMiB,
                                 .node_bytes = 4 * kKiB,
                                 .local_memory_bytes = 24 * kMiB};

class LedgerTest : public testing::Test {
 protected:
  std::int64_t Line(const LedgerReport& report, const std::string& owner,
                    const std::string& what = "driver") {
    for (const LedgerLine& line : report.lines) {
      if (line.owner == owner && line.what == what) return line.bytes;
    }
    ADD_FAILURE() << "no line " << owner << " " << what;
    return -1;
  }
  LedgerReport Report() {
    auto report = ledger_.Report({rig_.arena.get()});
    EXPECT_OK(report);
    return report.ok() ? *report : LedgerReport{};
  }
  std::int64_t Process() { return static_cast<std::int64_t>(rig_.device->Memory()->process_bytes); }

  ResidencyRig rig_{{.host_only = true, .device = {.host_driver = kCosts}}};
  Ledger ledger_{*rig_.device};
};

TEST_F(LedgerTest, LinesAddUpToTheProcessAwakeAndAsleep) {
  ASSERT_OK(ledger_.SeparateLocalMemory(kContextOwner));
  const LedgerReport awake = Report();
  EXPECT_EQ(awake.explained_bytes, Process());
  EXPECT_EQ(awake.unexplained_bytes, 0);
  EXPECT_TRUE(awake.adds_up());
  EXPECT_EQ(Line(awake, kContextOwner), static_cast<std::int64_t>(40 * kMiB));
  EXPECT_EQ(Line(awake, kLocalMemoryOwner), static_cast<std::int64_t>(24 * kMiB));
  EXPECT_EQ(awake.floor_bytes, static_cast<std::int64_t>(40 * kMiB));
  const auto g = static_cast<std::int64_t>(rig_.device->info().granularity);
  EXPECT_EQ(Line(awake, "weights/immutable", "spans"), g / 2 + 100 + g);
  EXPECT_EQ(Line(awake, "weights/immutable", "rounding"), 2 * g - (g / 2 + 100 + g));
  EXPECT_EQ(Line(awake, "state/mutable", "rounding"), 1);

  ASSERT_OK(rig_.residency->Sleep(AllTags(), Soon()));
  // Where nobody else is awake, sleep has dropped the local memory, too.
  ASSERT_OK(rig_.device->ReleaseLocalMemory());
  const LedgerReport asleep = Report();
  for (const LedgerLine& line : asleep.lines) {
    EXPECT_TRUE(line.bytes == 0 || !line.sleeps) << line.owner << " " << line.what;
  }
  EXPECT_EQ(asleep.explained_bytes, Process());
  EXPECT_EQ(Process(), asleep.floor_bytes);
  ASSERT_OK(rig_.device->RestoreLocalMemory());
  ASSERT_OK(rig_.residency->Wake(AllTags()));
  EXPECT_EQ(Report().explained_bytes, awake.explained_bytes);
  EXPECT_EQ(Report().unexplained_bytes, 0);
}

TEST_F(LedgerTest, EachEventIsPutDownUnderItsOwner) {
  const GemmSpec spec{.name = "w", .m = 4, .n = 4, .k = 4, .lda = 4, .ldb = 4, .ldd = 4};
  {
    const LedgerEvent event = ledger_.Measure(kLibrariesOwner);
    ASSERT_OK(rig_.device->PlanGemm(spec));
  }
  {
    const LedgerEvent event = ledger_.Measure(kExecutablesOwner);
    ASSERT_OK(rig_.device->BeginCapture(*rig_.stream));
    for (int i = 0; i < 3; ++i) {
      ASSERT_OK(rig_.device->HostFunction(
          *rig_.stream, [](void*) {}, nullptr));
    }
    ASSERT_OK_AND_ASSIGN(const auto graph, rig_.device->EndCapture(*rig_.stream));
    ASSERT_OK_AND_ASSIGN(const auto executable, rig_.device->Instantiate(*graph));
  }  // the driver keeps what a destroyed executable had
  {
    // Chunks of ours are no driver's memory, whoever makes them meanwhile.
    const LedgerEvent event = ledger_.Measure(kModulesOwner);
    ASSERT_OK(rig_.residency->Sleep({"kv_cache"}, Soon()));
    ASSERT_OK(rig_.residency->Wake({"kv_cache"}));
  }
  EXPECT_EQ(ledger_.BytesOf(kLibrariesOwner), static_cast<std::int64_t>(12 * kMiB));
  EXPECT_EQ(ledger_.BytesOf(kExecutablesOwner), static_cast<std::int64_t>(3 * 4 * kKiB));
  EXPECT_EQ(ledger_.BytesOf(kModulesOwner), 0);
  EXPECT_EQ(Report().unexplained_bytes, 0);
}

// Negative control: what is taken outside every event and every arena shows, and only there.
TEST_F(LedgerTest, WhatNobodyMeasuredIsUnexplained) {
  const LedgerReport before = Report();
  ASSERT_OK_AND_ASSIGN(const ChunkHandle stray, rig_.device->CreateChunk(8 * kMiB));
  const LedgerReport with = Report();
  EXPECT_EQ(with.unexplained_bytes, static_cast<std::int64_t>(8 * kMiB));
  EXPECT_FALSE(with.adds_up());
  EXPECT_EQ(with.explained_bytes, before.explained_bytes);
  ASSERT_OK(rig_.device->ReleaseChunk(stray));
  EXPECT_TRUE(Report().adds_up());
  // A driver's memory taken while nobody looks.
  const GemmSpec spec{.name = "w", .m = 4, .n = 4, .k = 4, .lda = 4, .ldb = 4, .ldd = 4};
  ASSERT_OK(rig_.device->PlanGemm(spec));
  EXPECT_EQ(Report().unexplained_bytes, static_cast<std::int64_t>(12 * kMiB));
  EXPECT_FALSE(Report().adds_up());
}

TEST_F(LedgerTest, LocalMemoryIsToldFromWhatItWasTakenWith) {
  EXPECT_EQ(ledger_.BytesOf(kContextOwner), static_cast<std::int64_t>(64 * kMiB));
  ASSERT_OK(ledger_.SeparateLocalMemory(kContextOwner));
  ASSERT_OK(ledger_.SeparateLocalMemory(kModulesOwner));  // it has not grown
  EXPECT_EQ(ledger_.BytesOf(kContextOwner), static_cast<std::int64_t>(40 * kMiB));
  EXPECT_EQ(ledger_.BytesOf(kLocalMemoryOwner), static_cast<std::int64_t>(24 * kMiB));
  EXPECT_EQ(ledger_.BytesOf(kModulesOwner), 0);
  EXPECT_FALSE(rig_.device->local_memory_released());
  rig_.device->calls().FailAt(1, {Call::kReleaseLocalMemory});
  EXPECT_FALSE(ledger_.SeparateLocalMemory(kContextOwner).ok());
  rig_.device->calls().Disarm();
  EXPECT_EQ(Report().unexplained_bytes, 0);
}

TEST_F(LedgerTest, ASpanCountsWithTheBytesThatHavePages) {
  const std::uint64_t g = rig_.device->info().granularity;
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<Arena> second,
      Arena::Create(*rig_.device, {.name = "second", .groups = {{"kv", Role::kCache, 8 * g, g}}}));
  ASSERT_OK_AND_ASSIGN(
      const SpanId kv,
      second->Reserve({.name = "kv2", .tag = "kv", .role = Role::kCache, .bytes = 8 * g}));
  ASSERT_OK(second->Commit(kv, g + 1));
  ASSERT_OK_AND_ASSIGN(const LedgerReport report, ledger_.Report({rig_.arena.get(), second.get()}));
  EXPECT_EQ(Line(report, "second.kv/cache", "spans"), static_cast<std::int64_t>(2 * g));
  EXPECT_EQ(Line(report, "second.kv/cache", "rounding"), 0);
  EXPECT_EQ(report.unexplained_bytes, 0);
  EXPECT_EQ(report.exported_bytes, 0u);
  ASSERT_OK(second->registrations().Add({.holder = "peer",
                                         .kind = HolderKind::kExport,
                                         .spans = {kv},
                                         .before_unmap = {},
                                         .after_map = {}}));
  ASSERT_OK_AND_ASSIGN(const LedgerReport exported, ledger_.Report({second.get()}));
  EXPECT_EQ(exported.exported_bytes, 8 * g);
}

}  // namespace
}  // namespace holdfast
