#include "runtime/json.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "device/error.h"

namespace holdfast {
namespace {

using Json = nlohmann::json;

// Builds the value event by event. An event that returns false ends parsing; `fault` then says why.
class Builder {
 public:
  explicit Builder(const JsonLimits& limits) : limits_(limits) {}

  Json&& TakeRoot() { return std::move(root_); }
  const std::string& fault() const { return fault_; }

  // The events of nlohmann's SAX interface, under its names.
  bool null() { return Add(nullptr) != nullptr; }
  bool boolean(bool value) { return Add(value) != nullptr; }
  bool number_integer(Json::number_integer_t value) { return Add(value) != nullptr; }
  bool number_unsigned(Json::number_unsigned_t value) { return Add(value) != nullptr; }
  bool number_float(Json::number_float_t value, const std::string&) {
    return Add(value) != nullptr;
  }
  bool string(std::string& value) { return Add(std::move(value)) != nullptr; }
  bool binary(Json::binary_t&) { return Fail("holds binary data"); }
  bool start_object(std::size_t) { return Open(Json::object()); }
  bool end_object() { return Close(); }
  bool start_array(std::size_t) { return Open(Json::array()); }
  bool end_array() { return Close(); }

  bool key(std::string& name) {
    if (open_.back()->contains(name))
      return Fail(absl::StrCat("repeats the key ", QuoteName(name)));
    key_ = std::move(name);
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const Json::exception&) {
    return Fail(absl::StrCat("is not valid JSON at byte ", position));
  }

 private:
  bool Fail(std::string fault) {
    fault_ = std::move(fault);
    return false;
  }

  // Puts the value where the document is now; null if it is one too many.
  Json* Add(Json value) {
    if (++values_ > limits_.max_values) {
      Fail(absl::StrCat("has more than ", limits_.max_values, " values"));
      return nullptr;
    }
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& parent = *open_.back();
    if (parent.is_object()) return &(parent[key_] = std::move(value));
    parent.push_back(std::move(value));
    return &parent.back();
  }

  bool Open(Json container) {
    if (open_.size() >= static_cast<std::size_t>(limits_.max_depth)) {
      return Fail(absl::StrCat("nests deeper than ", limits_.max_depth, " levels"));
    }
    Json* added = Add(std::move(container));
    if (added == nullptr) return false;
    // Stays valid while it is open: its parent grows only after it is closed.
    open_.push_back(added);
    return true;
  }

  bool Close() {
    open_.pop_back();
    return true;
  }

  const JsonLimits limits_;
  Json root_;
  std::vector<Json*> open_;
  std::string key_;
  std::string fault_;
  std::uint64_t values_ = 0;
};

}  // namespace

std::string QuoteName(const std::string& name) {
  constexpr std::size_t kShown = 120;
  const std::string shown = absl::CHexEscape(name.substr(0, kShown));
  return absl::StrCat("\"", shown, name.size() > kShown ? "..." : "", "\"");
}

absl::StatusOr<Json> ParseJson(const std::string& text, const std::string& document,
                               const JsonLimits& limits) {
  const auto fail = [&document](const std::string& fault) {
    return MakeError({.kind = ErrorKind::kCorrupted, .object = document}, fault);
  };
  if (text.size() > limits.max_bytes) {
    return MakeError({.kind = ErrorKind::kCorrupted,
                      .object = document,
                      .need = text.size(),
                      .have = limits.max_bytes},
                     "is longer than a document of its kind may be");
  }
  // The parser takes a zero byte for the end and would ignore what follows.
  if (const std::size_t zero = text.find('\0'); zero != std::string::npos) {
    return fail(absl::StrCat("is not valid JSON at byte ", zero + 1));
  }
  Builder builder(limits);
  if (!Json::sax_parse(text, &builder)) return fail(builder.fault());
  return builder.TakeRoot();
}

}  // namespace holdfast
