// The negative control of the sanitizer presets: does what the argument names, and must die of it.
// If one of these runs end in success, the sanitizer is off or only warns, and its green tests
// prove nothing.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <thread>

namespace {

int Overflow(int by) {
  volatile int largest = std::numeric_limits<int>::max();
  return largest + by;
}

int UseAfterFree(int index) {
  auto values = std::make_unique<int[]>(8);
  int* volatile stale = values.get();  // volatile: the compiler must not see through it
  values.reset();
  return stale[index];
}

int Race(int writers) {
  int shared = 0;
  std::thread other([&] { shared += writers; });
  shared += writers;
  other.join();
  return shared;
}

}  // namespace

int main(int argc, char** argv) {
  const char* fault = argc == 2 ? argv[1] : "";
  int value = 0;
  if (std::strcmp(fault, "overflow") == 0) {
    value = Overflow(argc);
  } else if (std::strcmp(fault, "use-after-free") == 0) {
    value = UseAfterFree(argc);
  } else if (std::strcmp(fault, "race") == 0) {
    value = Race(argc);
  } else {
    std::fprintf(stderr, "usage: planted_fault overflow|use-after-free|race\n");
    return EXIT_SUCCESS;  // the tests expect failure: a wrong name must not look like a caught
                          // fault
  }
  std::printf("%s went unnoticed: %d\n", fault, value);
  return EXIT_SUCCESS;
}
