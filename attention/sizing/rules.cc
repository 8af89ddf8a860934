#include "attention/sizing/deepseek_v4.h"
#include "attention/sizing/dense_mla.h"
#include "attention/sizing/flashinfer.h"
#include "attention/sizing/flashmla_sparse.h"
#include "attention/sizing/gated_delta_net.h"
#include "attention/sizing/kv_pages.h"
#include "attention/sizing/moe.h"
#include "attention/sizing/rule.h"
#include "attention/sizing/sparse_indexer.h"
#include "attention/sizing/split_kv.h"

namespace holdfast {

std::vector<SizingRule> AttentionSizingRules() {
  return {ChunkedPrefillRule(),
          CutlassMlaRule(),
          DeepSeekV4Rule(),
          FlashInferGqaRule(),
          FlashInferMlaRule(),
          FlashInferNvfp4Rule(),
          FlashInferSparseMlaRule(),
          FlashMlaSparseRule(),
          Fp8KvPageRule(),
          GatedDeltaNetRule(),
          KvPageRule(),
          KvStateRule(),
          MoeRule(),
          SparseIndexerRule(),
          SplitKvRule(),
          TritonMlaRule()};
}

}  // namespace holdfast
