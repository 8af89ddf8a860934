// What `holdfast bench sleep` puts to sleep: an arena of two tags on a bare device, without a
// model.
#ifndef HOLDFAST_TOOLS_BENCH_ARENA_H_
#define HOLDFAST_TOOLS_BENCH_ARENA_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/arena.h"
#include "allocator/residency.h"
#include "device/bytes.h"

namespace holdfast {

inline constexpr char kBenchKept[] = "kept";
inline constexpr char kBenchDropped[] = "dropped";

struct BenchArenaOptions {
  std::uint64_t kept_bytes = kGiB;  // over all spans
  std::uint64_t dropped_bytes = 0;  // one cache span that comes back zeroed; 0: none
  std::uint64_t chunk_bytes = 256 * kMiB;
  std::uint64_t spans = 1;  // of the kept tag, equally large
  bool sealed = true;       // kept contents are weights, else state
  ResidencyOptions residency;
};

class BenchArena {
 public:
  // Everything committed, kept contents written and (if sealed) sealed. kInvalidArgument naming the
  // flag.
  static absl::StatusOr<std::unique_ptr<BenchArena>> Create(Device& device,
                                                            const BenchArenaOptions& options,
                                                            bool through_pool);

  // New contents for `fraction` of the kept leaves, at least one, evenly spread.
  absl::Status Rewrite(double fraction, std::uint64_t seed);

  // One hash over all leaves of the kept contents, taken without the residency.
  absl::StatusOr<Hash128> HashContents();

  Arena& arena() { return *arena_; }
  Residency& residency() { return *residency_; }
  std::uint64_t kept_bytes() const { return kept_logical_; }  // sum of the spans, unrounded
  std::uint64_t mapped_kept_bytes() const;                    // pages behind them

 private:
  BenchArena(Device& device, BenchArenaOptions options)
      : device_(device), options_(std::move(options)) {}
  absl::Status Build();
  absl::Status Load(bool through_pool);
  absl::Status LoadThroughPool();
  // Contents over all kept spans at once: they lie side by side.
  AddressRange KeptRange() const;
  absl::Status WriteContents(AddressRange range, std::uint64_t seed);

  Device& device_;
  BenchArenaOptions options_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<Residency> residency_;
  std::vector<SpanId> kept_;
  std::uint64_t kept_logical_ = 0;
};

}  // namespace holdfast

#endif  // HOLDFAST_TOOLS_BENCH_ARENA_H_
