// Planted model faults: what a wrong kernel or a wrong reading of the config would do.
#ifndef HOLDFAST_TESTS_RUNTIME_MUTATION_H_
#define HOLDFAST_TESTS_RUNTIME_MUTATION_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "device/op.h"
#include "runtime/model.h"

namespace holdfast {

// values[i] -= 1 where values[i] > 1: every row forgets its newest key.
struct ShortenParams {
  std::int32_t* values;  // (count)
  std::int32_t count;
};
const Op& ShortenOp();

// The same model with its mask off by one.
std::unique_ptr<Model> WithMaskOffByOne(std::unique_ptr<Model> model);

// Copies a fixture into a new folder under the test's temporary directory, with "rope_interleave"
// inverted.
std::string CopyWithOtherRope(const std::string& folder);
// ... with every query projection multiplied by `factor`: what a wrong softmax scale amounts to.
std::string CopyWithScaledQueries(const std::string& folder, float factor);

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_RUNTIME_MUTATION_H_
