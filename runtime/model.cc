#include "runtime/model.h"

#include "device/error.h"

namespace holdfast {

absl::Status Model::ReserveSpans(Arena&) {
  return MakeError({.kind = ErrorKind::kUnsupported, .object = "model"},
                   "its start cannot be planned without loading it");
}

}  // namespace holdfast
