// The launch seam. A kernel is an Op: one name, one trivially copyable parameter struct, and two
// twins of it (a CUDA __global__ function that takes the struct by value, and a host function that
// takes it by reference). Launching records (op, parameter bytes), never a closure, so a captured
// graph can be read back on both devices.
//
//   struct ScaleParams { float* data; std::int64_t count; float factor; };
//   const Op& ScaleOp();       // scale.cc: static const Op op = MakeOp<ScaleParams,
//   ScaleHost>("scale", cuda); Launch<ScaleParams>(device, stream, ScaleOp(), {.grid = {n}, .block
//   = {256}}, params);
#ifndef HOLDFAST_DEVICE_OP_H_
#define HOLDFAST_DEVICE_OP_H_

#include <cstdint>
#include <string>
#include <type_traits>

namespace holdfast {

struct Dim3 {
  std::uint32_t x = 1, y = 1, z = 1;
};

// What the CUDA twin is launched with; the host twin loops over its parameters and ignores it.
struct LaunchShape {
  Dim3 grid;
  Dim3 block;
  std::uint32_t shared_bytes = 0;  // dynamic shared memory per block
  // May start before the kernel ahead of it in its stream has ended (programmatic dependent
  // launch): the CUDA twin waits for it by itself before it reads what that one wrote.
  bool programmatic = false;
};

struct Op {
  std::string name;
  void (*host)(const void* params) = nullptr;  // runs on a host stream's thread
  const void* cuda = nullptr;                  // __global__ function; null in a build without CUDA
  std::uint32_t params_bytes = 0;
};

template <typename Params, void (*HostFunction)(const Params&)>
Op MakeOp(std::string name, const void* cuda_function) {
  static_assert(std::is_trivially_copyable_v<Params>, "parameters are recorded as bytes");
  return Op{.name = std::move(name),
            .host = [](const void* params) { HostFunction(*static_cast<const Params*>(params)); },
            .cuda = cuda_function,
            .params_bytes = sizeof(Params)};
}

}  // namespace holdfast

// HOLDFAST_CUDA_TWIN(F): the value of F(), a function defined in a .cu file that returns the
// address of a
// __global__ function; null where CUDA code is not built.
#if HOLDFAST_WITH_CUDA
#define HOLDFAST_CUDA_TWIN(function) function()
#else
#define HOLDFAST_CUDA_TWIN(function) nullptr
#endif

#endif  // HOLDFAST_DEVICE_OP_H_
