#include "tools/resident_memory.h"

#include <malloc.h>

#include <fstream>
#include <string>

#include "device/bytes.h"

namespace holdfast {

std::int64_t ResidentHostBytes() {
  malloc_trim(0);
  std::ifstream status("/proc/self/status");
  for (std::string key; status >> key;) {
    std::int64_t kib = 0;
    if (key == "RssAnon:" && status >> kib) return kib * static_cast<std::int64_t>(kKiB);
  }
  return 0;
}

}  // namespace holdfast
