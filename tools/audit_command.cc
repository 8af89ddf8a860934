#include "tools/audit_command.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "device/bytes.h"
#include "device/error.h"
#include "graphs/manifest.h"
#include "runtime/manifest_file.h"
#include "tools/report.h"

namespace holdfast {
namespace {

std::string Counted(std::uint64_t count, const char* one, const char* many) {
  return absl::StrCat(count, " ", count == 1 ? one : many);
}

std::string GraphText(const ManifestGraph& graph, bool pointers) {
  std::map<std::string, std::uint64_t> kinds, classes;
  for (std::uint32_t name : graph.name_of) ++kinds[graph.node_names[name].kind];
  for (const ManifestPointer& pointer : graph.pointers) ++classes[PointerClassName(pointer.kind)];
  const auto list = [](const std::map<std::string, std::uint64_t>& counts) {
    return absl::StrJoin(counts, ", ", [](std::string* out, const auto& entry) {
      absl::StrAppend(out, entry.second, " ", entry.first);
    });
  };
  std::string text = absl::StrCat(
      "graph ", graph.name, ": ", Counted(graph.nodes(), "node", "nodes"), " (", list(kinds), ")",
      graph.is_straight_line() ? ", a straight line" : "", "\n  ", graph.words, " words, ",
      Counted(graph.pointers.size(), "pointer", "pointers"), " (", list(classes), "), ",
      Counted(graph.writes, "visible write", "visible writes"),
      "\n  needs tags: ", absl::StrJoin(graph.tags, ", "), "\n  ",
      Counted(graph.spans.size(), "span", "spans"), ": ", absl::StrJoin(graph.spans, ", "), "\n");
  if (!graph.host_spans.empty()) {
    absl::StrAppend(&text, "  host spans: ", absl::StrJoin(graph.host_spans, ", "), "\n");
  }
  if (!pointers) return text;
  for (const ManifestPointer& p : graph.pointers) {
    absl::StrAppend(&text, "    ", graph.NodeLabel(p.node), ": ", p.where, ": ",
                    PointerClassName(p.kind), " '", p.object, "' + ", p.offset,
                    p.write ? ", written" : "", p.packed ? ", packed" : "", "\n");
  }
  return text;
}

std::string ManifestText(const Manifest& manifest, bool pointers) {
  std::string text;
  if (manifest.window_bytes > 0) {
    text = absl::StrFormat("window 0x%x, %s, %s\n", manifest.window_base,
                           FormatBytes(manifest.window_bytes),
                           Counted(manifest.spans.size(), "span", "spans"));
  }
  for (const ManifestGraph& graph : manifest.graphs) {
    absl::StrAppend(&text, GraphText(graph, pointers));
  }
  return absl::StrCat(text, Counted(manifest.graphs.size(), "graph", "graphs"), "\n");
}

absl::Status KeepOnly(const std::string& graph, const std::string& file, Manifest& manifest) {
  if (graph.empty()) return absl::OkStatus();
  auto& graphs = manifest.graphs;
  graphs.erase(std::remove_if(graphs.begin(), graphs.end(),
                              [&](const ManifestGraph& g) { return g.name != graph; }),
               graphs.end());
  if (!graphs.empty()) return absl::OkStatus();
  return MakeError({.kind = ErrorKind::kNotFound, .object = graph},
                   absl::StrCat("no such graph in ", file));
}

absl::Status WriteDot(const AuditOptions& options, const Manifest& manifest) {
  if (options.dot.empty()) return absl::OkStatus();
  if (manifest.graphs.size() != 1) {
    return MakeError({.kind = ErrorKind::kInvalidArgument, .object = "--dot"},
                     absl::StrCat("draws one graph, and ", options.files.front(), " holds ",
                                  manifest.graphs.size(), ": choose one by --graph"));
  }
  return WriteFile(options.dot, ManifestDot(manifest, manifest.graphs.front()));
}

}  // namespace

absl::StatusOr<AuditAnswer> AuditFiles(const AuditOptions& options) {
  std::vector<Manifest> manifests;
  for (const std::string& file : options.files) {
    HOLDFAST_ASSIGN_OR_RETURN(Manifest manifest, ReadManifest(file));
    HOLDFAST_RETURN_IF_ERROR(KeepOnly(options.graph, file, manifest));
    manifests.push_back(std::move(manifest));
  }
  HOLDFAST_RETURN_IF_ERROR(WriteDot(options, manifests.front()));
  AuditAnswer answer;
  if (manifests.size() == 1) {
    answer.text = ManifestText(manifests.front(), options.pointers);
    return answer;
  }
  for (std::size_t i = 1; i < manifests.size(); ++i) {
    const std::vector<std::string> lines = DiffManifests(manifests.front(), manifests[i]);
    absl::StrAppend(&answer.text, options.files.front(), " and ", options.files[i], ": ",
                    lines.empty() ? "the same" : Counted(lines.size(), "difference", "differences"),
                    "\n");
    for (std::size_t n = 0; n < std::min(lines.size(), options.most); ++n) {
      absl::StrAppend(&answer.text, "  ", lines[n], "\n");
    }
    if (lines.size() > options.most) {
      absl::StrAppend(&answer.text, "  and ", lines.size() - options.most, " more\n");
    }
    answer.same = answer.same && lines.empty();
  }
  return answer;
}

}  // namespace holdfast
