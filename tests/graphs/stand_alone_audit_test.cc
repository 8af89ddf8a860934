// Verifies that graphs can be audited against named ranges with no arena, in C++ and in C, and that
// bad handles and arguments are errors that name the call.
#include "graphs/stand_alone_audit.h"

#include <nlohmann/json.hpp>

#include "gmock/gmock.h"
#include "graphs/holdfast_audit.h"
#include "tests/device/status_matchers.h"
#include "tests/device/test_device.h"
#include "tests/device/test_ops.h"
#include "tests/graphs/native_graph.h"
#include "tests/graphs/toy.h"

// audit_in_c.c: 0, or the line that failed.
extern "C" int AuditInC(const char* device, void* graph, std::uint64_t known, std::uint64_t bytes,
                        int sees_undeclared);

namespace holdfast {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A graph of somebody else: `known` and `other` added into `known`, then `known` filled.
class StandAloneAuditTest : public testing::Test {
 protected:
  StandAloneAuditTest() : device_(TestDevice()), known_(*device_), other_(*device_) {
    auto stream = device_->CreateStream("s");
    EXPECT_OK(stream);
    stream_ = *std::move(stream);
    EXPECT_OK(device_->BeginCapture(*stream_));
    const AddParams add{reinterpret_cast<const float*>(known_.At()),
                        reinterpret_cast<const float*>(other_.At(64)),
                        reinterpret_cast<float*>(known_.At(128)), 4};
    EXPECT_OK(Launch(*device_, *stream_, AddOp(), ShapeFor(4), add));
    EXPECT_OK(device_->Fill(*stream_, {known_.At()}, 0, 64));
    auto graph = device_->EndCapture(*stream_);
    EXPECT_OK(graph);
    graph_ = *std::move(graph);
    auto audit = StandAloneAudit::Create(*device_);
    EXPECT_OK(audit);
    audit_ = *std::move(audit);
  }

  // What a foreign program would pass: see Device::AdoptGraph.
  void* Handle() const;

