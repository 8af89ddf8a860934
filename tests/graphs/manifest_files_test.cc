// Verifies that manifests tell nodes, edges and spans by name, that a difference is explained by
// node, word, span and offset, and that the Graphviz text shows spans as colours.
#include <algorithm>

#include "gmock/gmock.h"
#include "graphs/manifest.h"
#include "tests/graphs/toy_step.h"
#include "tests/graphs/views.h"

namespace holdfast {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class ManifestFilesTest : public testing::Test {
 protected:
  Manifest Of(const GraphView& view) {
    const GraphManifest graph =
        MakeManifest("decode/8", view, Audit(view, *toy_.device, toy_.arena.get()), *toy_.arena);
    return Describe(toy_.arena.get(), {&graph});
  }
  GraphView View() {
    return ViewOf({KernelNode("add", {Words({toy_.At(toy_.weights), toy_.At(toy_.input, 16)})}),
                   FillNode(toy_.At(toy_.output), 64),
                   KernelNode("add", {Words({toy_.At(toy_.kv)})})});
  }

  Toy toy_;
};

TEST_F(ManifestFilesTest, DescribesNodesSpansAndPointersByName) {
  const Manifest manifest = Of(View());
  EXPECT_EQ(manifest.window_base, toy_.arena->window().base.value);
  ASSERT_THAT(manifest.graphs, SizeIs(1));
  const ManifestGraph& graph = manifest.graphs[0];
  EXPECT_EQ(graph.nodes(), 3u);
  EXPECT_THAT(graph.node_names, SizeIs(2)) << "each once";
  EXPECT_EQ(graph.NodeLabel(2), "node 2 (kernel add)");
  EXPECT_EQ(graph.NodeLabel(1), "node 1 (fill)");
  EXPECT_TRUE(graph.is_straight_line());
  EXPECT_EQ(graph.writes, 1u);
  EXPECT_THAT(graph.tags, ElementsAre("kv", "state", "weights"));
  const auto weights = std::find_if(manifest.spans.begin(), manifest.spans.end(),
                                    [](const ManifestSpan& s) { return s.name == "weights"; });
  ASSERT_NE(weights, manifest.spans.end());
  EXPECT_EQ(weights->role, "immutable");
  EXPECT_EQ(weights->offset, toy_.At(toy_.weights) - manifest.window_base);
}

TEST_F(ManifestFilesTest, EqualManifestsDoNotDiffer) {
  EXPECT_THAT(DiffManifests(Of(View()), Of(View())), IsEmpty());
}

TEST_F(ManifestFilesTest, ExplainsWhichNodeWordSpanAndOffset) {
  GraphView other = View();
  other.nodes[0].parameters[0] = Words({toy_.At(toy_.weights), toy_.At(toy_.input2, 32)});
  other.nodes[2].parameters[0] = Words({7});
  EXPECT_THAT(
      DiffManifests(Of(View()), Of(other)),
      ElementsAre(
          "decode/8: node 0 (kernel add): parameter 0 + 8: span 'input' + 16, then span 'input2' "
          "+ 32",
          "decode/8: node 2 (kernel add): parameter 0 + 0: span 'kv' + 0, then no pointer"));
}

TEST_F(ManifestFilesTest, ExplainsNodesEdgesSpansAndGraphs) {
  GraphView other = View();
  other.nodes[1] = KernelNode("zero", {Words({toy_.At(toy_.output)})});
  other.edges = {{0, 1}, {0, 2}};
  Manifest second = Of(other);
  second.spans[0].bytes += 4;
  second.graphs.push_back({.name = "prefill/64"});
  EXPECT_THAT(DiffManifests(Of(View()), second),
              ElementsAre(AllOf(HasSubstr("span 'weights'"), HasSubstr("256 bytes"),
                                HasSubstr("260 bytes")),
                          HasSubstr("node 1 (fill), then node 1 (kernel zero)"),
                          HasSubstr("edge 1 -> 2 is gone"), HasSubstr("edge 0 -> 2 is new"),
                          HasSubstr("fill destination: span 'output' + 0, written, then no"),
                          HasSubstr("parameter 0 + 0: no pointer, then span 'output'"),
                          HasSubstr("graph 'prefill/64': new")));
}

TEST_F(ManifestFilesTest, GraphvizShowsSpansAsColours) {
  const Manifest manifest = Of(View());
  const std::string dot = ManifestDot(manifest, manifest.graphs[0]);
  EXPECT_THAT(dot, AllOf(HasSubstr("digraph \"decode/8\""), HasSubstr("n0 -> n1;"),
                         HasSubstr("style=striped"), HasSubstr("weights, weights/immutable")));
  // The colour of the fill is that of the span it writes.
  const std::size_t fill = dot.find("node 1 (fill)"), colour = dot.find("#", fill);
  const std::size_t legend = dot.find("label=\"output,");
  ASSERT_NE(legend, std::string::npos);
  EXPECT_EQ(dot.substr(colour, 7), dot.substr(dot.find("#", legend), 7));
}

TEST_F(ManifestFilesTest, GraphvizQuotesWhatUsersName) {
  ManifestGraph graph{
      .name = "a \"b\" \\ c\n", .node_names = {{"kernel", "k\"", ""}}, .name_of = {0}};
  const std::string dot = ManifestDot({}, graph);
  EXPECT_THAT(dot, AllOf(HasSubstr("\"a \\\"b\\\" \\\\ c \""), HasSubstr("k\\\"")));
}

TEST_F(ManifestFilesTest, AForkIsNoStraightLine) {
  GraphView view = View();
  view.edges = {{0, 1}, {0, 2}};
  EXPECT_FALSE(Of(view).graphs[0].is_straight_line());
  EXPECT_THAT(ManifestJson(Of(view)), Not(HasSubstr("straight line")));
  view.edges = {};
  EXPECT_FALSE(Of(view).graphs[0].is_straight_line()) << "three nodes beside each other";
}

}  // namespace
}  // namespace holdfast
