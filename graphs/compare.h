// Private to graphs/: comparing two readings of one step, word by word. DiffGraphs (audit.h) asks
// for equality; the shifted capture asks that exactly the arena's words moved.
#ifndef HOLDFAST_GRAPHS_COMPARE_H_
#define HOLDFAST_GRAPHS_COMPARE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "device/node_view.h"
#include "graphs/audit.h"

namespace holdfast {

// `base` was captured in place and audited, `shifted` with every span `shift` bytes higher. Each
// word that the audit found to point into a span must have moved by exactly `shift`; everything
// else must be equal. Returns what is not so, each line naming node, word and, for a span's
// pointer, the span.
std::vector<std::string> DiffShifted(const GraphView& base, const AuditReport& audit,
                                     const GraphView& shifted, std::uint64_t shift);

}  // namespace holdfast

#endif  // HOLDFAST_GRAPHS_COMPARE_H_
