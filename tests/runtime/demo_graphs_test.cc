// Verifies tier two of the audit on every graph of the demo model: captured at another base, exactly
// the arena's words move, before a sleep and after the wake.
#include "gmock/gmock.h"
#include "graphs/graph_set.h"
#include "runtime/mla_model.h"
#include "tests/runtime/engine_fixture.h"

namespace holdfast {
namespace {

using ::testing::IsEmpty;

constexpr std::uint64_t kShift = std::uint64_t{0x1234} << 28;

TEST(DemoGraphsTest, EveryGraphOfTheEngineMovesByExactlyTheShift) {
  const std::unique_ptr<Device> device = TestDevice();
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<Model> model,
                       MlaModel::Open("models/demo", TestType(*device)));
  EngineOptions options;
  options.chunk_bytes = 4 * kMiB;
  ASSERT_OK_AND_ASSIGN(const auto engine, Engine::Create(*device, std::move(model), options));
  ASSERT_GE(engine->graphs().graphs().size(), 9u);
  ASSERT_OK_AND_ASSIGN(const auto problems,
                       engine->graphs().ShiftedCapture(engine->workspace(), kShift));
  EXPECT_THAT(problems, IsEmpty());

  const auto soon = std::chrono::milliseconds(10'000);
  ASSERT_OK(engine->Sleep(engine->arena().tags(), soon));
  ASSERT_OK(engine->Wake(engine->arena().tags()));
  ASSERT_OK_AND_ASSIGN(const auto after,
                       engine->graphs().ShiftedCapture(engine->workspace(), kShift));
  EXPECT_THAT(after, IsEmpty());
}

}  // namespace
}  // namespace holdfast
