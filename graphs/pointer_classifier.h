// What one address points into. Ranges first (window, host spans, declared ranges); the device is
// asked only about words that lie in none of them and could be an address at all.
#ifndef HOLDFAST_GRAPHS_POINTER_CLASSIFIER_H_
#define HOLDFAST_GRAPHS_POINTER_CLASSIFIER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "allocator/arena.h"
#include "device/device.h"
#include "graphs/audit.h"
#include "graphs/thread_stack.h"

namespace holdfast {

// The first 64 KiB are never mapped, and a GPU's virtual addresses have at most 49 bits: what lies
// outside is a number. Counts, strides, pairs of floats and doubles nearly all do.
inline constexpr std::uint64_t kLowestAddress = 64 * kKiB;
inline constexpr std::uint64_t kHighestAddress = std::uint64_t{1} << 49;

// What is known of something that words point into, looked up once.
struct PointedObject {
  std::uint64_t bytes = 0;            // its size
  std::uint64_t committed_bytes = 0;  // spans: of those, how many have pages when awake
  bool asleep = false;                // spans
  bool sealed = false;                // must not be written
};

struct PointerTarget {
  PointerClass kind = PointerClass::kNotPointer;
  bool freed = false;  // kUnmapped: because somebody gave it back
  std::uint32_t object = PointerFinding::kNoObject;
  std::uint64_t offset = 0;  // into it
};

// Lives for one audit; remembers what it was told. Spans reserved later are not seen. Not
// thread-safe.
class PointerClassifier {
 public:
  // `arena` may be null. All must outlive it.
  PointerClassifier(const Device& device, const Arena* arena,
                    const std::vector<ExternalRange>& externals);

  // Any word: a pointer or not.
  PointerTarget Word(std::uint64_t word) {
    if (word - window_base_ > window_bytes_ || arena_ == nullptr) {
      if (word - kLowestAddress >= kHighestAddress - kLowestAddress) return {};
      return Outside(word, /*in_window=*/false);
    }
    return InWindow(word);
  }
  // The address of a copy or fill: certainly a pointer, so what nobody knows is kUnmapped (device
  // side) or kHost (host and unified side).
  PointerTarget Side(std::uint64_t address, CopySide side);

  const PointedObject& object(std::uint32_t index) const { return objects_[index]; }
  std::vector<std::string> TakeNames() { return std::move(names_); }
  const std::string& name(std::uint32_t index) const { return names_[index]; }

 private:
  PointerTarget InWindow(std::uint64_t word);
  PointerTarget Outside(std::uint64_t word, bool in_window);
  // Host spans and declared ranges; kNotPointer if in none.
  PointerTarget Declared(std::uint64_t address);
  PointerTarget InExternal(std::size_t index, std::uint64_t address);

  std::uint32_t SpanObject(std::uint32_t span);
  std::uint32_t NamedObject(const std::string& name, const PointedObject& facts);

  const Device& device_;
  const Arena* arena_;
  const std::vector<ExternalRange>& externals_;
  // May lie where a pinned buffer was freed; a temporary there is no stale pointer.
  const AddressRange stack_ = ThisThreadsStack();
  std::uint64_t window_base_ = 0;
  std::uint64_t window_bytes_ = 0;
  struct SpanStart {
    std::uint64_t begin, end;
    std::uint32_t span;
  };
  std::vector<SpanStart> spans_;            // by address
  std::vector<std::uint32_t> span_object_;  // by span; kNoObject until met
  std::vector<PointedObject> objects_;
  std::vector<std::string> names_;                             // of objects_
  absl::flat_hash_map<std::string, std::uint32_t> named_;      // host spans and declared ranges
  absl::flat_hash_map<std::uint64_t, PointerTarget> outside_;  // what only the slow way could tell
};

}  // namespace holdfast

#endif  // HOLDFAST_GRAPHS_POINTER_CLASSIFIER_H_
