#include "device/node_view.h"

namespace holdfast {

const char* NodeKindName(NodeKind kind) {
  switch (kind) {
    case NodeKind::kKernel: return "kernel";
    case NodeKind::kCopy: return "copy";
    case NodeKind::kFill: return "fill";
    case NodeKind::kMemoryOperation: return "memory operation";
    case NodeKind::kHost: return "host";
    case NodeKind::kEmpty: return "empty";
    case NodeKind::kEvent: return "event";
    case NodeKind::kSemaphore: return "semaphore";
    case NodeKind::kAllocation: return "allocation";
    case NodeKind::kFree: return "free";
    case NodeKind::kConditional: return "conditional";
    case NodeKind::kChild: return "child";
    case NodeKind::kUnreadable: return "unreadable";
  }
  return "unknown";
}

}  // namespace holdfast
