// The operations of RandomResidency.
#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/allocator/residency_model.h"

namespace holdfast {
namespace {

constexpr char kWeights[] = "weights", kScrap[] = "scrap";
constexpr int kMostScraps = 12;

// Long enough for any machine; an operation that waits this long has failed.
Residency::Deadline Soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(60); }

}  // namespace

void RandomResidency::Step() {
  if (!problem_.empty()) return;
  struct Kind {
    const char* name;
    int weight;
    void (RandomResidency::*run)();
  };
  static constexpr Kind kKinds[] = {
      {"sleep", 22, &RandomResidency::Sleep},      {"wake", 26, &RandomResidency::Wake},
      {"rewrite", 20, &RandomResidency::Rewrite},  {"seal", 8, &RandomResidency::SealOrUnseal},
      {"commit", 4, &RandomResidency::CommitMore}, {"reserve", 4, &RandomResidency::ReserveAnother},
      {"free", 4, &RandomResidency::FreeOne},      {"prepare", 5, &RandomResidency::PrepareHost},
      {"trim", 4, &RandomResidency::Trim},         {"hold", 3, &RandomResidency::HoldOrLetGo}};
  ++step_;
  auto draw = static_cast<int>(random_() % 100);  // the weights add up to 100
  for (const Kind& kind : kKinds) {
    if (draw >= kind.weight) {
      draw -= kind.weight;
      continue;
    }
    operation_ = kind.name;
    ++counts_[operation_];
    (this->*kind.run)();
    break;
  }
  CheckCheap();
  if (step_ % 64 != 0) return;
  for (const auto& [tag, asleep] : asleep_) {
    if (!asleep) CheckContents(tag);
  }
}

std::vector<std::string> RandomResidency::SomeTags() {
  std::vector<std::string> tags;
  for (const auto& [tag, asleep] : asleep_) {
    if (Chance(60)) tags.push_back(tag);
  }
  if (tags.empty()) tags.push_back(kWeights);
  std::shuffle(tags.begin(), tags.end(), random_);
  return tags;
}

bool RandomResidency::MaybeArm() {
  if (!Chance(35)) return false;
  static constexpr Call kCalls[] = {
      Call::kCreateChunk,  Call::kReleaseChunk, Call::kMap,      Call::kUnmap, Call::kSetAccess,
      Call::kAllocateHost, Call::kCopy,         Call::kHash,     Call::kFill,  Call::kSynchronize,
      Call::kCreateEvent,  Call::kRecordEvent,  Call::kWaitEvent};
  const Call call = kCalls[random_() % std::size(kCalls)];
  operation_ += absl::StrCat(", failing at ", CallName(call));
  device_->calls().FailAt(1 + random_() % 8, {call});
  return true;
}

void RandomResidency::Sleep() {
  const std::vector<std::string> tags = SomeTags();
  operation_ = absl::StrCat("sleep ", absl::StrJoin(tags, ","));
  const bool armed = MaybeArm();
  const std::uint64_t epoch = arena_->epoch();
  const absl::StatusOr<TransitionReport> report = residency_->Sleep(tags, Soon());
  if (armed) device_->calls().Disarm();
  const bool held = std::count(tags.begin(), tags.end(), held_tag_) > 0;
  if (report.ok()) {
    if (held) Complain("slept in spite of a holder without hooks");
    if (report->tags.empty() != (arena_->epoch() == epoch)) Complain("the epoch miscounts");
  } else if (IsErrorKind(report.status(), ErrorKind::kHeld)) {
    if (!held) Complain(report.status().ToString());
  } else if (!(armed || background_) || !IsErrorKind(report.status(), ErrorKind::kDriver)) {
    Complain(report.status().ToString());
  }
  background_ = false;
  AfterSleep(tags, report.status());
}

void RandomResidency::AfterSleep(const std::vector<std::string>& tags, const absl::Status& status) {
  if (!status.ok()) ++counts_["failed sleep"];
  for (const std::string& tag : tags) {
    if (status.ok()) {
      asleep_[tag] = true;
    } else if (!asleep_[tag]) {
      AcceptDropped(tag);
      CheckContents(tag);
    }
  }
}

void RandomResidency::Wake() {
  const std::vector<std::string> tags = SomeTags();
  const WakeOptions options{.publish_each_tag = Chance(30)};
  operation_ = absl::StrCat("wake ", absl::StrJoin(tags, ","));
  if (options.publish_each_tag) operation_ += ", each by itself";
  const bool armed = MaybeArm();
  const std::uint64_t epoch = arena_->epoch();
  const absl::StatusOr<TransitionReport> report = residency_->Wake(tags, options);
  if (armed) device_->calls().Disarm();
  if (report.ok()) {
    if (report->tags.empty() != (arena_->epoch() == epoch)) Complain("the epoch miscounts");
  } else {
    ++counts_["failed wake"];
    if (!armed || !IsErrorKind(report.status(), ErrorKind::kDriver)) {
      Complain(report.status().ToString());
    }
  }
  bool earlier_awake = true;  // tags come in the order given
  for (const std::string& tag : tags) {
    const bool was_asleep =
        std::exchange(asleep_[tag], asleep_[tag] && !report.ok() &&
                                        (!options.publish_each_tag || residency_->asleep(tag)));
    if (asleep_[tag]) earlier_awake = false;
    if (!was_asleep || asleep_[tag]) continue;
    if (!earlier_awake) Complain(absl::StrCat(tag, " woke before those that come first"));
    Restore(tag);
    CheckContents(tag);
  }
}

