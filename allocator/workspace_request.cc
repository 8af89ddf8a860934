#include "allocator/workspace_request.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "allocator/scratch_plan.h"
#include "device/bytes.h"
#include "device/error.h"

namespace holdfast {

std::string SlotName(WorkspaceSlot slot) {
  return absl::StrCat("lane", slot.lane, ".mb", slot.micro_batch);
}

absl::StatusOr<PackedRequests> PackRequests(const std::vector<WorkspaceRequest>& requests) {
  PackedRequests packed{.requests = requests, .offsets = {}};
  std::set<std::string> names;
  for (const WorkspaceRequest& request : requests) {
    if (request.name.empty() || !names.insert(request.name).second) {
      return MakeError({.kind = ErrorKind::kInvalidArgument,
                        .object = absl::StrCat("workspace request ", packed.offsets.size())},
                       request.name.empty() ? "has no name" : "is a second " + request.name);
    }
    packed.offsets.push_back(packed.total_bytes);
    HOLDFAST_ASSIGN_OR_RETURN(packed.asked_bytes,
                              CheckedAdd(packed.asked_bytes, request.bytes, request.name));
    HOLDFAST_ASSIGN_OR_RETURN(const std::uint64_t above,
                              CheckedAdd(request.bytes, kScratchAlignment - 1, request.name));
    HOLDFAST_ASSIGN_OR_RETURN(
        packed.total_bytes,
        CheckedAdd(packed.total_bytes, AlignDown(above, kScratchAlignment), request.name));
  }
  return packed;
}

std::string DescribeRequests(const std::vector<WorkspaceRequest>& requests) {
  constexpr std::size_t kShown = 4;
  std::string text;
  for (std::size_t i = 0; i < requests.size() && i < kShown; ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", requests[i].name, " ", requests[i].bytes, " B");
  }
  if (requests.size() > kShown) absl::StrAppend(&text, ", and ", requests.size() - kShown, " more");
  return text;
}

}  // namespace holdfast
