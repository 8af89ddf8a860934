// holdfast-scribble: the neighbour as a program of its own, for tests of programs that have no
// `holdfast` beside them.
//
//   holdfast-scribble --device host --bytes 1048576    takes, writes over, gives back
//   holdfast-scribble --device cuda:0 --serve          the same on request, a command a line
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <string>

#include "absl/strings/numbers.h"
#include "testing/scribble.h"

namespace {

int Usage() {
  std::fprintf(stderr, "usage: holdfast-scribble --device D (--bytes N | --serve)\n");
  return 2;
}

int Done(const absl::Status& status) {
  if (status.ok()) return 0;
  std::fprintf(stderr, "holdfast-scribble: %s\n", std::string(status.message()).c_str());
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  std::string device;
  std::uint64_t bytes = 0;
  bool has_bytes = false, serve = false;
  for (int i = 1; i < argc; ++i) {
    const bool has_value = i + 1 < argc;
    if (std::strcmp(argv[i], "--device") == 0 && has_value) {
      device = argv[++i];
    } else if (std::strcmp(argv[i], "--bytes") == 0 && has_value) {
      has_bytes = absl::SimpleAtoi(argv[++i], &bytes);
      if (!has_bytes) return Usage();
    } else if (std::strcmp(argv[i], "--serve") == 0) {
      serve = true;
    } else {
      return Usage();
    }
  }
  if (device.empty() || serve == has_bytes) return Usage();
  if (serve) return Done(holdfast::testing::ServeNeighbour(device, std::cin, std::cout));
  return Done(holdfast::testing::Scribble(device, bytes));
}
