// Planted model faults: what a wrong kernel or a wrong reading of the config would do.
#ifndef HOLDFAST_TESTS_RUNTIME_MUTATION_H_
#define HOLDFAST_TESTS_RUNTIME_MUTATION_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/model.h"
#include "tests/runtime/shorten_op.h"

namespace holdfast {

// The same model with its mask off by one.
std::unique_ptr<Model> WithMaskOffByOne(std::unique_ptr<Model> model);

// Copies a fixture into a new folder under the test's temporary directory, with "rope_interleave"
// inverted.
std::string CopyWithOtherRope(const std::string& folder);
// ... with every query projection multiplied by `factor`: what a wrong softmax scale amounts to.
std::string CopyWithScaledQueries(const std::string& folder, float factor);

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_RUNTIME_MUTATION_H_
