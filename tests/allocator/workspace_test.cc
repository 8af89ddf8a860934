// Verifies slots, packing, growth in place, the lock, and what is counted of whom.
#include "allocator/workspace.h"

#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "tests/allocator/workspace_rig.h"

namespace holdfast {
namespace {

using ::testing::HasSubstr;

TEST(WorkspacePacking, RequestsPackAt256BytesInTheOrderTheyAreAsked) {
  struct Vector {
    std::vector<std::uint64_t> bytes, offsets;
    std::uint64_t total;
  };
  const Vector vectors[] = {
      {{3, 2000, 28}, {0, 256, 2304}, 2560},  // (3) u8, (1000) bf16, (7) f32
      {{1, 17, 100, 4097}, {0, 256, 512, 768}, 5120},
      {{256}, {0}, 256},
      {{257, 0, 1}, {0, 512, 512}, 768},
      {{}, {}, 0},
  };
  for (const Vector& v : vectors) {
    std::vector<WorkspaceRequest> requests;
    for (const std::uint64_t bytes : v.bytes) {
      requests.push_back({"r" + std::to_string(requests.size()), bytes});
    }
    ASSERT_OK_AND_ASSIGN(const PackedRequests packed, PackRequests(requests));
    EXPECT_EQ(packed.offsets, v.offsets);
    EXPECT_EQ(packed.total_bytes, v.total);
  }
}

TEST(WorkspacePacking, RefusesWhatHasNoNameOrDoesNotFit64Bits) {
  EXPECT_THAT(PackRequests({{"", 1}}), IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(PackRequests({{"a", 1}, {"a", 1}}), IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(PackRequests({{"a", UINT64_MAX}}), IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(PackRequests({{"a", UINT64_MAX - 255}, {"b", 1}}),
              IsErrorKind(ErrorKind::kInvalidArgument));
}

TEST_F(WorkspaceTest, LeasesHoldTheExactSlicesAtAlignedAddresses) {
  ASSERT_OK(Open(Options()));
  ASSERT_OK_AND_ASSIGN(WorkspaceLease lease,
                       workspace_->Acquire({}, *stream_, "a", {{"x", 3}, {"y", 2000}, {"z", 28}}));
  const std::uint64_t offsets[] = {0, 256, 2304}, bytes[] = {3, 2000, 28};
  ASSERT_EQ(lease.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(lease.range(i), (AddressRange{Base({}) + offsets[i], bytes[i]}));
    EXPECT_EQ(lease.address(i).value % 256, 0u);
  }
  EXPECT_OK(lease.Release());
}

TEST_F(WorkspaceTest, EverySlotGrowsInPlaceWithTheOneThatAsks) {
  ASSERT_OK(Open(Options()));
  EXPECT_EQ(workspace_->slots().size(), 4u);
  EXPECT_EQ(own_bytes(), 0u);  // no pages before somebody asks
  std::vector<DeviceAddress> bases;
  for (const WorkspaceSlot slot : workspace_->slots()) bases.push_back(Base(slot));
  {
    ASSERT_OK_AND_ASSIGN(const WorkspaceLease lease, Take("a", g_, {.lane = 1}));
    EXPECT_EQ(lease.address(0), Base({.lane = 1}));
  }
  EXPECT_EQ(own_bytes(), 4 * g_);
  ASSERT_OK(Take("b", 3 * g_, {.lane = 0, .micro_batch = 1}));
  EXPECT_EQ(own_bytes(), 12 * g_);
  EXPECT_EQ(workspace_->slot_bytes(), 3 * g_);
  ASSERT_OK(Take("b", g_));  // no slot shrinks
  EXPECT_EQ(workspace_->slot_bytes(), 3 * g_);
  for (std::size_t i = 0; i < bases.size(); ++i) {
    EXPECT_EQ(Base(workspace_->slots()[i]), bases[i]);
  }
  // Growth adds pages behind the old ones: what lay there still does.
  const Bytes written = Pattern(4096, 5);
  WriteBytes(*device_, *stream_, Base({}), written);
  ASSERT_OK(Take("c", 5 * g_));
  EXPECT_EQ(ReadBytes(*device_, *stream_, {Base({}), 4096}), written);
}

TEST_F(WorkspaceTest, GrowthThatFailsLeavesEverySlotAsItWas) {
  ASSERT_OK(Open(Options()));
  ASSERT_OK(Take("a", g_));
  device_->calls().FailAt(3, {Call::kCreateChunk});
  EXPECT_THAT(Take("a", 2 * g_), IsErrorKind(ErrorKind::kDriver));
  EXPECT_TRUE(device_->calls().Disarm());
  EXPECT_EQ(own_bytes(), 4 * g_);
  EXPECT_EQ(workspace_->slot_bytes(), g_);
  EXPECT_OK(Take("a", 2 * g_));
}

TEST_F(WorkspaceTest, UnknownLanesMicroBatchesAndOptionsAreNamed) {
  ASSERT_OK(Open(Options()));
  for (const WorkspaceSlot slot : {WorkspaceSlot{2, 0}, {-1, 0}, {0, 2}, {0, -1}}) {
    const absl::Status refused = Take("a", 1, slot).status();
    EXPECT_THAT(refused, IsErrorKind(ErrorKind::kInvalidArgument));
    EXPECT_THAT(std::string(refused.message()), HasSubstr("must be 0 to 1"));
    EXPECT_THAT(workspace_->CaptureSpan(slot), IsErrorKind(ErrorKind::kInvalidArgument));
    EXPECT_THAT(workspace_->Persistent(slot, {"a", "k", DType::kU8, {1}}),
                IsErrorKind(ErrorKind::kInvalidArgument));
  }
  EXPECT_THAT(Take("", 1), IsErrorKind(ErrorKind::kInvalidArgument));
  for (const int count : {0, -1, 65}) {
    WorkspaceOptions options = Options();
    options.lanes = count;
    EXPECT_THAT(WorkspaceManager::Groups(options), IsErrorKind(ErrorKind::kInvalidArgument));
    options = Options();
    options.micro_batches = count;
    EXPECT_THAT(WorkspaceManager::Groups(options), IsErrorKind(ErrorKind::kInvalidArgument));
  }
  WorkspaceOptions empty = Options();
  empty.extent_bytes = 0;
  EXPECT_THAT(WorkspaceManager::Groups(empty), IsErrorKind(ErrorKind::kInvalidArgument));
}

// Field case 12 and 20: what needs more after the lock is refused by name; that call alone.
TEST_F(WorkspaceTest, AfterTheLockARequestThatNeedsMoreNamesWhoWhatAndWhere) {
  ASSERT_OK(Open(Options()));
  ASSERT_OK(workspace_->Reserve("decode", {{"q", 1000}}));
  ASSERT_OK(workspace_->Lock());
  EXPECT_EQ(own_bytes(), 4 * g_);  // all slots
  EXPECT_THAT(workspace_->Lock(), IsErrorKind(ErrorKind::kLocked));
  const absl::Status refused = Take("prefill", 1025).status();
  EXPECT_THAT(refused, IsErrorKind(ErrorKind::kLocked));
  const ErrorInfo info = *GetErrorInfo(refused);
  EXPECT_EQ(info.object, "prefill");
  EXPECT_EQ(info.need, 1280u);
  EXPECT_EQ(info.have, 1024u);  // not what the pages would hold
  EXPECT_THAT(std::string(refused.message()), HasSubstr("workspace_rig.h:"));
  const int line = __LINE__ + 1;
  const absl::Status reserve = workspace_->Reserve("prefill", {{"q", 4096}});
  EXPECT_THAT(reserve, IsErrorKind(ErrorKind::kLocked));
  EXPECT_THAT(std::string(reserve.message()),
              HasSubstr("workspace_test.cc:" + std::to_string(line)));
  EXPECT_OK(Take("decode", 1000));
  EXPECT_EQ(workspace_->slot_bytes(), 1024u);
  EXPECT_EQ(own_bytes(), 4 * g_);
}

// Negative control: without the lock the same request grows the slots, and nothing refuses it.
TEST_F(WorkspaceTest, WithoutTheLockTheSameRequestGrows) {
  ASSERT_OK(Open(Options()));
  ASSERT_OK(workspace_->Reserve("decode", {{"q", 1000}}));
  ASSERT_OK(Take("prefill", 1025));
  EXPECT_EQ(workspace_->slot_bytes(), 1280u);
}

TEST_F(WorkspaceTest, ALockedArenaLocksTheWorkspaceAndALockMayFollow) {
  ASSERT_OK(Open(Options()));
  ASSERT_OK(workspace_->Reserve("decode", {{"q", 1000}}));
  arena_->Lock();  // as a capture does
  EXPECT_TRUE(workspace_->locked());
  EXPECT_THAT(Take("prefill", 4096), IsErrorKind(ErrorKind::kLocked));
  EXPECT_OK(workspace_->Lock());
  EXPECT_THAT(workspace_->Lock(), IsErrorKind(ErrorKind::kLocked));
}

TEST_F(WorkspaceTest, ALockThatFailsIsNoLock) {
  ASSERT_OK(Open(Options()));
  ASSERT_OK(workspace_->Reserve("decode", {{"q", g_}}));
  device_->calls().FailAt(2, {Call::kMap});
  EXPECT_THAT(workspace_->Lock(), IsErrorKind(ErrorKind::kDriver));
  EXPECT_TRUE(device_->calls().Disarm());
  EXPECT_FALSE(workspace_->locked());
  EXPECT_EQ(own_bytes(), 0u);
  EXPECT_OK(workspace_->Lock());
}

TEST_F(WorkspaceTest, TheExtentIsTheMost) {
  ASSERT_OK(Open(Options()));
  EXPECT_THAT(workspace_->Reserve("a", {{"x", 8 * g_ + 1}}), IsErrorKind(ErrorKind::kOutOfExtent));
  EXPECT_THAT(Take("a", 8 * g_ + 1), IsErrorKind(ErrorKind::kOutOfExtent));
  EXPECT_EQ(workspace_->slot_bytes(), 0u);
  EXPECT_OK(workspace_->Reserve("a", {{"x", 8 * g_}}));
  EXPECT_EQ(own_bytes(), 0u);  // a reservation takes no memory
}

TEST_F(WorkspaceTest, PersistentResourcesAreMadeOnceAndChecked) {
  ASSERT_OK(Open(Options()));
  const PersistentSpec spec{"topk", "counter", DType::kI32, {4, 8}};
  ASSERT_OK_AND_ASSIGN(const PersistentResource first, workspace_->Persistent({}, spec));
  EXPECT_EQ(first.range.bytes, 128u);
  EXPECT_EQ(arena_->span(first.span).spec.role, Role::kMutable);
  EXPECT_TRUE(AllBytesAre(ReadBytes(*device_, *stream_, first.range), 0));
  // Zeroed once: asked again it is the same, with what was written since.
  WriteBytes(*device_, *stream_, first.range.base, Pattern(128, 3));
  ASSERT_OK_AND_ASSIGN(const PersistentResource again, workspace_->Persistent({}, spec));
  EXPECT_EQ(again.range, first.range);
  EXPECT_EQ(ReadBytes(*device_, *stream_, again.range), Pattern(128, 3));
  // Each slot has its own.
  ASSERT_OK_AND_ASSIGN(const PersistentResource other, workspace_->Persistent({.lane = 1}, spec));
  EXPECT_NE(other.range.base, first.range.base);

  for (const PersistentSpec& wrong : {PersistentSpec{"topk", "counter", DType::kF32, {4, 8}},
                                      {"topk", "counter", DType::kI32, {8, 4}},
                                      {"topk", "counter", DType::kI32, {32}},
                                      {"topk", "other", DType::kI32, {0}},
                                      {"topk", "other", DType::kI32, {-1}},
                                      {"topk", "other", DType::kI32, {}},
                                      {"topk", "", DType::kI32, {1}},
                                      {"topk", "other", DType::kI32, {INT64_MAX, 16}}}) {
    EXPECT_THAT(workspace_->Persistent({}, wrong), IsErrorKind(ErrorKind::kInvalidArgument));
  }
  EXPECT_EQ(workspace_->Report().budget_bytes(), 256u);
  ASSERT_OK(workspace_->Lock());
  EXPECT_OK(workspace_->Persistent({}, spec));
  const absl::Status missing =
      workspace_->Persistent({}, {"topk", "late", DType::kU8, {1}}).status();
  EXPECT_THAT(missing, IsErrorKind(ErrorKind::kLocked));
  EXPECT_THAT(std::string(missing.message()), HasSubstr("workspace_test.cc:"));
}

TEST_F(WorkspaceTest, CountsByUserAndSlot) {
  ASSERT_OK(Open(Options()));
  ASSERT_OK(workspace_->Reserve("big", {{"x", 3000}, {"y", 1}}));
  ASSERT_OK(workspace_->Reserve("small", {{"x", 10}}));
  ASSERT_OK(workspace_->Persistent({}, {"small", "n", DType::kI32, {10}}));
  ASSERT_OK(workspace_->Lock());
  ASSERT_OK(Take("small", 10));
  ASSERT_OK(Take("small", 700));
  ASSERT_OK(Take("small", 5, {.lane = 1}));
  EXPECT_THAT(Take("small", 4000), IsErrorKind(ErrorKind::kLocked));
  const WorkspaceReport report = workspace_->Report();
  EXPECT_TRUE(report.locked);
  ASSERT_EQ(report.declared.size(), 2u);
  EXPECT_EQ(report.declared[0].user, "big");
  EXPECT_EQ(report.declared[0].asked_bytes, 3001u);
  EXPECT_EQ(report.declared[0].packed_bytes, 3328u);
  ASSERT_EQ(report.measured.size(), 2u);  // small, in two slots
  EXPECT_EQ(report.measured[0].calls, 2u);
  EXPECT_EQ(report.measured[0].refused, 1u);
  EXPECT_EQ(report.measured[0].asked_bytes, 700u);
  EXPECT_EQ(report.measured[0].packed_bytes, 768u);
  EXPECT_EQ(report.measured[1].slot, (WorkspaceSlot{.lane = 1}));
  EXPECT_EQ(report.measured[1].asked_bytes, 5u);
  ASSERT_EQ(report.slots.size(), 4u);
  EXPECT_EQ(report.slots[0].name, "lane0.mb0.workspace");
  EXPECT_EQ(report.slots[0].bytes, 3328u);
  EXPECT_EQ(report.slots[0].high_water_bytes, 768u);
  EXPECT_EQ(report.slots[0].largest_user, "small");
  EXPECT_EQ(report.slots[3].high_water_bytes, 0u);
  EXPECT_EQ(report.budget_bytes(), 4 * 3328u + 40u);
}

// Released by sleep and back at the same addresses; counters keep their contents.
TEST_F(WorkspaceTest, SleepTakesAllOfItAndWakeBringsItBackInPlace) {
  ASSERT_OK(Open(Options()));
  ASSERT_OK(workspace_->Reserve("a", {{"x", 2 * g_}}));
  ASSERT_OK_AND_ASSIGN(const PersistentResource counter,
                       workspace_->Persistent({}, {"a", "n", DType::kI32, {64}}));
  ASSERT_OK(workspace_->Lock());
  WriteBytes(*device_, *stream_, counter.range.base, Pattern(256, 9));
  const std::uint64_t awake = own_bytes();
  EXPECT_EQ(awake, 9 * g_);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Residency> residency, Residency::Create(*arena_));
  ASSERT_OK_AND_ASSIGN(WorkspaceLease lease, Take("a", 2 * g_));
  const DeviceAddress base = lease.address(0);
  // While somebody has the scratch no page goes.
  EXPECT_THAT(residency->Sleep({"workspace"}, In(std::chrono::milliseconds(10))),
              IsErrorKind(ErrorKind::kDeadlineExceeded));
  ASSERT_OK(lease.Release());
  ASSERT_OK(residency->Sleep({"workspace"}, Soon()));
  EXPECT_EQ(own_bytes(), 0u);
  EXPECT_THAT(Take("a", 1), IsErrorKind(ErrorKind::kAsleep));
  EXPECT_THAT(workspace_->Persistent({}, {"a", "n", DType::kI32, {64}}),
              IsErrorKind(ErrorKind::kAsleep));
  ASSERT_OK(residency->Wake({"workspace"}));
  EXPECT_EQ(own_bytes(), awake);
  ASSERT_OK_AND_ASSIGN(lease, Take("a", 2 * g_));
  EXPECT_EQ(lease.address(0), base);
  ASSERT_OK(device_->Fill(*stream_, base, 1, 2 * g_));
  EXPECT_OK(device_->Synchronize(*stream_));
  EXPECT_EQ(ReadBytes(*device_, *stream_, counter.range), Pattern(256, 9));
}

}  // namespace
}  // namespace holdfast
