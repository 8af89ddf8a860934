// How a layer's cache lies in pages, as the KV plan sees it.
#ifndef HOLDFAST_ATTENTION_KV_PAGE_SPEC_H_
#define HOLDFAST_ATTENTION_KV_PAGE_SPEC_H_

#include <cstdint>
#include <string>

namespace holdfast {

enum class KvKind {
  kNone,    // the layer keeps nothing
  kFull,    // every token
  kWindow,  // the last `window` tokens
  kState,   // one page a sequence, whatever its length, and one a draft token
};
const char* KvKindName(KvKind kind);  // "none", "full", "window", "state"

struct KvPageSpec {
  KvKind kind = KvKind::kNone;
  std::string layout;              // "mla_bf16", "fp8_ds_mla", ...
  std::int64_t page_tokens = 0;    // tokens of one page; of kState: 0
  std::uint64_t page_bytes = 0;    // one page of one layer, padding included
  std::int64_t window = 0;         // kWindow only
  std::int64_t context_ranks = 1;  // ranks that share a sequence's tokens (DCP * PCP); kFull only

  bool operator==(const KvPageSpec&) const = default;
};

}  // namespace holdfast

#endif  // HOLDFAST_ATTENTION_KV_PAGE_SPEC_H_
