// How nodes and words are named, and where in a parameter the words that can hold a pointer lie.
// Shared by the audit and the comparisons, so that one word has one name everywhere.
#ifndef HOLDFAST_GRAPHS_NODE_WORDS_H_
#define HOLDFAST_GRAPHS_NODE_WORDS_H_

#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "device/node_view.h"

namespace holdfast {

inline constexpr std::size_t kWordBytes = 8;

// A type that holds a pointer is aligned to 8, and so is the parameter that begins with it: a
// parameter elsewhere holds no aligned pointer, whatever its words look like. (A packed one may:
// the shifted capture finds those.)
inline bool CanHoldPointer(const ParameterView& parameter) {
  return parameter.offset % kWordBytes == 0 && parameter.bytes.size() >= kWordBytes;
}

// The word at `byte`; byte + 8 <= parameter.bytes.size().
inline std::uint64_t ReadWord(const ParameterView& parameter, std::size_t byte) {
  std::uint64_t word;
  std::memcpy(&word, parameter.bytes.data() + byte, sizeof(word));
  return word;
}

// Where in a node an address stands.
enum class WordPlace : std::uint8_t {
  kParameter,  // of a kernel: `index` is the parameter, `byte` the place in it
  kCopySource,
  kCopyDestination,
  kFillDestination,
  kOperation,     // `index` is the memory operation
  kPolicyWindow,  // of a kernel
};

inline std::string HexWord(std::uint64_t word) { return absl::StrCat("0x", absl::Hex(word)); }

inline std::string NodeLabel(std::size_t index, const NodeView& node) {
  const std::string kind = NodeKindName(node.kind);
  return absl::StrCat("node ", index, " (", kind, node.name == kind ? "" : " ",
                      node.name == kind ? "" : node.name, node.scope.empty() ? "" : " in ",
                      node.scope, ")");
}

inline std::string ParameterLabel(std::size_t parameter, std::size_t byte) {
  return absl::StrCat("parameter ", parameter, " + ", byte);
}

inline std::string PlaceLabel(WordPlace place, std::size_t index, std::size_t byte) {
  switch (place) {
    case WordPlace::kParameter: return ParameterLabel(index, byte);
    case WordPlace::kCopySource: return "copy source";
    case WordPlace::kCopyDestination: return "copy destination";
    case WordPlace::kFillDestination: return "fill destination";
    case WordPlace::kOperation: return absl::StrCat("memory operation ", index);
    case WordPlace::kPolicyWindow: return "access policy window";
  }
  return "unknown place";
}

}  // namespace holdfast

#endif  // HOLDFAST_GRAPHS_NODE_WORDS_H_
