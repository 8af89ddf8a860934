// An attempt with one of its device calls failing, on both devices: how error paths are walked.
//
//   const std::uint64_t calls = WithFailureAt(device, kNoFailure, attempt).counted;
//   for (std::uint64_t k : SpreadOver(calls, /*most=*/0)) {
//     const FailingCall failed = WithFailureAt(device, k, attempt);    // failed.status,
//     failed.fired
//     ...nothing may have changed, and attempt() must work now...
//   }
#ifndef HOLDFAST_TESTING_FAILING_CALL_H_
#define HOLDFAST_TESTING_FAILING_CALL_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "device/device.h"

namespace holdfast::testing {

inline constexpr std::uint64_t kNoFailure = UINT64_MAX;

struct FailingCall {
  absl::Status status;        // what the attempt said
  bool fired = false;         // it came as far as the k-th call
  std::uint64_t counted = 0;  // calls it made
};

// attempt() -> absl::Status, whose k-th call (1 = the first) among `calls` (all kinds if empty)
// fails once, before it reaches the device. Calls of other threads count, too.
template <typename Attempt>
FailingCall WithFailureAt(Device& device, std::uint64_t k, Attempt&& attempt,
                          std::vector<Call> calls = {}) {
  device.calls().FailAt(k, std::move(calls));
  FailingCall result{.status = attempt()};
  result.counted = device.calls().counted();
  result.fired = device.calls().Disarm();
  return result;
}

// `most` of [1, count], spread evenly, first and last among them; all of them if `most` is 0.
inline std::vector<std::uint64_t> SpreadOver(std::uint64_t count, std::uint64_t most) {
  if (most == 0 || most >= count) most = count;
  std::vector<std::uint64_t> places;
  for (std::uint64_t i = 0; i < most; ++i) {
    places.push_back(most == 1 ? 1 : 1 + i * (count - 1) / (most - 1));
  }
  return places;
}

}  // namespace holdfast::testing

#endif  // HOLDFAST_TESTING_FAILING_CALL_H_
