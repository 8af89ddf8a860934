#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>

#include "tests/graphs/cuda_zoo.h"

namespace holdfast {
namespace {

__global__ void Nested(NestedPointers p) {
  if (threadIdx.x == 0) p.inner.data[1][0] = p.first[0] + p.inner.data[0][0];
}

__global__ void Packed(PackedPointers p) {
  if (threadIdx.x == 0) *p.target = p.value;
}

// Only passed on: what a kernel does with a map is not the audit's matter. One byte is read, so
// that the compiler keeps the parameter.
__global__ void Map(const __grid_constant__ CUtensorMap map, float* out) {
  if (threadIdx.x == 0) out[0] = static_cast<float>(reinterpret_cast<const char*>(&map)[127]);
}

__global__ void MapInside(const __grid_constant__ MapAndPointer p) {
  if (threadIdx.x == 0) p.out[0] = static_cast<float>(reinterpret_cast<const char*>(&p.map)[127]);
}

__global__ void Mixed(char tag, const float* in, short small, float* out, int count) {
  const int i = static_cast<int>(threadIdx.x);
  if (i < count) out[i] = in[i] + static_cast<float>(tag) + static_cast<float>(small);
}

}  // namespace

cudaError_t LaunchNested(cudaStream_t stream, const NestedPointers& pointers) {
  Nested<<<1, 32, 0, stream>>>(pointers);
  return cudaGetLastError();
}

cudaError_t LaunchPacked(cudaStream_t stream, const PackedPointers& pointers) {
  Packed<<<1, 32, 0, stream>>>(pointers);
  return cudaGetLastError();
}

cudaError_t LaunchTensorMap(cudaStream_t stream, const CUtensorMap& map, float* out) {
  Map<<<1, 32, 0, stream>>>(map, out);
  return cudaGetLastError();
}

cudaError_t LaunchMapAndPointer(cudaStream_t stream, const MapAndPointer& params) {
  MapInside<<<1, 32, 0, stream>>>(params);
  return cudaGetLastError();
}

cudaError_t LaunchMixed(cudaStream_t stream, char tag, const float* in, short small, float* out,
                        int count) {
  Mixed<<<1, 32, 0, stream>>>(tag, in, small, out, count);
  return cudaGetLastError();
}

cudaError_t ScanSum(cudaStream_t stream, void* temporary, std::size_t* bytes, const int* in,
                    int* out, int count) {
  return cub::DeviceScan::ExclusiveSum(temporary, *bytes, in, out, count, stream);
}

cudaError_t SortPairs(cudaStream_t stream, void* temporary, std::size_t* bytes,
                      const std::uint32_t* keys_in, std::uint32_t* keys_out,
                      const std::uint32_t* values_in, std::uint32_t* values_out, int count) {
  return cub::DeviceRadixSort::SortPairs(temporary, *bytes, keys_in, keys_out, values_in,
                                         values_out, count, 0, 32, stream);
}

cudaError_t ReduceSum(cudaStream_t stream, void* temporary, std::size_t* bytes, const int* in,
                      int* out, int count) {
  return cub::DeviceReduce::Sum(temporary, *bytes, in, out, count, stream);
}

}  // namespace holdfast
