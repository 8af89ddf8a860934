// The grammar of synthetic models: backends and their configurations, as one line of text.
//
//   mla_sparse:heads=16,layers=2+gated_delta_net        two sparse layers, then a state layer
//
// LAYERS "+" LAYERS ..., where LAYERS is BACKEND or BACKEND:key=value,key=value. Keys are those of
// SyntheticSpecHelp(): the members of AttentionConfig, and `layers`, how many of them.
#ifndef HOLDFAST_RUNTIME_SYNTHETIC_SPEC_H_
#define HOLDFAST_RUNTIME_SYNTHETIC_SPEC_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "attention/declaration.h"

namespace holdfast {

// One layer of a stack, before it is declared.
struct SyntheticLayer {
  std::string backend;
  AttentionConfig config;
};

// What every layer of a stack has in common.
struct SyntheticLimits {
  std::int64_t max_batched_tokens = 128;  // rows of one pass
  std::int64_t max_sequences = 16;        // of one pass
  std::int64_t max_model_len = 256;
  GpuArch arch = GpuArch::kSm90;
  std::int64_t sms = 132;
};

// The layers of `spec`, in order. kNotFound naming the known backends; kInvalidArgument with object
// "<backend> <key>", naming value and grammar, for an empty part, an unknown, repeated or malformed
// key, or a value out of range. Whether a backend takes the configuration is Declare's to say.
absl::StatusOr<std::vector<SyntheticLayer>> ParseSyntheticSpec(const std::string& spec,
                                                               const SyntheticLimits& limits);

// Keys with grammar and default, a line each.
std::string SyntheticSpecHelp();

}  // namespace holdfast

#endif  // HOLDFAST_RUNTIME_SYNTHETIC_SPEC_H_
