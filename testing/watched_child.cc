#include "testing/watched_child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "device/error.h"

extern char** environ;

namespace holdfast::testing {
namespace {

constexpr std::size_t kKeptOutput = 4096;
constexpr std::size_t kSaid = 200;
constexpr std::chrono::milliseconds kGoodbye{2000};  // to end by itself after its last event

absl::Status Failed(const char* call, int code) {
  return MakeError({.kind = ErrorKind::kInternal, .object = "worker", .call = call, .code = code},
                   "the worker process did not start");
}

void Close(int& file) {
  if (file >= 0) close(file);
  file = -1;
}

}  // namespace

absl::StatusOr<std::unique_ptr<WatchedChild>> WatchedChild::Start(
    const std::string& program, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), program);
  std::unique_ptr<WatchedChild> self(new WatchedChild());
  int events[2], output[2];
  if (pipe2(events, O_CLOEXEC) != 0) return Failed("pipe2", errno);
  self->events_ = events[0];
  if (pipe2(output, O_CLOEXEC) != 0) {
    const int code = errno;
    close(events[1]);
    return Failed("pipe2", code);
  }
  self->output_ = output[0];
  // Copies above the numbers that are set: none of the three is overwritten before it is used.
  int ends[2] = {fcntl(events[1], F_DUPFD_CLOEXEC, 10), fcntl(output[1], F_DUPFD_CLOEXEC, 10)};
  close(events[1]);
  close(output[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[0], kEventFile);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  std::vector<char*> words;
  for (std::string& word : arguments) words.push_back(word.data());
  words.push_back(nullptr);
  const int spawned =
      posix_spawn(&self->child_, program.c_str(), &actions, &attributes, words.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  for (int& end : ends) Close(end);
  if (spawned != 0) {
    self->child_ = 0;
    return Failed("posix_spawn", spawned);
  }
  return self;
}

WatchedChild::~WatchedChild() {
  End();
  Close(events_);
  Close(output_);
}

bool WatchedChild::ReadSome(int& file, std::string& to) {
  char buffer[4096];
  ssize_t n = 0;
  do {
    n = read(file, buffer, sizeof(buffer));
  } while (n < 0 && errno == EINTR);
  if (n <= 0) {
    Close(file);
    return false;
  }
  to.append(buffer, static_cast<std::size_t>(n));
  return true;
}

absl::StatusOr<std::optional<std::string>> WatchedChild::NextLine(
    std::chrono::milliseconds patience) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point deadline = Clock::now() + patience;
  while (true) {
    if (const std::size_t end = unread_.find('\n'); end != std::string::npos) {
      std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return std::optional(std::move(line));
    }
    if (events_ < 0) return std::optional<std::string>();
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) {
      return MakeError({.kind = ErrorKind::kDeadlineExceeded, .object = "worker"},
                       "no event came in time");
    }
    // poll leaves out a file of -1.
    pollfd files[2] = {{.fd = events_, .events = POLLIN, .revents = 0},
                       {.fd = output_, .events = POLLIN, .revents = 0}};
    if (poll(files, 2, static_cast<int>(std::min<std::int64_t>(left.count(), 60'000))) <= 0) {
      continue;
    }
    if (files[1].revents != 0) {
      ReadSome(output_, printed_);
      if (printed_.size() > kKeptOutput) printed_.erase(0, printed_.size() - kKeptOutput);
    }
    if (files[0].revents != 0) ReadSome(events_, unread_);
  }
}

std::string WatchedChild::End() {
  if (child_ == 0) return "";
  int state = 0;
  // It has told its last, or has to go: in the first case it is about to end by itself.
  const auto until = std::chrono::steady_clock::now() + kGoodbye;
  pid_t reaped = 0;
  while (events_ < 0 && reaped == 0 && std::chrono::steady_clock::now() < until) {
    reaped = waitpid(child_, &state, WNOHANG);
    if (reaped == 0) usleep(1000);
  }
  kill(-child_, SIGKILL);
  while (reaped == 0 || (reaped < 0 && errno == EINTR)) reaped = waitpid(child_, &state, 0);
  child_ = 0;
  if (WIFSIGNALED(state)) {
    const char* const name = sigabbrev_np(WTERMSIG(state));
    return absl::StrCat("crashed with signal ", WTERMSIG(state), " (SIG",
                        name != nullptr ? name : "?", ")");
  }
  if (WEXITSTATUS(state) == 0) return "";
  return absl::StrCat("ended with status ", WEXITSTATUS(state));
}

std::string WatchedChild::said() const {
  std::string text;
  for (const char c : printed_) text += std::isprint(static_cast<unsigned char>(c)) != 0 ? c : ' ';
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text.size() > kSaid ? text.substr(text.size() - kSaid) : text;
}

void BecomeWatched() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit none = {.rlim_cur = 0, .rlim_max = 0};
  setrlimit(RLIMIT_CORE, &none);
  fcntl(WatchedChild::kEventFile, F_SETFD, FD_CLOEXEC);
  // A watcher that has gone is no reason to die of a write.
  signal(SIGPIPE, SIG_IGN);
}

}  // namespace holdfast::testing
