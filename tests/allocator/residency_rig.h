// A small arena with one group of every kind, filled with known bytes, and a Residency over it.
//
//   weights/immutable   two spans, two chunks, sealed          kept
//   state/mutable       one span, one chunk                    kept
//   kv_cache/cache      one span that comes back zeroed, one poisoned     dropped, two chunks
//   workspace/scratch   one undefined span                     dropped
//   tables/immutable    one span with a refill hook            dropped and refilled
#ifndef HOLDFAST_TESTS_ALLOCATOR_RESIDENCY_RIG_H_
#define HOLDFAST_TESTS_ALLOCATOR_RESIDENCY_RIG_H_

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "allocator/residency.h"
#include "tests/allocator/bytes_on_device.h"
#include "tests/device/test_device.h"

namespace holdfast {

inline Residency::Deadline In(std::chrono::milliseconds time) {
  return std::chrono::steady_clock::now() + time;
}
// Long enough for any machine; a test that waits this long has failed.
inline Residency::Deadline Soon() { return In(std::chrono::seconds(30)); }

inline const TagTransition* Row(const TransitionReport& report, const std::string& tag) {
  for (const TagTransition& row : report.tags) {
    if (row.tag == tag) return &row;
  }
  return nullptr;
}

inline const std::vector<std::string>& AllTags() {
  static const std::vector<std::string> tags = {"weights", "state", "kv_cache", "workspace",
                                                "tables"};
  return tags;
}

struct RigOptions {
  bool host_only = false;
  DeviceOptions device;
  ResidencyOptions residency;
};

class ResidencyRig {
 public:
  using Options = RigOptions;

  explicit ResidencyRig(const Options& options = {})
      : device(options.host_only ? TestHostDevice(options.device) : TestDevice(options.device)) {
    Build(options);
  }

  // What must be the same after a failed transition, or after sleep and wake.
  struct State {
    std::map<std::string, AddressRange> addresses;
    std::map<std::string, std::vector<Hash128>> kept;
    std::uint64_t own_bytes = 0;
    std::map<std::string, bool> asleep;
    bool gate_closed = false;
    bool operator==(const State&) const = default;
  };
  State Look() {
    State state;
    for (const SpanInfo& span : arena->spans()) state.addresses[span.spec.name] = span.range;
    absl::StatusOr<std::map<std::string, std::vector<Hash128>>> kept = residency->HashKept();
    EXPECT_OK(kept);
    if (kept.ok()) state.kept = *kept;
    state.own_bytes = device->Memory()->own_bytes;
    for (const std::string& tag : AllTags()) state.asleep[tag] = residency->asleep(tag);
    state.gate_closed = arena->gate().closed();
    return state;
  }

  Bytes Read(const std::string& span) {
    return ReadBytes(*device, *stream, arena->range(*arena->Find(span)));
  }
  void Write(const std::string& span, std::uint64_t seed) {
    const AddressRange range = arena->range(*arena->Find(span));
    WriteBytes(*device, *stream, range.base, Pattern(range.bytes, seed));
  }
  Bytes Expected(const std::string& span, std::uint64_t seed) {
    return Pattern(arena->range(*arena->Find(span)).bytes, seed);
  }
  void WriteDropped() {
    Write("kv.zero", 11);
    Write("kv.poison", 12);
    Write("workspace", 13);
    Write("table", kTableSeed);
  }

  static constexpr std::uint64_t kTableSeed = 14;

  // What is kept of the weights: up to the last span, rounded up to a page.
  std::uint64_t WeightBytes() const {
    const AddressRange last = arena->range(*arena->Find("w1"));
    return AlignUp(last.end() - arena->range(*arena->Find("w0")).base, 4 * kKiB);
  }

  std::unique_ptr<Device> device;
  std::unique_ptr<Stream> stream;
  std::unique_ptr<Arena> arena;
  std::unique_ptr<Residency> residency;
  int refills = 0;
  // Ends everything but the device, in order.
  void End() {
    residency.reset();
    stream.reset();
    arena.reset();
    refill_source_ = {};
  }

  // What the hook does instead of writing the table, if set.
  std::function<absl::Status()> refill_override;

 private:
  void Build(const Options& options) {
    const std::uint64_t g = device->info().granularity;
    absl::StatusOr<std::unique_ptr<Arena>> made =
        Arena::Create(*device, {.name = "rig",
                                .groups = {{"weights", Role::kImmutable, 2 * g, g},
                                           {"state", Role::kMutable, g, g},
                                           {"kv_cache", Role::kCache, 2 * g, g},
                                           {"workspace", Role::kScratch, g, g},
                                           {"tables", Role::kImmutable, g, g, true}}});
    ASSERT_OK(made);
    arena = *std::move(made);
    absl::StatusOr<std::unique_ptr<Stream>> work = device->CreateStream("test");
    ASSERT_OK(work);
    stream = *std::move(work);
    Add({.name = "w0", .tag = "weights", .role = Role::kImmutable, .bytes = g / 2 + 100});
    Add({.name = "w1", .tag = "weights", .role = Role::kImmutable, .bytes = g});
    Add({.name = "state", .tag = "state", .bytes = g - 1});
    Add({.name = "kv.zero", .tag = "kv_cache", .role = Role::kCache, .bytes = g - 4096});
    Add({.name = "kv.poison",
         .tag = "kv_cache",
         .role = Role::kCache,
         .bytes = g,
         .wake_contents = WakeContents::kPoison});
    Add({.name = "workspace",
         .tag = "workspace",
         .role = Role::kScratch,
         .bytes = g,
         .wake_contents = WakeContents::kUndefined});
    Add({.name = "table",
         .tag = "tables",
         .role = Role::kImmutable,
         .bytes = 4096,
         .wake_contents = WakeContents::kUndefined,
         .refill = [this](Device&, Stream& to, AddressRange span) { return Refill(to, span); }});
    for (const std::string& tag : AllTags()) ASSERT_OK(arena->CommitTag(tag));
    Write("w0", 1);
    Write("w1", 2);
    Write("state", 3);
    WriteDropped();
    ASSERT_OK(arena->Seal("weights"));
    arena->Lock();
    absl::StatusOr<std::unique_ptr<Residency>> over = Residency::Create(*arena, options.residency);
    ASSERT_OK(over);
    residency = *std::move(over);
  }

  void Add(SpanSpec spec) {
    spec.owner = "test";
    if (spec.name == "kv.poison") spec.alignment = 4096;
    ASSERT_OK(arena->Reserve(std::move(spec)));
  }

  absl::Status Refill(Stream& to, AddressRange span) {
    ++refills;
    if (refill_override) return refill_override();
    // The source outlives the hook: if the wait below fails, the copy is still under way.
    HOLDFAST_ASSIGN_OR_RETURN(refill_source_, device->AllocateHost(span.bytes));
    const Bytes bytes = Pattern(span.bytes, kTableSeed);
    std::memcpy(refill_source_.data(), bytes.data(), bytes.size());
    HOLDFAST_RETURN_IF_ERROR(
        device->CopyToDevice(to, span.base, refill_source_.data(), span.bytes));
    return device->Synchronize(to);
  }

  HostBuffer refill_source_;
};

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_ALLOCATOR_RESIDENCY_RIG_H_
