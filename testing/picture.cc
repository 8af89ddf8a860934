#include "testing/picture.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace holdfast::testing {
namespace {

using Leaves = std::map<std::string, std::vector<Hash128>>;

absl::StatusOr<std::vector<Hash128>> HashRange(Subject& subject, AddressRange range) {
  const std::uint64_t count = (range.bytes + kHashLeafBytes - 1) / kHashLeafBytes;
  if (count == 0) return std::vector<Hash128>{};
  Device& device = subject.arena().device();
  HOLDFAST_ASSIGN_OR_RETURN(const HostBuffer room, device.AllocateHost(count * sizeof(Hash128)));
  auto* const leaves = reinterpret_cast<Hash128*>(room.data());
  HOLDFAST_RETURN_IF_ERROR(device.HashLeaves(subject.lane().stream(), range, leaves));
  HOLDFAST_RETURN_IF_ERROR(subject.lane().Synchronize());
  return std::vector<Hash128>(leaves, leaves + count);
}

// Of what is committed of the span.
absl::StatusOr<std::vector<Hash128>> HashSpan(Subject& subject, const SpanInfo& span, SpanId id) {
  const std::uint64_t bytes = std::min(span.range.bytes, subject.arena().committed_bytes(id));
  return HashRange(subject, {span.range.base, bytes});
}

// Of every leaf of `bytes` bytes that are all `value`.
std::vector<Hash128> HashesOfConstant(std::uint64_t bytes, std::byte value) {
  std::vector<Hash128> hashes;
  if (bytes >= kHashLeafBytes) {
    const std::vector<std::byte> leaf(kHashLeafBytes, value);
    hashes.assign(bytes / kHashLeafBytes, HashLeafOnHost(leaf.data(), leaf.size()));
  }
  if (const std::uint64_t rest = bytes % kHashLeafBytes; rest > 0) {
    const std::vector<std::byte> leaf(rest, value);
    hashes.push_back(HashLeafOnHost(leaf.data(), leaf.size()));
  }
  return hashes;
}

std::optional<std::string> LeafDifference(const Leaves& before, const Leaves& now) {
  for (const auto& [name, was] : before) {
    const auto is = now.find(name);
    if (is == now.end()) continue;  // asleep
    if (was.size() != is->second.size()) {
      return absl::StrCat(name, " has ", is->second.size(), " leaves, had ", was.size());
    }
    const auto other = std::mismatch(was.begin(), was.end(), is->second.begin());
    if (other.first == was.end()) continue;
    return absl::StrFormat("leaf %d of %s (from byte %d) holds other bytes than before",
                           other.first - was.begin(), name,
                           (other.first - was.begin()) * static_cast<std::int64_t>(kHashLeafBytes));
  }
  return std::nullopt;
}

}  // namespace

bool DeclaresContents(const SpanSpec& spec) {
  return IsDropped(spec) && spec.refill == nullptr &&
         spec.wake_contents != WakeContents::kUndefined;
}

bool IsKept(const SpanSpec& spec) { return !IsDropped(spec); }

absl::StatusOr<Picture> TakeStatePicture(Subject& subject) {
  Picture picture;
  Arena& arena = subject.arena();
  HOLDFAST_ASSIGN_OR_RETURN(const MemoryUse memory, arena.device().Memory());
  picture.own_bytes = memory.own_bytes;
  picture.gate_closed = arena.gate().closed();
  for (const std::string& tag : arena.tags()) picture.asleep[tag] = arena.asleep(tag);
  for (const SpanInfo& span : arena.spans()) {
    if (!span.spec.name.empty()) picture.addresses[span.spec.name] = span.range;
  }
  return picture;
}

absl::StatusOr<Picture> TakePicture(Subject& subject) {
  HOLDFAST_RETURN_IF_ERROR(subject.lane().Synchronize());
  HOLDFAST_ASSIGN_OR_RETURN(Picture picture, TakeStatePicture(subject));
  HOLDFAST_ASSIGN_OR_RETURN(picture.kept, subject.residency().HashKept());
  const std::vector<SpanInfo> spans = subject.arena().spans();
  for (std::uint32_t i = 0; i < spans.size(); ++i) {
    const SpanSpec& spec = spans[i].spec;
    if (spec.refill == nullptr || picture.asleep[spec.tag]) continue;
    HOLDFAST_ASSIGN_OR_RETURN(picture.refilled[spec.name], HashSpan(subject, spans[i], {i}));
  }
  return picture;
}

std::optional<std::string> StateDifference(const Picture& before, const Picture& now) {
  for (const auto& [tag, was] : before.asleep) {
    if (now.asleep.at(tag) != was) {
      return absl::StrCat(tag, was ? " is awake, was asleep" : " is asleep, was awake");
    }
  }
  if (now.own_bytes != before.own_bytes) {
    return absl::StrCat(now.own_bytes, " B of device memory are held, were ", before.own_bytes);
  }
  if (now.gate_closed != before.gate_closed) return std::string("the gate stayed closed");
  return std::nullopt;
}

std::optional<std::string> AddressDifference(const Picture& before, const Picture& now) {
  for (const auto& [name, was] : before.addresses) {
    const auto is = now.addresses.find(name);
    if (is == now.addresses.end()) return absl::StrCat(name, " is gone");
    if (is->second == was) continue;
    return absl::StrFormat("%s lies at 0x%x (%d bytes), was at 0x%x (%d bytes)", name,
                           is->second.base.value, is->second.bytes, was.base.value, was.bytes);
  }
  return std::nullopt;
}

std::optional<std::string> KeptDifference(const Picture& before, const Picture& now) {
  return LeafDifference(before.kept, now.kept);
}

std::optional<std::string> RefilledDifference(const Picture& before, const Picture& now) {
  return LeafDifference(before.refilled, now.refilled);
}

std::uint64_t LeavesOf(const Picture& picture) {
  std::uint64_t leaves = 0;
  for (const auto& [name, hashes] : picture.kept) leaves += hashes.size();
  for (const auto& [name, hashes] : picture.refilled) leaves += hashes.size();
  return leaves;
}

absl::StatusOr<std::optional<std::string>> DeclaredDifference(Subject& subject,
                                                              const std::vector<std::string>& tags,
                                                              std::uint64_t* counted) {
  const std::vector<SpanInfo> spans = subject.arena().spans();
  for (std::uint32_t i = 0; i < spans.size(); ++i) {
    const SpanSpec& spec = spans[i].spec;
    if (!DeclaresContents(spec)) continue;
    if (std::find(tags.begin(), tags.end(), spec.tag) == tags.end()) continue;
    HOLDFAST_ASSIGN_OR_RETURN(const std::vector<Hash128> now, HashSpan(subject, spans[i], {i}));
    const bool poison = spec.wake_contents == WakeContents::kPoison;
    const std::uint64_t bytes =
        std::min(spans[i].range.bytes, subject.arena().committed_bytes({i}));
    if (now != HashesOfConstant(bytes, poison ? std::byte{0xFF} : std::byte{0})) {
      return std::optional<std::string>(absl::StrCat(spec.name, " does not come back all ",
                                                     poison ? "0xFF" : "zero", ", as it declares"));
    }
    if (counted != nullptr) ++*counted;
  }
  return std::optional<std::string>();
}

}  // namespace holdfast::testing
