#include "allocator/ledger.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "device/error.h"

namespace holdfast {
namespace {

void AppendArena(const Arena& arena, const std::string& prefix, LedgerReport& report) {
  for (const TagBytes& row : arena.bytes_by_tag()) {
    const std::string owner = absl::StrCat(prefix, row.tag, "/", RoleName(row.role));
    const auto spans = static_cast<std::int64_t>(row.backed_bytes);
    const auto pages = static_cast<std::int64_t>(row.resident_bytes);
    report.lines.push_back({.owner = owner, .what = "spans", .bytes = spans, .sleeps = true});
    report.lines.push_back(
        {.owner = owner, .what = "rounding", .bytes = pages - spans, .sleeps = true});
  }
  std::set<SpanId> exported;
  for (const RegisteredHolder& holder : arena.registrations().all()) {
    if (holder.registration.kind != HolderKind::kExport) continue;
    exported.insert(holder.registration.spans.begin(), holder.registration.spans.end());
  }
  for (const SpanId span : exported) report.exported_bytes += arena.range(span).bytes;
}

}  // namespace

LedgerEvent::LedgerEvent(Ledger& ledger, std::string owner)
    : ledger_(&ledger),
      owner_(std::move(owner)),
      alone_(ledger.event_mutex_),
      before_(ledger.DriverBytes()) {}

LedgerEvent::LedgerEvent(LedgerEvent&& other) noexcept
    : ledger_(std::exchange(other.ledger_, nullptr)),
      owner_(std::move(other.owner_)),
      alone_(std::move(other.alone_)),
      before_(other.before_) {}

LedgerEvent::~LedgerEvent() {
  if (ledger_ == nullptr) return;
  const std::optional<std::int64_t> after = ledger_->DriverBytes();
  if (before_.has_value() && after.has_value()) ledger_->PutDown(owner_, *after - *before_);
}

Ledger::Ledger(Device& device) : device_(device) {
  PutDown(kContextOwner, DriverBytes().value_or(0));
}

LedgerEvent Ledger::Measure(const std::string& owner) { return LedgerEvent(*this, owner); }

absl::Status Ledger::SeparateLocalMemory(const std::string& taken_by) {
  std::lock_guard<std::mutex> alone(event_mutex_);
  const std::optional<std::int64_t> with = DriverBytes();
  if (!with.has_value() || device_.local_memory_released()) return absl::OkStatus();
  HOLDFAST_RETURN_IF_ERROR(device_.ReleaseLocalMemory());
  const std::optional<std::int64_t> without = DriverBytes();
  HOLDFAST_RETURN_IF_ERROR(device_.RestoreLocalMemory());
  if (!without.has_value()) return absl::OkStatus();
  const std::int64_t grown = *with - *without - BytesOf(kLocalMemoryOwner);
  PutDown(kLocalMemoryOwner, grown);
  PutDown(taken_by, -grown);
  return absl::OkStatus();
}

std::int64_t Ledger::BytesOf(const std::string& owner) const {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [name, bytes] : by_owner_) {
    if (name == owner) return bytes;
  }
  return 0;
}

absl::StatusOr<LedgerReport> Ledger::Report(const std::vector<const Arena*>& arenas) const {
  LedgerReport report;
  for (const Arena* arena : arenas) {
    AppendArena(*arena, arenas.size() > 1 ? arena->name() + "." : "", report);
  }
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const bool released = device_.local_memory_released();
    for (const auto& [owner, bytes] : by_owner_) {
      const bool sleeps = owner == kLocalMemoryOwner;
      report.lines.push_back({.owner = owner,
                              .what = "driver",
                              .bytes = sleeps && released ? 0 : bytes,
                              .sleeps = sleeps});
      if (!sleeps) report.floor_bytes += bytes;
    }
  }
  for (const LedgerLine& line : report.lines) report.explained_bytes += line.bytes;
  HOLDFAST_ASSIGN_OR_RETURN(const MemoryUse memory, device_.Memory());
  report.imported_bytes = memory.imported_bytes;
  report.process_bytes = memory.process_bytes;
  if (memory.process_bytes > 0) {
    report.unexplained_bytes =
        static_cast<std::int64_t>(memory.process_bytes) - report.explained_bytes;
  }
  return report;
}

std::optional<std::int64_t> Ledger::DriverBytes() const {
  const absl::StatusOr<MemoryUse> memory = device_.Memory();
  // A GPU always holds something for us; on the host device nothing may be all there is.
  if (!memory.ok() || (device_.info().is_cuda && memory->process_bytes == 0)) return std::nullopt;
  return static_cast<std::int64_t>(memory->process_bytes) -
         static_cast<std::int64_t>(memory->own_bytes);
}

void Ledger::PutDown(const std::string& owner, std::int64_t change) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = std::find_if(by_owner_.begin(), by_owner_.end(),
                                  [&](const auto& entry) { return entry.first == owner; });
  if (found != by_owner_.end()) {
    found->second += change;
  } else {
    by_owner_.emplace_back(owner, change);
  }
}

}  // namespace holdfast
