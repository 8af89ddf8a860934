// Spans: the named, aligned ranges of an arena that programs hold and graphs refer to.
#ifndef HOLDFAST_ALLOCATOR_SPAN_H_
#define HOLDFAST_ALLOCATOR_SPAN_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "device/device.h"

namespace holdfast {

// What the contents are worth.
enum class Role {
  kImmutable,  // weights: written once, then sealed and mapped read-only
  kMutable,    // state: kept across sleep. The default, so that nothing is lost by accident
  kCache,      // KV: may be dropped at sleep
  kScratch,    // dead between replays: dropped at sleep
};
const char* RoleName(Role role);  // "immutable", ...

// How dropped contents come back at wake.
enum class WakeContents {
  kZero,       // every byte 0
  kPoison,     // every byte 0xFF: NaN in every float type, so that a stale read shows
  kUndefined,  // whatever the pages hold; refuses replay until refilled (scratch: replays need no
               // contents)
};

// Refills a dropped span after its pages are mapped and before its tag counts as awake. Enqueues to
// `stream` and may wait for it. `span` is the whole span (its committed part, if less is
// committed). It runs inside the transition: it must not reserve, commit, sleep or wake in this
// arena.
using Refill = std::function<absl::Status(Device& device, Stream& stream, AddressRange span)>;

// Names a span of one arena for life. The default names none.
struct SpanId {
  std::uint32_t index = UINT32_MAX;
  auto operator<=>(const SpanId&) const = default;
};

struct SpanSpec {
  std::string name;  // unique in the arena, e.g. "layers.0.mlp.gate"
  std::string tag;   // spans of one tag sleep together
  Role role = Role::kMutable;
  std::uint64_t bytes = 0;        // > 0; reported unrounded
  std::uint64_t alignment = 256;  // power of two, at most the device's granularity
  std::string owner;              // who pays for it in the ledger; free text
  WakeContents wake_contents = WakeContents::kZero;  // dropped spans only
  Refill
      refill;  // immutable or mutable spans with a refill are dropped at sleep and refilled at wake
  // It holds addresses that kernels follow (tables of pointers, tensor maps): the audit cannot see
  // those in a graph's nodes and reads them out of memory instead, where this says so.
  bool contains_pointers = false;
  std::string part = {};  // which group of its tag and role; see GroupSpec
};

struct SpanInfo {
  SpanSpec spec;
  AddressRange range;  // fixed for life
};

// A dropped span keeps no copy in the backing tier.
inline bool IsDropped(const SpanSpec& spec) {
  return spec.role == Role::kCache || spec.role == Role::kScratch || spec.refill != nullptr;
}

}  // namespace holdfast

#endif  // HOLDFAST_ALLOCATOR_SPAN_H_
