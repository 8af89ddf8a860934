// Verifies that opening a GPU that is not there is one clear error, and that a GPU that is there
// says what it is. Runs with and without a GPU.
#include <gtest/gtest.h>

#include "device/device.h"

#if HOLDFAST_WITH_CUDA
#include "device/cuda/cuda_device.h"
#include "device/cuda/cuda_error.h"
#include "device/cuda/driver_table.h"

namespace holdfast {
namespace {

// True on a machine where GPU 0 can be opened; the tests then expect it.
bool HasGpu() {
  const auto driver = LoadDriver();
  int count = 0;
  return driver.ok() && (*driver)->Init(0) == CUDA_SUCCESS &&
         (*driver)->DeviceGetCount(&count) == CUDA_SUCCESS && count > 0;
}

TEST(CudaOpenTest, WithoutADriverTheErrorIsNotFoundAndNamesTheDriver) {
  if (LoadDriver().ok()) GTEST_SKIP() << "this machine has a driver";
  const auto device = OpenCudaDevice(0);
  ASSERT_FALSE(device.ok());
  EXPECT_TRUE(IsErrorKind(device.status(), ErrorKind::kNotFound)) << device.status();
  EXPECT_NE(std::string(device.status().message()).find("cuda:0"), std::string::npos);
  EXPECT_NE(std::string(device.status().message()).find("driver"), std::string::npos);
}

TEST(CudaOpenTest, AnOrdinalNoMachineHasIsNotFound) {
  for (const int ordinal : {-1, 4096}) {
    const auto device = OpenCudaDevice(ordinal);
    ASSERT_FALSE(device.ok()) << ordinal;
    EXPECT_TRUE(IsErrorKind(device.status(), ErrorKind::kNotFound)) << device.status();
  }
}

TEST(CudaOpenTest, AnOpenGpuSaysWhatItIs) {
  if (!HasGpu()) GTEST_SKIP() << "no GPU";
  const auto device = OpenCudaDevice(0);
  ASSERT_TRUE(device.ok()) << device.status();
  const DeviceInfo& info = (*device)->info();
  EXPECT_EQ(info.spec, "cuda:0");
  EXPECT_TRUE(info.is_cuda);
  EXPECT_FALSE(info.name.empty());
  EXPECT_GT(info.granularity, 0u);
  EXPECT_GT(info.capacity_bytes, info.granularity);
  EXPECT_GT(info.multiprocessors, 0);
  EXPECT_NE(info.driver, "none");
}

TEST(CudaOpenTest, AGpuOpensAgainAfterItWasClosed) {
  if (!HasGpu()) GTEST_SKIP() << "no GPU";
  for (int round = 0; round < 2; ++round) {
    const auto device = OpenCudaDevice(0);
    ASSERT_TRUE(device.ok()) << "round " << round << ": " << device.status();
  }
}

TEST(CudaOpenTest, ErrorCodesBecomeKinds) {
  const auto kind = [](const absl::Status& status) { return GetErrorInfo(status)->kind; };
  EXPECT_TRUE(ToStatus(CUDA_SUCCESS, "c").ok());
  EXPECT_TRUE(ToStatus(cudaSuccess, "c").ok());
  EXPECT_TRUE(ToStatus(CUBLAS_STATUS_SUCCESS, "c").ok());
  EXPECT_EQ(kind(ToStatus(CUDA_ERROR_ILLEGAL_ADDRESS, "c")), ErrorKind::kDeviceLost);
  EXPECT_EQ(kind(ToStatus(cudaErrorIllegalAddress, "c")), ErrorKind::kDeviceLost);
  EXPECT_EQ(kind(ToStatus(cudaErrorLaunchFailure, "c")), ErrorKind::kDeviceLost);
  EXPECT_EQ(kind(ToStatus(cudaErrorECCUncorrectable, "c")), ErrorKind::kDeviceLost);
  EXPECT_EQ(kind(ToStatus(CUDA_ERROR_INVALID_VALUE, "c")), ErrorKind::kInvalidArgument);
  EXPECT_EQ(kind(ToStatus(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "c")),
            ErrorKind::kUncapturable);
  EXPECT_EQ(kind(ToStatus(cudaErrorNotSupported, "c")), ErrorKind::kUnsupported);
  EXPECT_EQ(kind(ToStatus(CUBLAS_STATUS_NOT_SUPPORTED, "c")), ErrorKind::kUnsupported);
  const absl::Status memory =
      ToStatus(CUDA_ERROR_OUT_OF_MEMORY, "cuMemCreate", {.object = "chunk", .need = 8, .have = 2});
  const ErrorInfo info = *GetErrorInfo(memory);
  EXPECT_EQ(info.kind, ErrorKind::kOutOfMemory);
  EXPECT_EQ(info.object, "chunk");
  EXPECT_EQ(info.need, 8u);
  EXPECT_EQ(info.have, 2u);
  EXPECT_EQ(info.call, "cuMemCreate");
  EXPECT_EQ(info.code, 2);
  EXPECT_EQ(kind(ToStatus(cudaErrorMemoryAllocation, "cudaHostRegister",
                          {.out_of_memory = ErrorKind::kOutOfHostMemory})),
            ErrorKind::kOutOfHostMemory);
}

}  // namespace
}  // namespace holdfast
#endif  // HOLDFAST_WITH_CUDA
