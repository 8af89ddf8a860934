// What the environment may say about the workspace. One grammar, that of device/parse.h:
//
//   HOLDFAST_WORKSPACE_BYTES=256MiB   the bytes of each slot. Below the declared need: refused,
//   with
//                                     both figures; above it: taken
//   HOLDFAST_WORKSPACE_FORCE=1        takes HOLDFAST_WORKSPACE_BYTES even below the need. What then
//                                     does not fit fails call by call
//
// Unset or empty: nothing is overridden.
#ifndef HOLDFAST_ALLOCATOR_WORKSPACE_OVERRIDE_H_
#define HOLDFAST_ALLOCATOR_WORKSPACE_OVERRIDE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace holdfast {

inline constexpr char kWorkspaceBytesVariable[] = "HOLDFAST_WORKSPACE_BYTES";
inline constexpr char kWorkspaceForceVariable[] = "HOLDFAST_WORKSPACE_FORCE";

// The value of a variable; nullopt if it is not set. Tests give their own.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
Environment ProcessEnvironment();

// A value in effect and where it comes from, for a log: the library itself never prints.
struct EffectiveSetting {
  std::string name;    // "HOLDFAST_WORKSPACE_BYTES"
  std::string value;   // "268435456"
  std::string origin;  // "environment", "declared need"
};
using SettingSink = std::function<void(const EffectiveSetting&)>;

struct WorkspaceOverride {
  std::optional<std::uint64_t> slot_bytes;
  bool force = false;
};
// kInvalidArgument naming variable, value and grammar; also for a size of 0, and for force without
// a size.
absl::StatusOr<WorkspaceOverride> ReadWorkspaceOverride(const Environment& environment);

}  // namespace holdfast

#endif  // HOLDFAST_ALLOCATOR_WORKSPACE_OVERRIDE_H_
