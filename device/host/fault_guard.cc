#include "device/host/fault_guard.h"

#include <csetjmp>
#include <csignal>
#include <mutex>

namespace holdfast {
namespace {

struct GuardSlot {
  sigjmp_buf env;
  Fault fault;
};

// The innermost guard of this thread. Initial-exec: a signal handler must not allocate to read it.
__attribute__((tls_model("initial-exec"))) thread_local GuardSlot* current_slot = nullptr;

struct sigaction previous_segv;
struct sigaction previous_bus;

// Lets the signal do what it would have done without us.
void PassOn(int signal, siginfo_t* info, void* context) {
  const struct sigaction& previous = signal == SIGSEGV ? previous_segv : previous_bus;
  if ((previous.sa_flags & SA_SIGINFO) != 0) {
    previous.sa_sigaction(signal, info, context);
    return;
  }
  if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
    previous.sa_handler(signal);
    return;
  }
  // Nobody: with the default action back in place, the faulting instruction runs again and ends the
  // process as it should. A signal that was sent has no instruction to run again.
  struct sigaction standard = {};
  standard.sa_handler = SIG_DFL;
  sigaction(signal, &standard, nullptr);
  if (info == nullptr || info->si_code <= 0) raise(signal);
}

void OnFault(int signal, siginfo_t* info, void* context) {
  GuardSlot* slot = current_slot;
  const bool sent_by_somebody = info == nullptr || info->si_code <= 0;
  if (slot == nullptr || sent_by_somebody) {
    PassOn(signal, info, context);
    return;
  }
  slot->fault = {.address = reinterpret_cast<std::uint64_t>(info->si_addr), .signal = signal};
  siglongjmp(slot->env, 1);
}

}  // namespace

void InstallFaultHandlers() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action = {};
    action.sa_sigaction = &OnFault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, &previous_segv);
    sigaction(SIGBUS, &action, &previous_bus);
  });
}

std::optional<Fault> RunGuarded(void (*body)(const void*), const void* argument) {
  GuardSlot slot;
  GuardSlot* const outer = current_slot;
  // The mask is saved: the handler's own signal is blocked where we jump from.
  if (sigsetjmp(slot.env, /*savemask=*/1) != 0) {
    current_slot = outer;
    return slot.fault;
  }
  current_slot = &slot;
  body(argument);
  current_slot = outer;
  return std::nullopt;
}

}  // namespace holdfast
