#include "tools/proofs.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "device/bytes.h"
#include "testing/scribble.h"
#include "tools/progress.h"

namespace holdfast {
namespace {

constexpr std::chrono::milliseconds kSleepDeadline{30'000};
constexpr std::chrono::milliseconds kHoldLane{100};

Failure Fail(const absl::Status& status) {
  return {ReasonOf(status), std::string(status.message())};
}

// One hash for all of a span's leaves.
absl::StatusOr<Hash128> HashSpan(Engine& engine, AddressRange range) {
  const std::uint64_t leaves = (range.bytes + kHashLeafBytes - 1) / kHashLeafBytes;
  HOLDFAST_ASSIGN_OR_RETURN(const HostBuffer out,
                            engine.device().AllocateHost(leaves * sizeof(Hash128)));
  HOLDFAST_RETURN_IF_ERROR(engine.device().HashLeaves(engine.lane().stream(), range,
                                                      reinterpret_cast<Hash128*>(out.data())));
  HOLDFAST_RETURN_IF_ERROR(engine.lane().Synchronize());
  return HashLeafOnHost(out.data(), out.size());
}

absl::StatusOr<std::map<std::string, Hash128>> HashRefilled(Engine& engine) {
  std::map<std::string, Hash128> hashes;
  for (const SpanInfo& span : engine.arena().spans()) {
    if (span.spec.refill == nullptr) continue;
    HOLDFAST_ASSIGN_OR_RETURN(hashes[span.spec.name], HashSpan(engine, span.range));
  }
  return hashes;
}

std::map<std::string, DeviceAddress> Addresses(Engine& engine) {
  std::map<std::string, DeviceAddress> addresses;
  for (const SpanInfo& span : engine.arena().spans()) addresses[span.spec.name] = span.range.base;
  return addresses;
}

// Every pointer of every manifest has pages and access behind it.
Failure CheckPointers(Engine& engine, CycleLine& cycle) {
  for (const Graph* graph : engine.graphs().graphs()) {
    for (const PointerFinding& p : graph->manifest().audit.pointers) {
      if (p.kind != PointerClass::kSpan) continue;
      const std::string& object = graph->manifest().audit.ObjectOf(p);
      const std::optional<SpanId> span = engine.arena().Find(object);
      const bool past_end = span.has_value() && p.offset == engine.arena().range(*span).bytes;
      const AddressState state = engine.device().Query({past_end ? p.word - 1 : p.word});
      if (!state.mapped || state.access == Access::kNone) {
        return {"unmapped-pointer",
                absl::StrCat(graph->name(), " node ", p.node, " ", p.where(), " points into ",
                             object, ", which has no pages behind it")};
      }
      ++cycle.pointers_checked;
    }
  }
  return {};
}

Failure CompareKept(const Before& before, const std::map<std::string, std::vector<Hash128>>& now,
                    CycleLine& cycle) {
  for (const auto& [group, leaves] : before.kept) {
    const auto found = now.find(group);
    if (found == now.end() || found->second.size() != leaves.size()) {
      return {"kept-bytes", absl::StrCat(group, " has other leaves than before")};
    }
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      if (!(leaves[i] == found->second[i])) {
        return {"kept-bytes",
                absl::StrCat("leaf ", i, " of ", group, " differs from before sleep")};
      }
      ++cycle.leaves_compared;
    }
  }
  return {};
}

}  // namespace

absl::Status QueueWork(Engine& engine) {
  const auto pause = [](void*) { std::this_thread::sleep_for(kHoldLane); };
  HOLDFAST_RETURN_IF_ERROR(engine.device().HostFunction(engine.lane().stream(), pause, nullptr));
  HOLDFAST_ASSIGN_OR_RETURN(Graph* const graph,
                            engine.graphs().Dispatch(Phase::kDecode, engine.options().max_batch));
  for (int i = 0; i < static_cast<int>(kQueuedReplays); ++i)
    HOLDFAST_RETURN_IF_ERROR(graph->Replay());
  return absl::OkStatus();
}

Failure EarlyUnmap(const absl::Status& status) {
  return {"early-unmap", absl::StrCat("pages were taken from under running work: ",
                                      std::string(status.message()))};
}

ResidencyFaults FaultsOf(Injection injection) {
  return {.swap_chunks = injection == Injection::kSwapChunks,
          .flip_bit = injection == Injection::kFlipBit,
          .skip_refill = injection == Injection::kLostRefresh,
          .unmap_early = injection == Injection::kEarlyUnmap};
}

Failure CheckAwake(Engine& engine, const Before& before, CycleLine& cycle) {
  const absl::StatusOr<MemoryUse> memory = engine.device().Memory();
  if (!memory.ok()) return Fail(memory.status());
  cycle.own_bytes_again = memory->own_bytes;
  cycle.parity_bytes =
      static_cast<std::int64_t>(memory->own_bytes) - static_cast<std::int64_t>(before.own_bytes);
  if (cycle.parity_bytes != 0)
    return {"parity", absl::StrCat(cycle.parity_bytes, " B more than before sleep")};
  if (Addresses(engine) != before.addresses) return {"addresses", "a span moved"};

  const absl::StatusOr<std::map<std::string, Hash128>> refilled = HashRefilled(engine);
  if (!refilled.ok()) return Fail(refilled.status());
  for (const auto& [name, hash] : before.refilled) {
    if (!(refilled->at(name) == hash)) {
      return {"lost-refresh", absl::StrCat(name, " does not hold what its refill hook puts there")};
    }
    ++cycle.leaves_compared;
  }
  const auto kept = engine.residency().HashKept();
  if (!kept.ok()) return Fail(kept.status());
  if (Failure f = CompareKept(before, *kept, cycle); f.failed()) return f;
  if (Failure f = CheckPointers(engine, cycle); f.failed()) return f;

  const absl::StatusOr<std::vector<std::string>> differences =
      engine.graphs().Recapture(engine.workspace());
  if (!differences.ok()) return Fail(differences.status());
  if (!differences->empty()) return {"recapture", differences->front()};
  cycle.graphs_recaptured = engine.graphs().graphs().size();
  return {};
}

void LeaveOutState(Before& before) {
  for (auto group = before.kept.begin(); group != before.kept.end();) {
    group = group->first.rfind(kStateTag, 0) == 0 ? before.kept.erase(group) : std::next(group);
  }
}

std::string ReasonOf(const absl::Status& status) {
  const std::optional<ErrorInfo> info = GetErrorInfo(status);
  switch (info.has_value() ? info->kind : ErrorKind::kInternal) {
    case ErrorKind::kForeignPointer: return "stale-pointer";
    case ErrorKind::kMisplaced: return "swap-chunks";
    case ErrorKind::kCorrupted: return "flip-bit";
    case ErrorKind::kUndefinedContents: return "lost-refresh";
    case ErrorKind::kDeviceLost: return "device-lost";
    default: return "error";
  }
}

absl::StatusOr<Before> TakeBefore(Engine& engine) {
  Before before;
  HOLDFAST_ASSIGN_OR_RETURN(const MemoryUse memory, engine.device().Memory());
  before.own_bytes = memory.own_bytes;
  HOLDFAST_ASSIGN_OR_RETURN(before.kept, engine.residency().HashKept());
  HOLDFAST_ASSIGN_OR_RETURN(before.refilled, HashRefilled(engine));
  before.addresses = Addresses(engine);
  return before;
}

absl::StatusOr<Outputs> GenerateAll(Engine& engine, const PromptSet& prompts) {
  Outputs outputs;
  std::size_t done = 0;
  for (const std::vector<GenerateRequest>& batch : prompts.batches) {
    HOLDFAST_ASSIGN_OR_RETURN(outputs.emplace_back(), engine.Generate(batch));
    done += batch.size();
    ShowFraction(done, prompts.count());
  }
  return outputs;
}

Failure SleepAndWake(Engine& engine, const RunOptions& options, CycleLine& cycle) {
  const absl::StatusOr<std::uint64_t> steps = engine.StepCount();
  const absl::StatusOr<Before> before = TakeBefore(engine);
  if (!before.ok()) return Fail(before.status());
  cycle.own_bytes_awake = before->own_bytes;

  // Sleep with replays still queued.
  ShowStage(absl::StrCat("sleeping ", absl::StrJoin(cycle.tags, ", ")));
  if (absl::Status s = QueueWork(engine); !s.ok()) return Fail(s);
  absl::StatusOr<TransitionReport> slept = engine.Sleep(cycle.tags, kSleepDeadline);
  if (IsErrorKind(slept.status(), ErrorKind::kDeviceLost)) return EarlyUnmap(slept.status());
  if (!slept.ok()) return Fail(slept.status());
  cycle.sleep = *std::move(slept);
  if (absl::Status s = engine.lane().Synchronize(); !s.ok()) return EarlyUnmap(s);
  const absl::StatusOr<MemoryUse> asleep = engine.device().Memory();
  if (!asleep.ok()) return Fail(asleep.status());
  cycle.own_bytes_asleep = asleep->own_bytes;
  absl::StatusOr<LedgerReport> ledger = engine.Memory();
  if (!ledger.ok()) return Fail(ledger.status());
  cycle.ledger_asleep = *std::move(ledger);
  if (before->own_bytes - asleep->own_bytes != cycle.sleep.freed_bytes) {
    return {"parity", absl::StrCat("sleep says it freed ", cycle.sleep.freed_bytes,
                                   " B, the device says ", before->own_bytes - asleep->own_bytes)};
  }

  if (options.scribble) {
    ShowStage("another process scribbles over the freed pages");
    if (absl::Status s =
            testing::ScribbleInChild(testing::ScribblerInThisProgram(), engine.device().info().spec,
                                     cycle.sleep.freed_bytes);
        !s.ok()) {
      return {"scribble", std::string(s.message())};
    }
    cycle.scribbled_bytes = cycle.sleep.freed_bytes;
  }

  ShowStage(absl::StrCat("waking ", absl::StrJoin(cycle.tags, ", ")));
  absl::StatusOr<TransitionReport> woken = engine.Wake(cycle.tags);
  if (!woken.ok()) return Fail(woken.status());
  cycle.wake = *std::move(woken);
  ShowStage("checking what came back");

  // The queued replays ran after the picture was taken and raised the counter by three: that is all
  // the kept state may have changed by, so it is checked by value and left out of the comparison by
  // hash.
  const absl::StatusOr<std::uint64_t> now = engine.StepCount();
  if (!steps.ok() || !now.ok()) return Fail(steps.ok() ? now.status() : steps.status());
  if (*now != *steps + kQueuedReplays) {
    return {"kept-bytes", absl::StrCat("the step counter is ", *now, " after wake, ",
                                       *steps + kQueuedReplays, " replays ran")};
  }
  Before expected = *before;
  LeaveOutState(expected);
  return CheckAwake(engine, expected, cycle);
}

Failure CompareOutputs(const Outputs& golden, const Outputs& now) {
  for (std::size_t b = 0; b < golden.size(); ++b) {
    for (std::size_t i = 0; i < golden[b].size(); ++i) {
      if (!(golden[b][i] == now[b][i])) {
        return {"outputs", absl::StrCat("batch ", b, " prompt ", i,
                                        " gives other tokens or logit bits than before sleep")};
      }
    }
  }
  return {};
}

}  // namespace holdfast
