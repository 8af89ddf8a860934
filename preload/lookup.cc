#include "preload/lookup.h"

#include <dlfcn.h>

#include <cstring>

#include "preload/bypass.h"
#include "preload/handlers.h"

namespace holdfast::preload {

using LookUp = void* (*)(void* handle, const char* name);

}  // namespace holdfast::preload

extern "C" {

// glibc's dlsym. Written before anything is looked up, read by the entry below.
__attribute__((visibility("hidden"))) holdfast::preload::LookUp holdfast_preload_dlsym = nullptr;

// What the program is to get instead; null: whatever glibc says.
__attribute__((visibility("hidden"), used)) void* holdfast_preload_filter(void* handle,
                                                                          const char* name);
}

// dlsym itself. It must not leave a frame of its own when it goes on to glibc's: that looks at its
// return address to tell which library asks (RTLD_NEXT).
#if defined(__x86_64__)
asm(R"(
  .text
  .globl dlsym
  .type dlsym, @function
dlsym:
  .cfi_startproc
  endbr64
  pushq %rdi
  .cfi_adjust_cfa_offset 8
  pushq %rsi
  .cfi_adjust_cfa_offset 8
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  call holdfast_preload_filter
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  popq %rsi
  .cfi_adjust_cfa_offset -8
  popq %rdi
  .cfi_adjust_cfa_offset -8
  testq %rax, %rax
  jne 1f
  movq holdfast_preload_dlsym(%rip), %rax
  jmp *%rax
1:
  ret
  .cfi_endproc
  .size dlsym, .-dlsym
)");
#else
#error "the preload library knows the calling convention of x86-64 only"
#endif

namespace holdfast::preload {
namespace {

std::atomic<bool> met_driver{false};

LookUp GlibcDlsym() {
  LookUp found = __atomic_load_n(&holdfast_preload_dlsym, __ATOMIC_ACQUIRE);
  if (found != nullptr) return found;
  for (const char* version : {"GLIBC_2.34", "GLIBC_2.2.5"}) {
    found = reinterpret_cast<LookUp>(dlvsym(RTLD_NEXT, "dlsym", version));
    if (found != nullptr) break;
  }
  __atomic_store_n(&holdfast_preload_dlsym, found, __ATOMIC_RELEASE);
  return found;
}

bool InDriver(const void* function) {
  Dl_info info = {};
  if (dladdr(function, &info) == 0 || info.dli_fname == nullptr) return false;
  const char* const slash = std::strrchr(info.dli_fname, '/');
  return std::strncmp(slash != nullptr ? slash + 1 : info.dli_fname, "libcuda.so", 10) == 0;
}

WatchedCall* BySymbol(const char* symbol) {
  for (std::size_t i = 0; i < CallCount(); ++i) {
    if (std::strcmp(Calls()[i].symbol, symbol) == 0) return &Calls()[i];
  }
  return nullptr;
}

// The row that a program means by a name, a version and the default stream it was built for.
WatchedCall* ByName(const char* name, int version, bool per_thread) {
  WatchedCall* best = nullptr;
  for (std::size_t i = 0; i < CallCount(); ++i) {
    WatchedCall& call = Calls()[i];
    if (call.version > version || (best != nullptr && call.version <= best->version)) continue;
    if (call.flavour == (per_thread ? Flavour::kLegacy : Flavour::kPerThread)) continue;
    if (std::strcmp(call.name, name) == 0) best = &call;
  }
  return best;
}

void* Instead(WatchedCall& call, void* real) {
  // Given back to us already ours: somebody looked it up through us.
  if (real == call.ours) return real;
  met_driver.store(true, std::memory_order_relaxed);
  call.real.store(real, std::memory_order_release);
  return call.ours;
}

constexpr Word kPerThreadDefaultStream = 2;  // CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM

int Substitute(int code, const char* name, void** function, int version, Word flags) {
  met_driver.store(true, std::memory_order_relaxed);
  if (code != kSuccess || name == nullptr || function == nullptr || *function == nullptr) {
    return code;
  }
  WatchedCall* const call = ByName(name, version, (flags & kPerThreadDefaultStream) != 0);
  if (call != nullptr) *function = Instead(*call, *function);
  return code;
}

}  // namespace

void* FindInDriver(const char* symbol) {
  const LookUp look_up = GlibcDlsym();
  // Without loading it: a program that has no driver open keeps none.
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver == nullptr || look_up == nullptr) return nullptr;
  void* const found = look_up(driver, symbol);
  dlclose(driver);
  return found;
}

void* RealFunction(CallId id) {
  WatchedCall& call = Calls()[static_cast<std::size_t>(id)];
  if (void* const known = call.real.load(std::memory_order_acquire); known != nullptr) return known;
  void* const found = FindInDriver(call.symbol);
  if (found == nullptr || found == call.ours) return nullptr;
  met_driver.store(true, std::memory_order_relaxed);
  call.real.store(found, std::memory_order_release);
  return found;
}

bool MetDriver() { return met_driver.load(std::memory_order_relaxed); }

int OnGetProcAddressV1(cuGetProcAddress_Type::Function* real, const char* name, void** function,
                       int version, Word flags) {
  return Substitute(real(name, function, version, flags), name, function, version, flags);
}

int OnGetProcAddress(cuGetProcAddress_v2_Type::Function* real, const char* name, void** function,
                     int version, Word flags, int* found) {
  return Substitute(real(name, function, version, flags, found), name, function, version, flags);
}

}  // namespace holdfast::preload

void* holdfast_preload_filter(void* handle, const char* name) {
  using namespace holdfast::preload;
  const LookUp look_up = GlibcDlsym();
  if (name == nullptr || name[0] != 'c' || name[1] != 'u' || handle == RTLD_NEXT ||
      handle == RTLD_DEFAULT || BypassScope::active()) {
    return nullptr;
  }
  WatchedCall* const call = BySymbol(name);
  if (call == nullptr) return nullptr;
  void* const real = look_up(handle, name);
  if (real == nullptr) return nullptr;  // asked again by the caller, who then has glibc's error
  return InDriver(real) ? Instead(*call, real) : real;
}
