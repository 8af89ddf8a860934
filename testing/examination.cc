#include "testing/examination.h"

#include <algorithm>
#include <chrono>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace holdfast::testing {
namespace {

constexpr std::chrono::seconds kSleepDeadline{60};

// Of a group by its name, "tag/role".
bool IsImmutable(const std::string& group) {
  return absl::EndsWith(group, absl::StrCat("/", RoleName(Role::kImmutable)));
}

}  // namespace

std::optional<Proof> OwnerOf(const absl::Status& status) {
  const std::optional<ErrorInfo> info = GetErrorInfo(status);
  if (!info.has_value()) return std::nullopt;
  switch (info->kind) {
    case ErrorKind::kCorrupted:
    case ErrorKind::kMisplaced: return Proof::kKeptBytes;
    case ErrorKind::kUndefinedContents: return Proof::kDroppedBytes;
    case ErrorKind::kDeviceLost: return Proof::kNoEarlyUnmap;
    case ErrorKind::kForeignPointer:
    case ErrorKind::kUnauditable: return Proof::kPointers;
    default: return std::nullopt;
  }
}

Examination::Examination(Subject& subject, const BatteryOptions& options, Fault plant)
    : subject_(subject), options_(options), plant_(plant) {
  absl::StatusOr<Outputs> golden = subject_.Run({.seed = options_.seed});
  golden_status_ = golden.status();
  if (golden.ok()) golden_ = *std::move(golden);
  if (golden_status_.ok()) {
    absl::StatusOr<Picture> start = TakePicture(subject_);
    golden_status_ = start.status();
    if (start.ok()) start_ = *std::move(start);
  }
  // State changes as the program runs; what is sealed does not.
  for (auto group = start_.kept.begin(); group != start_.kept.end();) {
    group = IsImmutable(group->first) ? std::next(group) : start_.kept.erase(group);
  }
  PlantInTransitions(/*swap=*/false);
}

void Examination::PlantInTransitions(bool swap) {
  subject_.residency().PlantFaults({.swap_chunks = swap,
                                    .flip_bit = planted(Fault::kFlippedBit),
                                    .skip_refill = planted(Fault::kLostRefresh),
                                    .unmap_early = planted(Fault::kEarlyUnmap),
                                    .trust_stale = planted(Fault::kStaleBackup)});
}

void Examination::Begin(Proof proof) {
  proof_ = proof;
  own_.clear();
  others_.clear();
  counts_.clear();
  notes_.clear();
  skip_.clear();
}

void Examination::Find(Proof owner, const std::string& what) {
  if (owner == proof_) {
    own_.push_back(what);
  } else {
    others_.emplace_back(owner, what);
  }
}

bool Examination::Ok(const absl::Status& status, const std::string& doing) {
  if (status.ok()) return true;
  const std::optional<ErrorInfo> info = GetErrorInfo(status);
  if (planted(Fault::kSwappedChunks) && info.has_value() &&
      info->kind == ErrorKind::kInvalidArgument && info->object == "swap chunks") {
    cannot_plant_ = std::string(status.message());
  }
  Find(OwnerOf(status).value_or(proof_), absl::StrCat(doing, ": ", std::string(status.message())));
  return false;
}

bool Examination::Same(Proof owner, const std::optional<std::string>& difference,
                       const std::string& when) {
  if (!difference.has_value()) return true;
  Find(owner, absl::StrCat(when, ": ", *difference));
  return false;
}

ProofResult Examination::End() {
  ProofResult result{.proof = proof_};
  if (!own_.empty()) {
    result.verdict = Verdict::kFails;
    result.detail = own_.front();
    if (own_.size() > 1) absl::StrAppend(&result.detail, " (and ", own_.size() - 1, " more)");
  } else if (!others_.empty()) {
    result.verdict = Verdict::kBlocked;
    result.blocked_by = others_.front().first;
    result.detail = others_.front().second;
  } else if (!skip_.empty()) {
    result.verdict = Verdict::kSkipped;
    result.detail = skip_;
  } else {
    result.verdict = Verdict::kHolds;
    std::vector<std::string> parts;
    for (const auto& [what, n] : counts_) parts.push_back(absl::StrCat(n, " ", what));
    parts.insert(parts.end(), notes_.begin(), notes_.end());
    result.detail = absl::StrJoin(parts, ", ");
  }
  return result;
}

