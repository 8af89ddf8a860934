// Device memory of executables. It lies outside every arena: the driver takes it at instantiation,
// in steps, and keeps it until the context goes. It is counted, since nothing can give it back.
#ifndef HOLDFAST_GRAPHS_EXECUTABLE_MEMORY_H_
#define HOLDFAST_GRAPHS_EXECUTABLE_MEMORY_H_

#include <cstdint>

namespace holdfast {

// Measured on an H200, driver 580: 2.0 to 2.6 KB a node, whatever the size of its parameters.
inline constexpr std::uint64_t kExecutableBytesPerNode = 2600;

struct ExecutableMemory {
  // What the process held more after the instantiation, as the driver counts it. Growth comes in
  // steps, so one executable may show 0 and its neighbour 2 MiB: the sum over a set is right.
  std::uint64_t bytes = 0;
  // True where the device does not know: bytes is then nodes * kExecutableBytesPerNode.
  bool estimated = false;

  ExecutableMemory& operator+=(const ExecutableMemory& other) {
    bytes += other.bytes;
    estimated = estimated || other.estimated;
    return *this;
  }
};

}  // namespace holdfast

#endif  // HOLDFAST_GRAPHS_EXECUTABLE_MEMORY_H_
