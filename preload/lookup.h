// How the hooks get between a program and its driver, and how they reach the driver themselves.
//
// The CUDA runtime and most frameworks open libcuda.so.1 and ask dlsym for cuGetProcAddress, and
// that for all the rest: dlsym is ours, hands out our cuGetProcAddress, and that hands out our
// functions. A program that is linked with libcuda finds our functions by their names.
#ifndef HOLDFAST_PRELOAD_LOOKUP_H_
#define HOLDFAST_PRELOAD_LOOKUP_H_

#include <atomic>

#include "preload/driver_calls.h"

namespace holdfast::preload {

// One row of HOLDFAST_WATCHED_CALLS.
struct WatchedCall {
  const char* symbol;
  const char* name;
  int version;
  Flavour flavour;
  void* ours;
  std::atomic<void*> real{nullptr};
};

enum class CallId {
#define HOLDFAST_PRELOAD_ID(symbol, name, version, flavour, handler, parameters, arguments) \
  k_##symbol,
  HOLDFAST_WATCHED_CALLS(HOLDFAST_PRELOAD_ID)
#undef HOLDFAST_PRELOAD_ID
};

// All rows, in order: exports.cc.
WatchedCall* Calls();
std::size_t CallCount();

// The driver's own function, as it was handed to the program or as its name finds it; null without
// a driver.
void* RealFunction(CallId id);
// By its exported name, past the hooks. Null without a driver that the program has opened.
void* FindInDriver(const char* symbol);
// Whether anything of a driver was asked for in this process.
bool MetDriver();

}  // namespace holdfast::preload

#endif  // HOLDFAST_PRELOAD_LOOKUP_H_
