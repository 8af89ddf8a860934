#include "preload/report.h"

#include <cxxabi.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "graphs/node_words.h"

namespace holdfast::preload {
namespace {

constexpr std::size_t kLongestName = 160;  // template kernels have names of thousands

// "kernel _Z5scalePf" -> "kernel scale(float*)"
std::string Readable(const std::string& node_name) {
  const std::size_t space = node_name.find(' ');
  std::string text = node_name;
  if (space != std::string::npos) {
    int status = 0;
    char* const plain =
        abi::__cxa_demangle(node_name.c_str() + space + 1, nullptr, nullptr, &status);
    if (status == 0 && plain != nullptr) text = absl::StrCat(node_name.substr(0, space + 1), plain);
    std::free(plain);
  }
  if (text.size() > kLongestName) text = text.substr(0, kLongestName) + "...";
  return text;
}

const char* Plural(std::uint64_t count) { return count == 1 ? "" : "s"; }

}  // namespace

const char* FindingKind(const Account::Entry& entry) {
  const Allocation& gone = *entry.finding.allocation;
  if (gone.pool_gone) return "dead pool";
  // What an allocator takes while a graph is recorded belongs to that graph; this is another one.
  if (gone.capture != 0 && gone.capture != entry.finding.capture.number) return "dead pool";
  if (gone.heir != nullptr && gone.heir->born > entry.finding.capture.end &&
      entry.finding.fault != Fault::kFreedBeforeCapture) {
    return "workspace grown";
  }
  return "freed";
}

std::string FindingText(const Account::Entry& entry) {
  const Finding& finding = entry.finding;
  const Allocation& gone = *finding.allocation;
  const Reference& first = finding.references.front();
  std::string text =
      absl::StrCat("graph ", finding.graph, ": node ", first.node, " (", Readable(*first.node_name),
                   "): ", first.where, " = ", HexWord(first.word), ": ", gone.Label(), " + ",
                   first.word - gone.range.base.value, ": freed by ", gone.freed_by, " ",
                   FaultText(finding.fault));
  if (gone.pool_gone) absl::StrAppend(&text, ", its pool destroyed");
  if (gone.capture != 0 && gone.capture != finding.capture.number) {
    absl::StrAppend(&text, ", part of the pool of capture ", gone.capture);
  }
  if (std::strcmp(FindingKind(entry), "workspace grown") == 0) {
    absl::StrAppend(&text, ", a workspace that grew: ", gone.heir->Label(), " took its place");
  }
  if (entry.owner != nullptr) {
    absl::StrAppend(&text, ", reallocated as ", entry.owner->Label(),
                    entry.owner->died != 0 ? ", freed too" : "");
  }
  if (finding.ending != nullptr) {
    absl::StrAppend(&text, ", unless it is meant as the end of ", finding.ending->Label());
  }
  if (finding.words > 1) {
    absl::StrAppend(&text, " (and ", finding.words - 1, " more word", Plural(finding.words - 1),
                    " of the graph)");
  }
  return text;
}

std::string ReportText(const Account& account) {
  std::uint64_t pointers = 0, unrecorded = 0, unreadable = 0, by_node = 0;
  for (const GraphFacts& graph : account.graphs) {
    pointers += graph.pointers;
    unrecorded += graph.unrecorded;
    unreadable += graph.unreadable.size();
    by_node += graph.changed_node_by_node;
  }
  std::string text = absl::StrCat("holdfast preload: ", account.graphs.size(), " graph",
                                  Plural(account.graphs.size()), " audited, ", pointers, " pointer",
                                  Plural(pointers), ", ", account.findings.size(), " finding",
                                  Plural(account.findings.size()), "\n");
  for (const Account::Entry& entry : account.findings) {
    absl::StrAppend(&text, "  ", FindingKind(entry), ": ", FindingText(entry), "\n");
  }
  for (const Account::Entry& entry : account.remapped) {
    absl::StrAppend(&text, "  mapped again, as allowed: ", FindingText(entry), "\n");
  }
  if (unrecorded > 0) {
    absl::StrAppend(&text, "  not judged: ", unrecorded, " pointer", Plural(unrecorded),
                    " into memory whose allocation was not seen\n");
  }
  if (unreadable > 0) {
    absl::StrAppend(&text, "  not judged: ", unreadable, " node", Plural(unreadable),
                    " whose pointers cannot be read\n");
  }
  if (by_node > 0) {
    absl::StrAppend(&text, "  not judged: ", by_node, " change", Plural(by_node),
                    " of single nodes; such graphs are not watched afterwards\n");
  }
  if (account.open_captures > 0) {
    absl::StrAppend(&text, "  not judged: ", account.open_captures, " capture",
                    Plural(account.open_captures), " still open when the program ended\n");
  }
  if (account.contexts_destroyed > 0) {
    absl::StrAppend(&text, "  forgotten: what was known before a context was destroyed\n");
  }
  for (const std::string& error : account.errors) {
    absl::StrAppend(&text, "  error: ", error, "\n");
  }
  return text;
}

void Publish(const Account& account) {
  if (account.settings.report.empty()) {
    if (account.graphs.empty() && account.errors.empty() && account.open_captures == 0) return;
    std::fputs(ReportText(account).c_str(), stderr);
    std::fflush(stderr);
    return;
  }
  const std::string json = ReportJson(account);
  std::string name = account.settings.report;
  int file = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file < 0 && errno == EEXIST) {
    name = absl::StrCat(name, ".", getpid());
    file = open(name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  }
  std::size_t written = 0;
  while (file >= 0 && written < json.size()) {
    const ssize_t more = write(file, json.data() + written, json.size() - written);
    if (more < 0 && errno == EINTR) continue;
    if (more <= 0) break;
    written += static_cast<std::size_t>(more);
  }
  const bool done = file >= 0 && close(file) == 0 && written == json.size();
  if (done) return;
  std::fprintf(stderr, "holdfast preload: cannot write %s: %s\n", name.c_str(),
               std::strerror(errno));
}

}  // namespace holdfast::preload
