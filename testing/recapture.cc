#include "testing/recapture.h"

#include <cstdint>

#include "device/bytes.h"
#include "device/error.h"

namespace holdfast::testing {
namespace {

// A device may hold more addresses behind a window than the window has.
constexpr std::uint64_t kLeastDistance = 64 * kGiB;
constexpr std::uint64_t kDistancesTried = 8;

}  // namespace

absl::StatusOr<std::vector<std::string>> CaptureAgain(Subject& subject) {
  return subject.graphs().Recapture(subject.workspace());
}

absl::StatusOr<std::vector<std::string>> CaptureElsewhere(Subject& subject) {
  const Arena& arena = subject.arena();
  const std::uint64_t step = AlignUp(arena.window().bytes, kLeastDistance);
  absl::StatusOr<std::vector<std::string>> lines;
  for (std::uint64_t i = 1; i <= kDistancesTried; ++i) {
    lines = subject.graphs().ShiftedCapture(subject.workspace(), i * step);
    if (!IsErrorKind(lines.status(), ErrorKind::kAddressTaken)) break;
  }
  return lines;
}

}  // namespace holdfast::testing
