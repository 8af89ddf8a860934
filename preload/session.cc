#include "preload/session.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "device/cuda/observed_device.h"
#include "graphs/node_words.h"
#include "preload/bypass.h"

namespace holdfast::preload {
namespace {

constexpr std::size_t kErrorsKept = 20;
constexpr std::size_t kUnreadableKept = 20;

}  // namespace

Session& Session::Get() {
  static Session& session = *new Session;
  return session;
}

template <typename Body>
void Session::Swallow(const char* what, const Body& body) {
  try {
    body();
  } catch (const std::exception& error) {
    Error(absl::StrCat(what, ": ", error.what()));
  } catch (...) {
    Error(what);
  }
}

void Session::Error(const std::string& what) {
  try {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (errors_.size() < kErrorsKept &&
        std::find(errors_.begin(), errors_.end(), what) == errors_.end()) {
      errors_.push_back(what);
    }
  } catch (...) {
    // No memory even for the line.
  }
}

void Session::Allocated(const char* call, std::uint64_t address, std::uint64_t bytes,
                        std::uint64_t pool) {
  if (!settings_.record || address == 0 || bytes == 0) return;
  Swallow("an allocation was not recorded", [&] {
    const std::lock_guard<std::mutex> lock(mutex_);
    const AllocationPtr added = memory_.Add(++allocations_, call, {{address}, bytes}, ++now_);
    added->pool = pool;
    if (!open_.empty()) added->capture = captures_;
    ++by_call_[call];
  });
}

std::vector<AllocationPtr> Session::Freeing(const char* call, std::uint64_t address) {
  std::vector<AllocationPtr> freed;
  Swallow("a free was not recorded", [&] {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (AllocationPtr gone = memory_.End({address}, call, ++now_); gone != nullptr) {
      freed.push_back(std::move(gone));
    }
  });
  return freed;
}

std::vector<AllocationPtr> Session::Unmapping(const char* call, std::uint64_t address,
                                              std::uint64_t bytes) {
  std::vector<AllocationPtr> freed;
  Swallow("an unmapping was not recorded", [&] {
    const std::lock_guard<std::mutex> lock(mutex_);
    freed = memory_.EndWithin({{address}, bytes}, call, ++now_);
  });
  return freed;
}

void Session::Settle(const std::vector<AllocationPtr>& freed, bool done) {
  if (freed.empty()) return;
  Swallow("a free was not judged", [&] {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const AllocationPtr& allocation : freed) {
      if (!done) {
        memory_.Revive(allocation);
        continue;
      }
      // The blocks cut from it go with it, and say so under their own names.
      for (const AllocationPtr& block :
           blocks_.EndWithin(allocation->range, allocation->freed_by, allocation->died)) {
        if (!exiting_) watch_.Freed(block);
      }
      if (!exiting_) watch_.Freed(allocation);
    }
  });
}

void Session::PoolDestroyed(std::uint64_t pool) {
  Swallow("the end of a pool was not recorded", [&] {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const std::vector<AllocationPtr>& all : {memory_.InUse(), memory_.Gone()}) {
      for (const AllocationPtr& allocation : all) {
        if (pool != 0 && allocation->pool == pool) allocation->pool_gone = true;
      }
    }
  });
}

void Session::ContextDestroyed() {
  Swallow("the end of a context was not recorded", [&] {
    const std::lock_guard<std::mutex> lock(mutex_);
    memory_.Forget();
    blocks_.Forget();
    watch_.ForgetExecutables();
    recorded_.clear();
    open_.clear();
    ++contexts_destroyed_;
  });
}

void Session::NoteRange(const char* name, std::uint64_t address, std::uint64_t bytes) {
  if (!settings_.record || address == 0 || bytes == 0) return;
  Swallow("a range was not noted", [&] {
    const std::lock_guard<std::mutex> lock(mutex_);
    const AllocationPtr added = blocks_.Add(++allocations_, "block", {{address}, bytes}, ++now_);
    if (name != nullptr) added->name = name;
    ++by_call_["block"];
  });
}

