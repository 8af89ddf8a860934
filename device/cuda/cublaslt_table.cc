#include "device/cuda/cublaslt_table.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "device/error.h"

namespace holdfast {
namespace {

absl::StatusOr<CublasLtTable> Load() {
  std::vector<std::string> candidates = {"libcublasLt.so.13", "libcublasLt.so.12"};
  if (const char* named = std::getenv("HOLDFAST_CUBLASLT"); named != nullptr && *named != '\0') {
    candidates = {named};
  }
  void* library = nullptr;
  std::string tried;
  for (const std::string& candidate : candidates) {
    library = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) break;
    const char* why = dlerror();
    absl::StrAppend(&tried, tried.empty() ? "" : "; ", why != nullptr ? why : candidate.c_str());
  }
  if (library == nullptr) {
    return MakeError(
        {.kind = ErrorKind::kNotFound, .object = "cuBLASLt"},
        absl::StrCat("matrix products need it; name the file in HOLDFAST_CUBLASLT: ", tried));
  }
  CublasLtTable table;
#define HOLDFAST_RESOLVE(name)                                                           \
  table.name = reinterpret_cast<decltype(table.name)>(dlsym(library, "cublasLt" #name)); \
  if (table.name == nullptr) {                                                           \
    return MakeError({.kind = ErrorKind::kNotFound, .object = "cuBLASLt"},               \
                     "the library found has no cublasLt" #name);                         \
  }
  HOLDFAST_CUBLASLT_FUNCTIONS(HOLDFAST_RESOLVE)
#undef HOLDFAST_RESOLVE
  return table;
}

}  // namespace

absl::StatusOr<const CublasLtTable*> LoadCublasLt() {
  // Never destroyed: devices may be closed by destructors of static objects.
  static const auto& loaded = *new absl::StatusOr<CublasLtTable>(Load());
  if (!loaded.ok()) return loaded.status();
  return &*loaded;
}

}  // namespace holdfast
