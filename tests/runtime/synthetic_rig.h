// Synthetic stacks for tests: as engines, and a single pass of one, run eagerly beside its graphs.
#ifndef HOLDFAST_TESTS_RUNTIME_SYNTHETIC_RIG_H_
#define HOLDFAST_TESTS_RUNTIME_SYNTHETIC_RIG_H_

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/synthetic_stack.h"
#include "tests/runtime/engine_fixture.h"

namespace holdfast {

// Limits of SmallOptions().
inline SyntheticLimits SmallLimits() {
  return {.max_batched_tokens = 32, .max_sequences = 8, .max_model_len = 96};
}

inline absl::StatusOr<std::unique_ptr<SyntheticStack>> MakeStack(
    const std::string& spec, const SyntheticLimits& limits = SmallLimits(),
    const SyntheticOptions& options = {}) {
  HOLDFAST_ASSIGN_OR_RETURN(const std::vector<SyntheticLayer> layers,
                            ParseSyntheticSpec(spec, limits));
  return SyntheticStack::Create(layers, options);
}

// An engine that runs a stack; `stack` is the engine's own model.
struct SyntheticEngine {
  TestEngine test;
  SyntheticStack* stack = nullptr;

  Engine* operator->() const { return test.engine.get(); }
  Device& device() const { return *test.device; }
  absl::StatusOr<std::vector<SyntheticFinding>> Findings() const {
    return stack->Findings(test.engine->lane().stream());
  }
};

inline absl::StatusOr<SyntheticEngine> MakeSyntheticEngine(
    const std::string& spec, const EngineOptions& options = SmallOptions(),
    std::unique_ptr<Device> device = TestDevice(), const SyntheticOptions& stack_options = {}) {
  const SyntheticLimits limits{
      .max_batched_tokens = std::max(options.max_prefill_tokens, options.max_batch),
      .max_sequences = options.max_batch,
      .max_model_len = options.max_sequence};
  HOLDFAST_ASSIGN_OR_RETURN(std::unique_ptr<SyntheticStack> stack,
                            MakeStack(spec, limits, stack_options));
  SyntheticEngine made{.test = {.device = std::move(device), .engine = nullptr},
                       .stack = stack.get()};
  HOLDFAST_ASSIGN_OR_RETURN(made.test.engine,
                            Engine::Create(*made.test.device, std::move(stack), options));
  return made;
}

// A decode pass of `rows` sequences of an engine's stack, run eagerly in the engine's workspace.
class EagerPass {
 public:
  static absl::StatusOr<EagerPass> Make(SyntheticEngine& engine, std::int32_t rows) {
    EagerPass eager(engine);
    eager.shape_ = {.rows = rows,
                    .sequences = rows,
                    .table_stride = engine.stack->caches().tables.stride(),
                    .vocab = engine.stack->limits().vocab};
    HOLDFAST_ASSIGN_OR_RETURN(std::unique_ptr<ModelPass> pass,
                              engine.stack->PlanPass(eager.shape_, false));
    eager.pass_ = std::move(pass);
    HOLDFAST_ASSIGN_OR_RETURN(
        eager.plan_, MeasureStep(engine->arena(), engine->lane().stream(), "eager", eager.step()));
    HOLDFAST_ASSIGN_OR_RETURN(eager.host_input_,
                              engine.device().AllocateHost(InputBlock(eager.shape_).bytes));
    HOLDFAST_ASSIGN_OR_RETURN(eager.host_output_,
                              engine.device().AllocateHost(OutputBlock(eager.shape_).bytes));
    return eager;
  }

