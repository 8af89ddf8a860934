// errno of a failed OS call as an error value.
#ifndef HOLDFAST_DEVICE_HOST_OS_ERROR_H_
#define HOLDFAST_DEVICE_HOST_OS_ERROR_H_

#include <cstring>
#include <string>

#include "device/error.h"

namespace holdfast {

// kDriver with the call, its errno and `need` bytes.
inline absl::Status OsError(const std::string& object, const std::string& call, int code,
                            std::uint64_t need = 0) {
  return MakeError(
      {.kind = ErrorKind::kDriver, .object = object, .need = need, .call = call, .code = code},
      std::strerror(code));
}

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_HOST_OS_ERROR_H_
