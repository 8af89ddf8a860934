#include "device/cuda/nvml.h"

#include <dlfcn.h>
#include <unistd.h>

#include <vector>

namespace holdfast {
namespace {

// The library's own header is not part of the toolkit everywhere: its stable ABI is declared here.
using NvmlDevice = struct nvmlDevice_st*;
constexpr int kNvmlSuccess = 0;
constexpr int kNvmlInsufficientSize = 7;
constexpr unsigned long long kNvmlNotAvailable = ~0ull;

// nvmlProcessInfo_v2_t, which the _v3 query fills.
struct NvmlProcess {
  unsigned int pid;
  unsigned long long used_bytes;
  unsigned int gpu_instance;
  unsigned int compute_instance;
};
static_assert(sizeof(NvmlProcess) == 24);

struct NvmlTable {
  int (*init)() = nullptr;
  int (*device_by_bus)(const char* bus, NvmlDevice* device) = nullptr;
  int (*processes)(NvmlDevice device, unsigned int* count, NvmlProcess* processes) = nullptr;
  bool usable = false;
};

NvmlTable LoadNvml() {
  NvmlTable table;
  void* const library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return table;
  table.init = reinterpret_cast<decltype(table.init)>(dlsym(library, "nvmlInit_v2"));
  table.device_by_bus = reinterpret_cast<decltype(table.device_by_bus)>(
      dlsym(library, "nvmlDeviceGetHandleByPciBusId_v2"));
  table.processes = reinterpret_cast<decltype(table.processes)>(
      dlsym(library, "nvmlDeviceGetComputeRunningProcesses_v3"));
  table.usable = table.init != nullptr && table.device_by_bus != nullptr &&
                 table.processes != nullptr && table.init() == kNvmlSuccess;
  return table;
}

}  // namespace

std::uint64_t NvmlProcessBytes(const std::string& pci_bus_id) {
  static const NvmlTable nvml = LoadNvml();  // stays loaded and initialised
  NvmlDevice device = nullptr;
  if (!nvml.usable || nvml.device_by_bus(pci_bus_id.c_str(), &device) != kNvmlSuccess) return 0;
  std::vector<NvmlProcess> processes(64);
  // Processes come and go between the two calls: a few tries with room to spare.
  for (int attempt = 0; attempt < 4; ++attempt) {
    unsigned int count = static_cast<unsigned int>(processes.size());
    const int code = nvml.processes(device, &count, processes.data());
    if (code == kNvmlInsufficientSize) {
      processes.resize(count + std::size_t{64});
      continue;
    }
    if (code != kNvmlSuccess) return 0;
    const auto self = static_cast<unsigned int>(getpid());
    for (unsigned int i = 0; i < count && i < processes.size(); ++i) {
      if (processes[i].pid != self) continue;
      return processes[i].used_bytes == kNvmlNotAvailable ? 0 : processes[i].used_bytes;
    }
    return 0;
  }
  return 0;
}

}  // namespace holdfast