  // Feeds token `first_token` + r to sequence r at `position`; gives the logits.
  absl::StatusOr<std::vector<float>> Run(std::int32_t position, std::int32_t first_token = 1) {
    return RunWith(plan_, position, first_token);
  }
  // The same with scratch planned for another step.
  absl::StatusOr<std::vector<float>> RunWith(const ScratchPlan& plan, std::int32_t position,
                                             std::int32_t first_token = 1) {
    FillInput(position, first_token);
    Engine& engine = *engine_->test;
    HOLDFAST_RETURN_IF_ERROR(RunEager(engine.lane(), "eager", step(),
                                      {.plan = &plan, .scratch = engine.workspace()}));
    HOLDFAST_RETURN_IF_ERROR(engine.lane().Synchronize());
    const OutputBlock out(shape_, reinterpret_cast<std::uint64_t>(host_output_.data()));
    return std::vector<float>(out.logits, out.logits + std::int64_t{shape_.rows} * shape_.vocab);
  }
  const ScratchPlan& plan() const { return plan_; }
  // Where a request lies in the workspace; an empty range if nobody asked for it.
  AddressRange RangeOf(const std::string& name) const {
    for (std::size_t i = 0; i < plan_.requests.size(); ++i) {
      if (plan_.requests[i].name != name) continue;
      const AddressRange all = engine_->test->arena().range(engine_->test->workspace());
      return {all.base + plan_.offsets[i], plan_.requests[i].bytes};
    }
    return {};
  }

 private:
  explicit EagerPass(SyntheticEngine& engine) : engine_(&engine) {}

  Step step() {
    return [this](StepContext& step) -> absl::Status {
      Arena& arena = engine_->test->arena();
      const DeviceAddress in = step.Resolve(*arena.Find("lane0.input"));
      const DeviceAddress out = step.Resolve(*arena.Find("lane0.output"));
      const InputBlock input(shape_, in.value);
      const OutputBlock output(shape_, out.value);
      HOLDFAST_RETURN_IF_ERROR(step.CopyToDevice(in, host_input_.data(), input.bytes));
      HOLDFAST_RETURN_IF_ERROR(pass_->Enqueue(step, input, output, *arena.Find("kv")));
      return step.CopyToHost(host_output_.data(), out, output.bytes);
    };
  }
  void FillInput(std::int32_t position, std::int32_t first_token) {
    const InputBlock in(shape_, reinterpret_cast<std::uint64_t>(host_input_.data()));
    in.FillWithPads();
    for (std::int32_t r = 0; r < shape_.rows; ++r) {
      in.tokens[r] = first_token + r;
      in.positions[r] = position;
      in.row_sequence[r] = r;
      in.row_kv_length[r] = position + 1;
      in.logits_row[r] = r;
      for (std::int32_t e = 0; e < shape_.table_stride; ++e) {
        in.block_table[r * shape_.table_stride + e] = 1 + r * shape_.table_stride + e;
      }
    }
  }

  SyntheticEngine* engine_;
  BatchShape shape_;
  std::shared_ptr<ModelPass> pass_;
  HostBuffer host_input_, host_output_;
  ScratchPlan plan_;
};

// Bytes of device memory.
inline absl::StatusOr<std::vector<std::uint8_t>> ReadBytes(Engine& engine, AddressRange range) {
  HOLDFAST_ASSIGN_OR_RETURN(const HostBuffer out, engine.device().AllocateHost(range.bytes));
  HOLDFAST_RETURN_IF_ERROR(
      engine.device().CopyToHost(engine.lane().stream(), out.data(), range.base, range.bytes));
  HOLDFAST_RETURN_IF_ERROR(engine.lane().Synchronize());
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(out.data());
  return std::vector<std::uint8_t>(bytes, bytes + range.bytes);
}

// Changes one byte of device memory.
inline absl::Status FlipByte(Engine& engine, DeviceAddress at) {
  HOLDFAST_ASSIGN_OR_RETURN(const std::vector<std::uint8_t> now, ReadBytes(engine, {at, 1}));
  HOLDFAST_RETURN_IF_ERROR(engine.device().Fill(engine.lane().stream(), at,
                                                static_cast<std::uint8_t>(now[0] ^ 0x40), 1));
  return engine.lane().Synchronize();
}

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_RUNTIME_SYNTHETIC_RIG_H_
