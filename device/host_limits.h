// How much host memory this process can still have: what the machine says is available, and what
// the memory limits of its cgroup and of every cgroup above leave.
#ifndef HOLDFAST_DEVICE_HOST_LIMITS_H_
#define HOLDFAST_DEVICE_HOST_LIMITS_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

namespace holdfast {

struct HostLimits {
  static constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

  // What the kernel can give without swapping (MemAvailable; MemFree where that is missing).
  // Never MemTotal: most of that is in use.
  std::uint64_t machine_available_bytes = kNoLimit;
  // The least, over the process's memory cgroup and its ancestors, of the limit less what is used,
  // where file pages the kernel would drop first (inactive_file) do not count as used.
  std::uint64_t cgroup_available_bytes = kNoLimit;

  std::uint64_t available_bytes() const {
    return std::min(machine_available_bytes, cgroup_available_bytes);
  }
  // Which of the two binds, as errors name it.
  const char* binding() const {
    return cgroup_available_bytes < machine_available_bytes ? "cgroup memory limit" : "machine";
  }
};

// Reads below `root` ("/" but for tests): proc/meminfo, proc/self/cgroup, proc/self/mountinfo, and
// the files of cgroup v2 and v1 where they are mounted. What is missing or unreadable limits
// nothing: an allocation then fails by itself. Takes some tens of microseconds.
HostLimits ReadHostLimits(const std::string& root = "/");

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_HOST_LIMITS_H_
