// A counter that a captured graph adds to; it sleeps, wakes at the same address, and counts on.
#include <chrono>
#include <cstdio>

#include "holdfast/allocator/residency.h"
#include "holdfast/graphs/graph.h"

using namespace holdfast;

struct CountParams {
  std::uint64_t* counter;
};
void CountOnHost(const CountParams& params) { ++*params.counter; }

absl::StatusOr<bool> CountSleepWakeCount() {
  HOLDFAST_ASSIGN_OR_RETURN(auto device, OpenDevice("host"));
  HOLDFAST_ASSIGN_OR_RETURN(
      auto arena, Arena::Create(*device, {.groups = {{.tag = "state", .extent_bytes = kMiB}}}));
  HOLDFAST_ASSIGN_OR_RETURN(SpanId counter,
                            arena->Reserve({.name = "counter", .tag = "state", .bytes = 8}));
  HOLDFAST_RETURN_IF_ERROR(arena->CommitTag("state"));
  HOLDFAST_ASSIGN_OR_RETURN(const HostSpan* seen, arena->AddHostSpan("seen", 8));
  arena->Lock();

  const Op count = MakeOp<CountParams, CountOnHost>("count", nullptr);
  const Step step = [&](StepContext& s) -> absl::Status {
    HOLDFAST_RETURN_IF_ERROR(
        s.Launch(count, {}, CountParams{s.Resolve(counter).As<std::uint64_t>()}));
    return s.CopyToHost(seen->buffer.data(), s.Resolve(counter), 8);
  };
  HOLDFAST_ASSIGN_OR_RETURN(auto lane, Lane::Create(*arena, "main"));
  HOLDFAST_ASSIGN_OR_RETURN(auto graph, Graph::Capture(*lane, {.size = 1}, step, {}));
  HOLDFAST_ASSIGN_OR_RETURN(auto residency, Residency::Create(*arena));

  HOLDFAST_RETURN_IF_ERROR(graph->Replay());  // 0 -> 1
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  HOLDFAST_RETURN_IF_ERROR(residency->Sleep({"state"}, deadline).status());  // the pages are gone
  HOLDFAST_RETURN_IF_ERROR(residency->Wake({"state"}).status());  // new pages, same address
  HOLDFAST_RETURN_IF_ERROR(graph->Replay());                      // 1 -> 2
  HOLDFAST_RETURN_IF_ERROR(lane->Synchronize());
  return *reinterpret_cast<const std::uint64_t*>(seen->buffer.data()) == 2;
}

int main() {
  const absl::StatusOr<bool> counted = CountSleepWakeCount();
  std::puts(!counted.ok() ? counted.status().ToString().c_str()
            : *counted    ? "held fast"
                          : "lost count");
  return counted.ok() && *counted ? 0 : 1;
}
