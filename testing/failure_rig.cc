#include "testing/failure_rig.h"

#include <chrono>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "device/bytes.h"

namespace holdfast::testing {
namespace {

constexpr std::chrono::seconds kDeadline{30};
constexpr std::uint64_t kSpanBytes = 64 * kKiB;  // written and compared; the rest of a chunk is not

Role RoleOf(const std::string& name) {
  if (name == "mutable") return Role::kMutable;
  if (name == "cache") return Role::kCache;
  if (name == "scratch") return Role::kScratch;
  return Role::kImmutable;  // immutable, refilled
}

std::vector<std::byte> ContentsOf(std::uint64_t seed) {
  std::vector<std::byte> bytes(kSpanBytes);
  for (std::uint64_t at = 0; at < bytes.size(); at += 8) {
    const std::uint64_t word = HashMix(seed + at);
    std::memcpy(bytes.data() + at, &word, 8);
  }
  return bytes;
}

}  // namespace

absl::StatusOr<std::unique_ptr<FailureRig>> FailureRig::Create(Device& device,
                                                               const std::string& role,
                                                               std::uint64_t seed) {
  std::unique_ptr<FailureRig> rig(new FailureRig(device));
  HOLDFAST_RETURN_IF_ERROR(rig->Build(role, seed));
  return rig;
}

FailureRig::~FailureRig() {
  residency_.reset();
  stream_.reset();
  arena_.reset();
}

absl::Status FailureRig::Build(const std::string& role, std::uint64_t seed) {
  const std::uint64_t g = device_.info().granularity;
  std::vector<std::string> roles = {role};
  if (role == "all together") {
    roles.assign(FailureRoles().begin(), std::prev(FailureRoles().end()));
  }
  std::vector<GroupSpec> groups;
  for (const std::string& r : roles) {
    groups.push_back({.tag = r,
                      .role = RoleOf(r),
                      .extent_bytes = 2 * g,
                      .chunk_bytes = g,
                      .refilled = r == "refilled"});
    tags_.push_back(r);
  }
  HOLDFAST_ASSIGN_OR_RETURN(
      arena_,
      Arena::Create(device_, {.name = "failures", .groups = groups, .candidate_bases = {}}));
  HOLDFAST_ASSIGN_OR_RETURN(stream_, device_.CreateStream("failures"));
  HOLDFAST_ASSIGN_OR_RETURN(room_, device_.AllocateHost(kSpanBytes));
  for (const std::string& r : roles) HOLDFAST_RETURN_IF_ERROR(AddRole(r, seed));
  arena_->Lock();
  HOLDFAST_ASSIGN_OR_RETURN(residency_, Residency::Create(*arena_));
  return absl::OkStatus();
}

absl::Status FailureRig::AddRole(const std::string& role, std::uint64_t seed) {
  for (int i = 0; i < 2; ++i) {
    SpanSpec spec{.name = absl::StrCat(role, i),
                  .tag = role,
                  .role = RoleOf(role),
                  .bytes = kSpanBytes,
                  .alignment = device_.info().granularity,  // a chunk each
                  .owner = "failures"};
    if (role == "cache" && i == 1) spec.wake_contents = WakeContents::kPoison;
    if (role == "scratch") spec.wake_contents = WakeContents::kUndefined;
    Part part{.written = ContentsOf(seed + (parts_.size() + 1) * kSpanBytes)};
    if (role == "refilled") {
      spec.wake_contents = WakeContents::kUndefined;
      spec.refill = [this, bytes = part.written](Device& device, Stream& to, AddressRange span) {
        std::memcpy(room_.data(), bytes.data(), bytes.size());
        HOLDFAST_RETURN_IF_ERROR(device.CopyToDevice(to, span.base, room_.data(), bytes.size()));
        return device.Synchronize(to);
      };
    }
    part.spec = spec;
    HOLDFAST_ASSIGN_OR_RETURN(part.id, arena_->Reserve(spec));
    HOLDFAST_RETURN_IF_ERROR(arena_->Commit(part.id));
    HOLDFAST_RETURN_IF_ERROR(Write(arena_->range(part.id), part.written));
    if (role == "scratch") part.written.clear();
    parts_.push_back(std::move(part));
  }
  return role == "immutable" ? arena_->Seal(role) : absl::OkStatus();
}

absl::Status FailureRig::Write(const AddressRange& range, const std::vector<std::byte>& bytes) {
  std::memcpy(room_.data(), bytes.data(), bytes.size());
  HOLDFAST_RETURN_IF_ERROR(device_.CopyToDevice(*stream_, range.base, room_.data(), bytes.size()));
  return device_.Synchronize(*stream_);
}

absl::Status FailureRig::Sleep() {
  return residency_->Sleep(tags_, std::chrono::steady_clock::now() + kDeadline).status();
}

absl::Status FailureRig::Wake() { return residency_->Wake(tags_).status(); }

absl::Status FailureRig::Rewrite(std::uint64_t seed) {
  for (Part& part : parts_) {
    if (part.spec.role != Role::kMutable && part.spec.role != Role::kCache) continue;
    part.written = ContentsOf(seed);
    seed += kSpanBytes;
    HOLDFAST_RETURN_IF_ERROR(Write(arena_->range(part.id), part.written));
  }
  return absl::OkStatus();
}

absl::StatusOr<FailureRig::Look> FailureRig::LookAround() {
  Look look;
  HOLDFAST_ASSIGN_OR_RETURN(const MemoryUse memory, device_.Memory());
  look.own_bytes = memory.own_bytes;
  look.gate_closed = arena_->gate().closed();
  for (const std::string& tag : tags_) look.asleep.push_back(residency_->asleep(tag));
  for (const Part& part : parts_) look.addresses.push_back(arena_->range(part.id));
  return look;
}

absl::StatusOr<FailureRig::ContentsFound> FailureRig::CheckContents(bool dropped_gone) {
  ContentsFound found;
  for (const Part& part : parts_) {
    if (part.written.empty()) continue;
    HOLDFAST_RETURN_IF_ERROR(
        device_.CopyToHost(*stream_, room_.data(), arena_->range(part.id).base, kSpanBytes));
    HOLDFAST_RETURN_IF_ERROR(device_.Synchronize(*stream_));
    const bool cache = part.spec.role == Role::kCache;
    const bool as_written = std::memcmp(room_.data(), part.written.data(), kSpanBytes) == 0;
    if (as_written && !(cache && dropped_gone)) continue;
    const std::byte value{part.spec.wake_contents == WakeContents::kPoison ? std::uint8_t{0xFF}
                                                                           : std::uint8_t{0}};
    const std::vector<std::byte> declared(kSpanBytes, value);
    if (cache && std::memcmp(room_.data(), declared.data(), kSpanBytes) == 0) {
      found.contents = Contents::kAsDeclared;
      continue;
    }
    return ContentsFound{Contents::kOther, part.spec.name};
  }
  return found;
}

absl::Status FailureRig::LoseBytes() {
  for (Part& part : parts_) {
    if (part.spec.role != Role::kMutable) continue;
    return Write(arena_->range(part.id), std::vector<std::byte>(8, std::byte{0x5A}));
  }
  return absl::OkStatus();
}

}  // namespace holdfast::testing
