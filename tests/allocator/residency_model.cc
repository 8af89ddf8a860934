#include "tests/allocator/residency_model.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/device/test_device.h"

namespace holdfast {
namespace {

constexpr char kWeights[] = "weights", kState[] = "state", kCache[] = "kv_cache",
               kWorkspace[] = "workspace", kTables[] = "tables", kScrap[] = "scrap";
constexpr std::uint64_t kTableSeed = 14;
constexpr std::uint64_t kScrapBytes = 16 * kKiB;

bool Dropped(const ModelSpan& span) { return IsDropped(span.spec); }

std::uint8_t DeclaredByte(const SpanSpec& spec) {
  return spec.wake_contents == WakeContents::kPoison ? 0xFF : 0;
}

}  // namespace

RandomResidency::RandomResidency(std::uint64_t seed)
    : seed_(seed), random_(seed), device_(TestDevice()) {
  Build();
  if (!problem_.empty()) return;
  const AddressRange workspace = spans_.at("workspace").range, weights = spans_.at("w1").range;
  replayers_.push_back(
      std::make_unique<Replayer>(*arena_, std::vector<std::string>{kWorkspace, kCache},
                                 [workspace](Device& device, Stream& lane) {
                                   return device.Fill(lane, workspace.base, 7, workspace.bytes / 2);
                                 }));
  replayers_.push_back(std::make_unique<Replayer>(
      *arena_, std::vector<std::string>{kWeights, kWorkspace},
      [workspace, weights](Device& device, Stream& lane) {
        return device.CopyOnDevice(lane, workspace.base + workspace.bytes / 2, weights.base,
                                   workspace.bytes / 4);
      }));
}

RandomResidency::~RandomResidency() {
  for (const auto& replayer : replayers_) replayer->Stop();
}

void RandomResidency::Complain(const std::string& what) {
  if (!problem_.empty()) return;
  problem_ = absl::StrCat("seed ", seed_, ", operation ", step_, " (", operation_, "): ", what);
}

void RandomResidency::ExpectOk(const absl::Status& status, const std::string& what) {
  if (!status.ok()) Complain(absl::StrCat(what, ": ", status.ToString()));
}

void RandomResidency::Build() {
  operation_ = "build";
  const std::uint64_t g = device_->info().granularity;
  absl::StatusOr<std::unique_ptr<Arena>> arena =
      Arena::Create(*device_, {.name = "random",
                               .groups = {{kWeights, Role::kImmutable, 4 * g, g},
                                          {kState, Role::kMutable, 3 * g, 2 * g},
                                          {kCache, Role::kCache, 4 * g, g},
                                          {kWorkspace, Role::kScratch, g, g},
                                          {.tag = kTables,
                                           .role = Role::kImmutable,
                                           .extent_bytes = g,
                                           .chunk_bytes = g,
                                           .refilled = true},
                                          {kScrap, Role::kMutable, 512 * g, g}}});
  if (!arena.ok()) return ExpectOk(arena.status(), "arena");
  arena_ = *std::move(arena);
  absl::StatusOr<std::unique_ptr<Stream>> stream = device_->CreateStream("random");
  if (!stream.ok()) return ExpectOk(stream.status(), "stream");
  stream_ = *std::move(stream);
  for (HostBuffer* room : {&room_, &refill_room_}) {
    absl::StatusOr<HostBuffer> buffer = device_->AllocateHost(g);
    if (!buffer.ok()) return ExpectOk(buffer.status(), "room");
    *room = *std::move(buffer);
  }
  const Bytes table = Pattern(4096, kTableSeed);
  std::memcpy(refill_room_.data(), table.data(), table.size());

  constexpr auto kAll = UINT64_MAX;
  AddSpan({.name = "w0", .tag = kWeights, .role = Role::kImmutable, .bytes = g / 2 + 104}, kAll);
  AddSpan({.name = "w1", .tag = kWeights, .role = Role::kImmutable, .bytes = g}, kAll);
  AddSpan({.name = "w2", .tag = kWeights, .role = Role::kImmutable, .bytes = g}, kAll);
  AddSpan({.name = "s0", .tag = kState, .bytes = g - 8}, kAll);
  AddSpan({.name = "s1", .tag = kState, .bytes = g}, kAll);
  AddSpan({.name = "kv.poison",
           .tag = kCache,
           .role = Role::kCache,
           .bytes = g,
           .wake_contents = WakeContents::kPoison},
          kAll);
  AddSpan({.name = "kv.grows", .tag = kCache, .role = Role::kCache, .bytes = g}, g / 4);
  AddSpan({.name = "workspace",
           .tag = kWorkspace,
           .role = Role::kScratch,
           .bytes = g,
           .wake_contents = WakeContents::kUndefined},
          kAll);
  AddSpan(
      {.name = "table",
       .tag = kTables,
       .role = Role::kImmutable,
       .bytes = 4096,
       .wake_contents = WakeContents::kUndefined,
       .refill = [this](Device&, Stream& to, AddressRange span) { return RefillTable(to, span); }},
      kAll);
  AddSpan({.name = "scrap", .tag = kScrap, .bytes = kScrapBytes}, kAll);
  if (!problem_.empty()) return;
  for (auto& [name, span] : spans_) {
    if (span.known && name != "kv.grows") Write(span, 0, span.range.bytes);
    asleep_[span.spec.tag] = false;
  }
  ModelSpan& table_span = spans_.at("table");
  table_span.bytes = table;
  ExpectOk(RefillTable(*stream_, table_span.range), "first refill");
  absl::StatusOr<std::unique_ptr<Residency>> residency = Residency::Create(*arena_);
  if (!residency.ok()) return ExpectOk(residency.status(), "residency");
  residency_ = *std::move(residency);
}

void RandomResidency::AddSpan(SpanSpec spec, std::uint64_t committed) {
  spec.owner = "test";
  const absl::StatusOr<SpanId> id = arena_->Reserve(spec);
  if (!id.ok()) return ExpectOk(id.status(), absl::StrCat("reserve ", spec.name));
  ExpectOk(arena_->Commit(*id, committed), absl::StrCat("commit ", spec.name));
  const AddressRange range = arena_->range(*id);
  ModelSpan span{.spec = spec,
                 .id = *id,
                 .range = range,
                 .committed = std::min(committed, range.bytes),
                 .bytes = Bytes(range.bytes),
                 .known = spec.role != Role::kScratch};
  spans_[spec.name] = std::move(span);
}

absl::Status RandomResidency::RefillTable(Stream& stream, AddressRange span) {
  HOLDFAST_RETURN_IF_ERROR(
      device_->CopyToDevice(stream, span.base, refill_room_.data(), span.bytes));
  return device_->Synchronize(stream);
}

// Writes new contents to part of a span, on the device and in the mirror.
void RandomResidency::Write(ModelSpan& span, std::uint64_t offset, std::uint64_t bytes) {
  const Bytes fresh = Pattern(bytes, random_());
  std::memcpy(room_.data(), fresh.data(), fresh.size());
  std::memcpy(span.bytes.data() + offset, fresh.data(), fresh.size());
  absl::Status status =
      device_->CopyToDevice(*stream_, span.range.base + offset, room_.data(), bytes);
  if (status.ok()) status = device_->Synchronize(*stream_);
  ExpectOk(status, absl::StrCat("write ", span.spec.name));
}

bool RandomResidency::Holds(const ModelSpan& span, const Bytes& expected) {
  absl::Status status =
      device_->CopyToHost(*stream_, room_.data(), span.range.base, span.committed);
  if (status.ok()) status = device_->Synchronize(*stream_);
  ExpectOk(status, absl::StrCat("read ", span.spec.name));
  return std::memcmp(room_.data(), expected.data(), span.committed) == 0;
}

void RandomResidency::CheckContents(const std::string& tag) {
  for (const auto& [name, span] : spans_) {
    if (span.spec.tag != tag || !span.known) continue;
    if (!Holds(span, span.bytes)) Complain(absl::StrCat(name, " holds other bytes"));
  }
}

void RandomResidency::Restore(const std::string& tag) {
  for (auto& [name, span] : spans_) {
    if (span.spec.tag != tag || !Dropped(span) || span.spec.refill != nullptr) continue;
    std::fill(span.bytes.begin(), span.bytes.end(), DeclaredByte(span.spec));
  }
}

void RandomResidency::AcceptDropped(const std::string& tag) {
  for (auto& [name, span] : spans_) {
    if (span.spec.tag != tag || !span.known || !Dropped(span)) continue;
    if (Holds(span, span.bytes)) continue;
    const Bytes declared(span.bytes.size(), DeclaredByte(span.spec));
    if (span.spec.refill != nullptr || !Holds(span, declared)) {
      Complain(absl::StrCat(name, " holds neither its contents nor what it declares"));
    }
    span.bytes = declared;
  }
}

// Residency, addresses and books; compares no contents.
void RandomResidency::CheckCheap() {
  for (const auto& [tag, asleep] : asleep_) {
    if (residency_->asleep(tag) != asleep) {
      Complain(absl::StrCat(tag, asleep ? " is awake" : " is asleep", ", against the model"));
    }
    const absl::Status ready = arena_->CheckReady({tag});
    if (asleep ? !IsErrorKind(ready, ErrorKind::kAsleep) : !ready.ok()) {
      Complain(absl::StrCat(tag, " says of its readiness: ", ready.ToString()));
    }
  }
  if (arena_->gate().closed()) Complain("the gate stayed closed");
  for (const auto& [name, span] : spans_) {
    if (!(arena_->range(span.id) == span.range)) Complain(absl::StrCat(name, " moved"));
  }
  std::uint64_t resident = 0;
  for (const TagBytes& row : arena_->bytes_by_tag()) {
    resident += row.resident_bytes;
    const std::uint64_t wanted = asleep_.at(row.tag) ? 0 : row.committed_bytes;
    if (row.resident_bytes != wanted) Complain(absl::StrCat(row.tag, " counts wrong bytes"));
  }
  const absl::StatusOr<MemoryUse> memory = device_->Memory();
  ExpectOk(memory.status(), "memory");
  if (memory.ok() && memory->own_bytes != resident) {
    Complain(absl::StrCat("the device holds ", memory->own_bytes, " B, the books say ", resident));
  }
  for (const auto& replayer : replayers_) {
    if (replayer->lost_device()) Complain("a replay met a missing page");
  }
}

void RandomResidency::End() {
  operation_ = "end";
  for (const auto& replayer : replayers_) replayer->Stop();
  if (residency_ != nullptr && problem_.empty()) {
    const absl::StatusOr<TransitionReport> woken = residency_->Wake(arena_->tags());
    ExpectOk(woken.status(), "last wake");
    for (auto& [tag, asleep] : asleep_) {
      if (asleep) Restore(tag);
      asleep = false;
    }
    CheckCheap();
    for (const auto& [tag, asleep] : asleep_) CheckContents(tag);
  }
  residency_.reset();
  stream_.reset();
  arena_.reset();
  room_ = {};
  refill_room_ = {};
  const absl::StatusOr<MemoryUse> memory = device_->Memory();
  if (!memory.ok() || memory->own_bytes != 0 || !device_->calls().Balanced()) {
    Complain("something is left, or was given back twice");
  }
}

}  // namespace holdfast
