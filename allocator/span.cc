#include "allocator/span.h"

namespace holdfast {

const char* RoleName(Role role) {
  switch (role) {
    case Role::kImmutable: return "immutable";
    case Role::kMutable: return "mutable";
    case Role::kCache: return "cache";
    case Role::kScratch: return "scratch";
  }
  return "unknown role";
}

}  // namespace holdfast
