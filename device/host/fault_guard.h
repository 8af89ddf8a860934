// Runs code whose stray memory accesses must not end the process.
//
// A fault (SIGSEGV, SIGBUS) inside RunGuarded, on its thread, ends the guarded code there and comes
// back as a value. Faults of all other code go on to whoever handled them before, by default the
// end of the process. The guarded code is left where it stood: destructors of its frames do not
// run, so it must not hold locks or own memory while it follows pointers that may be wrong.
#ifndef HOLDFAST_DEVICE_HOST_FAULT_GUARD_H_
#define HOLDFAST_DEVICE_HOST_FAULT_GUARD_H_

#include <cstdint>
#include <optional>

namespace holdfast {

struct Fault {
  std::uint64_t address = 0;  // as the CPU reports it; 0 for addresses no page table can hold
  int signal = 0;
};

// Installs the process-wide handlers, once; later calls do nothing. Needed before RunGuarded.
void InstallFaultHandlers();

// The fault that ended body(argument), or nullopt if it ran to its end.
std::optional<Fault> RunGuarded(void (*body)(const void*), const void* argument);

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_HOST_FAULT_GUARD_H_