void Session::ForgetRange(std::uint64_t address) {
  Swallow("a range was not forgotten", [&] {
    const std::lock_guard<std::mutex> lock(mutex_);
    const AllocationPtr gone = blocks_.End({address}, "its allocator", ++now_);
    if (gone != nullptr && !exiting_) watch_.Freed(gone);
  });
}

void Session::OnAudit(void (*refresh)()) {
  const std::lock_guard<std::mutex> lock(mutex_);
  refresh_ = refresh;
}

void Session::Refresh() {
  void (*refresh)() = nullptr;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    refresh = refresh_;
  }
  if (refresh != nullptr) refresh();
}

void Session::CaptureBegan(std::uint64_t stream) {
  Swallow("a capture was not recorded", [&] {
    Refresh();
    const std::lock_guard<std::mutex> lock(mutex_);
    open_[stream] = {.number = ++captures_, .begin = ++now_};
  });
}

void Session::CaptureEnded(std::uint64_t stream, std::uint64_t graph) {
  Swallow("a capture was not recorded", [&] {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = open_.find(stream);
    if (found == open_.end()) return;
    CaptureTimes times = found->second;
    open_.erase(found);
    times.end = ++now_;
    if (graph != 0) recorded_[graph] = times;
  });
}

bool Session::capturing() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return !open_.empty();
}

void Session::GraphCloned(std::uint64_t from, std::uint64_t to) {
  Swallow("a copy of a graph was not recorded", [&] {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const auto found = recorded_.find(from); found != recorded_.end()) {
      recorded_[to] = found->second;
    }
  });
}

void Session::GraphDestroyed(std::uint64_t graph) {
  const std::lock_guard<std::mutex> lock(mutex_);
  recorded_.erase(graph);
}

void Session::Instantiated(std::uint64_t graph, std::uint64_t exec) {
  Swallow("a graph was not audited", [&] {
    Refresh();
    const std::lock_guard<std::mutex> audit(audit_mutex_);
    Audited audited = Read(graph);
    audited.facts.exec = exec;
    const std::lock_guard<std::mutex> lock(mutex_);
    watch_.Instantiated(std::move(audited.facts), audited.seen);
  });
}

void Session::ExecUpdated(std::uint64_t exec, std::uint64_t graph) {
  Swallow("an update of a graph was not audited", [&] {
    Refresh();
    const std::lock_guard<std::mutex> audit(audit_mutex_);
    Audited audited = Read(graph);
    const std::lock_guard<std::mutex> lock(mutex_);
    watch_.Updated(exec, std::move(audited.facts), audited.seen);
  });
}

void Session::ExecChangedOneNode(std::uint64_t exec) {
  Swallow("a change of a graph was not recorded", [&] {
    const std::lock_guard<std::mutex> lock(mutex_);
    watch_.ChangedOneNode(exec);
  });
}

void Session::ExecDestroyed(std::uint64_t exec) {
  Swallow("the end of a graph was not recorded", [&] {
    const std::lock_guard<std::mutex> lock(mutex_);
    watch_.Destroyed(exec);
  });
}

History::Place Session::At(DeviceAddress address) const {
  // Blocks first: they say what is inside an allocation. Where the allocation itself has gone, so
  // have they.
  const History::Place block = blocks_.At(address);
  const History::Place whole = memory_.At(address);
  if (block.live != nullptr) return block;
  if (block.freed != nullptr && whole.live != nullptr && whole.live->born < block.freed->died) {
    return block;
  }
  return whole;
}

