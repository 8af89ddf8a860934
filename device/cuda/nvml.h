// Device memory of this process as the driver's management library counts it.
#ifndef HOLDFAST_DEVICE_CUDA_NVML_H_
#define HOLDFAST_DEVICE_CUDA_NVML_H_

#include <cstdint>
#include <string>

namespace holdfast {

// Bytes this process holds on the GPU with that PCI bus id ("0000:1b:00.0"): contexts, modules and
// all. 0 if the library is missing, fails, or does not list this process (in a container it may
// know us by another process id; then nothing is guessed). Takes about a millisecond. Thread-safe.
std::uint64_t NvmlProcessBytes(const std::string& pci_bus_id);

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_CUDA_NVML_H_
