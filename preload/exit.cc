#include "preload/exit.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "preload/lookup.h"
#include "preload/report.h"
#include "preload/session.h"

namespace holdfast::preload {
namespace {

// The process this library was loaded into: a forked child that has not run another program shares
// its memory, and has nothing of its own to report.
pid_t first_process = 0;
std::atomic<bool> reported{false};

// The status the process is to end with.
int Finish(int status) {
  if (!MetDriver() || getpid() != first_process || reported.exchange(true)) return status;
  try {
    const Account account = Session::Get().Take();
    Publish(account);
    if (account.settings.fail && status == 0 && !account.findings.empty()) return kFailStatus;
  } catch (...) {
    std::fputs("holdfast preload: the report could not be written\n", stderr);
  }
  return status;
}

void AtExit(int status, void*) {
  const int wanted = Finish(status);
  if (wanted == status) return;
  std::fflush(nullptr);
  syscall(SYS_exit_group, wanted);
}

__attribute__((constructor)) void Start() {
  first_process = getpid();
  on_exit(AtExit, nullptr);
}

}  // namespace

void WatchExit() {
  // Handlers run in reverse order: registered now, before those of what was there earlier.
  static const int registered = std::atexit([] { Session::Get().Exiting(); });
  static_cast<void>(registered);
}

}  // namespace holdfast::preload

// The ways out that run no handlers.
extern "C" {
__attribute__((visibility("default"), noreturn)) void _exit(int status) {
  const int wanted = holdfast::preload::Finish(status);
  for (;;) syscall(SYS_exit_group, wanted);
}
__attribute__((visibility("default"), noreturn)) void _Exit(int status) { _exit(status); }
}
