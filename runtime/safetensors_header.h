// The JSON header of a safetensors file: parsed and checked against the size of the data that
// follows it.
#ifndef HOLDFAST_RUNTIME_SAFETENSORS_HEADER_H_
#define HOLDFAST_RUNTIME_SAFETENSORS_HEADER_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/safetensors.h"

namespace holdfast {

inline constexpr std::uint64_t kSafetensorsMaxHeaderBytes = 100'000'000;

// `text` is the header, `data_start` where the data begins in the file, `data_bytes` how much there
// is. The tensors by name, with offsets from the start of the file. Errors as SafetensorsFile::Open
// says.
absl::StatusOr<std::map<std::string, TensorInfo>> ParseSafetensorsHeader(const std::string& text,
                                                                         const std::string& path,
                                                                         std::uint64_t data_start,
                                                                         std::uint64_t data_bytes);

}  // namespace holdfast

#endif  // HOLDFAST_RUNTIME_SAFETENSORS_HEADER_H_
