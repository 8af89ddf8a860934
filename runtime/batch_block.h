// The input and output blocks of one pass: what the host writes before a replay and reads after it,
// as one contiguous copy each way. Both copies are nodes of the graph.
#ifndef HOLDFAST_RUNTIME_BATCH_BLOCK_H_
#define HOLDFAST_RUNTIME_BATCH_BLOCK_H_

#include <cstddef>
#include <cstdint>

#include "device/address.h"
#include "runtime/kernels/sample.h"

namespace holdfast {

// The captured sizes of a pass.
struct BatchShape {
  std::int32_t rows = 0;          // query rows: tokens of a prefill, sequences of a decode
  std::int32_t sequences = 0;     // sequences, each with at most one row of logits
  std::int32_t table_stride = 0;  // pages a sequence may have
  std::int32_t vocab = 0;
};

// Where a block's arrays lie, from `base`; host or device memory alike. Every array is 256-byte
// aligned.
struct InputBlock {
  explicit InputBlock(const BatchShape& shape, std::uint64_t base = 0);

  // Writes a batch of pads: no row reads or writes the cache, no sequence yields a token. The block
  // is host memory at `base`.
  void FillWithPads() const;

  BatchShape shape;
  std::int32_t* tokens;         // (rows), -1 = pad
  std::int32_t* positions;      // (rows)
  std::int64_t* slots;          // (rows): cache slot the row's key is written to, -1 = none
  std::int32_t* row_sequence;   // (rows): row of block_table
  std::int32_t* row_kv_length;  // (rows): keys the row sees, itself included; 0 = pad
  std::int32_t* logits_row;     // (sequences): the row whose logits are wanted, -1 = pad
  SamplingRow* sampling;        // (sequences)
  std::int32_t* block_table;    // (sequences, table_stride)
  std::uint64_t bytes;          // of the whole block
};

struct OutputBlock {
  explicit OutputBlock(const BatchShape& shape, std::uint64_t base = 0);

  std::int32_t* tokens;  // (sequences), -1 for pads
  float* logits;         // (sequences, vocab)
  std::uint64_t bytes;
};

}  // namespace holdfast

#endif  // HOLDFAST_RUNTIME_BATCH_BLOCK_H_
