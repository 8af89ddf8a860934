// The driver as a foreign program reaches it: linked by name, or looked up as the CUDA runtime does
// (dlopen, dlsym for cuGetProcAddress, and that for all else).
#ifndef HOLDFAST_TESTS_PRELOAD_DRIVER_H_
#define HOLDFAST_TESTS_PRELOAD_DRIVER_H_

#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#define HOLDFAST_TEST_CALLS(X)           \
  X(MemAlloc, 3020)                      \
  X(MemFree, 3020)                       \
  X(MemAllocManaged, 6000)               \
  X(MemHostAlloc, 2020)                  \
  X(MemFreeHost, 2000)                   \
  X(MemAllocAsync, 11020)                \
  X(MemAllocFromPoolAsync, 11020)        \
  X(MemFreeAsync, 11020)                 \
  X(MemPoolCreate, 11020)                \
  X(MemPoolDestroy, 11020)               \
  X(MemAddressReserve, 10020)            \
  X(MemCreate, 10020)                    \
  X(MemMap, 10020)                       \
  X(MemUnmap, 10020)                     \
  X(ModuleGetFunction, 2000)             \
  X(StreamCreate, 2000)                  \
  X(StreamBeginCapture, 10010)           \
  X(StreamEndCapture, 10000)             \
  X(LaunchKernel, 4000)                  \
  X(MemsetD8Async, 3020)                 \
  X(MemcpyHtoDAsync, 3020)               \
  X(GraphCreate, 10000)                  \
  X(GraphAddKernelNode, 12000)           \
  X(GraphInstantiateWithFlags, 11040)    \
  X(GraphInstantiateWithParams, 12000)   \
  X(GraphExecUpdate, 12000)              \
  X(GraphExecKernelNodeSetParams, 12000) \
  X(GraphExecDestroy, 10000)             \
  X(GraphDestroy, 10000)                 \
  X(GraphLaunch, 10000)                  \
  X(DevicePrimaryCtxReset, 11000)

struct Driver {
#define HOLDFAST_TEST_MEMBER(name, version) decltype(&cu##name) name = nullptr;
  HOLDFAST_TEST_CALLS(HOLDFAST_TEST_MEMBER)
#undef HOLDFAST_TEST_MEMBER
};

inline Driver OpenDriver() {
  Driver driver;
#if HOLDFAST_TEST_LINKED
#define HOLDFAST_TEST_LINK(name, version) driver.name = &cu##name;
  HOLDFAST_TEST_CALLS(HOLDFAST_TEST_LINK)
#undef HOLDFAST_TEST_LINK
#else
  void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) {
    std::printf("no driver\n");
    std::exit(0);
  }
  const auto get =
      reinterpret_cast<decltype(&cuGetProcAddress)>(dlsym(library, "cuGetProcAddress_v2"));
#define HOLDFAST_TEST_FIND(name, version) \
  get("cu" #name, reinterpret_cast<void**>(&driver.name), version, 0, nullptr);
  HOLDFAST_TEST_CALLS(HOLDFAST_TEST_FIND)
#undef HOLDFAST_TEST_FIND
#endif
  return driver;
}

#endif  // HOLDFAST_TESTS_PRELOAD_DRIVER_H_
