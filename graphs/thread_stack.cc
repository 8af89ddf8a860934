#include "graphs/thread_stack.h"

#include <pthread.h>

namespace holdfast {

AddressRange ThisThreadsStack() {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return {};
  void* low = nullptr;
  std::size_t bytes = 0;
  const int failed = pthread_attr_getstack(&attributes, &low, &bytes);
  pthread_attr_destroy(&attributes);
  if (failed != 0) return {};
  return {{reinterpret_cast<std::uint64_t>(low)}, bytes};
}

}  // namespace holdfast
