// `holdfast audit`: what graph manifests say, and how two of them differ.
#ifndef HOLDFAST_TOOLS_AUDIT_COMMAND_H_
#define HOLDFAST_TOOLS_AUDIT_COMMAND_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace holdfast {

struct AuditOptions {
  std::vector<std::string> files;
  std::string graph;       // only this one; empty: all
  bool pointers = false;   // list every pointer
  std::string dot;         // write `graph` for Graphviz to this file
  std::size_t most = 200;  // lines of differences that are printed
};

struct AuditAnswer {
  std::string text;
  bool same = true;  // no file differs from the first
};

// One file: describes it. More: compares each with the first. An error is bad input: a file that
// cannot be read or is no manifest, a graph that is not in it.
absl::StatusOr<AuditAnswer> AuditFiles(const AuditOptions& options);

}  // namespace holdfast

#endif  // HOLDFAST_TOOLS_AUDIT_COMMAND_H_
