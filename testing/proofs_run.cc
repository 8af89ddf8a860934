#include "testing/proofs_run.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "testing/examination.h"
#include "testing/foreign_memory.h"

namespace holdfast::testing {
namespace {

using Clock = std::chrono::steady_clock;
using ProofFunction = void (*)(Examination&);

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Null for the balance, which is looked at when the subject has gone.
ProofFunction FunctionOf(Proof proof) {
  switch (proof) {
    case Proof::kAddresses: return ProveAddresses;
    case Proof::kKeptBytes: return ProveKeptBytes;
    case Proof::kDroppedBytes: return ProveDroppedBytes;
    case Proof::kFailures: return ProveFailures;
    case Proof::kNoEarlyUnmap: return ProveNoEarlyUnmap;
    case Proof::kPointers: return ProvePointers;
    case Proof::kOutputs: return ProveOutputs;
    case Proof::kFreedIsFree: return ProveFreedIsFree;
    case Proof::kLedger: return ProveLedger;
    case Proof::kReservations: return ProveReservations;
    case Proof::kBalance:
    case Proof::kCount_: break;
  }
  return nullptr;
}

std::vector<Proof> Selected(const BatteryOptions& options) {
  std::vector<Proof> selected;
  for (const Proof proof : AllProofs()) {
    const std::vector<Proof>& wanted = options.proofs;
    const bool is_wanted =
        wanted.empty() || std::find(wanted.begin(), wanted.end(), proof) != wanted.end();
    if (is_wanted && proof != Proof::kBalance) selected.push_back(proof);
  }
  return selected;
}

// What a subject must have for the fault to have a place in it.
std::string WhyNoPlace(Examination& x, Fault fault) {
  const auto has = [&x](const std::function<bool(const SpanSpec&)>& wanted) {
    return x.FirstSpan(wanted).has_value();
  };
  switch (fault) {
    case Fault::kFlippedBit:
    case Fault::kSwappedChunks:
    case Fault::kLostBytes: return has(IsKept) ? "" : "no span is kept";
    case Fault::kStaleBackup:
      return has([](const SpanSpec& s) { return IsKept(s) && s.role == Role::kMutable; })
                 ? ""
                 : "no kept span is mutable";
    case Fault::kLostRefresh:
      return has([](const SpanSpec& s) { return s.refill != nullptr; })
                 ? ""
                 : "no span has a refill hook";
    case Fault::kDirtyDrop: return has(DeclaresContents) ? "" : "no dropped span declares contents";
    case Fault::kHiddenMemory: {
      const absl::StatusOr<LedgerReport> report = x.subject().Memory();
      if (IsErrorKind(report.status(), ErrorKind::kUnsupported)) {
        return std::string(report.status().message());
      }
      return report.ok() && report->process_bytes == 0 ? "the driver gives no figure" : "";
    }
    case Fault::kWrongReservation:
      return x.subject().Paths().empty() ? "the subject declares no paths" : "";
    default: return "";
  }
}

// The last proof: after the subject, its device holds what it held before.
ProofResult ProveBalance(Device& device, std::uint64_t bytes_at_start) {
  ProofResult result{.proof = Proof::kBalance, .verdict = Verdict::kFails};
  const absl::StatusOr<MemoryUse> memory = device.Memory();
  if (!memory.ok()) {
    result.detail = std::string(memory.status().message());
  } else if (memory->own_bytes != bytes_at_start) {
    result.detail = absl::StrCat(memory->own_bytes, " B of device memory are held, were ",
                                 bytes_at_start, " before the subject");
  } else if (!device.calls().Balanced()) {
    result.detail =
        "something that was made (chunk, mapping, reservation, host memory) is still there";
  } else {
    result.verdict = Verdict::kHolds;
    result.detail = absl::StrCat(device.calls().succeeded(Call::kCreateChunk), " chunks, ",
                                 device.calls().succeeded(Call::kMap), " mappings");
  }
  return result;
}

// Who is blocked by a proof that did not fail has failed itself.
void Resolve(std::vector<ProofResult>& results) {
  for (ProofResult& result : results) {
    if (result.verdict != Verdict::kBlocked) continue;
    const bool excused = std::any_of(results.begin(), results.end(), [&](const ProofResult& r) {
      return r.proof == *result.blocked_by && r.verdict == Verdict::kFails;
    });
    if (!excused) result.verdict = Verdict::kFails;
  }
}

// Nobody can look at a subject that was refused: the proof that refused it fails.
std::vector<ProofResult> Refused(const std::vector<Proof>& proofs, const absl::Status& status,
                                 Proof owner) {
  std::vector<ProofResult> results;
  for (const Proof proof : proofs) {
    ProofResult result{.proof = proof, .detail = std::string(status.message())};
    result.verdict = proof == owner ? Verdict::kFails : Verdict::kBlocked;
    if (proof != owner) result.blocked_by = owner;
    results.push_back(std::move(result));
  }
  return results;
}

absl::Status Examine(Subject& subject, const BatteryOptions& options, Fault plant, ProofsRun& run) {
  run.subject = subject.name();
  Examination x(subject, options, plant);
  run.cannot_plant = WhyNoPlace(x, plant);
  if (!run.cannot_plant.empty()) return absl::OkStatus();
  for (const Proof proof : Selected(options)) {
    if (options.on_stage) {
      options.on_stage(plant == Fault::kNone
                           ? std::string(ProofName(proof))
                           : absl::StrCat("control ", FaultName(plant), ": ", ProofName(proof)));
    }
    const Clock::time_point start = Clock::now();
    x.Begin(proof);
    FunctionOf(proof)(x);
    run.results.push_back(x.End());
    run.results.back().seconds = SecondsSince(start);
  }
  run.cannot_plant = x.cannot_plant();
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ProofsRun> RunProofs(const SubjectFactory& factory, const BatteryOptions& options,
                                    Fault plant) {
  ProofsRun run;
  HOLDFAST_ASSIGN_OR_RETURN(const std::unique_ptr<Device> device,
                            OpenDevice(options.device, options.device_options));
  run.device = device->info().name;
  HOLDFAST_ASSIGN_OR_RETURN(const MemoryUse at_start, device->Memory());
  absl::StatusOr<std::unique_ptr<Subject>> subject = factory(
      *device, {.seed = options.seed, .plant = PlantedBySubject(plant) ? plant : Fault::kNone});
  if (subject.ok()) {
    HOLDFAST_RETURN_IF_ERROR(Examine(**subject, options, plant, run));
    subject->reset();
  } else if (IsErrorKind(subject.status(), ErrorKind::kUnsupported) && PlantedBySubject(plant)) {
    run.cannot_plant = std::string(subject.status().message());
  } else if (const std::optional<Proof> owner = OwnerOf(subject.status()); owner.has_value()) {
    run.results = Refused(Selected(options), subject.status(), *owner);
  } else {
    return subject.status();
  }
  if (!run.cannot_plant.empty()) return run;
  std::unique_ptr<ForeignMemory> unreleased;
  if (plant == Fault::kUnreleased) {
    HOLDFAST_ASSIGN_OR_RETURN(unreleased, ForeignMemory::Create(*device));
  }
  run.results.push_back(ProveBalance(*device, at_start.own_bytes));
  Resolve(run.results);
  return run;
}

ControlResult Judge(const NegativeControl& control, const ProofsRun& run) {
  ControlResult result{.control = control};
  if (!run.cannot_plant.empty()) {
    result.skipped = true;
    result.detail = run.cannot_plant;
    return result;
  }
  std::string others;
  for (const ProofResult& proof : run.results) {
    if (proof.proof == control.aimed) {
      result.skipped = proof.verdict == Verdict::kSkipped;
      result.bites = proof.verdict == Verdict::kFails;
      result.detail = result.bites || result.skipped
                          ? proof.detail
                          : absl::StrCat(proof.name(), " ", VerdictName(proof.verdict),
                                         " although the fault is there: ", proof.detail);
    } else if (proof.verdict == Verdict::kFails) {
      absl::StrAppend(&others, others.empty() ? "" : "; ", proof.name(),
                      " fails, too: ", proof.detail);
    }
  }
  if (!others.empty() && !result.skipped) {
    result.bites = false;
    result.detail = absl::StrCat(others, " (", result.detail, ")");
  }
  return result;
}

}  // namespace holdfast::testing
