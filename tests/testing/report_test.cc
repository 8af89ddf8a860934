// Verifies what reports say of a battery that failed, and that a worker's events arrive as they
// were sent or not at all.
#include "testing/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/error.h"
#include "testing/result_line.h"

namespace holdfast::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

BatteryReport Failed() {
  BatteryReport report{.subject = "toy", .device = "host", .seed = 7};
  report.proofs = {{.proof = Proof::kKeptBytes, .verdict = Verdict::kHolds, .detail = "8 leaves"},
                   {.proof = Proof::kOutputs,
                    .verdict = Verdict::kFails,
                    .detail = "byte 3 is <1> & not \"2\"\x01\n\xff"},
                   {.proof = Proof::kLedger, .verdict = Verdict::kSkipped, .detail = "none"}};
  report.controls = {{.control = {Fault::kFlippedBit, Proof::kKeptBytes},
                      .bites = true,
                      .detail = "leaf 0 differs"},
                     {.control = {Fault::kOtherOutput, Proof::kOutputs}, .detail = "holds"}};
  report.controls_ran = true;
  return report;
}

TEST(ReportText, EndsWithTheFirstComplaint) {
  const std::string text = ReportText(Failed());
  EXPECT_THAT(text, HasSubstr("3 proofs: 1 fails, 1 holds, 1 skipped; "
                              "2 negative controls: 1 bites, 1 misses"));
  EXPECT_THAT(text, HasSubstr("\nFAIL: fails    outputs"));
}

TEST(ReportJson, TellsWhatFailedAndSurvivesBytesThatAreNoText) {
  const std::string json = ReportJson(Failed());
  EXPECT_THAT(json, HasSubstr("\"passed\": false"));
  EXPECT_THAT(json, HasSubstr("\"verdict\": \"misses\""));
}

TEST(ReportJunit, CountsAndEscapesFailures) {
  const std::string xml = ReportJunit(Failed());
  EXPECT_THAT(xml, HasSubstr("<testsuite name=\"proofs\" tests=\"3\" failures=\"1\" errors=\"0\" "
                             "skipped=\"1\""));
  EXPECT_THAT(xml, HasSubstr("<testsuite name=\"controls\" tests=\"2\" failures=\"1\""));
  EXPECT_THAT(xml, HasSubstr("message=\"byte 3 is &lt;1&gt; &amp; not &quot;2&quot;?&#10;?\""));
  EXPECT_THAT(xml, HasSubstr("<failure type=\"misses\""));
  EXPECT_THAT(xml, HasSubstr("<skipped message=\"none\"/>"));
}

TEST(ReportJunit, OfAPassHasNoFailure) {
  BatteryReport report = Failed();
  report.proofs[1].verdict = Verdict::kHolds;
  report.controls[1].bites = true;
  EXPECT_THAT(ReportJunit(report), Not(HasSubstr("<failure")));
}

TEST(WorkerEvent, ArrivesAsItWasSent) {
  const WorkerEvent proof{.kind = WorkerEvent::Kind::kProof,
                          .text = "toy",
                          .proof = ProofResult{.proof = Proof::kOutputs,
                                               .verdict = Verdict::kBlocked,
                                               .detail = "two\nlines",
                                               .blocked_by = Proof::kPointers,
                                               .seconds = 1.5},
                          .control = {}};
  const std::string line = WriteEvent(proof);
  EXPECT_THAT(line, Not(HasSubstr("\n")));
  const absl::StatusOr<WorkerEvent> back = ReadEvent(line);
  ASSERT_TRUE(back.ok()) << back.status();
  ASSERT_TRUE(back->proof.has_value());
  EXPECT_EQ(back->proof->proof, Proof::kOutputs);
  EXPECT_EQ(back->proof->verdict, Verdict::kBlocked);
  EXPECT_EQ(back->proof->detail, "two\nlines");
  EXPECT_EQ(back->proof->blocked_by, Proof::kPointers);
  EXPECT_EQ(back->proof->seconds, 1.5);
}

TEST(WorkerEvent, IsRefusedIfNobodyWroteIt) {
  for (const char* line :
       {"", "{", "[]", "{}", R"({"kind": 99})", R"({"kind": "proof"})", R"({"kind": 2})",
        R"({"kind": 2, "name": "outputs", "verdict": 9})", R"({"kind": 3, "name": "outputs"})"}) {
    EXPECT_TRUE(IsErrorKind(ReadEvent(line).status(), ErrorKind::kCorrupted)) << line;
  }
}

}  // namespace
}  // namespace holdfast::testing
