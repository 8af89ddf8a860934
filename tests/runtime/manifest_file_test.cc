// Verifies that a manifest reads back as it was written, and that files which are none, are cut
// short, or lie about themselves are errors that name the field.
#include "runtime/manifest_file.h"

#include "gmock/gmock.h"
#include "tests/device/status_matchers.h"

namespace holdfast {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

Manifest Toy() {
  ManifestGraph graph{.name = "decode/8",
                      .node_names = {{"kernel", "add", ""}, {"fill", "fill", "child 0"}},
                      .name_of = {0, 1, 0},
                      .edges = {{0, 1}, {1, 2}},
                      .words = 12,
                      .writes = 1,
                      .spans = {"x"},
                      .host_spans = {"h"},
                      .tags = {"state"}};
  graph.pointers = {{.node = 0,
                     .where = "parameter 0 + 8",
                     .kind = PointerClass::kSpan,
                     .object = "x",
                     .offset = 16},
                    {.node = 0,
                     .where = "parameter 0 + 12",
                     .kind = PointerClass::kSpan,
                     .object = "x",
                     .packed = true},
                    {.node = 1,
                     .where = "fill destination",
                     .kind = PointerClass::kHostSpan,
                     .object = "h",
                     .write = true}};
  ManifestGraph fork = graph;
  fork.name = "prefill/64";
  fork.edges = {{0, 1}, {0, 2}};
  return {.window_base = 0x2b5d40000000,
          .window_bytes = 1 << 20,
          .spans = {{"x", "state", "mutable", 256, 64}},
          .graphs = {graph, fork}};
}

TEST(ManifestFile, ReadsBackWhatWasWritten) {
  const absl::StatusOr<Manifest> read = ParseManifest(ManifestJson(Toy()), "m");
  ASSERT_OK(read);
  EXPECT_THAT(DiffManifests(Toy(), *read), IsEmpty());
  EXPECT_EQ(ManifestJson(*read), ManifestJson(Toy()));
  EXPECT_TRUE(read->graphs[0].is_straight_line());
  EXPECT_EQ(read->graphs[1].edges, Toy().graphs[1].edges);
  EXPECT_TRUE(read->graphs[0].pointers[1].packed);
}

TEST(ManifestFile, EveryTruncationIsAnError) {
  const std::string text = ManifestJson(Toy());
  for (std::size_t bytes = 0; bytes < text.size(); bytes += 7) {
    EXPECT_THAT(ParseManifest(text.substr(0, bytes), "m").status(),
                IsErrorKind(ErrorKind::kCorrupted))
        << bytes;
  }
}

// The message for a manifest in which `from` was replaced by `to`.
std::string Fault(const std::string& from, const std::string& to) {
  std::string text = ManifestJson(Toy());
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  if (at != std::string::npos) text.replace(at, from.size(), to);
  const absl::StatusOr<Manifest> read = ParseManifest(text, "m.json");
  EXPECT_THAT(read.status(), IsErrorKind(ErrorKind::kCorrupted)) << from << " -> " << to;
  return std::string(read.status().message());
}

TEST(ManifestFile, NamesTheFieldThatIsWrong) {
  EXPECT_THAT(Fault("holdfast graph manifest", "other"), HasSubstr("is not a graph manifest"));
  EXPECT_THAT(Fault("\"version\": 1", "\"version\": 2"), HasSubstr("version 2"));
  EXPECT_THAT(Fault("\"words\": 12", "\"words\": \"12\""), HasSubstr("\"words\""));
  EXPECT_THAT(Fault("\"words\": 12", "\"words\": -12"), HasSubstr("\"words\""));
  EXPECT_THAT(Fault("\"nodes\": 3", "\"nodes\": 4"), HasSubstr("name_of"));
  EXPECT_THAT(Fault("\"tags\"", "\"tagz\""), HasSubstr("\"tags\""));
  EXPECT_THAT(Fault("\"node\": 1", "\"node\": 3"), HasSubstr("\"node\""));
  EXPECT_THAT(Fault("\"class\": \"span\"", "\"class\": \"spam\""), HasSubstr("spam"));
  EXPECT_THAT(Fault("0x2b5d40000000", "nowhere"), HasSubstr("\"base\""));
  EXPECT_THAT(Fault("straight line", "crooked line"), HasSubstr("\"edges\""));
  EXPECT_THAT(Fault("\"kind\": \"kernel\"", "\"kind\": 7"), HasSubstr("\"kind\""));
}

TEST(ManifestFile, JsonThatIsNoManifestIsRefused) {
  for (const char* text : {"[]", "{}", "7", "null", "\"holdfast graph manifest\"",
                           "{\"format\": [\"holdfast graph manifest\"]}"}) {
    EXPECT_THAT(ParseManifest(text, "m").status(), IsErrorKind(ErrorKind::kCorrupted)) << text;
  }
}

TEST(ManifestFile, NamesTheFile) {
  EXPECT_THAT(ReadManifest("/no/such/manifest.json").status(), IsErrorKind(ErrorKind::kNotFound));
}

}  // namespace
}  // namespace holdfast
