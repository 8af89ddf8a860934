#include "attention/sizing/kv_pages.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "attention/sizing/requests.h"
#include "device/error.h"

namespace holdfast {
namespace {

constexpr char kQuantized[] = "fp8_kv_page", kPlain[] = "kv_page", kState[] = "kv_state";
constexpr std::int64_t kMostTokens = 1 << 20, kMostHeads = 4096, kMostDim = 1 << 16;

std::vector<std::string> LayoutNames() {
  std::vector<std::string> names;
  for (const KvLayout& layout : QuantizedKvLayouts()) names.emplace_back(layout.name);
  return names;
}

const KeyTable<Fp8KvPageKeys>& QuantizedTable() {
  using K = Fp8KvPageKeys;
  static const KeyTable<K> table = {
      Choice("layout", &K::layout, LayoutNames(), "how a token lies in the page"),
      Count("block_size", &K::block_size, 1, kMostTokens, "tokens of a page"),
      Count("layers", &K::layers, 1, kMostCount, "layers whose pages lie together"),
  };
  return table;
}

const KeyTable<KvPageKeys>& PlainTable() {
  using K = KvPageKeys;
  static const KeyTable<K> table = {
      Count("block_size", &K::block_size, 1, kMostTokens, "tokens of a page"),
      Count("kv_heads", &K::kv_heads, 1, kMostHeads, "key heads of this rank; MLA: 1"),
      Count("key_dim", &K::key_dim, 1, kMostDim, "elements of a key"),
      Count("value_dim", &K::value_dim, 0, kMostDim, "elements of a value; MLA: 0, it is the key"),
      Count("element_bytes", &K::element_bytes, 1, 8, "bytes of an element"),
      Switch("head_scales", &K::head_scales, "an f32 scale a token and head, of keys and values"),
  };
  return table;
}

const KeyTable<KvStateKeys>& StateTable() {
  using K = KvStateKeys;
  static const KeyTable<K> table = {
      Required("key_heads", &K::key_heads, 1, kMostHeads, "key heads of this rank (HK)"),
      Required("value_heads", &K::value_heads, 1, kMostHeads, "value heads of this rank (HV)"),
      Count("head_dim", &K::head_dim, 1, kMostDim, "elements of a head (D)"),
      Count("conv_width", &K::conv_width, 1, 64, "width of the short convolution; 1: none"),
      Count("state_bytes", &K::state_bytes, 2, 4, "bytes of an element of the state"),
  };
  return table;
}

}  // namespace

const std::vector<KvLayout>& QuantizedKvLayouts() {
  static const std::vector<KvLayout> layouts = {
      {"fp8_ds_mla", 640, 16, 1, "512 e4m3, 64 bf16 rope; 4 f32 scales, one for 128"},
      {"deepseek_v4", 576, 8, 576, "448 e4m3, 64 bf16 rope; 7 ue8m0 scales, one for 64, 1 pad"},
      {"deepseek_v41", 512, 16, 512, "512 e4m3; 16 ue8m0 scales, one for 32"},
      {"nvfp4_ds_mla", 320, 32, 1, "512 e2m1, 64 e4m3 rope; 32 e4m3 scales, one for 16"},
  };
  return layouts;
}

absl::StatusOr<std::vector<DeclaredRequest>> Fp8KvPageRequests(const Fp8KvPageKeys& keys) {
  HOLDFAST_RETURN_IF_ERROR(CheckKeys(kQuantized, QuantizedTable(), keys));
  const KvLayout& layout = QuantizedKvLayouts()[static_cast<std::size_t>(keys.layout)];
  const std::int64_t used = keys.block_size * (layout.data_bytes + layout.scale_bytes);
  return RequestList()
      .Add(
          "data", {keys.layers, keys.block_size, layout.data_bytes},
          absl::StrFormat("%d B a token: %s", layout.data_bytes + layout.scale_bytes, layout.parts))
      .Add("scales", {keys.layers, keys.block_size, layout.scale_bytes},
           absl::StrFormat("%d B of them", layout.scale_bytes))
      .Add("padding", {keys.layers, RoundUp(used, layout.page_multiple) - used},
           absl::StrFormat("to a multiple of %d B a page", layout.page_multiple))
      .Take();
}

absl::StatusOr<std::vector<DeclaredRequest>> KvPageRequests(const KvPageKeys& keys) {
  HOLDFAST_RETURN_IF_ERROR(CheckKeys(kPlain, PlainTable(), keys));
  const std::int64_t width = keys.key_dim + keys.value_dim;
  RequestList list;
  list.Add("data", {keys.block_size, keys.kv_heads, width, keys.element_bytes},
           absl::StrFormat("(%d, %d, %d) of %d B", keys.block_size, keys.kv_heads, width,
                           keys.element_bytes));
  if (keys.head_scales != 0) {
    list.Add("scales", {2, keys.block_size, keys.kv_heads, kF32Bytes},
             absl::StrFormat("2 x (%d, %d) f32", keys.block_size, keys.kv_heads));
  }
  return list.Take();
}

absl::StatusOr<std::vector<DeclaredRequest>> KvStateRequests(const KvStateKeys& keys) {
  HOLDFAST_RETURN_IF_ERROR(CheckKeys(kState, StateTable(), keys));
  const std::int64_t channels = (2 * keys.key_heads + keys.value_heads) * keys.head_dim;
  return RequestList()
      .Add("state", {keys.value_heads, keys.head_dim, keys.head_dim, keys.state_bytes},
           absl::StrFormat("(%d, %d, %d) of %d B", keys.value_heads, keys.head_dim, keys.head_dim,
                           keys.state_bytes))
      .Add("convolution", {keys.conv_width - 1, channels, kBF16Bytes},
           absl::StrFormat("(%d, %d) bf16: inputs it still needs", keys.conv_width - 1, channels))
      .Take();
}

std::int64_t PagesOfSequence(const KvPageSpec& spec, const SequenceLimits& limits) {
  const std::int64_t tokens = limits.tokens + limits.draft_tokens;
  switch (spec.kind) {
    case KvKind::kNone: return 0;
    case KvKind::kFull: return CeilDiv(CeilDiv(tokens, spec.context_ranks), spec.page_tokens);
    case KvKind::kWindow:
      return CeilDiv(std::min(spec.window - 1 + limits.max_batched_tokens, tokens),
                     spec.page_tokens) +
             1;
    case KvKind::kState: return (limits.aligned_states ? 2 : 1) + limits.draft_tokens;
  }
  return 0;
}

SizingRule Fp8KvPageRule() {
  return MakeRequestRule(
      {.name = kQuantized,
       .doc = "one page of a quantised latent cache",
       .formula = "layers * roundup(block_size * bytes a token, multiple): fp8_ds_mla 656,\n"
                  "deepseek_v4 584 (to 576), deepseek_v41 528 (to 512), nvfp4_ds_mla 352."},
      QuantizedTable(), &Fp8KvPageRequests);
}

SizingRule KvPageRule() {
  return MakeRequestRule(
      {.name = kPlain,
       .doc = "one page of an unquantised or per-head-scaled cache, one layer",
       .formula = "block_size * kv_heads * (key_dim + value_dim) * element_bytes;\n"
                  "with head_scales also 2 * block_size * kv_heads * 4."},
      PlainTable(), &KvPageRequests);
}

SizingRule KvStateRule() {
  return MakeRequestRule(
      {.name = kState,
       .doc = "a sequence's state in one gated delta-net layer",
       .formula = "state (HV, D, D) + convolution (conv_width - 1, (2 * HK + HV) * D) bf16."},
      StateTable(), &KvStateRequests);
}

}  // namespace holdfast
