// Dense MLA by other kernels: CUTLASS, Triton, and the context chunks of un-absorbed prefill.
// Source: vLLM's backends (cutlass_mla, triton_mla, mla/common).
#ifndef HOLDFAST_ATTENTION_SIZING_DENSE_MLA_H_
#define HOLDFAST_ATTENTION_SIZING_DENSE_MLA_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "attention/sizing/rule.h"

namespace holdfast {

// The library asks for what this batch needs; the worst batch is what must be there.
struct CutlassMlaKeys {
  std::int64_t max_num_seqs = 0, max_model_len = 0, sms = 148;
};
absl::StatusOr<std::vector<DeclaredRequest>> CutlassMlaRequests(const CutlassMlaKeys& keys);
SizingRule CutlassMlaRule();

struct TritonMlaKeys {
  std::int64_t max_num_seqs = 0, heads = 0, splits = 4, output = 0;
};
absl::StatusOr<std::vector<DeclaredRequest>> TritonMlaRequests(const TritonMlaKeys& keys);
SizingRule TritonMlaRule();

struct ChunkedPrefillKeys {
  std::int64_t max_model_len = 0, max_num_seqs = 0, block_size = 64;
  std::int64_t heads = 0, nope_dim = 128, value_dim = 128, index_topk = 0;
};
absl::StatusOr<std::vector<DeclaredRequest>> ChunkedPrefillRequests(const ChunkedPrefillKeys& keys);
SizingRule ChunkedPrefillRule();

}  // namespace holdfast

#endif  // HOLDFAST_ATTENTION_SIZING_DENSE_MLA_H_
