// The pads of a batch: every per-row array of a captured step has as many entries as its bucket,
// and the tail behind the real rows is filled anew before each replay. What an earlier, larger
// batch left there would be read as rows.
#ifndef HOLDFAST_GRAPHS_PADDING_H_
#define HOLDFAST_GRAPHS_PADDING_H_

#include <algorithm>

namespace holdfast {

// rows[real, bucket) = value: what the step's kernels take for no row (a token or slot of -1, a
// length of 0).
template <typename T>
void FillPads(T* rows, int real, int bucket, T value) {
  std::fill(rows + real, rows + bucket, value);
}

// For a cumulative array of bucket + 1 entries, ends[real] set: each pad row is empty, so it ends
// where the last real one does.
template <typename T>
void FillCumulativePads(T* ends, int real, int bucket) {
  std::fill(ends + real + 1, ends + bucket + 1, ends[real]);
}

}  // namespace holdfast

#endif  // HOLDFAST_GRAPHS_PADDING_H_
