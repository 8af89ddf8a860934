// The engine's ledger: every byte of the process has an owner, asleep only the floor is left, and
// neighbours change no line of ours.
#include <functional>

#include "tests/runtime/engine_fixture.h"

namespace holdfast {
namespace {

constexpr std::chrono::milliseconds kDeadline{20'000};
constexpr HostDriverCosts kCosts{.context_bytes = 20 * kMiB,
                                 .library_bytes = 6 * kMiB,
                                 .node_bytes = 2 * kKiB,
                                 .local_memory_bytes = 10 * kMiB};

EngineOptions TinyOptions() {
  EngineOptions options = SmallOptions();
  options.max_batch = 2;
  options.max_prefill_tokens = 16;
  return options;
}

std::int64_t LineOf(const LedgerReport& report, const std::string& owner) {
  for (const LedgerLine& line : report.lines) {
    if (line.owner == owner && line.what == "driver") return line.bytes;
  }
  return -1;
}

// The sum of the lines that sleep can free.
std::int64_t SleepingBytes(const LedgerReport& report) {
  std::int64_t bytes = 0;
  for (const LedgerLine& line : report.lines) bytes += line.sleeps ? line.bytes : 0;
  return bytes;
}

TEST(EngineLedgerTest, AsleepOnlyWhatTheLedgerNamesAsKeptIsLeft) {
  // Verifies: field case 1: what the process holds asleep, beyond the context, is what the report
  // names: the executables, the libraries and the modules; awake again it is as before.
  ASSERT_OK_AND_ASSIGN(TestEngine test,
                       MakeEngine("query_latent", TinyOptions(), {.host_driver = kCosts}));
  const std::vector<GenerateRequest> requests = MixedRequests(2, 3);
  ASSERT_OK_AND_ASSIGN(const auto golden, test->Generate(requests));
  ASSERT_OK_AND_ASSIGN(const LedgerReport awake, test->Memory());
  EXPECT_TRUE(awake.adds_up()) << awake.unexplained_bytes;
  EXPECT_GT(SleepingBytes(awake), 0);
  if (!test.device->info().is_cuda) {
    EXPECT_EQ(awake.unexplained_bytes, 0);
    EXPECT_EQ(LineOf(awake, kContextOwner), static_cast<std::int64_t>(kCosts.context_bytes));
    EXPECT_EQ(LineOf(awake, kLibrariesOwner), static_cast<std::int64_t>(kCosts.library_bytes));
    EXPECT_EQ(LineOf(awake, kLocalMemoryOwner),
              static_cast<std::int64_t>(kCosts.local_memory_bytes));
    std::uint64_t nodes = 0;
    for (const Graph* graph : test->graphs().graphs()) nodes += graph->manifest().nodes;
    EXPECT_EQ(LineOf(awake, kExecutablesOwner),
              static_cast<std::int64_t>(nodes * kCosts.node_bytes));
  }

  ASSERT_OK(test->Sleep(test->arena().tags(), kDeadline));
  ASSERT_OK_AND_ASSIGN(const LedgerReport asleep, test->Memory());
  EXPECT_EQ(SleepingBytes(asleep), 0);
  EXPECT_TRUE(test.device->local_memory_released());
  EXPECT_EQ(asleep.floor_bytes, awake.floor_bytes);
  EXPECT_EQ(asleep.explained_bytes, asleep.floor_bytes);
  EXPECT_TRUE(asleep.adds_up()) << asleep.unexplained_bytes;
  if (!test.device->info().is_cuda) {
    EXPECT_EQ(asleep.process_bytes, static_cast<std::uint64_t>(asleep.floor_bytes));
  }

  ASSERT_OK(test->Wake(test->arena().tags()));
  ASSERT_OK_AND_ASSIGN(const LedgerReport again, test->Memory());
  EXPECT_EQ(again.explained_bytes, awake.explained_bytes);
  ASSERT_OK_AND_ASSIGN(const auto outputs, test->Generate(requests));
  EXPECT_EQ(outputs, golden);
}

TEST(EngineLedgerTest, MemoryThatNobodyDeclaredIsUnexplained) {
  // Verifies: the negative control: a chunk made behind the engine's back fails the check.
  ASSERT_OK_AND_ASSIGN(TestEngine test,
                       MakeEngine("query_latent", TinyOptions(), {.host_driver = kCosts}));
  ASSERT_OK_AND_ASSIGN(const ChunkHandle stray, test.device->CreateChunk(64 * kMiB));
  ASSERT_OK_AND_ASSIGN(const LedgerReport with, test->Memory());
  EXPECT_FALSE(with.adds_up());
  EXPECT_NEAR(static_cast<double>(with.unexplained_bytes), 64.0 * kMiB, 2.0 * kMiB);
  ASSERT_OK(test.device->ReleaseChunk(stray));
  ASSERT_OK_AND_ASSIGN(const LedgerReport without, test->Memory());
  EXPECT_TRUE(without.adds_up());
}

// An engine while `at_profiling` runs inside the profiling window.
absl::StatusOr<TestEngine> MakeBeside(
    const std::function<void(Device&, const std::string& stage)>& at_stage,
    std::uint64_t capacity = 512 * kMiB) {
  TestEngine test{
      .device = TestHostDevice({.host_capacity_bytes = capacity, .host_driver = kCosts}),
      .engine = nullptr};
  EngineOptions options = TinyOptions();
  options.on_stage = [&](const std::string& stage) { at_stage(*test.device, stage); };
  HOLDFAST_ASSIGN_OR_RETURN(std::unique_ptr<Model> model,
                            MlaModel::Open(FixtureFolder("query_latent"), DType::kF32));
  HOLDFAST_ASSIGN_OR_RETURN(test.engine,
                            Engine::Create(*test.device, std::move(model), std::move(options)));
  return test;
}

TEST(EngineLedgerTest, ANeighbourInTheProfilingWindowChangesNoLineAndNoPage) {
  // Verifies: field case 30: memory that somebody takes, or gives back, while we measure is not put
  // down as ours, and the cache is as large as in the quiet run while the device has room.
  constexpr std::uint64_t kNeighbour = 96 * kMiB;
  ASSERT_OK_AND_ASSIGN(const TestEngine quiet, MakeBeside([](Device&, const std::string&) {}));
  ASSERT_OK_AND_ASSIGN(const LedgerReport expected, quiet->Memory());
  for (const bool gives_back : {false, true}) {
    ChunkHandle chunk;
    const auto neighbour = [&](Device& device, const std::string& stage) {
      if (stage == (gives_back ? "loading weights" : "profiling every bucket")) {
        ASSERT_OK_AND_ASSIGN(chunk, device.CreateChunk(kNeighbour));
      } else if (gives_back && stage == "capturing every bucket") {
        ASSERT_OK(device.ReleaseChunk(chunk));
      }
    };
    ASSERT_OK_AND_ASSIGN(const TestEngine beside, MakeBeside(neighbour));
    ASSERT_OK_AND_ASSIGN(const LedgerReport report, beside->Memory());
    EXPECT_EQ(report.explained_bytes, expected.explained_bytes);
    for (const char* owner :
         {kContextOwner, kModulesOwner, kLibrariesOwner, kExecutablesOwner, kLocalMemoryOwner}) {
      EXPECT_EQ(LineOf(report, owner), LineOf(expected, owner)) << owner;
    }
    EXPECT_EQ(beside->kv_plan().pages, quiet->kv_plan().pages);
  }
}

TEST(EngineLedgerTest, TooLittleLeftByANeighbourIsAnErrorWithNumbers) {
  // Verifies: the other half of field case 30: where memory is really short, a clear error.
  const auto greedy = [](Device& device, const std::string& stage) {
    if (stage != "sizing the KV cache") return;
    const std::uint64_t g = device.info().granularity;
    ASSERT_OK(device.CreateChunk(device.Memory()->free_bytes / g * g));
  };
  const auto engine = MakeBeside(greedy);
  EXPECT_THAT(engine, IsErrorKind(ErrorKind::kOutOfMemory));
  EXPECT_GT(GetErrorInfo(engine.status())->need, GetErrorInfo(engine.status())->have);
}

}  // namespace
}  // namespace holdfast
