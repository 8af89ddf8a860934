// The audit: reads every node of a captured graph and says, for every word that could be a pointer,
// what it points into. Tier 1 of three: runs at every capture.
//
// Words are the aligned 8-byte words of kernel parameters (inside by-value structs too), the
// addresses of copies, fills and memory operations, and access-policy windows. A word is classified
// by address range first; only words that fall into no known range are put to the device. Tier 2,
// the shifted capture, is compare.h; tier 3, which follows pointers into memory, is deep_scan.h.
#ifndef HOLDFAST_GRAPHS_AUDIT_H_
#define HOLDFAST_GRAPHS_AUDIT_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/arena.h"
#include "device/device.h"
#include "device/node_view.h"
#include "graphs/node_words.h"

namespace holdfast {

enum class PointerClass : std::uint8_t {
  kSpan,        // a span of the arena, + offset
  kHostSpan,    // a registered host span, + offset
  kExternal,    // a range the caller declared by name
  kForeign,     // device or pinned memory nobody declared
  kUnmapped,    // inside the arena's window but in no span, freed, or reserved with nothing mapped
  kHost,        // unregistered host memory as a copy's side
  kNotPointer,  // anything else; not listed
};
const char* PointerClassName(PointerClass c);

// Memory outside the arena that graphs may use, by name; or, if `retired`, must not use any more:
// what was freed behind this device's back (a library's old workspace, say).
struct ExternalRange {
  std::string name;
  AddressRange range;
  bool sealed = false;             // nobody may write to it
  bool retired = false;            // pointers into it are kUnmapped, by its name
  bool contains_pointers = false;  // for DeepScan
};

struct PointerFinding {
  static constexpr std::uint32_t kNoObject = UINT32_MAX;

  std::uint32_t node = 0;  // index into GraphView::nodes
  WordPlace place = WordPlace::kParameter;
  PointerClass kind = PointerClass::kNotPointer;
  bool write = false;                 // known to be written (copies, fills, memory operations)
  std::uint32_t index = 0, byte = 0;  // see WordPlace
  std::uint32_t object = kNoObject;   // index into AuditReport::objects
  std::uint64_t word = 0;
  std::uint64_t offset = 0;  // into the object

  std::string where() const { return PlaceLabel(place, index, byte); }
};

struct AuditReport {
  std::size_t nodes = 0;
  std::uint64_t words = 0;             // looked at
  std::uint64_t writes = 0;            // known writes: copies, fills, memory operations
  std::uint64_t writes_to_sealed = 0;  // of those, refused
  std::vector<PointerFinding> pointers;
  std::vector<std::string> objects;   // names of spans, host spans and ranges pointed into
  std::vector<std::string> problems;  // what makes the capture fail, naming node and word

  // The name of what a finding points into; "" for foreign memory and the like.
  const std::string& ObjectOf(const PointerFinding& pointer) const;
  std::map<PointerClass, std::uint64_t> count_by_class() const;
  std::set<std::string> objects_of(PointerClass kind) const;  // names
  std::set<std::string> spans() const { return objects_of(PointerClass::kSpan); }
  // OK, or the first problem as kForeignPointer (foreign, unmapped, unregistered host; a copy or
  // fill beyond its object, of uncommitted pages, or into a sealed span) or kUnauditable
  // (allocation, free, host, semaphore and unreadable nodes), naming the graph; the message lists
  // all problems.
  absl::Status Verdict(const std::string& graph_name) const;

 private:
  friend class Auditor;
  bool unauditable_first_ = false;  // the first problem is a node, not a pointer
};

struct AuditPolicy {
  bool allow_host_nodes = false;
  // Names of nodes that may be unreadable, allocate, free, or use a semaphore.
  std::set<std::string> allowed_nodes;
};

// Classifies every word. `arena` may be null: then only `externals` are known (a stand-alone audit
// of any graph). Writes that it can see (copies, fills, memory operations) must not target a sealed
// span or range; they and what they read lie inside one object and, while its tag is awake, on
// committed pages. (Asleep, a write to any immutable span counts as one to a sealed span.) For a
// graph captured unshifted, on the arena's device.
AuditReport Audit(const GraphView& view, const Device& device, const Arena* arena,
                  const std::vector<ExternalRange>& externals = {}, const AuditPolicy& policy = {});

// Node by node, what differs between two captures of the same step: kinds, names, parameter words,
// copies, fills, edges. Empty if nothing does. Each line names node and word. Parameter words that
// lie in the calling thread's stack both times are not compared: libraries pass temporaries of
// their own there (cuBLASLt's split-K reduction does), at whatever depth they ran.
std::vector<std::string> DiffGraphs(const GraphView& a, const GraphView& b);

}  // namespace holdfast

#endif  // HOLDFAST_GRAPHS_AUDIT_H_
