// The neighbour proof: what sleep reports as freed can be had by another process at once.
#ifndef HOLDFAST_TOOLS_BENCH_NEIGHBOUR_H_
#define HOLDFAST_TOOLS_BENCH_NEIGHBOUR_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "tools/bench_arena.h"

namespace holdfast {

// Another process, its context up, that asks for the freed memory the moment sleep returns, while
// it holds all the rest of the device.
struct NeighbourResult {
  std::string skipped;  // why it was left out; empty: it was not
  int rounds = 0, granted = 0;
  std::uint64_t taken_bytes = 0;   // a round: what sleep reported as freed, less one chunk
  std::uint64_t filled_bytes = 0;  // held by the neighbour throughout
  std::uint64_t slack_bytes = 0;   // left free beside it
  std::string refusal;             // the first one
};
absl::StatusOr<NeighbourResult> RunNeighbour(Device& device, const BenchArenaOptions& options,
                                             int rounds);

}  // namespace holdfast

#endif  // HOLDFAST_TOOLS_BENCH_NEIGHBOUR_H_
