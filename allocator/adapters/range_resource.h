// A std::pmr::memory_resource over one range of addresses: a ScratchBuffer, a span of the arena, a
// host span. What allocates through it stays inside, so that captured graphs hold no foreign
// pointer.
//
// The range may be device memory: nothing is written into it, the books are kept outside. First
// fit, so equal sequences of calls give equal addresses, also in a later capture.
#ifndef HOLDFAST_ALLOCATOR_ADAPTERS_RANGE_RESOURCE_H_
#define HOLDFAST_ALLOCATOR_ADAPTERS_RANGE_RESOURCE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory_resource>
#include <new>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/scratch_session.h"
#include "device/address.h"
#include "device/bytes.h"

namespace holdfast {

// Thrown where an interface leaves no other way to refuse, such as std::pmr's; a step that lets it
// pass fails with this text.
class RangeExhausted : public std::bad_alloc {
 public:
  explicit RangeExhausted(std::string text) : text_(std::move(text)) {}
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

// Not thread-safe. The range outlives it and is nobody else's meanwhile.
class RangeResource final : public std::pmr::memory_resource {
 public:
  RangeResource(std::string name, AddressRange range) : name_(std::move(name)), range_(range) {}
  explicit RangeResource(std::string name, const ScratchBuffer& buffer)
      : RangeResource(std::move(name), {buffer.address(), buffer.bytes()}) {}

  std::uint64_t high_water() const { return high_water_; }  // bytes from the range's base

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    // Zero bytes get an address of their own, as from any allocator.
    const std::uint64_t need = std::max<std::uint64_t>(bytes, 1);
    std::uint64_t at = 0;  // from the base
    for (const auto& [begin, end] : taken_) {
      at = Aligned(at, alignment);
      if (at <= begin && begin - at >= need) break;
      at = std::max(at, end);
    }
    at = Aligned(at, alignment);
    if (at > range_.bytes || range_.bytes - at < need) {
      throw RangeExhausted(absl::StrCat(name_, ": ", need, " B at offset ", at, " do not fit its ",
                                        range_.bytes, " B"));
    }
    taken_.emplace(at, at + need);
    high_water_ = std::max(high_water_, at + need);
    return (range_.base + at).As<void>();
  }
  void do_deallocate(void* address, std::size_t, std::size_t) override {
    taken_.erase(reinterpret_cast<std::uint64_t>(address) - range_.base.value);
  }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }

  // The offset at or above `at` whose address is aligned.
  std::uint64_t Aligned(std::uint64_t at, std::size_t alignment) const {
    return AlignUp(range_.base.value + at, alignment) - range_.base.value;
  }

  std::string name_;
  AddressRange range_;
  std::map<std::uint64_t, std::uint64_t> taken_;  // begin -> end, from the base
  std::uint64_t high_water_ = 0;
};

}  // namespace holdfast

#endif  // HOLDFAST_ALLOCATOR_ADAPTERS_RANGE_RESOURCE_H_
