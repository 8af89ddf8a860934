// An arena for field cases: room for large temporaries, a cache and state; one lane.
#ifndef HOLDFAST_TESTS_GRAPHS_FIELD_RIG_H_
#define HOLDFAST_TESTS_GRAPHS_FIELD_RIG_H_

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "graphs/graph_set.h"
#include "tests/device/device_fixture.h"
#include "tests/device/test_ops.h"

namespace holdfast {

class FieldTest : public DeviceTest {
 protected:
  FieldTest() {
    const std::uint64_t chunk = 2 * kMiB;
    arena_ =
        *Arena::Create(*device_, {.groups = {{"state", Role::kMutable, 32 * kMiB, chunk},
                                             {"kv", Role::kCache, 2 * kMiB, chunk},
                                             {"workspace", Role::kScratch, 256 * kMiB, chunk}}});
    lane_ = *Lane::Create(*arena_, "lane");
  }

  SpanId Reserve(const char* name, const char* tag, Role role, std::uint64_t bytes) {
    const absl::StatusOr<SpanId> span =
        arena_->Reserve({.name = name, .tag = tag, .role = role, .bytes = bytes});
    EXPECT_OK(span);
    EXPECT_OK(arena_->CommitTag(tag));
    return span.ok() ? *span : SpanId{};
  }
  SpanId State(const char* name, std::uint64_t bytes) {
    return Reserve(name, "state", Role::kMutable, bytes);
  }
  SpanId Workspace(std::uint64_t bytes) {
    return Reserve("workspace", "workspace", Role::kScratch, bytes);
  }
  DeviceAddress At(SpanId span) const { return arena_->range(span).base; }
  std::uint64_t Succeeded(Call call) { return device_->calls().succeeded(call); }

  std::unique_ptr<Arena> arena_;
  std::unique_ptr<Lane> lane_;
};

inline absl::Status AddRows(StepContext& step, DeviceAddress a, DeviceAddress b, DeviceAddress out,
                            std::int64_t count) {
  return step.Launch(AddOp(), ShapeFor(count),
                     AddParams{a.As<float>(), b.As<float>(), out.As<float>(), count});
}

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_GRAPHS_FIELD_RIG_H_
