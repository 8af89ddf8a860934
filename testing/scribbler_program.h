// Which program is started as the neighbour that scribbles over freed memory.
#ifndef HOLDFAST_TESTING_SCRIBBLER_PROGRAM_H_
#define HOLDFAST_TESTING_SCRIBBLER_PROGRAM_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace holdfast::testing {

// A program that takes `--device D --bytes N` or `--device D --serve`, behind its own words.
struct ScribblerProgram {
  std::string path;                // empty: to be looked for
  std::vector<std::string> words;  // what comes before the flags: a subcommand's name

  std::vector<std::string> With(std::vector<std::string> flags) const {
    flags.insert(flags.begin(), words.begin(), words.end());
    return flags;
  }
};

// The helper program that comes with the package:
inline constexpr char kScribblerName[] = "holdfast-scribble";
// and the environment variable that names another place of it.
inline constexpr char kScribblerVariable[] = "HOLDFAST_SCRIBBLE";

// `wanted` if it has a path. Else the helper: where HOLDFAST_SCRIBBLE says; beside this program; in
// ../libexec/holdfast or ../bin from there; where the kit was built or installed; on PATH.
// kNotFound naming it: what wants a scribbler is skipped or fails, never passed over.
absl::StatusOr<ScribblerProgram> FindScribbler(const ScribblerProgram& wanted = {});

// For a program with a `scribble` command of its own, such as holdfast.
ScribblerProgram ScribblerInThisProgram();

}  // namespace holdfast::testing

#endif  // HOLDFAST_TESTING_SCRIBBLER_PROGRAM_H_
