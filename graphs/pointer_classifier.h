// What one address points into. Ranges first (window, host spans, declared ranges); the device is
// asked only about words that lie in none of them and could be an address at all.
#ifndef HOLDFAST_GRAPHS_POINTER_CLASSIFIER_H_
#define HOLDFAST_GRAPHS_POINTER_CLASSIFIER_H_

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "allocator/arena.h"
#include "device/device.h"
#include "graphs/audit.h"

namespace holdfast {

// A span as the audit needs it, copied from the arena once.
struct SpanFacts {
  std::string name;
  Role role = Role::kMutable;
  AddressRange range;
  bool asleep = false;
};

struct PointerTarget {
  PointerClass kind = PointerClass::kNotPointer;
  const std::string* object =
      nullptr;  // owned by the classifier, arena or caller; null if nameless
  std::uint64_t offset = 0;
  std::uint64_t left = 0;           // bytes from the address to the end of the object
  const SpanFacts* span = nullptr;  // kSpan only
};

// Lives for one audit; remembers what it was told. Not thread-safe.
class PointerClassifier {
 public:
  // `arena` may be null. All must outlive it.
  PointerClassifier(const Device& device, const Arena* arena,
                    const std::vector<ExternalRange>& externals);

  // Any word: a pointer or not.
  PointerTarget Word(std::uint64_t word);
  // The address of a copy or fill: certainly a pointer, so what nobody knows is kUnmapped (device
  // side) or kHost (host and unified side).
  PointerTarget Side(std::uint64_t address, CopySide side);

 private:
  bool InWindow(std::uint64_t word) const { return word - window_base_ <= window_bytes_; }
  PointerTarget InSpan(std::uint64_t address);
  PointerTarget Declared(std::uint64_t address) const;
  const SpanFacts& Facts(SpanId id);

  const Device& device_;
  const Arena* arena_;
  const std::vector<ExternalRange>& externals_;
  std::uint64_t window_base_ = 0;
  std::uint64_t window_bytes_ = 0;
  std::unordered_map<std::uint32_t, SpanFacts>
      facts_;  // by span index; entries stay where they are
  std::unordered_map<std::uint64_t, PointerTarget>
      outside_;  // words that only the slow way could tell
};

}  // namespace holdfast

#endif  // HOLDFAST_GRAPHS_POINTER_CLASSIFIER_H_
