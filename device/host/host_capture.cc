#include "device/host/host_capture.h"

#include <algorithm>
#include <deque>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "device/error.h"

namespace holdfast {
namespace {

absl::Status Uncapturable(const std::string& stream, const std::string& call,
                          const std::string& message) {
  return MakeError({.kind = ErrorKind::kUncapturable, .object = stream, .call = call}, message);
}

}  // namespace

std::vector<std::size_t> RecordedGraph::ReplayOrder() const {
  std::vector<std::vector<std::size_t>> successors(nodes.size());
  std::vector<std::size_t> waits_for(nodes.size());
  for (const auto& [from, to] : edges) {
    successors[from].push_back(to);
    ++waits_for[to];
  }
  std::deque<std::size_t> ready;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (waits_for[i] == 0) ready.push_back(i);
  }
  std::vector<std::size_t> order;
  while (!ready.empty()) {
    order.push_back(ready.front());
    ready.pop_front();
    for (const std::size_t next : successors[order.back()]) {
      if (--waits_for[next] == 0) ready.push_back(next);
    }
  }
  return order;
}

void HostCapture::Merge(Frontier& into, const Frontier& from) {
  Frontier merged;
  std::set_union(into.begin(), into.end(), from.begin(), from.end(), std::back_inserter(merged));
  into = std::move(merged);
}

absl::Status HostCapture::Append(const std::string& stream, Frontier& frontier, Work work) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!spoiled_by_.empty()) {
    return Uncapturable(stream, "", absl::StrCat("the capture was spoiled by: ", spoiled_by_));
  }
  const std::size_t node = graph_.nodes.size();
  for (const std::size_t before : frontier) graph_.edges.emplace_back(before, node);
  graph_.nodes.push_back(std::move(work));
  streams_.push_back(stream);
  frontier = {node};
  return absl::OkStatus();
}

absl::Status HostCapture::Spoil(const std::string& stream, const std::string& what) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (spoiled_by_.empty()) spoiled_by_ = what;
  return Uncapturable(stream, what,
                      absl::StrCat("the stream is capturing: a graph cannot hold ", what));
}

bool HostCapture::ended() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return ended_;
}

absl::Status HostCapture::CheckJoined(const std::string& stream, const Frontier& frontier) const {
  std::vector<bool> followed(graph_.nodes.size());
  for (const auto& [from, to] : graph_.edges) followed[from] = true;
  for (const std::size_t node : frontier) followed[node] = true;
  std::string leaves;
  for (std::size_t i = 0; i < followed.size(); ++i) {
    if (followed[i]) continue;
    absl::StrAppend(&leaves, leaves.empty() ? "" : ", ", "stream '", streams_[i],
                    "' (its last operation: ", ViewOf(graph_.nodes[i]).name, ")");
  }
  if (leaves.empty()) return absl::OkStatus();
  return Uncapturable(stream, "end capture", absl::StrCat("work that was never joined: ", leaves));
}

absl::StatusOr<RecordedGraph> HostCapture::End(const std::string& stream,
                                               const Frontier& frontier) {
  std::lock_guard<std::mutex> lock(mutex_);
  ended_ = true;
  RecordedGraph graph;
  absl::Status joined = CheckJoined(stream, frontier);
  std::swap(graph, graph_);
  if (!spoiled_by_.empty()) {
    return Uncapturable(stream, spoiled_by_,
                        absl::StrCat("the capture was spoiled by: ", spoiled_by_));
  }
  HOLDFAST_RETURN_IF_ERROR(joined);
  std::sort(graph.edges.begin(), graph.edges.end());
  return graph;
}

}  // namespace holdfast
