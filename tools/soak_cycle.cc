#include "tools/soak_cycle.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/prompts.h"
#include "tools/resident_memory.h"

namespace holdfast {
namespace {

constexpr std::chrono::milliseconds kSleepDeadline{60'000};
constexpr std::int32_t kTokens = 6;
constexpr std::size_t kBatches = 3;  // of 1, 2 and 3 prompts
constexpr std::uint64_t kPieceBytes = 4096;
constexpr std::uint64_t kMostCalls = 80;  // failures are planted among the first so many

Failure Fail(const absl::Status& status) {
  return {ReasonOf(status), std::string(status.message())};
}

PromptSet FewPrompts(std::int32_t longest, const SamplingChoice& sampling) {
  PromptSet set = MakePrompts({}, kTokens, longest, sampling);
  set.batches.resize(kBatches);
  return set;
}

}  // namespace

absl::Status SoakCycles::Begin() {
  const std::int32_t longest = engine_.options().max_sequence;
  greedy_ = FewPrompts(longest, {});
  seeded_ = FewPrompts(longest, {.temperature = 0.8f, .top_k = 40, .seed = report_.options.seed});
  HOLDFAST_ASSIGN_OR_RETURN(golden_greedy_, GenerateAll(engine_, greedy_));
  HOLDFAST_ASSIGN_OR_RETURN(golden_seeded_, GenerateAll(engine_, seeded_));
  HOLDFAST_ASSIGN_OR_RETURN(saved_, engine_.device().AllocateHost(kPieceBytes));
  return absl::OkStatus();
}

void SoakCycles::Plant(Injection injection) {
  planted_ = true;
  engine_.residency().PlantFaults(FaultsOf(injection));
}

absl::StatusOr<std::uint64_t> SoakCycles::OwnBytes() {
  HOLDFAST_ASSIGN_OR_RETURN(const MemoryUse memory, engine_.device().Memory());
  return memory.own_bytes;
}

bool SoakCycles::MaybeArm() {
  if (planted_ || !Chance(30)) return false;
  engine_.device().calls().FailAt(1 + random_() % kMostCalls);
  return true;
}

std::vector<std::string> SoakCycles::SomeTags() {
  std::vector<std::string> tags;
  for (const std::string& tag : engine_.arena().tags()) {
    if (planted_ || Chance(60)) tags.push_back(tag);
  }
  if (tags.empty()) tags.push_back(kCacheTag);
  std::shuffle(tags.begin(), tags.end(), random_);
  return tags;
}

Failure SoakCycles::Run() {
  if (Failure f = TouchHostMemory(); f.failed()) return f;
  if (!planted_ && Chance(20)) {
    if (Failure f = RewriteALeaf(); f.failed()) return f;
  }
  const absl::StatusOr<std::uint64_t> steps = engine_.StepCount();
  if (!steps.ok()) return Fail(steps.status());
  absl::StatusOr<Before> before = TakeBefore(engine_);
  if (!before.ok()) return Fail(before.status());
  const bool queued = planted_ || Chance(25);
  if (queued) {
    ++report_.counts["sleeps over running work"];
    if (const absl::Status s = QueueWork(engine_); !s.ok()) return Fail(s);
  }
  const std::vector<std::string> tags = SomeTags();
  if (Failure f = Sleep(tags, *before); f.failed()) return f;
  if (Failure f = Wake(tags); f.failed()) return f;

  const absl::StatusOr<std::uint64_t> now = engine_.StepCount();
  if (!now.ok()) return Fail(now.status());
  const std::uint64_t expected = *steps + (queued ? kQueuedReplays : 0);
  if (*now != expected) {
    return {"kept-bytes",
            absl::StrCat("the step counter is ", *now, " after wake, not ", expected)};
  }
  if (queued) LeaveOutState(*before);
  CycleLine line;
  if (Failure f = CheckAwake(engine_, *before, line); f.failed()) return f;
  report_.counts["leaf hashes compared"] += line.leaves_compared;
  report_.counts["pointers checked"] += line.pointers_checked;
  if (Failure f = CheckLedger(); f.failed()) return f;
  if (Failure f = RestoreTheLeaf(); f.failed()) return f;
  return CompareGolden();
}

// Host memory ahead of time, beside serving, or given back.
Failure SoakCycles::TouchHostMemory() {
  Residency& residency = engine_.residency();
  const std::uint64_t draw = random_() % 8;
  absl::Status status;
  if (draw == 0) status = residency.Prepare(engine_.arena().tags());
  if (draw == 1) status = residency.PrepareInBackground(engine_.arena().tags());
  if (draw <= 1) ++report_.counts["prepares"];
  if (draw == 2) {
    ++report_.counts["trims"];
    residency.TrimHost(/*forget_clean=*/Chance(50));
  }
  return status.ok() ? Failure{} : Fail(status);
}

// Weights that change: the next sleep has to move the leaf, wake has to bring the new one.
Failure SoakCycles::RewriteALeaf() {
  std::vector<SpanInfo> weights;
  for (const SpanInfo& span : engine_.arena().spans()) {
    if (span.spec.role == Role::kImmutable && span.spec.refill == nullptr) weights.push_back(span);
  }
  if (weights.empty()) return {};
  const SpanInfo& span = weights[random_() % weights.size()];
  const std::uint64_t bytes = std::min(kPieceBytes, span.range.bytes);
  const std::uint64_t offset = AlignDown(random_() % (span.range.bytes - bytes + 1), 256);
  rewritten_ = {span.range.base + offset, bytes};
  ++report_.counts["rewrites"];
  Device& device = engine_.device();
  Stream& stream = engine_.lane().stream();
  absl::Status status = device.CopyToHost(stream, saved_.data(), rewritten_.base, bytes);
  if (status.ok()) status = engine_.arena().Unseal(span.spec.tag);
  if (status.ok()) {
    status = device.Fill(stream, rewritten_.base, static_cast<std::uint8_t>(random_()), bytes);
  }
  if (status.ok()) status = engine_.lane().Synchronize();
  if (status.ok()) status = engine_.arena().Seal(span.spec.tag);
  return status.ok() ? Failure{} : Fail(status);
}

Failure SoakCycles::RestoreTheLeaf() {
  const AddressRange range = std::exchange(rewritten_, {});
  if (range.bytes == 0) return {};
  const std::optional<SpanHit> hit = engine_.arena().Locate(range.base);
  if (!hit.has_value()) return {"addresses", "the rewritten span is not found"};
  const std::string tag = engine_.arena().span(hit->span).spec.tag;
  absl::Status status = engine_.arena().Unseal(tag);
  if (status.ok()) {
    status = engine_.device().CopyToDevice(engine_.lane().stream(), range.base, saved_.data(),
                                           range.bytes);
  }
  if (status.ok()) status = engine_.lane().Synchronize();
  if (status.ok()) status = engine_.arena().Seal(tag);
  return status.ok() ? Failure{} : Fail(status);
}

Failure SoakCycles::Sleep(const std::vector<std::string>& tags, const Before& before) {
  ++report_.counts["sleeps"];
  bool armed = MaybeArm();
  absl::StatusOr<TransitionReport> slept = engine_.Sleep(tags, kSleepDeadline);
  if (armed) engine_.device().calls().Disarm();
  if (armed && IsErrorKind(slept.status(), ErrorKind::kDriver)) {
    ++report_.counts["failed sleeps"];
    const absl::StatusOr<std::uint64_t> own = OwnBytes();
    if (!own.ok()) return Fail(own.status());
    if (*own != before.own_bytes) return {"parity", "a failed sleep kept or lost device memory"};
    if (const absl::Status ready = engine_.arena().CheckReady(engine_.arena().tags());
        IsErrorKind(ready, ErrorKind::kAsleep)) {
      return {"state", "a failed sleep left a tag asleep"};
    }
    slept = engine_.Sleep(tags, kSleepDeadline);
  }
  if (IsErrorKind(slept.status(), ErrorKind::kDeviceLost)) return EarlyUnmap(slept.status());
  if (!slept.ok()) return Fail(slept.status());
  if (const absl::Status s = engine_.lane().Synchronize(); !s.ok()) return EarlyUnmap(s);
  const absl::StatusOr<std::uint64_t> asleep = OwnBytes();
  if (!asleep.ok()) return Fail(asleep.status());
  if (before.own_bytes - *asleep != slept->freed_bytes) {
    return {"parity", absl::StrCat("sleep says it freed ", slept->freed_bytes, " B, the device ",
                                   before.own_bytes - *asleep)};
  }
  if (Failure f = CheckLedger(); f.failed()) return f;
  if (neighbour_ == nullptr) return {};
  absl::Status scribbled = neighbour_->Take(slept->freed_bytes);
  if (scribbled.ok()) scribbled = neighbour_->Release();
  if (!scribbled.ok()) return {"scribble", std::string(scribbled.message())};
  ++report_.counts["scribbles"];
  return {};
}

// All at once, or in two parts in any order.
Failure SoakCycles::Wake(std::vector<std::string> tags) {
  std::shuffle(tags.begin(), tags.end(), random_);
  const auto first = static_cast<std::ptrdiff_t>(1 + random_() % tags.size());
  const std::vector<std::string> part(tags.begin(), tags.begin() + first);
  if (Failure f = WakeOnce(Chance(50) ? part : tags); f.failed()) return f;
  if (Failure f = WakeOnce(tags); f.failed()) return f;
  const absl::StatusOr<TransitionReport> all = engine_.Wake(engine_.arena().tags());
  return all.ok() ? Failure{} : Fail(all.status());
}

Failure SoakCycles::WakeOnce(const std::vector<std::string>& tags) {
  ++report_.counts["wakes"];
  const absl::StatusOr<std::uint64_t> before = OwnBytes();
  const WakeOptions options{.publish_each_tag = Chance(30)};
  const bool armed = MaybeArm();
  absl::StatusOr<TransitionReport> woken = engine_.residency().Wake(tags, options);
  if (armed) engine_.device().calls().Disarm();
  if (armed && IsErrorKind(woken.status(), ErrorKind::kDriver)) {
    ++report_.counts["failed wakes"];
    const absl::StatusOr<std::uint64_t> after = OwnBytes();
    if (!before.ok() || !after.ok()) return Fail(before.ok() ? after.status() : before.status());
    if (!options.publish_each_tag && *after != *before) {
      return {"parity", "a failed wake kept device memory"};
    }
    woken = engine_.residency().Wake(tags);
  }
  return woken.ok() ? Failure{} : Fail(woken.status());
}

Failure SoakCycles::CompareGolden() {
  for (const auto& [prompts, golden] :
       {std::pair{&greedy_, &golden_greedy_}, {&seeded_, &golden_seeded_}}) {
    const absl::StatusOr<Outputs> now = GenerateAll(engine_, *prompts);
    if (!now.ok()) return Fail(now.status());
    if (Failure f = CompareOutputs(*golden, *now); f.failed()) return f;
    report_.counts["completions compared"] += prompts->count();
  }
  return {};
}

Failure SoakCycles::CheckLedger() {
  const absl::StatusOr<LedgerReport> ledger = engine_.Memory();
  if (!ledger.ok()) return Fail(ledger.status());
  report_.unexplained_bytes =
      std::max(report_.unexplained_bytes, std::abs(ledger->unexplained_bytes));
  if (ledger->adds_up()) return {};
  return {"unexplained",
          absl::StrCat(ledger->unexplained_bytes, " B of device memory have no owner")};
}

Failure SoakCycles::CheckHostMemory() {
  engine_.residency().TrimHost(/*forget_clean=*/true);
  const std::int64_t bytes = ResidentHostBytes();
  if (host_bytes_ == 0) host_bytes_ = bytes;
  report_.host_growth_bytes = std::max(report_.host_growth_bytes, bytes - host_bytes_);
  if (report_.host_growth_bytes <= kSoakHostGrowth) return {};
  return {"host-memory", absl::StrCat("grew by ", report_.host_growth_bytes, " B")};
}

}  // namespace holdfast
