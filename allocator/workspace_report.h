// Who asked how much of the workspace: what the ledger, the plan and people read.
#ifndef HOLDFAST_ALLOCATOR_WORKSPACE_REPORT_H_
#define HOLDFAST_ALLOCATOR_WORKSPACE_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "allocator/arena.h"
#include "allocator/workspace_request.h"
#include "device/dtype.h"

namespace holdfast {

// What a user said it will need at most, in every slot.
struct DeclaredUse {
  std::string user;
  std::vector<WorkspaceRequest> requests;
  std::uint64_t asked_bytes = 0;   // their sum
  std::uint64_t packed_bytes = 0;  // as they lie in a slot
};

// What a user really asked of a slot.
struct MeasuredUse {
  std::string user;
  WorkspaceSlot slot;
  std::uint64_t calls = 0;         // that got a lease
  std::uint64_t refused = 0;       // that did not
  std::uint64_t asked_bytes = 0;   // the most of one call
  std::uint64_t packed_bytes = 0;  // the same, as it lies in the slot
};

struct SlotUse {
  WorkspaceSlot slot;
  SpanId span;
  std::string name;                    // of the span
  std::uint64_t extent_bytes = 0;      // address space
  std::uint64_t bytes = 0;             // what requests may take in all: the need, unrounded
  std::uint64_t committed_bytes = 0;   // of it, what has pages
  std::uint64_t high_water_bytes = 0;  // the most that one call took
  std::string largest_user;            // whose that was
};

struct PersistentUse {
  std::string user, key;
  WorkspaceSlot slot;
  DType type = DType::kU8;
  std::vector<std::int64_t> shape;
  SpanId span;
  std::uint64_t bytes = 0;
};

struct WorkspaceReport {
  bool locked = false;
  std::vector<SlotUse> slots;
  std::vector<DeclaredUse> declared;      // by user
  std::vector<MeasuredUse> measured;      // by user and slot
  std::vector<PersistentUse> persistent;  // by slot and key

  // All of it: every slot's bytes and every persistent resource.
  std::uint64_t budget_bytes() const;
};

}  // namespace holdfast

#endif  // HOLDFAST_ALLOCATOR_WORKSPACE_REPORT_H_
