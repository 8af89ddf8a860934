// Reductions over a block of whole warps, in an order that only the block size decides.
#ifndef HOLDFAST_RUNTIME_KERNELS_BLOCK_REDUCE_CUH_
#define HOLDFAST_RUNTIME_KERNELS_BLOCK_REDUCE_CUH_

namespace holdfast {

// Every thread of the block calls it and gets combine() of all values; `combine` is commutative.
// `partials` is shared memory of 32 entries. Ends with a barrier, so it can be called again at
// once.
template <typename T, typename Combine>
__device__ T BlockReduce(T value, T* partials, const Combine& combine) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int step = 16; step > 0; step /= 2) {
    value = combine(value, __shfl_xor_sync(0xffffffffu, value, step));
  }
  if (lane == 0) partials[warp] = value;
  __syncthreads();
  T total = partials[0];
  for (int w = 1; w < static_cast<int>(blockDim.x) / 32; ++w) total = combine(total, partials[w]);
  __syncthreads();
  return total;
}

// 1 / sqrt(mean(x^2) + epsilon) of a row of `count` floats.
__device__ inline float BlockInverseRms(const float* x, int count, float epsilon, float* partials) {
  float sum = 0;
  for (int i = threadIdx.x; i < count; i += blockDim.x) sum += x[i] * x[i];
  sum = BlockReduce(sum, partials, [](float a, float b) { return a + b; });
  return 1.0f / sqrtf(sum / static_cast<float>(count) + epsilon);
}

}  // namespace holdfast

#endif  // HOLDFAST_RUNTIME_KERNELS_BLOCK_REDUCE_CUH_
