#include "graphs/deep_scan.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "device/error.h"
#include "graphs/pointer_classifier.h"

namespace holdfast {
namespace {

// Memory to read.
struct Holder {
  std::string name;
  AddressRange range;
};

// Memory that a word may lead into.
struct Known {
  WordScan::Range range;
  PointerClass kind;
  std::string name;
};

// By address, none overlapping another: of two that do, the later one loses what they share.
std::vector<Known> Disjoint(std::vector<Known> known) {
  std::stable_sort(known.begin(), known.end(),
                   [](const Known& a, const Known& b) { return a.range.begin < b.range.begin; });
  std::vector<Known> result;
  for (Known& k : known) {
    if (!result.empty()) k.range.begin = std::max(k.range.begin, result.back().range.end);
    if (k.range.begin < k.range.end) result.push_back(std::move(k));
  }
  return result;
}

Known MakeKnown(AddressRange range, PointerClass kind, const std::string& name) {
  return {{range.base.value, range.end().value}, kind, name};
}

std::vector<Known> KnownRanges(const Arena* arena, const std::vector<ExternalRange>& externals) {
  std::vector<Known> known;
  if (arena != nullptr) {
    for (const SpanInfo& span : arena->spans()) {
      known.push_back(MakeKnown(span.range, PointerClass::kSpan, span.spec.name));
    }
    for (const HostSpan* host : arena->host_spans()) {
      const std::uint64_t base = reinterpret_cast<std::uint64_t>(host->buffer.data());
      known.push_back(
          MakeKnown({{base}, host->buffer.size()}, PointerClass::kHostSpan, host->name));
    }
  }
  for (const ExternalRange& external : externals) {
    if (external.retired) continue;
    known.push_back(MakeKnown(external.range, PointerClass::kExternal, external.name));
  }
  return Disjoint(std::move(known));
}

class Scanner {
 public:
  Scanner(Device& device, Stream& stream, const Arena* arena,
          const std::vector<ExternalRange>& externals, HostBuffer block)
      : device_(device),
        stream_(stream),
        classifier_(device, arena, externals),
        known_(KnownRanges(arena, externals)),
        block_(std::move(block)) {}

  absl::Status Read(const Holder& holder) {
    report_.bytes += holder.range.bytes;
    report_.scanned.push_back(holder.name);
    const std::size_t findings = report_.findings.size();
    // The known ranges go to the device so many at a time; each pass looks at the words up to where
    // the next one's begin, so that together they look at every word once.
    std::uint64_t low = kLowestAddress;
    for (std::size_t first = 0; first == 0 || first < known_.size(); first += kMaxScanRanges) {
      const std::size_t next = first + kMaxScanRanges;
      const std::uint64_t high = next < known_.size() ? known_[next].range.begin : kHighestAddress;
      HOLDFAST_RETURN_IF_ERROR(Pass(holder, first, low, high));
      low = high;
    }
    std::sort(report_.findings.begin() + static_cast<std::ptrdiff_t>(findings),
              report_.findings.end(), [](const DeepFinding& a, const DeepFinding& b) {
                return a.holder_offset < b.holder_offset;
              });
    for (std::size_t i = findings; i < report_.findings.size(); ++i) Explain(report_.findings[i]);
    return absl::OkStatus();
  }

  DeepScanReport Take() { return std::move(report_); }
  DeepScanReport& report() { return report_; }

 private:
  absl::Status Pass(const Holder& holder, std::size_t first, std::uint64_t low,
                    std::uint64_t high) {
    WordScan* const scan = new (block_.data()) WordScan{};
    scan->low = low;
    scan->high = high;
    scan->range_count =
        static_cast<std::uint32_t>(std::min<std::size_t>(kMaxScanRanges, known_.size() - first));
    for (std::uint32_t i = 0; i < scan->range_count; ++i) scan->ranges[i] = known_[first + i].range;
    HOLDFAST_RETURN_IF_ERROR(device_.ScanWords(stream_, holder.range, scan));
    HOLDFAST_RETURN_IF_ERROR(device_.Synchronize(stream_));
    for (std::uint32_t i = 0; i < scan->range_count; ++i) {
      if (scan->counts[i] == 0) continue;
      const Known& known = known_[first + i];
      report_.links.push_back({holder.name, known.kind, known.name, scan->counts[i]});
    }
    const std::uint64_t listed = std::min<std::uint64_t>(scan->found, kMaxScanHits);
    for (std::uint64_t i = 0; i < listed; ++i) Judge(holder, scan->hits[i]);
    if (scan->found > listed) {
      report_.problems.push_back(
          absl::StrCat("span '", holder.name, "': ", scan->found,
                       " words could be addresses and lie in nothing declared; only ", listed,
                       " of them were looked at"));
    }
    return absl::OkStatus();
  }

