// A program that uses the arena alone: no graphs, no models. Sleeps and wakes a span.
#include <chrono>
#include <cstdio>

#include "holdfast/allocator/residency.h"

namespace {

absl::Status SleepAndWake(const char* device_name) {
  HOLDFAST_ASSIGN_OR_RETURN(const auto device, holdfast::OpenDevice(device_name));
  holdfast::ArenaOptions options;
  options.groups = {{.tag = "state", .extent_bytes = holdfast::kMiB}};
  HOLDFAST_ASSIGN_OR_RETURN(const auto arena, holdfast::Arena::Create(*device, options));
  HOLDFAST_ASSIGN_OR_RETURN(const holdfast::SpanId span,
                            arena->Reserve({.name = "state", .tag = "state", .bytes = 4096}));
  HOLDFAST_RETURN_IF_ERROR(arena->Commit(span));
  const holdfast::DeviceAddress before = arena->range(span).base;
  HOLDFAST_ASSIGN_OR_RETURN(const auto residency, holdfast::Residency::Create(*arena));
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  HOLDFAST_RETURN_IF_ERROR(residency->Sleep({"state"}, deadline).status());
  HOLDFAST_RETURN_IF_ERROR(residency->Wake({"state"}).status());
  if (arena->range(span).base != before) return absl::InternalError("the span has moved");
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  const absl::Status status = SleepAndWake(argc > 1 ? argv[1] : "host");
  std::puts(status.ok() ? "same address" : status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
