#include "allocator/stage_clock.h"

namespace holdfast {
namespace {

constexpr const char* kNames[] = {"prepare", "drain",        "holders", "hash",   "copy",
                                  "unmap",   "release",      "map",     "access", "fill",
                                  "refill",  "local memory", "undo"};

}  // namespace

void StageClock::Begin(Stage stage) {
  const Clock::time_point now = Clock::now();
  if (stage_ != Stage::kCount_) spent_[static_cast<std::size_t>(stage_)] += now - begun_;
  stage_ = stage;
  begun_ = now;
  if (stage != Stage::kCount_) seen_[static_cast<std::size_t>(stage)] = true;
}

void StageClock::End() { Begin(Stage::kCount_); }

std::map<std::string, double> StageClock::seconds() const {
  static_assert(std::size(kNames) == kStages);
  std::map<std::string, double> seconds;
  for (std::size_t s = 0; s < kStages; ++s) {
    if (seen_[s]) seconds[kNames[s]] = std::chrono::duration<double>(spent_[s]).count();
  }
  return seconds;
}

double StageClock::total() const {
  return std::chrono::duration<double>(Clock::now() - created_).count();
}

}  // namespace holdfast
