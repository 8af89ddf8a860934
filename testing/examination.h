// Private to testing/. One pass of the proofs over one subject: what they share. A proof asks for
// steps, compares, and puts down what it finds under the proof that it speaks against, which need
// not be itself: a wake that says "corrupted" is a failure of the kept bytes wherever it turns up,
// and everybody else is blocked by it. So one fault fails one proof.
#ifndef HOLDFAST_TESTING_EXAMINATION_H_
#define HOLDFAST_TESTING_EXAMINATION_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "testing/battery.h"
#include "testing/cycle_driver.h"
#include "testing/picture.h"
#include "testing/proof.h"
#include "testing/scribble.h"
#include "testing/subject.h"

namespace holdfast::testing {

// The proof that an error of this kind speaks against, whoever met it; nullopt: whoever met it.
std::optional<Proof> OwnerOf(const absl::Status& status);

class Examination {
 public:
  // `plant`: the fault of a negative control, which then looks at fewer cases. Subject and options
  // must outlive it.
  Examination(Subject& subject, const BatteryOptions& options, Fault plant);

  Subject& subject() { return subject_; }
  Arena& arena() { return subject_.arena(); }
  Device& device() { return subject_.arena().device(); }
  const BatteryOptions& options() const { return options_; }
  bool planted(Fault fault) const { return plant_ == fault; }
  bool is_control() const { return plant_ != Fault::kNone; }
  int cycles() const { return is_control() ? 1 : options_.cycles; }
  const Outputs& golden() const { return golden_; }  // of the first run, before anything slept

  // -- Findings
  void Begin(Proof proof);
  ProofResult End();
  void Find(const std::string& what) { Find(proof_, what); }
  void Find(Proof owner, const std::string& what);
  // Nothing was found by the current proof so far.
  bool clean() const { return own_.empty() && others_.empty(); }
  // True if OK. Else it is found, under the proof its kind belongs to.
  bool Ok(const absl::Status& status, const std::string& doing);
  template <typename T>
  bool Ok(const absl::StatusOr<T>& result, const std::string& doing) {
    return Ok(result.status(), doing);
  }
  // True if there is no difference; else it is found.
  bool Same(Proof owner, const std::optional<std::string>& difference, const std::string& when);
  // What the result says was compared, when it holds: counted by name.
  void Count(const std::string& what, std::uint64_t n = 1) { counts_[what] += n; }
  // What the result says, besides, when it holds: a part that could not be looked at.
  void Note(const std::string& note) { notes_.push_back(note); }
  void Skip(const std::string& why) { skip_ = why; }
  // The fault cannot be planted in this subject: what the transition said; "" if it can.
  const std::string& cannot_plant() const { return cannot_plant_; }

  // -- Steps: true if they went well; otherwise what went wrong is found

  // Everything is awake and defined, and what nobody may change holds what it held at the start.
  // What each proof begins with.
  bool Ready();
  bool AllAwake();  // the first half of it
  bool Sleep(const std::vector<std::string>& tags, TransitionReport* report = nullptr);
  // Refills, unless told not to.
  bool Wake(const std::vector<std::string>& tags, bool refill = true);
  // Sleep, then `asleep()` if set, then wake; addresses, kept, refilled and declared contents are
  // compared.
  bool Cycle(const std::vector<std::string>& tags, const std::function<bool()>& asleep = {});
  bool Run(const RunRequest& request, Outputs* outputs);
  absl::StatusOr<Picture> Look(bool contents);  // with a moved span, where that is planted

  // Another process takes, fills and returns what sleeps now. Does nothing without
  // options().scribble.
  bool ScribbleOverFreed();
  // A neighbour of its own, for proofs that fill the device. Not without options().scribble.
  absl::StatusOr<std::unique_ptr<Neighbour>> StartNeighbour();
  // The first byte of an awake span; written through its seal if need be.
  absl::StatusOr<std::byte> FirstByte(SpanId span);
  absl::Status SetFirstByte(SpanId span, std::byte value);
  // The first span that `wanted` and that has pages; nullopt if there is none.
  std::optional<SpanId> FirstSpan(const std::function<bool(const SpanSpec&)>& wanted);
  std::vector<std::string> all_tags() { return arena().tags(); }

 private:
  void PlantInTransitions(bool swap);
  // The span whose first byte is other than it should be for the length of a comparison; nullopt
  // where no such fault is planted, or none of these tags has such a span.
  std::optional<SpanId> SpoiltSpan(const std::vector<std::string>& tags);
  bool CompareAwake(const Picture& before, const std::vector<std::string>& tags);

  Subject& subject_;
  const BatteryOptions& options_;
  Fault plant_;
  Outputs golden_;
  absl::Status golden_status_;
  Picture start_;
  bool woken_ = false;  // something has slept and come back
  std::unique_ptr<Neighbour> neighbour_;
  std::string cannot_plant_;

  // Of the current proof
  Proof proof_ = Proof::kCount_;
  std::vector<std::string> own_;
  std::vector<std::pair<Proof, std::string>> others_;
  std::map<std::string, std::uint64_t> counts_;
  std::vector<std::string> notes_;
  std::string skip_;
};

// The proofs; kBalance is the end of the subject, and battery.cc's.
void ProveAddresses(Examination& x);
void ProveKeptBytes(Examination& x);
void ProveDroppedBytes(Examination& x);
void ProveFailures(Examination& x);
void ProveNoEarlyUnmap(Examination& x);
void ProvePointers(Examination& x);
void ProveOutputs(Examination& x);
void ProveFreedIsFree(Examination& x);
void ProveLedger(Examination& x);
void ProveReservations(Examination& x);

}  // namespace holdfast::testing

#endif  // HOLDFAST_TESTING_EXAMINATION_H_
