// One captured shape of a synthetic stack.
#ifndef HOLDFAST_RUNTIME_SYNTHETIC_PASS_H_
#define HOLDFAST_RUNTIME_SYNTHETIC_PASS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "runtime/model.h"
#include "runtime/synthetic_stack.h"

namespace holdfast {

class SyntheticPass : public ModelPass {
 public:
  // `stack` must outlive the pass.
  SyntheticPass(const SyntheticStack& stack, const BatchShape& shape)
      : stack_(stack), shape_(shape) {}

  absl::Status Enqueue(StepContext& step, const InputBlock& input, const OutputBlock& output,
                       SpanId cache) override;

 private:
  // What the pass has in hand while it enqueues.
  struct Run {
    StepContext& step;
    const InputBlock& input;
    DeviceAddress pool;
    std::uint64_t* hidden;  // (rows)
    std::uint64_t* salt;    // what the step was given
    std::uint64_t* digest;  // what is wrong; 0: nothing
  };

  absl::Status RunLayer(const Run& run, std::size_t layer);
  // The layer's scratch as declared, one buffer a request, all alive together.
  absl::StatusOr<std::vector<ScratchBuffer>> AskScratch(StepContext& step, std::size_t layer) const;
  DeviceAddress AddressOf(const std::vector<ScratchBuffer>& scratch, std::size_t layer,
                          std::size_t request) const;
  absl::Status WriteCaches(const Run& run, std::size_t layer) const;
  absl::Status ReadCaches(const Run& run, std::size_t layer) const;
  absl::Status UpdateState(const Run& run, const SyntheticCache& cache,
                           const SyntheticStack::Buffer& buffer) const;
  absl::Status Write(const Run& run, const SyntheticStack::Buffer& buffer, DeviceAddress data,
                     std::uint64_t bytes, const std::uint64_t* salt) const;
  absl::Status Verify(const Run& run, const SyntheticStack::Buffer& buffer, DeviceAddress data,
                      std::uint64_t bytes, const std::uint64_t* salt) const;
  PatternFault* FaultOf(const Run& run, const SyntheticStack::Buffer& buffer) const;

  const SyntheticStack& stack_;
  BatchShape shape_;
};

}  // namespace holdfast

#endif  // HOLDFAST_RUNTIME_SYNTHETIC_PASS_H_