  void Judge(const Holder& holder, const WordHit& hit) {
    const PointerTarget target = classifier_.Word(hit.word);
    if (target.kind != PointerClass::kForeign && target.kind != PointerClass::kUnmapped) return;
    DeepFinding finding{
        .holder = holder.name, .holder_offset = hit.offset, .word = hit.word, .kind = target.kind};
    if (target.object != PointerFinding::kNoObject)
      finding.object = classifier_.name(target.object);
    report_.findings.push_back(std::move(finding));
  }

  void Explain(const DeepFinding& finding) {
    report_.problems.push_back(
        absl::StrCat("span '", finding.holder, "' + ", finding.holder_offset, " holds ",
                     HexWord(finding.word), ": ",
                     finding.kind == PointerClass::kForeign ? "foreign memory that nobody declared"
                     : finding.object.empty()               ? "unmapped: in no span, or freed"
                                              : absl::StrCat("freed: '", finding.object, "'")));
  }

  Device& device_;
  Stream& stream_;
  PointerClassifier classifier_;
  const std::vector<Known> known_;
  HostBuffer block_;
  DeepScanReport report_;
};

// The flagged spans that can be read now. transition_mutex() is held.
std::vector<Holder> FlaggedSpans(const Arena& arena, std::vector<std::string>& skipped) {
  std::vector<Holder> holders;
  const std::vector<SpanInfo> spans = arena.spans();
  for (std::size_t i = 0; i < spans.size(); ++i) {
    if (!spans[i].spec.contains_pointers) continue;
    const std::uint64_t bytes = arena.committed_bytes({static_cast<std::uint32_t>(i)});
    if (bytes < kWordBytes || arena.asleep(spans[i].spec.tag)) {
      skipped.push_back(spans[i].spec.name);
    } else {
      holders.push_back({spans[i].spec.name, {spans[i].range.base, bytes}});
    }
  }
  return holders;
}

}  // namespace

std::set<std::string> DeepScanReport::spans() const {
  std::set<std::string> names;
  for (const DeepLink& link : links) {
    if (link.kind == PointerClass::kSpan) names.insert(link.object);
  }
  return names;
}

absl::Status DeepScanReport::Verdict() const {
  if (problems.empty()) return absl::OkStatus();
  return MakeError({.kind = ErrorKind::kForeignPointer,
                    .object = findings.empty() ? "deep scan" : findings.front().holder},
                   absl::StrCat("the deep scan found ", problems.size(),
                                " problem(s), the first: ", problems.front()));
}

absl::StatusOr<DeepScanReport> DeepScan(Device& device, Stream& stream, Arena* arena,
                                        const std::vector<ExternalRange>& externals) {
  HOLDFAST_ASSIGN_OR_RETURN(HostBuffer block, device.AllocateHost(sizeof(WordScan)));
  std::unique_lock<std::mutex> still;
  if (arena != nullptr) still = std::unique_lock<std::mutex>(arena->transition_mutex());
  Scanner scanner(device, stream, arena, externals, std::move(block));
  std::vector<Holder> holders;
  if (arena != nullptr) holders = FlaggedSpans(*arena, scanner.report().skipped);
  for (const ExternalRange& external : externals) {
    if (external.contains_pointers && !external.retired) {
      holders.push_back({external.name, external.range});
    }
  }
  for (const Holder& holder : holders) {
    HOLDFAST_RETURN_IF_ERROR(Annotate(scanner.Read(holder), holder.name));
  }
  return scanner.Take();
}

}  // namespace holdfast
