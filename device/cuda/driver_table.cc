#include "device/cuda/driver_table.h"

#include <dlfcn.h>

#include <string>

#include "absl/strings/str_format.h"
#include "device/error.h"

namespace holdfast {
namespace {

constexpr char kLibrary[] = "libcuda.so.1";

std::string VersionText(int version) {
  return absl::StrFormat("%d.%d", version / 1000, version % 1000 / 10);
}

absl::Status TooOld(const std::string& has) {
  return MakeError({.kind = ErrorKind::kNotFound, .object = kLibrary},
                   absl::StrFormat("driver too old: it supports CUDA %s, %s is needed", has,
                                   VersionText(kOldestDriverVersion)));
}

absl::StatusOr<DriverTable> Load() {
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    return MakeError(
        {.kind = ErrorKind::kNotFound, .object = kLibrary},
        absl::StrFormat("no NVIDIA driver: %s", why != nullptr ? why : "cannot be opened"));
  }
  // By dlsym: the first names the driver even if it is ancient, the second finds all others.
  const auto get_version =
      reinterpret_cast<PFN_cuDriverGetVersion_v2020>(dlsym(library, "cuDriverGetVersion"));
  const auto get_function =
      reinterpret_cast<PFN_cuGetProcAddress_v12000>(dlsym(library, "cuGetProcAddress_v2"));
  DriverTable table;
  if (get_version == nullptr || get_version(&table.version) != CUDA_SUCCESS) {
    return TooOld("an unknown version");
  }
  if (table.version < kOldestDriverVersion || get_function == nullptr) {
    return TooOld(VersionText(table.version));
  }

  const auto resolve = [&](const char* name, int abi) -> void* {
    void* function = nullptr;
    CUdriverProcAddressQueryResult result = CU_GET_PROC_ADDRESS_SUCCESS;
    const CUresult code = get_function(name, &function, abi, CU_GET_PROC_ADDRESS_DEFAULT, &result);
    return code == CUDA_SUCCESS && result == CU_GET_PROC_ADDRESS_SUCCESS ? function : nullptr;
  };
#define HOLDFAST_RESOLVE(name, abi)                                                           \
  table.name = reinterpret_cast<decltype(table.name)>(resolve("cu" #name, abi));              \
  if (table.name == nullptr) {                                                                \
    return MakeError({.kind = ErrorKind::kNotFound, .object = kLibrary},                      \
                     "the driver has no cu" #name " of the ABI this build needs (" #abi ")"); \
  }
  HOLDFAST_DRIVER_FUNCTIONS(HOLDFAST_RESOLVE)
#undef HOLDFAST_RESOLVE
#define HOLDFAST_RESOLVE_OPTIONAL(name, abi) \
  table.name = reinterpret_cast<decltype(table.name)>(resolve("cu" #name, abi));
  HOLDFAST_OPTIONAL_DRIVER_FUNCTIONS(HOLDFAST_RESOLVE_OPTIONAL)
#undef HOLDFAST_RESOLVE_OPTIONAL
  return table;
}

}  // namespace

absl::StatusOr<const DriverTable*> LoadDriver() {
  // Never destroyed: devices may be closed by destructors of static objects.
  static const auto& loaded = *new absl::StatusOr<DriverTable>(Load());
  if (!loaded.ok()) return loaded.status();
  return &*loaded;
}

}  // namespace holdfast
