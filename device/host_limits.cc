#include "device/host_limits.h"

#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>
#include <vector>

#include "device/bytes.h"

namespace holdfast {
namespace {

constexpr std::uint64_t kNoLimit = HostLimits::kNoLimit;

// Version 1 writes "no limit" as the largest signed number of whole pages.
constexpr std::uint64_t kLargestLimit = std::uint64_t{1} << 62;

std::optional<std::uint64_t> ParseNumber(const std::string& text) {
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

// The value after `key` in a file of "key value ..." lines; an empty key: the file's first word.
std::optional<std::uint64_t> ReadNumber(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string word;
    if (!key.empty() && (!(words >> word) || word != key)) continue;
    if (!(words >> word)) return std::nullopt;
    return ParseNumber(word);
  }
  return std::nullopt;
}

// One way of naming the files of a memory cgroup.
struct Version {
  bool is_v2;
  const char* limit;
  const char* used;
  const char* inactive_file;  // key in memory.stat, for the cgroup and all below it
};
constexpr Version kV2{true, "memory.max", "memory.current", "inactive_file"};
constexpr Version kV1{false, "memory.limit_in_bytes", "memory.usage_in_bytes",
                      "total_inactive_file"};

bool HasWord(const std::string& list, const std::string& wanted) {
  std::istringstream words(list);
  for (std::string word; std::getline(words, word, ',');) {
    if (word == wanted) return true;
  }
  return false;
}

// The process's place in the hierarchy, from lines "id:controllers:path"; version 2 is
// "0::path".
std::optional<std::string> OwnPath(const std::string& root, const Version& version) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool found = version.is_v2 ? line.substr(0, first) == "0" && controllers.empty()
                                     : HasWord(controllers, "memory");
    if (found) return line.substr(second + 1);
  }
  return std::nullopt;
}

struct Mount {
  std::string shown;  // the path inside the hierarchy that the mount point shows
  std::string point;
};

// Where the hierarchy is mounted, from lines "id parent device shown point options ... - type
// source super-options" (proc(5)).
std::optional<Mount> FindMount(const std::string& root, const Version& version) {
  std::ifstream file(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    Mount mount;
    std::string skipped, type, options;
    std::istringstream head(line.substr(0, dash));
    std::istringstream tail(line.substr(dash + 3));
    if (!(head >> skipped >> skipped >> skipped >> mount.shown >> mount.point)) continue;
    if (!(tail >> type >> skipped >> options)) continue;
    if (version.is_v2 ? type == "cgroup2" : type == "cgroup" && HasWord(options, "memory")) {
      return mount;
    }
  }
  return std::nullopt;
}

// The names from the mount point down to the process's cgroup. A path that the mount does not show
// (a container that sees only its own part) counts as the mount point itself.
std::vector<std::string> NamesBelow(const Mount& mount, std::string path) {
  if (mount.shown != "/") {
    if (path.rfind(mount.shown, 0) != 0) return {};
    path = path.substr(mount.shown.size());
  }
  std::vector<std::string> names;
  std::istringstream parts(path);
  for (std::string part; std::getline(parts, part, '/');) {
    if (part == "..") return {};
    if (!part.empty()) names.push_back(part);
  }
  return names;
}

std::uint64_t LeftIn(const std::string& folder, const Version& version) {
  const std::optional<std::uint64_t> limit = ReadNumber(folder + "/" + version.limit, "");
  if (!limit.has_value() || *limit >= kLargestLimit) return kNoLimit;
  const std::uint64_t used = ReadNumber(folder + "/" + version.used, "").value_or(0);
  const std::uint64_t inactive =
      ReadNumber(folder + "/memory.stat", version.inactive_file).value_or(0);
  const std::uint64_t kept = used - std::min(used, inactive);
  return *limit - std::min(*limit, kept);
}

std::uint64_t LeftInHierarchy(const std::string& root, const Version& version) {
  const std::optional<std::string> path = OwnPath(root, version);
  const std::optional<Mount> mount = FindMount(root, version);
  if (!path.has_value() || !mount.has_value()) return kNoLimit;
  std::string folder = root + mount->point;
  std::uint64_t left = LeftIn(folder, version);
  for (const std::string& name : NamesBelow(*mount, *path)) {
    folder += "/" + name;
    left = std::min(left, LeftIn(folder, version));
  }
  return left;
}

}  // namespace

HostLimits ReadHostLimits(const std::string& root) {
  HostLimits limits;
  const std::string meminfo = root + "/proc/meminfo";
  std::optional<std::uint64_t> kib = ReadNumber(meminfo, "MemAvailable:");
  if (!kib.has_value()) kib = ReadNumber(meminfo, "MemFree:");
  if (kib.has_value() && *kib < kLargestLimit / kKiB) limits.machine_available_bytes = *kib * kKiB;
  limits.cgroup_available_bytes = std::min(LeftInHierarchy(root, kV2), LeftInHierarchy(root, kV1));
  return limits;
}

}  // namespace holdfast
