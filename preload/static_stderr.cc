// `stderr` for what is linked into this shared object. The distributions' archive of abseil refers
// to it as executables do, by an address inside the same object; so it has one here, set to glibc's
// before anything runs.
#include <dlfcn.h>

extern "C" __attribute__((visibility("hidden"))) void* holdfast_preload_stderr asm("stderr");
void* holdfast_preload_stderr = nullptr;

namespace {

__attribute__((constructor(101))) void Start() {
  if (void* const found = dlsym(RTLD_NEXT, "stderr")) {
    holdfast_preload_stderr = *static_cast<void**>(found);
  }
}

}  // namespace
