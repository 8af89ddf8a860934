// The device that the kit's own tests run on, and how long its batteries are.
#ifndef HOLDFAST_TESTS_TESTING_TEST_OPTIONS_H_
#define HOLDFAST_TESTS_TESTING_TEST_OPTIONS_H_

#include <cstdlib>
#include <memory>
#include <string>

#include "device/bytes.h"
#include "testing/battery.h"
#include "tests/device/test_device.h"

namespace holdfast::testing {

inline constexpr DeviceOptions kTestDeviceOptions{.host_capacity_bytes = 256 * kMiB,
                                                  .host_driver = {}};

inline std::unique_ptr<Device> OpenTestDevice() { return TestDevice(kTestDeviceOptions); }

inline BatteryOptions TestBattery() {
  const char* spec = std::getenv("HOLDFAST_TEST_DEVICE");
  BatteryOptions options;
  options.device = spec == nullptr || *spec == '\0' ? "host" : spec;
  options.device_options = kTestDeviceOptions;
  options.cycles = 1;
  return options;
}

}  // namespace holdfast::testing

#endif  // HOLDFAST_TESTS_TESTING_TEST_OPTIONS_H_