Device* Session::Observer() {
  if (observer_ != nullptr || observer_failed_) return observer_.get();
  absl::StatusOr<std::unique_ptr<Device>> device =
      ObserveCudaDriver([this](DeviceAddress address) -> std::optional<AddressState> {
        const std::lock_guard<std::mutex> lock(mutex_);
        const History::Place place = At(address);
        if (place.live != nullptr) return AddressState{.mapped = true};
        // Reserved is what the audit lists: an address nobody may use.
        if (place.freed != nullptr) return AddressState{.reserved = true};
        return std::nullopt;
      });
  if (!device.ok()) {
    observer_failed_ = true;
    Error(absl::StrCat("graphs are not audited: ", std::string(device.status().message())));
    return nullptr;
  }
  observer_ = *std::move(device);
  return observer_.get();
}

const std::string* Session::Intern(const std::string& name) { return &*names_.insert(name).first; }

Session::Audited Session::Read(std::uint64_t graph) {
  const BypassScope own_calls;
  Audited audited;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const auto found = recorded_.find(graph); found != recorded_.end()) {
      audited.facts.capture = found->second;
    }
  }
  Device* const observer = Observer();
  if (observer == nullptr) return audited;
  const auto adopted = observer->AdoptGraph(reinterpret_cast<void*>(graph));
  const absl::StatusOr<GraphView> view =
      adopted.ok() ? (*adopted)->View() : absl::StatusOr<GraphView>(adopted.status());
  if (!view.ok()) {
    Error(absl::StrCat("a graph could not be read: ", std::string(view.status().message())));
    return audited;
  }
  const AuditReport report = Audit(*view, *observer, nullptr);
  GraphFacts& facts = audited.facts;
  facts.nodes = report.nodes;
  facts.words = report.words;
  for (std::size_t i = 0; i < view->nodes.size(); ++i) {
    const NodeKind kind = view->nodes[i].kind;
    const bool hidden = kind == NodeKind::kHost || kind == NodeKind::kSemaphore ||
                        kind == NodeKind::kChild || kind == NodeKind::kUnreadable;
    if (hidden && facts.unreadable.size() < kUnreadableKept) {
      facts.unreadable.push_back(NodeLabel(i, view->nodes[i]));
    }
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const PointerFinding& pointer : report.pointers) {
    const History::Place place = At({pointer.word});
    if (pointer.kind != PointerClass::kHost) ++facts.pointers;
    if (place.live == nullptr && place.freed == nullptr) {
      if (pointer.kind == PointerClass::kForeign) ++facts.unrecorded;
      continue;
    }
    const NodeView& node = view->nodes[pointer.node];
    const std::string kind = NodeKindName(node.kind);
    audited.seen.push_back(
        {.reference = {.node = pointer.node,
                       .node_name = Intern(node.name == kind ? kind : kind + " " + node.name),
                       .where = pointer.where(),
                       .word = pointer.word},
         .place = place});
  }
  return audited;
}

void Session::Exiting() {
  const std::lock_guard<std::mutex> lock(mutex_);
  exiting_ = true;
}

std::uint64_t Session::findings() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return watch_.findings().size();
}

Account Session::Take() {
  const std::lock_guard<std::mutex> lock(mutex_);
  Account account{.settings = settings_,
                  .driver = observer_ != nullptr ? observer_->info().driver : "",
                  .allocations = by_call_,
                  .graphs = watch_.graphs(),
                  .open_captures = open_.size(),
                  .contexts_destroyed = contexts_destroyed_,
                  .errors = errors_};
  for (const Finding& finding : watch_.findings()) {
    const Allocation& gone = *finding.allocation;
    const std::uint64_t word = finding.references.front().word;
    const History& history = gone.call == "block" ? blocks_ : memory_;
    const History::Place place = history.At({word});
    AllocationPtr owner = place.live != nullptr ? place.live : place.freed;
    if (owner != nullptr && (owner->id == gone.id || owner->born < gone.died)) owner = nullptr;
    const bool remapped = settings_.allow_remap && owner != nullptr && owner->died == 0 &&
                          owner->call == "cuMemMap" && gone.call == "cuMemMap" &&
                          owner->range == gone.range;
    (remapped ? account.remapped : account.findings).push_back({finding, owner});
  }
  return account;
}

}  // namespace holdfast::preload
