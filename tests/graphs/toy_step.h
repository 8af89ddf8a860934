// The step most graph tests run: y = 2 (w + x + b) + 1 over `rows` floats, by way of a copy in, two
// scratch buffers, a fill, four kernels and a copy out.
#ifndef HOLDFAST_TESTS_GRAPHS_TOY_STEP_H_
#define HOLDFAST_TESTS_GRAPHS_TOY_STEP_H_

#include <vector>

#include "allocator/step_context.h"
#include "graphs/graph.h"
#include "tests/device/test_ops.h"
#include "tests/graphs/toy.h"

namespace holdfast {

// What a toy step reads and writes; a second one keeps two lanes apart.
struct ToyIo {
  SpanId input, output;
  const HostSpan* in = nullptr;
  const HostSpan* out = nullptr;
};
inline ToyIo FirstIo(const Toy& toy) {
  return {toy.input, toy.output, toy.staging_in, toy.staging_out};
}
inline ToyIo SecondIo(const Toy& toy) {
  return {toy.input2, toy.output2, toy.staging_in, toy.staging_out2};
}

inline absl::Status ToyAdd(StepContext& context, DeviceAddress a, DeviceAddress b,
                           DeviceAddress out, std::int64_t rows) {
  const AddParams params{a.As<float>(), b.As<float>(), out.As<float>(), rows};
  return context.Launch(AddOp(), ShapeFor(rows), params);
}

// rows <= kToyRows. The toy must outlive the step.
inline Step ToyStep(const Toy& toy, std::int64_t rows, const ToyIo& io) {
  return [&toy, rows, io](StepContext& context) -> absl::Status {
    const std::uint64_t bytes = static_cast<std::uint64_t>(rows) * sizeof(float);
    const DeviceAddress input = context.Resolve(io.input), output = context.Resolve(io.output);
    HOLDFAST_RETURN_IF_ERROR(context.CopyToDevice(input, io.in->buffer.data(), bytes));
    HOLDFAST_ASSIGN_OR_RETURN(ScratchBuffer sum, context.Scratch("sum", bytes));
    HOLDFAST_RETURN_IF_ERROR(
        ToyAdd(context, context.Resolve(toy.weights), input, sum.address(), rows));
    HOLDFAST_ASSIGN_OR_RETURN(const ScratchBuffer total, context.Scratch("total", bytes));
    HOLDFAST_RETURN_IF_ERROR(
        ToyAdd(context, sum.address(), context.Resolve(toy.bias), total.address(), rows));
    sum.Release();
    const ScaleParams scale{total.As<float>(), rows, 2.0f, 1.0f};
    HOLDFAST_RETURN_IF_ERROR(context.Launch(ScaleOp(), ShapeFor(rows), scale));
    HOLDFAST_RETURN_IF_ERROR(context.Fill(output, 0, bytes));
    HOLDFAST_RETURN_IF_ERROR(ToyAdd(context, total.address(), output, output, rows));
    return context.CopyToHost(io.out->buffer.data(), output, bytes);
  };
}
inline Step ToyStep(const Toy& toy, std::int64_t rows) { return ToyStep(toy, rows, FirstIo(toy)); }

inline constexpr std::size_t kToyStepNodes = 7;

// w[i] = i, b[i] = 0.5, by way of the first staging span; sealed afterwards.
inline void LoadToyWeights(Toy& toy) {
  Device& device = *toy.device;
  for (const bool bias : {false, true}) {
    for (std::uint64_t i = 0; i < kToyRows; ++i) toy.In()[i] = bias ? 0.5f : static_cast<float>(i);
    const DeviceAddress to{toy.At(bias ? toy.bias : toy.weights)};
    EXPECT_OK(device.CopyToDevice(toy.lane->stream(), to, toy.In(), kToyBytes));
    EXPECT_OK(toy.lane->Synchronize());
  }
  EXPECT_OK(toy.arena->Seal("weights"));
}

// x[i] = first + i in the first staging span.
inline void SetToyInput(Toy& toy, float first) {
  for (std::uint64_t i = 0; i < kToyRows; ++i) toy.In()[i] = first + static_cast<float>(i);
}
// What the step makes of it.
inline std::vector<float> ToyExpected(float first, std::int64_t rows) {
  std::vector<float> expected;
  for (std::int64_t i = 0; i < rows; ++i) {
    const float x = static_cast<float>(i);
    expected.push_back(2 * (x + (first + x) + 0.5f) + 1);
  }
  return expected;
}
inline std::vector<float> ToyOutput(const HostSpan* out, std::int64_t rows) {
  const float* data = reinterpret_cast<const float*>(out->buffer.data());
  return {data, data + rows};
}

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_GRAPHS_TOY_STEP_H_
