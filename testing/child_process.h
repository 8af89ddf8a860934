// A child process with a line to talk over.
#ifndef HOLDFAST_TESTING_CHILD_PROCESS_H_
#define HOLDFAST_TESTING_CHILD_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace holdfast::testing {

class ChildProcess {
 public:
  // Runs `program` (a path; nothing is searched) with `arguments`; what the child reads and says
  // (stderr too) is our line.
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(const std::string& program,
                                                             std::vector<std::string> arguments);
  // Hangs up and waits for the child's end.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Sends `line` and waits for one line of answer. kInternal if the child has gone.
  absl::StatusOr<std::string> Ask(const std::string& line);
  // All it says until it ends; then an error carrying that, unless it exits with 0.
  absl::Status WaitForEnd();

 private:
  explicit ChildProcess(std::string what) : what_(std::move(what)) {}
  absl::Status Failed(const std::string& why, int code) const;
  // Appends to said_; false at the end of the line.
  bool ReadMore();
  int Reap();

  std::string what_;  // the program and its first argument
  pid_t child_ = 0;
  int line_ = -1;     // our end of the socket pair
  std::string said_;  // read and not yet used
};

}  // namespace holdfast::testing

#endif  // HOLDFAST_TESTING_CHILD_PROCESS_H_
