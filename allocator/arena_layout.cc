#include "allocator/arena_layout.h"

#include <iterator>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "device/bytes.h"
#include "device/error.h"

#if defined(__SANITIZE_THREAD__)
#define HOLDFAST_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HOLDFAST_THREAD_SANITIZER 1
#endif
#endif

namespace holdfast {
namespace {

// Where a sanitizer's runtime leaves room: gcc's thread sanitizer keeps its heap at 0x7b.. and its
// shadow over the usual candidates, and maps nothing fixed just below the libraries; other runtimes
// leave the second one free.
[[maybe_unused]] constexpr DeviceAddress kSanitizerBases[] = {{0x7ed5'4000'0000},
                                                              {0x7b5d'4000'0000}};

absl::Status CheckGroup(const GroupSpec& spec) {
  if (spec.tag.empty()) {
    return MakeError({.kind = ErrorKind::kInvalidArgument, .object = "group"}, "empty tag");
  }
  if (spec.extent_bytes == 0) {
    return MakeError({.kind = ErrorKind::kInvalidArgument, .object = GroupName(spec)},
                     "empty extent");
  }
  if (spec.chunk_bytes == 0) {
    return MakeError({.kind = ErrorKind::kInvalidArgument, .object = GroupName(spec)},
                     "chunks of zero bytes");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::uint64_t> RoundUp(std::uint64_t bytes, std::uint64_t granularity,
                                      const std::string& what) {
  HOLDFAST_RETURN_IF_ERROR(CheckedAdd(bytes, granularity, what).status());
  return AlignUp(bytes, granularity);
}

// Gives back a reservation that came at the wrong place.
void FreeReservation(Device& device, AddressRange range) {
  // Twice: nobody could use the leftover, and a failure injected by a test fires once.
  if (!device.FreeAddress(range).ok()) device.FreeAddress(range).IgnoreError();
}

}  // namespace

std::vector<DeviceAddress> DefaultCandidateBases() {
  const std::vector<DeviceAddress> usual = {
      {0x2b5d'4000'0000}, {0x2d37'4000'0000}, {0x3b91'4000'0000}};
  std::vector<DeviceAddress> bases;
#if defined(HOLDFAST_THREAD_SANITIZER)
  bases.insert(bases.end(), std::begin(kSanitizerBases), std::end(kSanitizerBases));
#endif
  bases.insert(bases.end(), usual.begin(), usual.end());
#if defined(__SANITIZE_ADDRESS__) && !defined(HOLDFAST_THREAD_SANITIZER)
  bases.insert(bases.end(), std::begin(kSanitizerBases), std::end(kSanitizerBases));
#endif
  return bases;
}

std::string GroupName(const GroupSpec& spec) {
  return absl::StrCat(spec.tag, "/", RoleName(spec.role), spec.part.empty() ? "" : "/", spec.part);
}

absl::StatusOr<GroupLayout> LayOutGroups(const std::vector<GroupSpec>& specs,
                                         std::uint64_t granularity) {
  if (specs.empty()) {
    return MakeError({.kind = ErrorKind::kInvalidArgument, .object = "arena"}, "no groups");
  }
  std::set<std::tuple<std::string, Role, bool, std::string>> seen;
  GroupLayout layout;
  for (GroupSpec spec : specs) {
    HOLDFAST_RETURN_IF_ERROR(CheckGroup(spec));
    if (spec.role == Role::kCache || spec.role == Role::kScratch) spec.refilled = false;
    if (!seen.emplace(spec.tag, spec.role, spec.refilled, spec.part).second) {
      return MakeError({.kind = ErrorKind::kInvalidArgument, .object = GroupName(spec)},
                       "group named twice");
    }
    const std::string name = GroupName(spec);
    HOLDFAST_ASSIGN_OR_RETURN(spec.chunk_bytes, RoundUp(spec.chunk_bytes, granularity, name));
    HOLDFAST_ASSIGN_OR_RETURN(const std::uint64_t extent,
                              RoundUp(spec.extent_bytes, granularity, name));
    const std::uint64_t start = layout.groups.empty() ? 0 : layout.window_bytes + granularity;
    HOLDFAST_ASSIGN_OR_RETURN(layout.window_bytes, CheckedAdd(start, extent, name));
    ArenaGroup group;
    group.spec = std::move(spec);
    group.extent = {DeviceAddress{start}, extent};
    layout.groups.push_back(std::move(group));
    HOLDFAST_RETURN_IF_ERROR(CheckedAdd(layout.window_bytes, granularity, name).status());
  }
  return layout;
}

absl::StatusOr<Window> ReserveWindow(Device& device, const std::string& arena, std::uint64_t bytes,
                                     const std::vector<DeviceAddress>& candidates) {
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const absl::StatusOr<AddressRange> got = device.ReserveAddress(bytes, candidates[i]);
    if (!got.ok()) continue;  // taken, or refused: the next one
    if (got->base == candidates[i]) return Window{*got, static_cast<int>(i)};
    FreeReservation(device, *got);  // a driver moves a hint silently
  }
  const absl::StatusOr<AddressRange> got = device.ReserveAddress(bytes, DeviceAddress{});
  if (got.ok()) return Window{*got, -1};
  return MakeError({.kind = ErrorKind::kAddressTaken, .object = arena, .need = bytes},
                   absl::StrCat("cannot reserve a window of ", FormatBytes(bytes), " at any of ",
                                candidates.size(),
                                " candidate bases or anywhere else: ", got.status().message()));
}

}  // namespace holdfast
