// A device is named by text; wrong text and absent devices are clear errors.
#include <memory>
#include <string>

#include "device/device.h"
#include "gtest/gtest.h"
#include "tests/device/status_matchers.h"

namespace holdfast {
namespace {

TEST(OpenDeviceTest, UnknownTextIsRefusedByName) {
  for (const std::string spec : {"", "gpu", "host:0", "HOST", "cuda", "cuda:", "cuda:x", "cuda:-1",
                                 "cuda: 1", "cuda:1 ", "cuda:99999999999"}) {
    const auto device = OpenDevice(spec);
    EXPECT_THAT(device, IsErrorKind(ErrorKind::kInvalidArgument)) << spec;
    EXPECT_EQ(GetErrorInfo(device.status())->object, spec);
  }
}

TEST(OpenDeviceTest, AGpuThatIsNotThereIsNotFound) {
  const auto device = OpenDevice("cuda:9999");
  EXPECT_THAT(device, IsErrorKind(ErrorKind::kNotFound));
  EXPECT_EQ(GetErrorInfo(device.status())->object, "cuda:9999");
}

TEST(OpenDeviceTest, AutoAlwaysFindsADevice) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Device> device, OpenDevice("auto"));
  EXPECT_EQ(device->info().is_cuda, device->info().spec != "host");
}

TEST(OpenDeviceTest, HostTellsItsLimits) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Device> device,
                       OpenDevice("host", {.host_capacity_bytes = 64u << 20}));
  EXPECT_EQ(device->info().spec, "host");
  EXPECT_EQ(device->info().capacity_bytes, 64u << 20);
  EXPECT_FALSE(device->info().is_cuda);
  EXPECT_THAT(OpenDevice("host", {.host_capacity_bytes = 0}),
              IsErrorKind(ErrorKind::kInvalidArgument));
}

}  // namespace
}  // namespace holdfast
