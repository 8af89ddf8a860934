// The neighbour: another process that takes the memory a sleeping engine gave up, writes over it,
// and gives it back. After it, no wake can pass by luck.
#ifndef HOLDFAST_TESTING_SCRIBBLE_H_
#define HOLDFAST_TESTING_SCRIBBLE_H_

#include <cstdint>
#include <istream>
#include <memory>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "testing/child_process.h"
#include "testing/scribbler_program.h"

namespace holdfast::testing {

// Takes `bytes` (rounded down to the granularity) of the device, fills them with 0xA5, checks some
// of each chunk, gives them back. kOutOfMemory if they are not to be had.
absl::Status Scribble(const std::string& device_spec, std::uint64_t bytes);

// The same in a child process; waits for it. An error carries what the child said.
absl::Status ScribbleInChild(const ScribblerProgram& program, const std::string& device_spec,
                             std::uint64_t bytes);

// The same with a context that is already up, on request. Commands, one a line, each answered by
// "ok" and a number, or "error" and why:
//   take BYTES     takes them and writes over them
//   release        gives back what take took
//   fill SLACK     takes all that is free but SLACK, until the end; the number is what it took
// Ends with `in`. An error is a start that failed.
absl::Status ServeNeighbour(const std::string& device_spec, std::istream& in, std::ostream& out);

// Such a process, seen from this one. It ends with this object.
class Neighbour {
 public:
  // Returns once its context is up.
  static absl::StatusOr<std::unique_ptr<Neighbour>> Start(const ScribblerProgram& program,
                                                          const std::string& device_spec);

  absl::Status Take(std::uint64_t bytes);
  absl::Status Release();
  absl::StatusOr<std::uint64_t> FillAllBut(std::uint64_t slack);

 private:
  explicit Neighbour(std::unique_ptr<ChildProcess> child) : child_(std::move(child)) {}
  absl::StatusOr<std::uint64_t> Ask(const std::string& command);

  std::unique_ptr<ChildProcess> child_;
};

}  // namespace holdfast::testing

#endif  // HOLDFAST_TESTING_SCRIBBLE_H_
