// One random cycle of the soak, and what must hold after it.
#ifndef HOLDFAST_TOOLS_SOAK_CYCLE_H_
#define HOLDFAST_TOOLS_SOAK_CYCLE_H_

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "runtime/engine.h"
#include "testing/scribble.h"
#include "tools/proofs.h"
#include "tools/soak.h"

namespace holdfast {

class SoakCycles {
 public:
  // `neighbour` may be null: nobody scribbles. All must outlive it.
  SoakCycles(Engine& engine, testing::Neighbour* neighbour, std::uint64_t seed, SoakReport& report)
      : engine_(engine), neighbour_(neighbour), random_(seed), report_(report) {}

  // The golden outputs. Errors are starts that failed.
  absl::Status Begin();
  // From here transitions carry the fault, and every cycle moves all tags over running work.
  void Plant(Injection injection);
  Failure Run();
  // Compares host memory with the first call's figure; the pool is trimmed before.
  Failure CheckHostMemory();

 private:
  bool Chance(int percent) { return static_cast<int>(random_() % 100) < percent; }
  bool MaybeArm();
  std::vector<std::string> SomeTags();
  Failure TouchHostMemory();
  Failure RewriteALeaf();
  Failure RestoreTheLeaf();
  Failure Sleep(const std::vector<std::string>& tags, const Before& before);
  Failure Wake(std::vector<std::string> tags);
  Failure WakeOnce(const std::vector<std::string>& tags);
  Failure CompareGolden();
  // Every byte of device memory has an owner, within the ledger's bound.
  Failure CheckLedger();
  absl::StatusOr<std::uint64_t> OwnBytes();

  Engine& engine_;
  testing::Neighbour* neighbour_;
  std::mt19937_64 random_;
  SoakReport& report_;
  bool planted_ = false;
  PromptSet greedy_, seeded_;
  Outputs golden_greedy_, golden_seeded_;
  HostBuffer saved_;             // what the rewritten piece held
  AddressRange rewritten_;       // bytes 0: none
  std::int64_t host_bytes_ = 0;  // at the first CheckHostMemory
};

}  // namespace holdfast

#endif  // HOLDFAST_TOOLS_SOAK_CYCLE_H_