bool Examination::Ready() {
  if (!AllAwake()) return false;
  const absl::StatusOr<Picture> now = Look(/*contents=*/true);
  if (!Ok(now, "looking")) return false;
  const bool same = Same(Proof::kKeptBytes, KeptDifference(start_, *now), "since the start");
  return Same(Proof::kDroppedBytes, RefilledDifference(start_, *now), "since the start") && same;
}

bool Examination::AllAwake() {
  if (!Ok(golden_status_, "the first run")) return false;
  if (!Ok(subject_.lane().Synchronize(), "waiting for the lane")) return false;
  const std::vector<std::string> tags = all_tags();
  const bool asleep = std::any_of(tags.begin(), tags.end(),
                                  [this](const std::string& tag) { return arena().asleep(tag); });
  return !asleep || Wake(tags);
}

bool Examination::Sleep(const std::vector<std::string>& tags, TransitionReport* report) {
  absl::StatusOr<TransitionReport> slept =
      subject_.Sleep(tags, std::chrono::steady_clock::now() + kSleepDeadline);
  if (!Ok(slept, absl::StrCat("sleep ", absl::StrJoin(tags, ",")))) return false;
  if (report != nullptr) *report = *std::move(slept);
  return true;
}

bool Examination::Wake(const std::vector<std::string>& tags, bool refill) {
  const std::string doing = absl::StrCat("wake ", absl::StrJoin(tags, ","));
  // Two pieces to exchange are there when all come back, if ever.
  const std::vector<std::string> all = all_tags();
  const bool swap = planted(Fault::kSwappedChunks) && tags == all &&
                    std::all_of(all.begin(), all.end(),
                                [this](const std::string& tag) { return arena().asleep(tag); });
  if (swap) PlantInTransitions(swap);
  const absl::Status woken = subject_.Wake(tags).status();
  if (swap) PlantInTransitions(/*swap=*/false);
  if (!Ok(woken, doing)) return false;
  woken_ = true;
  return !refill || Ok(subject_.Refill(), "refill");
}

std::optional<SpanId> Examination::SpoiltSpan(const std::vector<std::string>& tags) {
  const bool kept = planted(Fault::kLostBytes);
  if (!kept && !planted(Fault::kDirtyDrop)) return std::nullopt;
  return FirstSpan([&](const SpanSpec& spec) {
    return (kept ? IsKept(spec) : DeclaresContents(spec)) &&
           std::find(tags.begin(), tags.end(), spec.tag) != tags.end();
  });
}

bool Examination::CompareAwake(const Picture& before, const std::vector<std::string>& tags) {
  const std::string when = absl::StrCat("after ", absl::StrJoin(tags, ","), " woke");
  const absl::StatusOr<Picture> now = Look(/*contents=*/true);
  if (!Ok(now, "looking after wake")) return false;
  const absl::StatusOr<std::optional<std::string>> other =
      DeclaredDifference(subject_, tags, nullptr);
  if (!Ok(other, "looking at dropped contents")) return false;
  bool same = Same(Proof::kAddresses, AddressDifference(before, *now), when);
  same = Same(Proof::kKeptBytes, KeptDifference(before, *now), when) && same;
  same = Same(Proof::kDroppedBytes, RefilledDifference(before, *now), when) && same;
  return Same(Proof::kDroppedBytes, *other, when) && same;
}

