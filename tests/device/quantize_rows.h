// The body of the quantize_rows test kernel, one for both twins; a single thread runs all of it.
#ifndef HOLDFAST_TESTS_DEVICE_QUANTIZE_ROWS_H_
#define HOLDFAST_TESTS_DEVICE_QUANTIZE_ROWS_H_

#include <math.h>

#include "tests/device/test_ops.h"

#if defined(__CUDACC__)
#define HOLDFAST_TEST_BOTH __host__ __device__
#else
#define HOLDFAST_TEST_BOTH
#endif

namespace holdfast {

HOLDFAST_TEST_BOTH inline void QuantizeRows(const QuantizeRowsParams& p) {
  const std::int32_t rows = p.pads_count != 0 ? p.rows : *p.real;
  float most = 0;
  bool numbers = true;
  for (std::int32_t i = 0; i < rows * p.width; ++i) {
    const float size = p.x[i] < 0 ? -p.x[i] : p.x[i];
    if (!(size >= 0)) numbers = false;  // NaN spreads, as through a hardware maximum
    if (size > most) most = size;
  }
  const float scale = numbers ? most / 127 : nanf("");
  for (std::int32_t r = 0; r < p.rows; ++r) {
    for (std::int32_t c = 0; c < p.width; ++c) {
      const std::int32_t i = r * p.width + c;
      p.out[i] = r < rows && scale != 0 ? nearbyintf(p.x[i] / scale) * scale : 0;
    }
    if (r < rows && p.slots[r] >= 0) p.kv[p.slots[r]] = p.out[r * p.width];
  }
}

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_DEVICE_QUANTIZE_ROWS_H_
