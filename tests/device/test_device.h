// The device that tests run on: a fresh one for each call, so that call counts belong to one test.
//
// HOLDFAST_TEST_DEVICE ("host", "cuda:N", "auto"; default "host") chooses it, so that the same
// binary runs with and without a GPU. A device that cannot be opened ends the test binary: nothing
// can be tested.
#ifndef HOLDFAST_TESTS_DEVICE_TEST_DEVICE_H_
#define HOLDFAST_TESTS_DEVICE_TEST_DEVICE_H_

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "device/device.h"

namespace holdfast {

inline std::unique_ptr<Device> OpenForTest(const std::string& spec, const DeviceOptions& options) {
  // A GPU's context lives as long as some Device holds it and takes a fifth of a second to make:
  // one is kept.
  static const absl::StatusOr<std::unique_ptr<Device>> keeps_the_context =
      spec == "host" ? absl::StatusOr<std::unique_ptr<Device>>(nullptr) : OpenDevice(spec, options);
  absl::StatusOr<std::unique_ptr<Device>> device = OpenDevice(spec, options);
  if (!device.ok()) {
    std::fprintf(stderr, "test device '%s': %s\n", spec.c_str(),
                 std::string(device.status().message()).c_str());
    std::exit(1);
  }
  return *std::move(device);
}

inline std::unique_ptr<Device> TestDevice(const DeviceOptions& options = {}) {
  const char* spec = std::getenv("HOLDFAST_TEST_DEVICE");
  return OpenForTest(spec == nullptr || *spec == '\0' ? "host" : spec, options);
}

// For tests of what only the host device can do (gates on capacity, survivable stray accesses).
inline std::unique_ptr<Device> TestHostDevice(const DeviceOptions& options = {}) {
  return OpenForTest("host", options);
}

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_DEVICE_TEST_DEVICE_H_