bool Examination::Cycle(const std::vector<std::string>& tags, const std::function<bool()>& asleep) {
  const absl::StatusOr<Picture> before = Look(/*contents=*/true);
  if (!Ok(before, "looking before sleep") || !Sleep(tags)) return false;
  if (asleep && !asleep()) return false;
  if (!Wake(tags)) return false;
  const std::optional<SpanId> spoilt = SpoiltSpan(tags);
  std::byte good{};
  if (spoilt.has_value()) {
    const absl::StatusOr<std::byte> was = FirstByte(*spoilt);
    if (!Ok(was, "planting the fault")) return false;
    good = *was;
    if (!Ok(SetFirstByte(*spoilt, ~good), "planting the fault")) return false;
  }
  const bool same = CompareAwake(*before, tags);
  if (spoilt.has_value() && !Ok(SetFirstByte(*spoilt, good), "taking the fault back")) return false;
  Count("cycles");
  return same;
}

bool Examination::Run(const RunRequest& request, Outputs* outputs) {
  absl::StatusOr<Outputs> now = subject_.Run(request);
  if (!Ok(now, "run")) return false;
  if (woken_ && planted(Fault::kOtherOutput) && !now->empty() && !now->begin()->second.empty()) {
    now->begin()->second.front() ^= std::byte{1};
  }
  if (outputs != nullptr) *outputs = *std::move(now);
  return true;
}

absl::StatusOr<Picture> Examination::Look(bool contents) {
  absl::StatusOr<Picture> picture = contents ? TakePicture(subject_) : TakeStatePicture(subject_);
  if (picture.ok() && woken_ && planted(Fault::kMovedSpan) && !picture->addresses.empty()) {
    AddressRange& range = picture->addresses.begin()->second;
    range.base = range.base + device().info().granularity;
  }
  return picture;
}

bool Examination::ScribbleOverFreed() {
  if (!options_.scribble) return true;
  if (neighbour_ == nullptr) {
    absl::StatusOr<std::unique_ptr<Neighbour>> started = StartNeighbour();
    if (!Ok(started, "starting the scribbler")) return false;
    neighbour_ = *std::move(started);
  }
  const std::uint64_t bytes = CycleDriver(subject_, {}).freed_bytes();
  if (!Ok(neighbour_->Take(bytes), "scribbling") ||
      !Ok(neighbour_->Release(), "giving scribbled memory back")) {
    return false;
  }
  Count("bytes scribbled over", bytes);
  return true;
}

absl::StatusOr<std::unique_ptr<Neighbour>> Examination::StartNeighbour() {
  HOLDFAST_ASSIGN_OR_RETURN(const ScribblerProgram program, FindScribbler(options_.scribbler));
  return Neighbour::Start(program, device().info().spec);
}

absl::StatusOr<std::byte> Examination::FirstByte(SpanId id) {
  HOLDFAST_ASSIGN_OR_RETURN(const HostBuffer room, device().AllocateHost(1));
  HOLDFAST_RETURN_IF_ERROR(
      device().CopyToHost(subject_.lane().stream(), room.data(), arena().range(id).base, 1));
  HOLDFAST_RETURN_IF_ERROR(subject_.lane().Synchronize());
  return *room.data();
}

absl::Status Examination::SetFirstByte(SpanId id, std::byte value) {
  const SpanInfo span = arena().span(id);
  HOLDFAST_ASSIGN_OR_RETURN(const HostBuffer room, device().AllocateHost(1));
  *room.data() = value;
  const bool sealed = span.spec.role == Role::kImmutable;
  if (sealed) HOLDFAST_RETURN_IF_ERROR(arena().Unseal(span.spec.tag));
  HOLDFAST_RETURN_IF_ERROR(
      device().CopyToDevice(subject_.lane().stream(), span.range.base, room.data(), 1));
  HOLDFAST_RETURN_IF_ERROR(subject_.lane().Synchronize());
  return sealed ? arena().Seal(span.spec.tag) : absl::OkStatus();
}

std::optional<SpanId> Examination::FirstSpan(const std::function<bool(const SpanSpec&)>& wanted) {
  const std::vector<SpanInfo> spans = arena().spans();
  for (std::uint32_t i = 0; i < spans.size(); ++i) {
    const SpanSpec& spec = spans[i].spec;
    if (!spec.name.empty() && arena().committed_bytes({i}) > 0 && wanted(spec)) return SpanId{i};
  }
  return std::nullopt;
}

}  // namespace holdfast::testing
