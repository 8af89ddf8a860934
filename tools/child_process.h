// A child process of this program, with a line to talk over.
#ifndef HOLDFAST_TOOLS_CHILD_PROCESS_H_
#define HOLDFAST_TOOLS_CHILD_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace holdfast {

class ChildProcess {
 public:
  // Runs this program with `arguments`; what the child reads and says (stderr too) is our line.
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(std::vector<std::string> arguments);
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

  std::string what_;  // "holdfast scribble"
  pid_t child_ = 0;
  int line_ = -1;     // our end of the socket pair
  std::string said_;  // read and not yet used
};

}  // namespace holdfast

#endif  // HOLDFAST_TOOLS_CHILD_PROCESS_H_
