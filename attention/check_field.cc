#include "attention/check_field.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "device/error.h"

namespace holdfast {

absl::Status RefuseField(const std::string& owner, const std::string& field,
                         const std::string& value, const std::string& limit) {
  return MakeError({.kind = ErrorKind::kInvalidArgument, .object = absl::StrCat(owner, " ", field)},
                   absl::StrFormat("%s is %s; must be %s", field, value, limit));
}

absl::Status CheckField(const std::string& owner, const std::string& field, std::int64_t value,
                        std::int64_t least, std::int64_t most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return RefuseField(owner, field, absl::StrCat(value),
                     most == INT64_MAX ? absl::StrFormat("at least %d", least)
                                       : absl::StrFormat("in [%d, %d]", least, most));
}

}  // namespace holdfast
