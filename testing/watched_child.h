// A child process that may crash, hang and say anything: its events are read up to a deadline, its
// end is told apart, and what it leaves behind is killed.
#ifndef HOLDFAST_TESTING_WATCHED_CHILD_H_
#define HOLDFAST_TESTING_WATCHED_CHILD_H_

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace holdfast::testing {

class WatchedChild {
 public:
  // Where the child writes its events, one a line. Its input is empty; its output and errors are
  // read and kept, see said().
  static constexpr int kEventFile = 3;

  // Runs `program` (a path) as the head of a process group of its own. kInternal.
  static absl::StatusOr<std::unique_ptr<WatchedChild>> Start(const std::string& program,
                                                             std::vector<std::string> arguments);
  // Kills what is left of the group.
  ~WatchedChild();
  WatchedChild(const WatchedChild&) = delete;
  WatchedChild& operator=(const WatchedChild&) = delete;

  // The next event; nullopt once the child has closed its end. kDeadlineExceeded if none comes in
  // that time. A last line without an end is dropped.
  absl::StatusOr<std::optional<std::string>> NextLine(std::chrono::milliseconds patience);
  // Ends it, whatever it does, and waits. "" if it ended by itself with status 0, else "crashed
  // with signal 11 (SIGSEGV)" or "ended with status 3".
  std::string End();
  // The last of what it printed, in one line of at most 200 characters.
  std::string said() const;

 private:
  WatchedChild() = default;
  // Reads what is there from one of the two; false at its end.
  static bool ReadSome(int& file, std::string& to);

  pid_t child_ = 0;
  int events_ = -1, output_ = -1;  // our ends; -1: closed
  std::string unread_, printed_;
};

// For the child: it dies with its parent, leaves no core file, and hands the event file to nobody
// it starts.
void BecomeWatched();

}  // namespace holdfast::testing

#endif  // HOLDFAST_TESTING_WATCHED_CHILD_H_
