// Captured graphs written by hand, for what no stream would record.
#ifndef HOLDFAST_TESTS_GRAPHS_VIEWS_H_
#define HOLDFAST_TESTS_GRAPHS_VIEWS_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "device/node_view.h"

namespace holdfast {

// A parameter at `offset` of the parameter buffer, made of whole words after `skip` bytes of 0xEE.
inline ParameterView Words(const std::vector<std::uint64_t>& words, std::uint32_t offset = 0,
                           std::size_t skip = 0) {
  ParameterView parameter{.offset = offset, .bytes = ParameterView::Bytes(skip, std::byte{0xEE})};
  parameter.bytes.resize(skip + words.size() * sizeof(std::uint64_t));
  std::memcpy(parameter.bytes.data() + skip, words.data(), words.size() * sizeof(std::uint64_t));
  return parameter;
}

inline NodeView KernelNode(const std::string& name, std::vector<ParameterView> parameters) {
  return {.kind = NodeKind::kKernel, .name = name, .parameters = std::move(parameters)};
}

inline NodeView CopyNode(const CopyView& copy) {
  return {.kind = NodeKind::kCopy, .name = "copy", .copy = copy};
}

inline NodeView FillNode(std::uint64_t destination, std::uint64_t bytes) {
  return {.kind = NodeKind::kFill,
          .name = "fill",
          .fill = {.destination = destination, .bytes = bytes}};
}

inline GraphView ViewOf(std::vector<NodeView> nodes) {
  GraphView view{.nodes = std::move(nodes)};
  for (std::size_t i = 1; i < view.nodes.size(); ++i) view.edges.emplace_back(i - 1, i);
  return view;
}

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_GRAPHS_VIEWS_H_