  std::unique_ptr<Device> device_;
  StrayChunk known_, other_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<CapturedGraph> graph_;
  std::unique_ptr<StandAloneAudit> audit_;
};

void* StandAloneAuditTest::Handle() const { return NativeGraph(*graph_); }

TEST_F(StandAloneAuditTest, JudgesEveryPointerByTheNamedRanges) {
  ASSERT_OK(audit_->AddRange({.name = "mine", .range = known_.range()}));
  ASSERT_OK_AND_ASSIGN(const AuditReport report, audit_->Graph("step", Handle()));
  EXPECT_THAT(report.problems,
              ElementsAre(AllOf(HasSubstr("parameter 0 + 8"), HasSubstr("foreign"))));
  ASSERT_OK(audit_->AddRange({.name = "theirs", .range = other_.range()}));
  ASSERT_OK_AND_ASSIGN(const AuditReport again, audit_->Graph("step", Handle()));
  EXPECT_THAT(again.problems, IsEmpty());
  EXPECT_EQ(again.count_by_class().at(PointerClass::kExternal), 4u);
  EXPECT_THAT(again.objects_of(PointerClass::kExternal), ElementsAre("mine", "theirs"));
}

TEST_F(StandAloneAuditTest, SealedAndRetiredRangesAreProblemsByName) {
  ASSERT_OK(audit_->AddRange({.name = "weights", .range = known_.range(), .sealed = true}));
  ASSERT_OK(audit_->AddRange({.name = "old workspace", .range = other_.range(), .retired = true}));
  ASSERT_OK_AND_ASSIGN(const AuditReport report, audit_->Graph("step", Handle()));
  EXPECT_THAT(report.problems, ElementsAre(HasSubstr("freed: 'old workspace' + 64"),
                                           HasSubstr("writes to sealed external 'weights'")));
}

TEST_F(StandAloneAuditTest, TheGraphIsOnlyBorrowed) {
  ASSERT_OK(audit_->Graph("step", Handle()).status());
  ASSERT_OK(device_->Instantiate(*graph_).status());
  const Manifest manifest = audit_->manifest();
  ASSERT_EQ(manifest.graphs.size(), 1u);
  EXPECT_EQ(manifest.graphs[0].nodes(), 2u);
  EXPECT_THAT(manifest.graphs[0].tags, IsEmpty());
  const nlohmann::json json = nlohmann::json::parse(ManifestJson(manifest));
  EXPECT_EQ(json["graphs"][0]["name"], "step");
  ASSERT_OK_AND_ASSIGN(const std::string dot, audit_->Dot("step"));
  EXPECT_THAT(dot, HasSubstr("digraph"));
  EXPECT_THAT(audit_->Dot("other").status(), IsErrorKind(ErrorKind::kNotFound));
}

TEST_F(StandAloneAuditTest, BadInputNamesWhatIsWrong) {
  EXPECT_THAT(StandAloneAudit::Create("tpu:0").status(), IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(audit_->AddRange({.name = "", .range = known_.range()}),
              IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(audit_->AddRange({.name = "empty", .range = {{known_.At()}, 0}}),
              IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(audit_->AddRange({.name = "wraps", .range = {{~std::uint64_t{0} - 8}, 64}}),
              IsErrorKind(ErrorKind::kInvalidArgument));
  ASSERT_OK(audit_->AddRange({.name = "twice", .range = known_.range()}));
  EXPECT_THAT(audit_->AddRange({.name = "twice", .range = other_.range()}),
              IsErrorKind(ErrorKind::kAlreadyExists));
  EXPECT_THAT(audit_->Graph("null", nullptr).status(), IsErrorKind(ErrorKind::kInvalidArgument));
}

TEST_F(StandAloneAuditTest, AHostDeviceAdoptsOnlyWhatIsAGraph) {
  if (device_->info().is_cuda) GTEST_SKIP() << "a driver takes the pointer's word for it";
  int no_graph = 0;
  EXPECT_THAT(audit_->Graph("nonsense", &no_graph).status(),
              IsErrorKind(ErrorKind::kInvalidArgument));
  void* const gone = Handle();
  graph_.reset();
  EXPECT_THAT(audit_->Graph("gone", gone).status(), IsErrorKind(ErrorKind::kInvalidArgument));
}

TEST_F(StandAloneAuditTest, ACProgramDoesTheSame) {
  // It opens a device of its own; host devices do not know each other's memory.
  EXPECT_EQ(AuditInC(device_->info().spec.c_str(), Handle(), known_.At(), known_.range().bytes,
                     device_->info().is_cuda),
            0);
}

TEST_F(StandAloneAuditTest, CHandlesAreCheckedAndNeverUsedAgain) {
  holdfast_audit first = {}, second = {};
  holdfast_error error = {};
  const char* const spec = device_->info().spec.c_str();
  ASSERT_EQ(holdfast_audit_create(spec, &first, &error), HOLDFAST_OK) << error.message;
  ASSERT_EQ(holdfast_audit_destroy(first, &error), HOLDFAST_OK);
  ASSERT_EQ(holdfast_audit_create(spec, &second, &error), HOLDFAST_OK);
  EXPECT_NE(first.id, second.id);
  std::uint64_t problems = 77;
  EXPECT_EQ(holdfast_audit_graph(first, "g", Handle(), &problems, &error),
            HOLDFAST_INVALID_ARGUMENT);
  EXPECT_EQ(problems, 77u) << "untouched on failure";
  EXPECT_THAT(error.message, AllOf(HasSubstr("holdfast_audit_graph"), HasSubstr("no such handle")));
  EXPECT_EQ(holdfast_audit_destroy(first, nullptr), HOLDFAST_INVALID_ARGUMENT);
  EXPECT_EQ(holdfast_audit_destroy({0}, nullptr), HOLDFAST_INVALID_ARGUMENT);
  EXPECT_EQ(holdfast_audit_create("cuda:99", &first, &error), HOLDFAST_NOT_FOUND);
  EXPECT_EQ(holdfast_audit_destroy(second, nullptr), HOLDFAST_OK);
}

}  // namespace
}  // namespace holdfast
