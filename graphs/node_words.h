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

// Byte of a parameter at which its first aligned word starts; may lie past its end.
inline std::size_t FirstWord(const ParameterView& parameter) {
  return (kWordBytes - parameter.offset % kWordBytes) % kWordBytes;
}

// The word at `byte`; byte + 8 <= parameter.bytes.size().
inline std::uint64_t ReadWord(const ParameterView& parameter, std::size_t byte) {
  std::uint64_t word;
  std::memcpy(&word, parameter.bytes.data() + byte, sizeof(word));
  return word;
}

inline std::string HexWord(std::uint64_t word) { return absl::StrCat("0x", absl::Hex(word)); }

inline std::string NodeLabel(std::size_t index, const NodeView& node) {
  const std::string kind = NodeKindName(node.kind);
  if (node.name == kind) return absl::StrCat("node ", index, " (", kind, ")");
  return absl::StrCat("node ", index, " (", kind, " ", node.name, ")");
}

inline std::string ParameterLabel(std::size_t parameter, std::size_t byte) {
  return absl::StrCat("parameter ", parameter, " + ", byte);
}

inline constexpr char kCopySource[] = "copy source";
inline constexpr char kCopyDestination[] = "copy destination";
inline constexpr char kFillDestination[] = "fill destination";

}  // namespace holdfast

#endif  // HOLDFAST_GRAPHS_NODE_WORDS_H_
