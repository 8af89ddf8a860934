// The kernel of the sound plug-in, written once for both devices.
#ifndef HOLDFAST_TESTS_TESTING_PLUGINS_GOOD_H_
#define HOLDFAST_TESTS_TESTING_PLUGINS_GOOD_H_

#include <stdint.h>

#ifdef __CUDACC__
#define GOOD_INLINE static __host__ __device__ inline
extern "C" {
#else
#define GOOD_INLINE static inline
#endif

enum { GOOD_WIDTH = 64, GOOD_MOST_ROWS = 4 };

struct good_input {
  int32_t real; /* rows that are none follow the real ones */
  int32_t unused;
  float rows[GOOD_MOST_ROWS][GOOD_WIDTH];
};

struct good_params {
  const struct good_input* input;
  const float* weights; /* (width) */
  const float* table;   /* (width) */
  float* mixed;         /* scratch (rows, width) */
  float* cache;         /* (rows, width) */
  float* out;           /* (rows, width) */
  uint64_t* counter;
  int32_t rows;
  int32_t plant; /* 0, or a GOOD_PLANT */
};
enum { GOOD_STALE_SCRATCH = 1, GOOD_PADS_COUNT = 2 };

/* out = (x w) + table for real rows, 0 for pads. */
GOOD_INLINE void good_cell(const struct good_params* p, int32_t row, int32_t column) {
  const int64_t at = (int64_t)row * GOOD_WIDTH + column;
  const int real = row < p->input->real;
  if (p->plant != GOOD_STALE_SCRATCH) {
    p->mixed[at] = real ? p->input->rows[row][column] * p->weights[column] : 0.0f;
  }
  if (p->plant == GOOD_PADS_COUNT && real) p->mixed[at] += p->input->rows[p->rows - 1][column];
  p->cache[at] = p->mixed[at];
  p->out[at] = real ? p->mixed[at] + p->table[column] : 0.0f;
}

/* Launches the CUDA twin; in good_kernel.cu. */
int32_t good_launch(const void* params, const uint32_t grid[3], const uint32_t block[3],
                    uint32_t shared_bytes, void* cu_stream);

#ifdef __CUDACC__
}
#endif

#endif /* HOLDFAST_TESTS_TESTING_PLUGINS_GOOD_H_ */
