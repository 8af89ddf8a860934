// Tier 3 of the audit: pointers that lie in memory. Tables of pointers, descriptors, peer tables:
// a graph's nodes show only where such a table begins. Spans (and declared ranges) flagged
// `contains_pointers` are read on the device; every word that could be an address must lead to
// something declared.
#ifndef HOLDFAST_GRAPHS_DEEP_SCAN_H_
#define HOLDFAST_GRAPHS_DEEP_SCAN_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/arena.h"
#include "device/device.h"
#include "graphs/audit.h"

namespace holdfast {

// How many words of one flagged span lead into one span, host span or declared range.
struct DeepLink {
  std::string holder;
  PointerClass kind = PointerClass::kSpan;
  std::string object;
  std::uint64_t words = 0;
};

// A word that leads nowhere it may.
struct DeepFinding {
  std::string holder;  // the flagged span, + offset: where the word lies
  std::uint64_t holder_offset = 0;
  std::uint64_t word = 0;
  PointerClass kind = PointerClass::kUnmapped;  // or kForeign
  std::string object;                           // of a retired range; else ""
};

struct DeepScanReport {
  std::uint64_t bytes = 0;  // read
  std::vector<std::string> scanned;
  std::vector<std::string> skipped;  // flagged, but asleep or without pages
  std::vector<DeepLink> links;
  std::vector<DeepFinding> findings;  // by holder and offset
  std::vector<std::string> problems;  // a sentence for each finding, and where the scan gave up

  // Spans that flagged memory leads into: a graph that follows it needs their tags awake.
  std::set<std::string> spans() const;
  // OK, or the first problem as kForeignPointer naming the holder.
  absl::Status Verdict() const;
};

// Reads every flagged span of `arena` (which may be null) that is awake, as far as it is committed,
// and every flagged range of `externals`. Waits for `stream`, on which nothing may be writing to
// them, and keeps transitions of the arena out meanwhile: not to be called from a refill hook. What
// does not lie in a span, a host span or a range in use is put to the device, as in Audit.
absl::StatusOr<DeepScanReport> DeepScan(Device& device, Stream& stream, Arena* arena,
                                        const std::vector<ExternalRange>& externals = {});

}  // namespace holdfast

#endif  // HOLDFAST_GRAPHS_DEEP_SCAN_H_
