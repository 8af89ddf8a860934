// One key of a sizing rule: its name, grammar, range, default and meaning; and the table that binds
// the keys to the members of the rule's struct.
//
// A table is the one place where a range stands: the command line, --help and the C++ function all
// go by it.
#ifndef HOLDFAST_ATTENTION_SIZING_KEY_H_
#define HOLDFAST_ATTENTION_SIZING_KEY_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "attention/check_field.h"
#include "device/parse.h"

namespace holdfast {

enum class KeyType { kCount, kBytes, kShare, kSwitch, kChoice };

// Every value is an integer: a count, bytes, parts of kShareOne, 0 or 1, or the index of a choice.
struct SizingKey {
  std::string name;
  KeyType type = KeyType::kCount;
  std::int64_t least = 0, most = kMostCount;
  std::vector<std::string> choices;  // kChoice
  bool required = false;
  std::int64_t default_value = 0;  // if not required
  std::string doc;

  std::string Grammar() const;                   // "a whole number in [1, 128]"
  std::string Format(std::int64_t value) const;  // as it would be given
  // kInvalidArgument with object "<rule> <name>" naming value and grammar.
  absl::StatusOr<std::int64_t> Parse(const std::string& rule, const std::string& text) const;
  absl::Status CheckValue(const std::string& rule, std::int64_t value) const;
};

template <typename Keys>
struct BoundKey {
  SizingKey key;
  std::int64_t Keys::*member;
};

// Declares a key of `Keys`; the default is the member's own.
template <typename Keys>
BoundKey<Keys> Bind(SizingKey key, std::int64_t Keys::*member) {
  key.default_value = Keys{}.*member;
  return {std::move(key), member};
}
template <typename Keys>
BoundKey<Keys> Required(const std::string& name, std::int64_t Keys::*member, std::int64_t least,
                        std::int64_t most, const std::string& doc) {
  return Bind<Keys>({.name = name, .least = least, .most = most, .required = true, .doc = doc},
                    member);
}
template <typename Keys>
BoundKey<Keys> Count(const std::string& name, std::int64_t Keys::*member, std::int64_t least,
                     std::int64_t most, const std::string& doc) {
  return Bind<Keys>({.name = name, .least = least, .most = most, .doc = doc}, member);
}
template <typename Keys>
BoundKey<Keys> Bytes(const std::string& name, std::int64_t Keys::*member, std::int64_t least,
                     const std::string& doc) {
  return Bind<Keys>({.name = name,
                     .type = KeyType::kBytes,
                     .least = least,
                     .most = std::int64_t{1} << 60,
                     .doc = doc},
                    member);
}
template <typename Keys>
BoundKey<Keys> Switch(const std::string& name, std::int64_t Keys::*member, const std::string& doc) {
  return Bind<Keys>({.name = name, .type = KeyType::kSwitch, .most = 1, .doc = doc}, member);
}
template <typename Keys>
BoundKey<Keys> Choice(const std::string& name, std::int64_t Keys::*member,
                      std::vector<std::string> choices, const std::string& doc) {
  const std::int64_t last = static_cast<std::int64_t>(choices.size()) - 1;
  return Bind<Keys>({.name = name,
                     .type = KeyType::kChoice,
                     .most = last,
                     .choices = std::move(choices),
                     .doc = doc},
                    member);
}

template <typename Keys>
using KeyTable = std::vector<BoundKey<Keys>>;

// Every member against its range: what a rule's function asks first.
template <typename Keys>
absl::Status CheckKeys(const std::string& rule, const KeyTable<Keys>& table, const Keys& keys) {
  for (const BoundKey<Keys>& bound : table) {
    absl::Status status = bound.key.CheckValue(rule, keys.*bound.member);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace holdfast

#endif  // HOLDFAST_ATTENTION_SIZING_KEY_H_
