// The arena of a plug-in's spans, and the guards behind them.
#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "device/bytes.h"
#include "testing/plugin_subject.h"

namespace holdfast::testing {
namespace {

constexpr std::uint64_t kGuardBytes = 4 * kKiB;
constexpr std::uint8_t kGuardByte = 0xA5;
constexpr std::uint64_t kManyChunks = 64;  // small groups have small chunks, so that there are some
constexpr std::uint64_t kLargeChunk = 256 * kMiB;

}  // namespace

absl::Status PluginSubject::MakeArena() {
  const std::uint64_t g = device_.info().granularity;
  std::map<std::tuple<std::string, Role, bool>, std::uint64_t> extents;
  std::uint64_t all = 0;
  for (const PluginSpan& span : plugin_->spans()) {
    // Sizes are bounded by the table's check: 4096 spans of 4 TiB do not overflow.
    const std::uint64_t bytes = span.spec.bytes + span.spec.alignment + 2 * kGuardBytes;
    extents[{span.spec.tag, span.spec.role, span.refilled}] += bytes;
    all += bytes;
  }
  if (all > device_.info().capacity_bytes) {
    return MakeError({.kind = ErrorKind::kOutOfMemory,
                      .object = name(),
                      .need = all,
                      .have = device_.info().capacity_bytes},
                     "its spans are larger than the device");
  }
  ArenaOptions options{.name = "plug-in", .groups = {}, .candidate_bases = {}};
  for (const auto& [group, bytes] : extents) {
    const auto& [tag, role, refilled] = group;
    const std::uint64_t extent = AlignUp(bytes, g);
    options.groups.push_back({.tag = tag,
                              .role = role,
                              .extent_bytes = extent,
                              .chunk_bytes = extent <= kManyChunks * g ? g : kLargeChunk,
                              .refilled = refilled});
  }
  HOLDFAST_ASSIGN_OR_RETURN(arena_, Arena::Create(device_, std::move(options)));
  HOLDFAST_ASSIGN_OR_RETURN(residency_, Residency::Create(*arena_));
  HOLDFAST_ASSIGN_OR_RETURN(lane_, Lane::Create(*arena_, "plug-in"));
  HOLDFAST_ASSIGN_OR_RETURN(io_, SpanIo::Create(*arena_, 256 * kKiB));
  return absl::OkStatus();
}

absl::Status PluginSubject::ReserveSpans() {
  for (std::size_t i = 0; i < plugin_->spans().size(); ++i) {
    const PluginSpan& declared = plugin_->spans()[i];
    SpanSpec spec = declared.spec;
    SpanSpec guard{.name = spec.name + " (guard)",
                   .tag = spec.tag,
                   .role = spec.role,
                   .bytes = kGuardBytes,
                   .owner = "guards",
                   .refill = {}};
    if (declared.refilled) {
      HOLDFAST_ASSIGN_OR_RETURN(rooms_[i], device_.AllocateHost(spec.bytes));
      spec.refill = [this, i](Device&, Stream& stream, AddressRange range) {
        return RefillSpan(i, stream, range);
      };
      // Shares its span's group, where everything has a hook; it comes back as it was.
      guard.refill = [](Device& device, Stream& stream, AddressRange range) {
        return device.Fill(stream, range.base, kGuardByte, range.bytes);
      };
    }
    HOLDFAST_ASSIGN_OR_RETURN(const SpanId id, arena_->Reserve(std::move(spec)));
    spans_.push_back(id);
    HOLDFAST_ASSIGN_OR_RETURN(const SpanId behind, arena_->Reserve(std::move(guard)));
    guards_.push_back(behind);
  }
  for (const std::string& tag : arena_->tags()) HOLDFAST_RETURN_IF_ERROR(arena_->CommitTag(tag));
  return absl::OkStatus();
}

AddressRange PluginSubject::GuardOf(std::size_t span) const {
  const AddressRange declared = arena_->range(spans_[span]);
  const AddressRange guard = arena_->range(guards_[span]);
  return {.base = declared.end(), .bytes = guard.end() - declared.end()};
}

absl::Status PluginSubject::FillGuards() {
  for (std::size_t i = 0; i < spans_.size(); ++i) {
    const AddressRange guard = GuardOf(i);
    HOLDFAST_RETURN_IF_ERROR(device_.Fill(lane_->stream(), guard.base, kGuardByte, guard.bytes));
  }
  return lane_->Synchronize();
}

absl::Status PluginSubject::CheckGuards() {
  HOLDFAST_ASSIGN_OR_RETURN(const HostBuffer room,
                            device_.AllocateHost(kGuardBytes + device_.info().granularity));
  for (std::size_t i = 0; i < spans_.size(); ++i) {
    const AddressRange guard = GuardOf(i);
    HOLDFAST_RETURN_IF_ERROR(
        device_.CopyToHost(lane_->stream(), room.data(), guard.base, guard.bytes));
    HOLDFAST_RETURN_IF_ERROR(lane_->Synchronize());
    const std::byte* const end = room.data() + guard.bytes;
    const std::byte* const changed =
        std::find_if(static_cast<const std::byte*>(room.data()), end,
                     [](std::byte b) { return b != std::byte{kGuardByte}; });
    if (changed == end) continue;
    const SpanSpec& spec = plugin_->spans()[i].spec;
    const auto past = static_cast<std::uint64_t>(changed - room.data());
    return MakeError({.kind = ErrorKind::kForeignPointer,
                      .object = spec.name,
                      .need = spec.bytes + past + 1,
                      .have = spec.bytes},
                     "a step writes behind the declared end of this span");
  }
  return absl::OkStatus();
}

absl::Status PluginSubject::WriteContents() {
  for (std::size_t i = 0; i < spans_.size(); ++i) {
    const PluginSpan& span = plugin_->spans()[i];
    if (span.spec.role == Role::kScratch && !span.undefined) continue;
    HOLDFAST_RETURN_IF_ERROR(
        WriteSpan(i, std::numeric_limits<std::uint32_t>::max(), options_.seed, false));
  }
  for (const std::string& tag : arena_->tags()) {
    const absl::Status sealed = arena_->Seal(tag);
    if (!sealed.ok() && !IsErrorKind(sealed, ErrorKind::kNotFound)) return sealed;
  }
  return absl::OkStatus();
}

}  // namespace holdfast::testing
