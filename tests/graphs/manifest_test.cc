// Verifies that the manifest is stable, sorted and complete JSON.
#include "graphs/manifest.h"

#include <nlohmann/json.hpp>

#include "gmock/gmock.h"
#include "tests/graphs/toy_step.h"

namespace holdfast {
namespace {

std::unique_ptr<Graph> CaptureToy(Toy& toy, int rows) {
  const Step step = ToyStep(toy, rows);
  absl::StatusOr<ScratchPlan> plan = MeasureStep(*toy.arena, toy.lane->stream(), "toy", step);
  EXPECT_OK(plan);
  absl::StatusOr<std::unique_ptr<Graph>> graph =
      Graph::Capture(*toy.lane, {.phase = Phase::kDecode, .size = rows}, step,
                     {.plan = &*plan, .scratch = toy.workspace});
  EXPECT_OK(graph);
  return graph.ok() ? *std::move(graph) : nullptr;
}

TEST(Manifest, JsonNamesWindowGraphsSpansTagsAndEveryPointer) {
  Toy toy;
  const auto four = CaptureToy(toy, 4), two = CaptureToy(toy, 2);
  ASSERT_TRUE(four != nullptr && two != nullptr);
  const nlohmann::json json =
      nlohmann::json::parse(ManifestJson(*toy.arena, {&four->manifest(), &two->manifest()}));
  EXPECT_EQ(json["window"]["bytes"], toy.arena->window().bytes);
  ASSERT_EQ(json["graphs"].size(), 2u);
  EXPECT_EQ(json["graphs"][0]["name"], "decode/2");  // by name
  const nlohmann::json& graph = json["graphs"][1];
  EXPECT_EQ(graph["nodes"], kToyStepNodes);
  EXPECT_EQ(graph["nodes_by_kind"]["copy"], 2);
  EXPECT_EQ(graph["tags"], nlohmann::json({"state", "weights", "workspace"}));
  EXPECT_EQ(graph["spans"], nlohmann::json({"bias", "input", "output", "weights", "workspace"}));
  EXPECT_EQ(graph["pointers"].size(), four->manifest().audit.pointers.size());
  EXPECT_EQ(graph["pointers"][0], (nlohmann::json{{"node", 0},
                                                  {"where", "copy source"},
                                                  {"class", "host span"},
                                                  {"object", "staging.in"},
                                                  {"offset", 0},
                                                  {"write", false}}));
}

TEST(Manifest, EqualCapturesGiveEqualTextInAnyOrder) {
  Toy toy;
  const auto four = CaptureToy(toy, 4), two = CaptureToy(toy, 2), again = CaptureToy(toy, 4);
  ASSERT_TRUE(four != nullptr && two != nullptr && again != nullptr);
  const std::string text = ManifestJson(*toy.arena, {&four->manifest(), &two->manifest()});
  EXPECT_EQ(text, ManifestJson(*toy.arena, {&two->manifest(), &again->manifest()}));
  EXPECT_NE(text, ManifestJson(*toy.arena, {&two->manifest()}));
}

TEST(Manifest, NamesThatAreNoUtf8DoNotMatter) {
  Toy toy;
  GraphManifest manifest{.name = "bad\xff", .nodes = 1};
  EXPECT_NE(ManifestJson(*toy.arena, {&manifest}).find("bad"), std::string::npos);
}

}  // namespace
}  // namespace holdfast
