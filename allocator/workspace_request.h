// What users ask of the workspace, and how one combined request lies in a slot.
#ifndef HOLDFAST_ALLOCATOR_WORKSPACE_REQUEST_H_
#define HOLDFAST_ALLOCATOR_WORKSPACE_REQUEST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace holdfast {

// One of the places where scratch lies: micro-batches that are under way together, and lanes, have
// their own.
struct WorkspaceSlot {
  int lane = 0;
  int micro_batch = 0;
  auto operator<=>(const WorkspaceSlot&) const = default;
};
std::string SlotName(WorkspaceSlot slot);  // "lane0.mb1"

// Bytes by name; 0 is a request, too: it gets an address that nobody may follow.
struct WorkspaceRequest {
  std::string name;
  std::uint64_t bytes = 0;

  bool operator==(const WorkspaceRequest&) const = default;
};

// Requests of one call lie side by side: each rounded up to kScratchAlignment (256 B), the running
// sum of that being the offsets.
struct PackedRequests {
  std::vector<WorkspaceRequest> requests;
  std::vector<std::uint64_t> offsets;
  std::uint64_t asked_bytes = 0;  // the plain sum
  std::uint64_t total_bytes = 0;  // with the rounding of every one
};
// kInvalidArgument naming the request: no name, a name twice, or a sum beyond 64 bits.
absl::StatusOr<PackedRequests> PackRequests(const std::vector<WorkspaceRequest>& requests);

// "q 150994944 B, out 4 B": for messages; the first few.
std::string DescribeRequests(const std::vector<WorkspaceRequest>& requests);

}  // namespace holdfast

#endif  // HOLDFAST_ALLOCATOR_WORKSPACE_REQUEST_H_
