#include "tools/progress.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>

namespace holdfast {
namespace {

bool Terminal() {
  static const bool terminal = isatty(STDERR_FILENO) == 1;
  return terminal;
}

std::string& Stage() {
  static std::string stage;
  return stage;
}

void Draw(const std::string& text) {
  std::fprintf(stderr, "\r\033[K%s", text.c_str());
  std::fflush(stderr);
}

}  // namespace

void ShowStage(const std::string& stage) {
  if (!Terminal()) return;
  Stage() = stage;
  Draw(stage + " ...");
}

void ShowFraction(std::uint64_t done, std::uint64_t total) {
  if (!Terminal() || total == 0) return;
  using Clock = std::chrono::steady_clock;
  static Clock::time_point last;
  const Clock::time_point now = Clock::now();
  if (done < total && now - last < std::chrono::milliseconds(100)) return;
  last = now;
  Draw(Stage() + " ... " + std::to_string(done * 100 / total) + " %");
}

void ClearProgress() {
  if (Terminal()) Draw("");
}

}  // namespace holdfast
