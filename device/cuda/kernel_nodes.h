// What the kernels of a captured graph are called, and having their code loaded before it is
// needed.
#ifndef HOLDFAST_DEVICE_CUDA_KERNEL_NODES_H_
#define HOLDFAST_DEVICE_CUDA_KERNEL_NODES_H_

#include <cuda.h>

#include <string>

#include "absl/status/status.h"
#include "device/cuda/driver_table.h"

namespace holdfast {

// Loads the code of every kernel in the graph and in the graphs inside it. Code that is loaded late
// waits for whatever runs on the GPU. Kernels whose function cannot be told are passed over.
absl::Status LoadKernels(const DriverTable& driver, CUgraph graph);

// "kernel <mangled name>", or "node" for any other and where the driver does not say.
std::string NodeText(const DriverTable& driver, CUgraphNode node);

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_CUDA_KERNEL_NODES_H_
