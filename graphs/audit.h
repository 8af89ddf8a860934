// The audit: reads every node of a captured graph and says, for every word that could be a pointer,
// what it points into. Tier 1 of three: runs at every capture.
//
// Words are the aligned 8-byte words of kernel parameters (inside by-value structs too), and the
// addresses of copies and fills. A word is classified by address range first; only words that fall
// into no known range are put to the device.
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

namespace holdfast {

enum class PointerClass {
  kSpan,        // a span of the arena, + offset
  kHostSpan,    // a registered host span, + offset
  kExternal,    // a range the caller declared by name
  kForeign,     // device or pinned memory nobody declared
  kUnmapped,    // inside the arena's window but in no span, or a freed range
  kHost,        // unregistered host memory as a copy's side
  kNotPointer,  // anything else; not listed
};
const char* PointerClassName(PointerClass c);

// Memory outside the arena that graphs may use, by name.
struct ExternalRange {
  std::string name;
  AddressRange range;
};

struct PointerFinding {
  std::size_t node = 0;  // index into GraphView::nodes
  std::string where;     // "parameter 0 + 16", "copy destination", "fill destination"
  std::uint32_t parameter = 0,
                byte = 0;  // the word's place in a kernel's parameters; unused for others
  std::uint64_t word = 0;
  PointerClass kind = PointerClass::kNotPointer;
  std::string object;        // span, host span or range name; "" for foreign and unmapped
  std::uint64_t offset = 0;  // into it
  bool write = false;        // known to be written (copies, fills)
};

struct AuditReport {
  std::size_t nodes = 0;
  std::uint64_t words = 0;  // looked at
  std::vector<PointerFinding> pointers;
  std::vector<std::string>
      problems;  // what makes the capture fail, one sentence each, naming node and word
  std::map<PointerClass, std::uint64_t> count_by_class() const;
  std::set<std::string> spans() const;  // names
  // OK, or the first problem as kForeignPointer (foreign, unmapped, unregistered host; a copy or
  // fill beyond its object, of uncommitted pages, or into a sealed span) or kUnauditable
  // (allocation, free, host and unreadable nodes), naming the graph; the message lists all
  // problems.
  absl::Status Verdict(const std::string& graph_name) const;

 private:
  friend class Auditor;
  bool unauditable_first_ = false;  // the first problem is a node, not a pointer
};

struct AuditPolicy {
  bool allow_host_nodes = false;
  std::set<std::string> allowed_nodes;  // names of nodes that may be unreadable, allocate or free
};

// Classifies every word. `arena` may be null: then only `externals` are known (a stand-alone audit
// of any graph). Writes that it can see (copies, fills) must not target a sealed span; copies and
// fills lie inside one object and, while its tag is awake, on committed pages. (Asleep, a write to
// any immutable span counts as one to a sealed span.) For a graph captured unshifted, on the
// arena's device.
AuditReport Audit(const GraphView& view, const Device& device, const Arena* arena,
                  const std::vector<ExternalRange>& externals = {}, const AuditPolicy& policy = {});

// Node by node, what differs between two captures of the same step: kinds, names, parameter words,
// copies, fills, edges. Empty if nothing does. Each line names node and word. Parameter words that
// lie in the calling thread's stack both times are not compared: libraries pass temporaries of
// their own there (cuBLASLt's split-K reduction does), at whatever depth they ran.
std::vector<std::string> DiffGraphs(const GraphView& a, const GraphView& b);

}  // namespace holdfast

#endif  // HOLDFAST_GRAPHS_AUDIT_H_
