// An arena with a workspace of 2 lanes and 2 micro-batches, for tests.
#ifndef HOLDFAST_TESTS_ALLOCATOR_WORKSPACE_RIG_H_
#define HOLDFAST_TESTS_ALLOCATOR_WORKSPACE_RIG_H_

#include <memory>
#include <utility>
#include <vector>

#include "allocator/workspace.h"
#include "gtest/gtest.h"
#include "tests/allocator/residency_rig.h"

namespace holdfast {

class WorkspaceTest : public testing::Test {
 protected:
  // Poison is off unless a test asks for it, in every build.
  WorkspaceOptions Options() const {
    return {.lanes = 2,
            .micro_batches = 2,
            .extent_bytes = 8 * g_,
            .chunk_bytes = g_,
            .poison = false,
            .overrides = {},
            .on_setting = nullptr};
  }
  absl::Status Open(WorkspaceOptions options) {
    workspace_.reset();
    stream_.reset();
    arena_.reset();
    HOLDFAST_ASSIGN_OR_RETURN(std::vector<GroupSpec> groups, WorkspaceManager::Groups(options));
    HOLDFAST_ASSIGN_OR_RETURN(arena_,
                              Arena::Create(*device_, {.name = "workspace", .groups = groups}));
    HOLDFAST_ASSIGN_OR_RETURN(stream_, device_->CreateStream("lane0"));
    HOLDFAST_ASSIGN_OR_RETURN(workspace_, WorkspaceManager::Create(*arena_, std::move(options)));
    return absl::OkStatus();
  }
  std::uint64_t own_bytes() { return device_->Memory()->own_bytes; }
  DeviceAddress Base(WorkspaceSlot slot) {
    return arena_->range(*arena_->Find(SlotName(slot) + ".workspace")).base;
  }
  absl::StatusOr<WorkspaceLease> Take(const std::string& user, std::uint64_t bytes,
                                      WorkspaceSlot slot = {}) {
    return workspace_->Acquire(slot, *stream_, user, {{"scratch", bytes}});
  }

  std::unique_ptr<Device> device_ = TestDevice();
  const std::uint64_t g_ = device_->info().granularity;
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<WorkspaceManager> workspace_;
};

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_ALLOCATOR_WORKSPACE_RIG_H_
