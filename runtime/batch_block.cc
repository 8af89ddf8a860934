#include "runtime/batch_block.h"

#include <algorithm>

#include "device/bytes.h"

namespace holdfast {
namespace {

// Hands out aligned pieces of a block, one after the other.
class Carver {
 public:
  explicit Carver(std::uint64_t base) : base_(base), cursor_(base) {}

  template <typename T>
  T* Take(std::int64_t count) {
    const std::uint64_t at = cursor_;
    cursor_ += AlignUp(static_cast<std::uint64_t>(count) * sizeof(T), 256);
    return reinterpret_cast<T*>(at);
  }
  std::uint64_t bytes() const { return cursor_ - base_; }

 private:
  std::uint64_t base_, cursor_;
};

}  // namespace

InputBlock::InputBlock(const BatchShape& s, std::uint64_t base) : shape(s) {
  Carver carver(base);
  tokens = carver.Take<std::int32_t>(s.rows);
  positions = carver.Take<std::int32_t>(s.rows);
  slots = carver.Take<std::int64_t>(s.rows);
  row_sequence = carver.Take<std::int32_t>(s.rows);
  row_kv_length = carver.Take<std::int32_t>(s.rows);
  logits_row = carver.Take<std::int32_t>(s.sequences);
  sampling = carver.Take<SamplingRow>(s.sequences);
  block_table = carver.Take<std::int32_t>(std::int64_t{s.sequences} * s.table_stride);
  bytes = carver.bytes();
}

void InputBlock::FillWithPads() const {
  std::fill_n(tokens, shape.rows, -1);
  std::fill_n(positions, shape.rows, 0);
  std::fill_n(slots, shape.rows, -1);
  std::fill_n(row_sequence, shape.rows, 0);
  std::fill_n(row_kv_length, shape.rows, 0);
  std::fill_n(logits_row, shape.sequences, -1);
  std::fill_n(sampling, shape.sequences, SamplingRow{});
  std::fill_n(block_table, std::int64_t{shape.sequences} * shape.table_stride, 0);
}

OutputBlock::OutputBlock(const BatchShape& s, std::uint64_t base) {
  Carver carver(base);
  tokens = carver.Take<std::int32_t>(s.sequences);
  logits = carver.Take<float>(std::int64_t{s.sequences} * s.vocab);
  bytes = carver.bytes();
}

}  // namespace holdfast
