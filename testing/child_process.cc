#include "testing/child_process.h"

#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "device/error.h"

extern char** environ;

namespace holdfast::testing {

absl::Status ChildProcess::Failed(const std::string& why, int code) const {
  return MakeError({.kind = ErrorKind::kInternal, .object = what_, .code = code}, why);
}

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(
    const std::string& program, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), program);
  std::unique_ptr<ChildProcess> self(
      new ChildProcess(absl::StrCat(program, arguments.size() > 1 ? " " + arguments[1] : "")));
  int ends[2];
  // A socket pair, not pipes: a write to a child that has gone is then an error, not a signal.
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return self->Failed("no line to the child", errno);
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    posix_spawn_file_actions_adddup2(&actions, ends[1], stream);
  }
  std::vector<char*> words;
  for (std::string& word : arguments) words.push_back(word.data());
  words.push_back(nullptr);
  const int spawned =
      posix_spawn(&self->child_, program.c_str(), &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  self->line_ = ends[0];
  if (spawned != 0) {
    self->child_ = 0;
    return self->Failed("the child did not start", spawned);
  }
  return self;
}

ChildProcess::~ChildProcess() {
  if (line_ >= 0) shutdown(line_, SHUT_WR);
  Reap();
  if (line_ >= 0) close(line_);
}

int ChildProcess::Reap() {
  int state = 0;
  if (child_ != 0) {
    while (waitpid(child_, &state, 0) < 0 && errno == EINTR) {
    }
  }
  child_ = 0;
  return state;
}

bool ChildProcess::ReadMore() {
  char buffer[512];
  ssize_t n = 0;
  do {
    n = read(line_, buffer, sizeof(buffer));
  } while (n < 0 && errno == EINTR);
  if (n <= 0) return false;
  said_.append(buffer, static_cast<std::size_t>(n));
  return true;
}

absl::StatusOr<std::string> ChildProcess::Ask(const std::string& line) {
  const std::string text = line + "\n";
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t n = send(line_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return Failed(absl::StrCat("the child has gone: ", said_), errno);
    sent += static_cast<std::size_t>(n);
  }
  std::size_t end = 0;
  while ((end = said_.find('\n')) == std::string::npos) {
    if (!ReadMore()) return Failed(absl::StrCat("the child has gone: ", said_), 0);
  }
  std::string answer = said_.substr(0, end);
  said_.erase(0, end + 1);
  return answer;
}

absl::Status ChildProcess::WaitForEnd() {
  shutdown(line_, SHUT_WR);
  while (ReadMore()) {
  }
  const int state = Reap();
  if (WIFEXITED(state) && WEXITSTATUS(state) == 0) return absl::OkStatus();
  return Failed(absl::StrCat("the child said: ", said_), state);
}

}  // namespace holdfast::testing
