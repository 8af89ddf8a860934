#include "device/parse.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "device/bytes.h"
#include "device/error.h"

namespace holdfast {
namespace {

constexpr int kSharePlaces = 9;

absl::Status Refuse(const std::string& name, const std::string& text, const std::string& grammar) {
  return MakeError({.kind = ErrorKind::kInvalidArgument, .object = name},
                   absl::StrCat("is ", QuoteValue(text), "; must be ", grammar));
}

bool AllDigits(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
}

// The digits of `text` as a number; false if there is anything else or it is 2^63 or more.
bool ReadDigits(const std::string& text, std::int64_t* value) {
  return AllDigits(text) && absl::SimpleAtoi(text, value);
}

}  // namespace

std::string QuoteValue(const std::string& text) {
  constexpr std::size_t kShown = 40;
  return absl::StrCat("'", absl::CHexEscape(text.substr(0, kShown)),
                      text.size() > kShown ? "..." : "", "'");
}

absl::StatusOr<bool> ParseBool(const std::string& name, const std::string& text) {
  const std::string lower = absl::AsciiStrToLower(text);
  for (const char* yes : {"1", "true", "yes", "on"}) {
    if (lower == yes) return true;
  }
  for (const char* no : {"0", "false", "no", "off"}) {
    if (lower == no) return false;
  }
  return Refuse(name, text, kBoolGrammar);
}

absl::StatusOr<std::int64_t> ParseWhole(const std::string& name, const std::string& text) {
  std::int64_t value = 0;
  if (!ReadDigits(text, &value)) return Refuse(name, text, kWholeGrammar);
  return value;
}

absl::StatusOr<std::int64_t> ParseByteSize(const std::string& name, const std::string& text) {
  const auto digits_end = std::find_if_not(text.begin(), text.end(), absl::ascii_isdigit);
  const std::string digits(text.begin(), digits_end), unit(digits_end, text.end());
  const std::pair<const char*, std::uint64_t> units[] = {
      {"", 1}, {"B", 1}, {"KiB", kKiB}, {"MiB", kMiB}, {"GiB", kGiB}, {"TiB", 1024 * kGiB}};
  const auto* const known = std::find_if(std::begin(units), std::end(units),
                                         [&unit](const auto& u) { return unit == u.first; });
  std::int64_t count = 0, bytes = 0;
  if (known == std::end(units) || !ReadDigits(digits, &count) ||
      __builtin_mul_overflow(count, static_cast<std::int64_t>(known->second), &bytes)) {
    return Refuse(name, text, kByteSizeGrammar);
  }
  return bytes;
}

absl::StatusOr<std::int64_t> ParseShare(const std::string& name, const std::string& text) {
  const std::size_t point = text.find('.');
  const std::string whole = text.substr(0, point);
  std::string places = point == std::string::npos ? "0" : text.substr(point + 1);
  std::int64_t units = 0, parts = 0;
  if (places.size() > kSharePlaces || !AllDigits(places) || !ReadDigits(whole, &units) ||
      units > 1) {
    return Refuse(name, text, kShareGrammar);
  }
  places.resize(kSharePlaces, '0');
  if (!ReadDigits(places, &parts) || units * kShareOne + parts > kShareOne) {
    return Refuse(name, text, kShareGrammar);
  }
  return units * kShareOne + parts;
}

}  // namespace holdfast
