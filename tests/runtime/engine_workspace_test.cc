// Verifies the engine's use of the workspace: slots of micro-batches are apart and stay where they
// are, and an override that is too small is refused before anything is captured.
#include "runtime/start_plan.h"
#include "tests/runtime/engine_fixture.h"

namespace holdfast {
namespace {

constexpr std::chrono::milliseconds kDeadline{20'000};

TEST(EngineWorkspace, MicroBatchesHaveScratchOfTheirOwnThatStaysAfterTheLock) {
  EngineOptions options = SmallOptions();
  options.micro_batches = 2;
  ASSERT_OK_AND_ASSIGN(TestEngine test, MakeEngine("query_latent", options));
  const WorkspaceReport locked = test->workspaces().Report();
  ASSERT_EQ(locked.slots.size(), 2u);
  EXPECT_TRUE(locked.locked);
  const AddressRange first = test->arena().range(locked.slots[0].span);
  const AddressRange second = test->arena().range(locked.slots[1].span);
  EXPECT_EQ(locked.slots[0].bytes, locked.slots[1].bytes);
  EXPECT_GE(locked.slots[1].committed_bytes, locked.slots[1].bytes);
  EXPECT_TRUE(first.end() <= second.base || second.end() <= first.base);

  // Graphs of the first slot leave the second alone.
  Stream& stream = test->lane().stream();
  ASSERT_OK(test.device->Fill(stream, second.base, 0x5A, second.bytes));
  const std::vector<GenerateRequest> requests = MixedRequests(5);
  ASSERT_OK_AND_ASSIGN(const auto golden, test->Generate(requests));
  ASSERT_OK_AND_ASSIGN(const HostBuffer copy, test.device->AllocateHost(second.bytes));
  ASSERT_OK(test.device->CopyToHost(stream, copy.data(), second.base, second.bytes));
  ASSERT_OK(test.device->Synchronize(stream));
  for (std::uint64_t i = 0; i < second.bytes; ++i) {
    ASSERT_EQ(copy.data()[i], std::byte{0x5A}) << "byte " << i;
  }

  EXPECT_THAT(test->workspaces().Reserve("late", {{"more", locked.slots[0].bytes + 1}}),
              IsErrorKind(ErrorKind::kLocked));
  EXPECT_THAT(test->workspaces().Lock(), IsErrorKind(ErrorKind::kLocked));
  ASSERT_OK(test->Sleep(test->arena().tags(), kDeadline));
  ASSERT_OK(test->Wake(test->arena().tags()));
  EXPECT_EQ(test->arena().range(locked.slots[0].span), first);
  EXPECT_EQ(test->arena().range(locked.slots[1].span), second);
  EXPECT_EQ(test->workspaces().slot_bytes(), locked.slots[0].bytes);
  ASSERT_OK_AND_ASSIGN(const auto outputs, test->Generate(requests));
  EXPECT_EQ(outputs, golden);
}

// Field case 24: a size set by the user that is too small fails the start with both numbers, never
// a capture.
TEST(EngineWorkspace, AnOverrideBelowTheNeedIsRefusedWithBothNumbers) {
  ASSERT_OK_AND_ASSIGN(const TestEngine plain, MakeEngine("query_latent", SmallOptions()));
  const std::uint64_t need = plain->workspaces().slot_bytes();
  for (const bool force : {false, true}) {
    EngineOptions options = SmallOptions();
    options.workspace_override = {.slot_bytes = need / 2, .force = force};
    int captures = 0;
    options.on_stage = [&](const std::string& stage) {
      captures += stage == "capturing every bucket" ? 1 : 0;
    };
    const absl::Status refused = MakeEngine("query_latent", options).status();
    EXPECT_THAT(refused, IsErrorKind(ErrorKind::kOutOfExtent));
    EXPECT_EQ(GetErrorInfo(refused)->need, need);
    EXPECT_EQ(GetErrorInfo(refused)->have, need / 2);
    EXPECT_EQ(captures, 0);
  }
  EngineOptions larger = SmallOptions();
  larger.workspace_override = {.slot_bytes = 2 * need};
  ASSERT_OK_AND_ASSIGN(const TestEngine test, MakeEngine("query_latent", larger));
  EXPECT_EQ(test->workspaces().slot_bytes(), 2 * need);
}

TEST(EngineWorkspace, ThePlanCountsEverySlot) {
  const std::unique_ptr<Device> device = TestDevice();
  const DType type = TestType(*device);
  EngineOptions options = SmallOptions();
  const auto scratch = [&](std::int32_t micro_batches) -> absl::StatusOr<std::uint64_t> {
    options.micro_batches = micro_batches;
    HOLDFAST_ASSIGN_OR_RETURN(std::unique_ptr<Model> model,
                              MlaModel::Open(FixtureFolder("query_latent"), type));
    HOLDFAST_ASSIGN_OR_RETURN(const StartPlan plan,
                              PlanStart(device->info(), std::move(model), options));
    return plan.Find("workspace/scratch")->planned_bytes;
  };
  ASSERT_OK_AND_ASSIGN(const std::uint64_t one, scratch(1));
  ASSERT_OK_AND_ASSIGN(const std::uint64_t three, scratch(3));
  ASSERT_OK_AND_ASSIGN(const std::uint64_t two, scratch(2));
  EXPECT_GT(two, one);
  EXPECT_EQ(three - two, two - one);
  EXPECT_THAT(scratch(0), IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(scratch(65), IsErrorKind(ErrorKind::kInvalidArgument));
}

}  // namespace
}  // namespace holdfast
