// Everything that captured graphs of real libraries hold, on a stream of CUDA's own: by-value
// structs, tensor maps, CUB, copies and fills of every kind. For the audit's test on a GPU; all
// pointers come from the caller, so that the test knows where each must be found.
#ifndef HOLDFAST_TESTS_GRAPHS_CUDA_ZOO_H_
#define HOLDFAST_TESTS_GRAPHS_CUDA_ZOO_H_

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace holdfast {

// Pointers at several depths of a struct passed by value.
struct NestedPointers {
  std::int32_t count;
  float* first;
  struct Inner {
    std::int64_t stride;
    float* data[2];
  } inner;
  float* end;  // one past the last element: not to be followed
};
cudaError_t LaunchNested(cudaStream_t stream, const NestedPointers& pointers);

// A pointer at offset 4.
struct __attribute__((packed)) PackedPointers {
  std::uint32_t value;
  std::uint32_t* target;
};
cudaError_t LaunchPacked(cudaStream_t stream, const PackedPointers& pointers);

// A tensor map by itself, and one inside a struct with a pointer behind it. The map's alignment
// would leave padding at the end, whose bytes no two launches need to have in common.
struct MapAndPointer {
  CUtensorMap map;
  float* out;
  std::uint64_t zero[15];
};
static_assert(sizeof(MapAndPointer) == 2 * sizeof(CUtensorMap));
cudaError_t LaunchTensorMap(cudaStream_t stream, const CUtensorMap& map, float* out);
cudaError_t LaunchMapAndPointer(cudaStream_t stream, const MapAndPointer& params);

// Several plain parameters, in an order that leaves gaps.
cudaError_t LaunchMixed(cudaStream_t stream, char tag, const float* in, short small, float* out,
                        int count);

// CUB, with temporary storage the caller owns. A null `temporary` only asks for the size.
cudaError_t ScanSum(cudaStream_t stream, void* temporary, std::size_t* bytes, const int* in,
                    int* out, int count);
cudaError_t SortPairs(cudaStream_t stream, void* temporary, std::size_t* bytes,
                      const std::uint32_t* keys_in, std::uint32_t* keys_out,
                      const std::uint32_t* values_in, std::uint32_t* values_out, int count);
cudaError_t ReduceSum(cudaStream_t stream, void* temporary, std::size_t* bytes, const int* in,
                      int* out, int count);

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_GRAPHS_CUDA_ZOO_H_
