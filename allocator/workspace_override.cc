#include "allocator/workspace_override.h"

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "device/error.h"
#include "device/parse.h"

namespace holdfast {

Environment ProcessEnvironment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return value;
  };
}

absl::StatusOr<WorkspaceOverride> ReadWorkspaceOverride(const Environment& environment) {
  WorkspaceOverride found;
  const std::optional<std::string> bytes = environment(kWorkspaceBytesVariable);
  if (bytes && !bytes->empty()) {
    HOLDFAST_ASSIGN_OR_RETURN(const std::int64_t size,
                              ParseByteSize(kWorkspaceBytesVariable, *bytes));
    if (size == 0) {
      return MakeError(
          {.kind = ErrorKind::kInvalidArgument, .object = kWorkspaceBytesVariable},
          absl::StrCat("is ", QuoteValue(*bytes), "; must be ", kByteSizeGrammar, ", and above 0"));
    }
    found.slot_bytes = static_cast<std::uint64_t>(size);
  }
  const std::optional<std::string> force = environment(kWorkspaceForceVariable);
  if (force && !force->empty()) {
    HOLDFAST_ASSIGN_OR_RETURN(found.force, ParseBool(kWorkspaceForceVariable, *force));
  }
  if (found.force && !found.slot_bytes) {
    return MakeError({.kind = ErrorKind::kInvalidArgument, .object = kWorkspaceForceVariable},
                     absl::StrCat("is ", QuoteValue(*force), ", but ", kWorkspaceBytesVariable,
                                  " is not set: there is nothing to force"));
  }
  return found;
}

}  // namespace holdfast
