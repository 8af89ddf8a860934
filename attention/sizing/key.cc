#include "attention/sizing/key.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "device/error.h"

namespace holdfast {

std::string SizingKey::Grammar() const {
  switch (type) {
    case KeyType::kCount: return absl::StrFormat("a whole number in [%d, %d]", least, most);
    case KeyType::kBytes:
      return absl::StrFormat("%s, from %d to %d", kByteSizeGrammar, least, most);
    case KeyType::kShare: return kShareGrammar;
    case KeyType::kSwitch: return kBoolGrammar;
    case KeyType::kChoice: return absl::StrCat("one of ", absl::StrJoin(choices, ", "));
  }
  return "";
}

std::string SizingKey::Format(std::int64_t value) const {
  if (type == KeyType::kShare) {
    return absl::StrFormat("%g", static_cast<double>(value) / kShareOne);
  }
  if (type == KeyType::kChoice && value >= 0 && value <= most) {
    return choices[static_cast<std::size_t>(value)];
  }
  return absl::StrCat(value);
}

absl::Status SizingKey::CheckValue(const std::string& rule, std::int64_t value) const {
  if (value >= least && value <= most) return absl::OkStatus();
  return RefuseField(rule, name, Format(value), Grammar());
}

absl::StatusOr<std::int64_t> SizingKey::Parse(const std::string& rule,
                                              const std::string& text) const {
  absl::StatusOr<std::int64_t> value = absl::InvalidArgumentError("");
  switch (type) {
    case KeyType::kCount: value = ParseWhole(name, text); break;
    case KeyType::kBytes: value = ParseByteSize(name, text); break;
    case KeyType::kShare: value = ParseShare(name, text); break;
    case KeyType::kSwitch: {
      const absl::StatusOr<bool> on = ParseBool(name, text);
      if (on.ok()) value = *on ? 1 : 0;
      break;
    }
    case KeyType::kChoice: {
      const auto found = std::find(choices.begin(), choices.end(), text);
      if (found != choices.end()) value = found - choices.begin();
      break;
    }
  }
  if (!value.ok()) return RefuseField(rule, name, QuoteValue(text), Grammar());
  HOLDFAST_RETURN_IF_ERROR(CheckValue(rule, *value));
  return value;
}

}  // namespace holdfast
