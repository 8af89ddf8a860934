// Three pieces of abseil that the distributions' archives hold compiled for executables only: their
// thread-local counters cannot lie in a shared object. They are defined here, without the counters,
// and the archives' are left out.
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <thread>

#include "absl/base/internal/sysinfo.h"
#include "absl/container/internal/raw_hash_set.h"
#include "absl/strings/internal/cordz_functions.h"

namespace absl {
ABSL_NAMESPACE_BEGIN

// Sampling of cords: switched off.
namespace cord_internal {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

std::int32_t get_cordz_mean_interval() { return 0; }
void set_cordz_mean_interval(std::int32_t) {}

#if defined(ABSL_INTERNAL_CORDZ_ENABLED)
thread_local std::int64_t cordz_next_sample = kNever;

bool cordz_should_profile_slow() {
  cordz_next_sample = kNever;
  return false;
}

void cordz_set_next_sample_for_testing(std::int64_t next_sample) {
  cordz_next_sample = next_sample;
}
#endif

}  // namespace cord_internal

// What the system is: the thread's number is asked for each time.
namespace base_internal {

pid_t GetTID() { return static_cast<pid_t>(syscall(SYS_gettid)); }
pid_t GetCachedTID() { return GetTID(); }
int NumCPUs() { return static_cast<int>(std::thread::hardware_concurrency()); }
double NominalCPUFrequency() { return 1.0; }

}  // namespace base_internal

// Hash tables: the order of iteration is not shuffled.
namespace container_internal {

alignas(16) ABSL_CONST_INIT const ctrl_t kEmptyGroup[16] = {
    ctrl_t::kSentinel, ctrl_t::kEmpty, ctrl_t::kEmpty, ctrl_t::kEmpty,
    ctrl_t::kEmpty,    ctrl_t::kEmpty, ctrl_t::kEmpty, ctrl_t::kEmpty,
    ctrl_t::kEmpty,    ctrl_t::kEmpty, ctrl_t::kEmpty, ctrl_t::kEmpty,
    ctrl_t::kEmpty,    ctrl_t::kEmpty, ctrl_t::kEmpty, ctrl_t::kEmpty};

// More entries than the address space holds. Thrown, so that the session swallows it.
void HashTableSizeOverflow() { throw std::bad_alloc(); }

bool ShouldInsertBackwards(std::size_t, const ctrl_t*) { return false; }

void ConvertDeletedToEmptyAndFullToDeleted(ctrl_t* ctrl, std::size_t capacity) {
  for (std::size_t i = 0; i < capacity; ++i) {
    ctrl[i] = IsFull(ctrl[i]) ? ctrl_t::kDeleted : ctrl_t::kEmpty;
  }
  ctrl[capacity] = ctrl_t::kEmpty;
  std::memmove(ctrl + capacity + 1, ctrl, NumClonedBytes());
  ctrl[capacity] = ctrl_t::kSentinel;
}

}  // namespace container_internal

ABSL_NAMESPACE_END
}  // namespace absl
