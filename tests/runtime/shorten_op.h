// The op of a planted fault, in a header that CUDA code can include.
#ifndef HOLDFAST_TESTS_RUNTIME_SHORTEN_OP_H_
#define HOLDFAST_TESTS_RUNTIME_SHORTEN_OP_H_

#include <cstdint>

#include "device/op.h"

namespace holdfast {

// values[i] -= 1 where values[i] > 1: every row forgets its newest key.
struct ShortenParams {
  std::int32_t* values;  // (count)
  std::int32_t count;
};
const Op& ShortenOp();

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_RUNTIME_SHORTEN_OP_H_
