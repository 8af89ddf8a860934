#include "testing/outputs.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace holdfast::testing {
namespace {

std::optional<std::string> DifferenceOf(const std::string& name, const std::vector<std::byte>& was,
                                        const std::vector<std::byte>& is) {
  if (was.size() != is.size()) {
    return absl::StrCat(name, ": ", is.size(), " bytes, were ", was.size());
  }
  const auto first = std::mismatch(was.begin(), was.end(), is.begin());
  if (first.first == was.end()) return std::nullopt;
  std::size_t count = 0;
  for (std::size_t i = 0; i < was.size(); ++i) count += was[i] != is[i] ? 1 : 0;
  return absl::StrFormat("%s: byte %d is 0x%02x, was 0x%02x (%d of %d bytes differ)", name,
                         first.first - was.begin(), std::to_integer<int>(*first.second),
                         std::to_integer<int>(*first.first), count, was.size());
}

}  // namespace

std::optional<std::string> FirstDifference(const Outputs& golden, const Outputs& now) {
  for (const auto& [name, was] : golden) {
    const auto is = now.find(name);
    if (is == now.end()) return absl::StrCat(name, ": is missing");
    if (auto difference = DifferenceOf(name, was, is->second); difference.has_value()) {
      return difference;
    }
  }
  for (const auto& [name, is] : now) {
    if (golden.count(name) == 0) return absl::StrCat(name, ": was not there before");
  }
  return std::nullopt;
}

}  // namespace holdfast::testing
