// Small models from the fixtures folder, as engines on the test device.
#ifndef HOLDFAST_TESTS_RUNTIME_ENGINE_FIXTURE_H_
#define HOLDFAST_TESTS_RUNTIME_ENGINE_FIXTURE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/engine.h"
#include "runtime/mla_model.h"
#include "tests/device/status_matchers.h"
#include "tests/device/test_device.h"

namespace holdfast {

// Tests run in the root of the repository (or of the bundle).
inline std::string FixtureFolder(const std::string& name) {
  return "tests/runtime/fixtures/" + name;
}

inline DType TestType(const Device& device) {
  return device.info().is_cuda ? DType::kBF16 : DType::kF32;
}

inline EngineOptions SmallOptions() {
  EngineOptions options;
  options.max_batch = 8;
  options.max_prefill_tokens = 32;
  options.max_sequence = 96;
  options.chunk_bytes = 4 * kMiB;
  options.utilization = 1;
  return options;
}

// A device and an engine on it, torn down in the right order.
struct TestEngine {
  std::unique_ptr<Device> device;
  std::unique_ptr<Engine> engine;

  Engine* operator->() const { return engine.get(); }
  Engine& operator*() const { return *engine; }
};

inline absl::StatusOr<TestEngine> MakeEngine(const std::string& fixture, EngineOptions options,
                                             const DeviceOptions& device_options = {}) {
  TestEngine test{.device = TestDevice(device_options), .engine = nullptr};
  HOLDFAST_ASSIGN_OR_RETURN(std::unique_ptr<Model> model,
                            MlaModel::Open(FixtureFolder(fixture), TestType(*test.device)));
  HOLDFAST_ASSIGN_OR_RETURN(test.engine,
                            Engine::Create(*test.device, std::move(model), std::move(options)));
  return test;
}

// `count` requests with prompts of mixed lengths; every other one is seeded.
inline std::vector<GenerateRequest> MixedRequests(std::size_t count, std::int32_t max_tokens = 6) {
  std::vector<GenerateRequest> requests;
  for (std::size_t i = 0; i < count; ++i) {
    GenerateRequest request;
    for (std::size_t t = 0; t < 1 + (i * 7) % 19; ++t) {
      request.prompt.push_back(static_cast<std::int32_t>((i * 31 + t * 17) % 97));
    }
    request.max_tokens = max_tokens - static_cast<std::int32_t>(i % 3);
    request.temperature = i % 2 == 0 ? 0.0f : 0.9f;
    request.top_k = i % 4 == 1 ? 5 : 0;
    request.seed = 99;
    request.request = i;
    requests.push_back(std::move(request));
  }
  return requests;
}

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_RUNTIME_ENGINE_FIXTURE_H_
