#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "graphs/compare.h"
#include "graphs/node_words.h"

namespace holdfast {
namespace {

// The address a finding is about, inside `node`; null if the node has no such place.
std::uint64_t* Place(NodeView& node, const PointerFinding& finding) {
  switch (finding.place) {
    case WordPlace::kParameter: return nullptr;  // bytes, not a number: see MoveBack
    case WordPlace::kCopySource: return &node.copy.source;
    case WordPlace::kCopyDestination: return &node.copy.destination;
    case WordPlace::kFillDestination: return &node.fill.destination;
    case WordPlace::kOperation:
      return finding.index < node.operations.size() ? &node.operations[finding.index].address
                                                    : nullptr;
    case WordPlace::kPolicyWindow: return &node.policy_window.base.value;
  }
  return nullptr;
}

void StoreWord(ParameterView& parameter, std::size_t byte, std::uint64_t word) {
  std::memcpy(parameter.bytes.data() + byte, &word, sizeof(word));
}

bool SameLayout(const NodeView& a, const NodeView& b) {
  return a.kind == b.kind && a.name == b.name && a.operations.size() == b.operations.size() &&
         std::equal(a.parameters.begin(), a.parameters.end(), b.parameters.begin(),
                    b.parameters.end(), [](const ParameterView& x, const ParameterView& y) {
                      return x.offset == y.offset && x.bytes.size() == y.bytes.size();
                    });
}

// Judges what moved and moves it back, so that all the rest must be equal.
class Unshifter {
 public:
  Unshifter(const GraphView& base, const GraphView& shifted, std::uint64_t shift,
            const Arena* arena, const Device* device)
      : base_(base), rest_(shifted), shift_(shift), arena_(arena), device_(device) {}

  ShiftReport Run(const AuditReport& audit) {
    for (const PointerFinding& pointer : audit.pointers) {
      if (pointer.kind != PointerClass::kSpan || pointer.node >= rest_.nodes.size()) continue;
      // A node of another layout is reported as a different node in the end.
      if (!SameLayout(base_.nodes[pointer.node], rest_.nodes[pointer.node])) continue;
      MoveBack(pointer, audit.ObjectOf(pointer));
    }
    const std::size_t nodes = std::min(base_.nodes.size(), rest_.nodes.size());
    for (std::size_t n = 0; n < nodes; ++n) {
      if (!SameLayout(base_.nodes[n], rest_.nodes[n])) continue;
      for (std::size_t p = 0; p < rest_.nodes[n].parameters.size(); ++p) Parameter(n, p);
    }
    std::vector<std::string> others = DiffGraphs(base_, rest_);
    report_.problems.insert(report_.problems.end(), others.begin(), others.end());
    return std::move(report_);
  }

 private:
  void MoveBack(const PointerFinding& pointer, const std::string& span) {
    NodeView& node = rest_.nodes[pointer.node];
    std::uint64_t word;
    if (pointer.place == WordPlace::kParameter) {
      word = ReadWord(node.parameters[pointer.index], pointer.byte);
      StoreWord(node.parameters[pointer.index], pointer.byte, pointer.word);
    } else {
      std::uint64_t* const place = Place(node, pointer);
      if (place == nullptr) return;
      word = *place;
      *place = pointer.word;
    }
    if (word == pointer.word + shift_) {
      ++report_.moved;
      return;
    }
    report_.problems.push_back(absl::StrCat(NodeLabel(pointer.node, node), ": ", pointer.where(),
                                            ": pointer to span '", span, "' + ", pointer.offset,
                                            " did not move by the shift: ", HexWord(pointer.word),
                                            ", then ", HexWord(word)));
  }

  // What still differs in a parameter: a tensor map in a form that does not show its address as
  // one word, or packed pointers.
  void Parameter(std::size_t n, std::size_t p) {
    const ParameterView& before = base_.nodes[n].parameters[p];
    ParameterView& after = rest_.nodes[n].parameters[p];
    const std::size_t size = after.bytes.size();
    for (std::size_t byte = 0; byte < size; ++byte) {
      if (before.bytes[byte] == after.bytes[byte]) continue;
      if (TensorMap(before, after, byte)) continue;
      if (const std::optional<PackedPointer> packed = Packed(before, after, byte)) {
        report_.packed.push_back(*packed);
        report_.packed.back().node = static_cast<std::uint32_t>(n);
        report_.packed.back().parameter = static_cast<std::uint32_t>(p);
        ++report_.moved;
      }
    }
  }

  // A pointer into the arena that covers `byte` at any alignment and moved by exactly the shift; it
  // is then moved back.
  std::optional<PackedPointer> Packed(const ParameterView& before, ParameterView& after,
                                      std::size_t byte) {
    if (arena_ == nullptr) return std::nullopt;
    // A shift changes no byte below its own lowest one: the pointer may begin up to 7 bytes before.
    const std::size_t first = byte >= kWordBytes - 1 ? byte - (kWordBytes - 1) : 0;
    for (std::size_t at = first; at <= byte && at + kWordBytes <= after.bytes.size(); ++at) {
      const std::uint64_t word = ReadWord(before, at);
      if (ReadWord(after, at) != word + shift_) continue;
      const std::optional<SpanHit> hit = arena_->Locate({word});
      if (!hit.has_value()) continue;
      StoreWord(after, at, word);
      return PackedPointer{.byte = static_cast<std::uint32_t>(at),
                           .word = word,
                           .span = arena_->span(hit->span).spec.name,
                           .offset = hit->offset};
    }
    return std::nullopt;
  }

  // Where the driver's maps show the address in their first word, tier 1 has found it and nothing
  // is left to explain. Where more of a map changed, the driver is asked: the map it makes of the
  // first one for the moved address must be the second one, byte for byte.
  bool TensorMap(const ParameterView& before, ParameterView& after, std::size_t byte) {
    if (device_ == nullptr || after.bytes.size() < kTensorMapBytes) return false;
    const std::size_t lowest = byte >= kTensorMapBytes - 1 ? byte - (kTensorMapBytes - 1) : 0;
    for (std::size_t at = lowest; at <= byte && at + kTensorMapBytes <= after.bytes.size(); ++at) {
      if ((before.offset + at) % kWordBytes != 0) continue;
      const std::uint64_t address = ReadWord(before, at);
      if (arena_ == nullptr || !arena_->Locate({address}).has_value()) continue;
      alignas(128) std::byte map[kTensorMapBytes];
      std::memcpy(map, before.bytes.data() + at, kTensorMapBytes);
      if (!device_->RebaseTensorMap(map, {address + shift_}).ok()) continue;
      // The first word was moved back already.
      std::memcpy(map, before.bytes.data() + at, kWordBytes);
      if (std::memcmp(map, after.bytes.data() + at, kTensorMapBytes) != 0) continue;
      std::memcpy(after.bytes.data() + at, before.bytes.data() + at, kTensorMapBytes);
      ++report_.tensor_maps;
      return true;
    }
    return false;
  }

  const GraphView& base_;
  GraphView rest_;
  const std::uint64_t shift_;
  const Arena* const arena_;
  const Device* const device_;
  ShiftReport report_;
};

}  // namespace

ShiftReport CompareShifted(const GraphView& base, const AuditReport& audit,
                           const GraphView& shifted, std::uint64_t shift, const Arena* arena,
                           const Device* device) {
  return Unshifter(base, shifted, shift, arena, device).Run(audit);
}

}  // namespace holdfast