void RandomResidency::Rewrite() {
  std::vector<ModelSpan*> writable;
  for (auto& [name, span] : spans_) {
    if (!span.known || asleep_[span.spec.tag] || span.spec.refill != nullptr) continue;
    if (span.spec.tag == kWeights && sealed_) continue;
    writable.push_back(&span);
  }
  if (writable.empty()) return;
  ModelSpan& span = *writable[random_() % writable.size()];
  const std::uint64_t offset = AlignDown(random_() % span.committed, 8);
  Write(span, offset, 1 + random_() % (span.committed - offset));
}

void RandomResidency::SealOrUnseal() {
  const bool armed = Chance(20);
  if (armed) device_->calls().FailAt(1 + random_() % 3, {Call::kSetAccess});
  const absl::Status status = sealed_ ? arena_->Unseal(kWeights) : arena_->Seal(kWeights);
  if (armed) device_->calls().Disarm();
  if (status.ok()) {
    if (asleep_[kWeights]) Complain("sealed or unsealed while asleep");
    sealed_ = !sealed_;
  } else if (asleep_[kWeights] ? !IsErrorKind(status, ErrorKind::kAsleep) : !armed) {
    Complain(status.ToString());
  }
}

// The growing cache, a step further; its new pages read as zero.
void RandomResidency::CommitMore() {
  ModelSpan& span = spans_.at("kv.grows");
  const std::uint64_t bytes = std::min(span.range.bytes, span.committed + 64 * kKiB);
  const absl::Status status = arena_->Commit(span.id, bytes);
  if (status.ok()) {
    span.committed = bytes;
    if (!asleep_[span.spec.tag]) CheckContents(span.spec.tag);
  } else if (!asleep_[span.spec.tag] || !IsErrorKind(status, ErrorKind::kAsleep)) {
    Complain(status.ToString());
  }
}

void RandomResidency::ReserveAnother() {
  if (asleep_[kScrap] || reserved_ > 4000) return;
  const auto scraps = std::count_if(spans_.begin(), spans_.end(), [](const auto& entry) {
    return entry.second.spec.tag == kScrap;
  });
  if (scraps >= kMostScraps) return;
  const std::string name = absl::StrCat("scrap", ++reserved_);
  AddSpan({.name = name, .tag = kScrap, .bytes = 1 + random_() % (32 * kKiB)}, UINT64_MAX);
  if (const auto added = spans_.find(name); added != spans_.end()) {
    Write(added->second, 0, added->second.range.bytes);
  }
}

void RandomResidency::FreeOne() {
  std::vector<std::string> names;
  for (const auto& [name, span] : spans_) {
    if (span.spec.tag == kScrap && name != "scrap") names.push_back(name);
  }
  if (names.empty()) return;
  const std::string name = names[random_() % names.size()];
  const absl::Status status = arena_->Free(spans_.at(name).id, Soon());
  if (asleep_[kScrap]) {
    if (!IsErrorKind(status, ErrorKind::kAsleep)) Complain(status.ToString());
    return;
  }
  ExpectOk(status, absl::StrCat("free ", name));
  if (arena_->Find(name).has_value()) Complain(absl::StrCat(name, " was freed and is found"));
  spans_.erase(name);
  CheckContents(kScrap);
}

void RandomResidency::PrepareHost() {
  const std::vector<std::string> tags = SomeTags();
  if (Chance(50)) {
    ExpectOk(residency_->PrepareInBackground(tags), "prepare in the background");
    background_ = true;
    return;
  }
  const absl::Status status = residency_->Prepare(tags);
  if (!background_) ExpectOk(status, "prepare");
  background_ = false;
}

void RandomResidency::Trim() {
  const std::uint64_t before = residency_->backing_bytes();
  const std::uint64_t given_back = residency_->TrimHost(Chance(50));
  if (!background_ && residency_->backing_bytes() + given_back != before) {
    Complain("the pool miscounts what it gave back");
  }
}

void RandomResidency::HoldOrLetGo() {
  if (hold_.value != 0) {
    ExpectOk(arena_->registrations().Remove(std::exchange(hold_, {})), "let go");
    held_tag_.clear();
    return;
  }
  const ModelSpan& span = spans_.at(Chance(50) ? "w0" : "s1");
  if (asleep_[span.spec.tag]) return;
  const absl::StatusOr<RegistrationId> id = arena_->registrations().Add(
      {.holder = "model", .kind = HolderKind::kOther, .spans = {span.id}, .writes = Chance(50)});
  ExpectOk(id.status(), "hold");
  if (!id.ok()) return;
  hold_ = *id;
  held_tag_ = span.spec.tag;
}

}  // namespace holdfast
