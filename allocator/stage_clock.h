// Where a transition spends its time, by stage; a stage lasts until the next begins.
#ifndef HOLDFAST_ALLOCATOR_STAGE_CLOCK_H_
#define HOLDFAST_ALLOCATOR_STAGE_CLOCK_H_

#include <array>
#include <chrono>
#include <map>
#include <string>

namespace holdfast {

enum class Stage {
  kPrepare,  // judging, and waiting for host memory
  kDrain,    // waiting for admitted work
  kHolders,  // hooks of external registrations
  kHash,     // waiting for hashes, comparing them
  kCopy,     // waiting for copies
  kUnmap,
  kRelease,
  kMap,  // creating pages and mapping them
  kAccess,
  kFill,
  kRefill,
  kLocalMemory,
  kUndo,
  kCount_,  // how many, not a stage
};

// Costs no allocation while it runs: it is read on the path of every chunk.
class StageClock {
 public:
  StageClock() : created_(Clock::now()) {}
  void Begin(Stage stage);
  void End();
  // "prepare", "drain", "holders", "hash", ...; only those that were begun.
  std::map<std::string, double> seconds() const;
  // Since the clock was made.
  double total() const;

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kStages = static_cast<std::size_t>(Stage::kCount_);

  Clock::time_point created_;
  Clock::time_point begun_;
  Stage stage_ = Stage::kCount_;
  std::array<Clock::duration, kStages> spent_{};
  std::array<bool, kStages> seen_{};
};

}  // namespace holdfast

#endif  // HOLDFAST_ALLOCATOR_STAGE_CLOCK_H_
