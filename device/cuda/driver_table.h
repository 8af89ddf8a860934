// The CUDA driver, opened at run time: the binary starts on a machine that has none.
//
// Each function is asked for at a fixed ABI version (the number beside it), so that a newer driver
// cannot hand out one with another signature.
#ifndef HOLDFAST_DEVICE_CUDA_DRIVER_TABLE_H_
#define HOLDFAST_DEVICE_CUDA_DRIVER_TABLE_H_

#include <cuda.h>
#include <cudaTypedefs.h>

#include "absl/status/statusor.h"

namespace holdfast {

#define HOLDFAST_DRIVER_FUNCTIONS(X)     \
  X(Init, 2000)                          \
  X(GetErrorName, 6000)                  \
  X(GetErrorString, 6000)                \
  X(DeviceGetCount, 2000)                \
  X(DeviceGet, 2000)                     \
  X(DeviceGetName, 2000)                 \
  X(DeviceGetAttribute, 2000)            \
  X(DeviceTotalMem, 3020)                \
  X(DeviceGetPCIBusId, 4010)             \
  X(DevicePrimaryCtxRetain, 7000)        \
  X(DevicePrimaryCtxRelease, 11000)      \
  X(CtxGetCurrent, 4000)                 \
  X(CtxSetCurrent, 4000)                 \
  X(CtxGetLimit, 3010)                   \
  X(CtxSetLimit, 3010)                   \
  X(MemGetInfo, 3020)                    \
  X(MemGetAllocationGranularity, 10020)  \
  X(MemAddressReserve, 10020)            \
  X(MemAddressFree, 10020)               \
  X(MemCreate, 10020)                    \
  X(MemRelease, 10020)                   \
  X(MemExportToShareableHandle, 10020)   \
  X(MemImportFromShareableHandle, 10020) \
  X(MemMap, 10020)                       \
  X(MemUnmap, 10020)                     \
  X(MemSetAccess, 10020)                 \
  X(PointerGetAttributes, 7000)          \
  X(GraphGetNodes, 10000)                \
  X(GraphGetEdges, 12030)                \
  X(GraphNodeGetType, 10000)             \
  X(GraphKernelNodeGetParams, 12000)     \
  X(GraphMemcpyNodeGetParams, 10000)     \
  X(GraphMemsetNodeGetParams, 10000)     \
  X(GraphChildGraphNodeGetGraph, 10000)  \
  X(FuncGetParamInfo, 12040)             \
  X(FuncGetName, 12030)                  \
  X(KernelGetParamInfo, 12040)           \
  X(KernelGetName, 12030)

struct DriverTable {
  int version = 0;  // 1000 * major + 10 * minor of the newest CUDA it supports
#define HOLDFAST_DRIVER_MEMBER(name, abi) PFN_cu##name##_v##abi name = nullptr;
  HOLDFAST_DRIVER_FUNCTIONS(HOLDFAST_DRIVER_MEMBER)
#undef HOLDFAST_DRIVER_MEMBER
};

// The oldest driver that can tell a kernel's parameter layout.
inline constexpr int kOldestDriverVersion = 12040;

// Loads libcuda.so.1 on the first call; later calls return the same result. It stays loaded.
// Thread-safe. kNotFound: no library, too old, or a function missing. The driver is not initialised
// by this.
absl::StatusOr<const DriverTable*> LoadDriver();

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_CUDA_DRIVER_TABLE_H_
