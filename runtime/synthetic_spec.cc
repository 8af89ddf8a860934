#include "runtime/synthetic_spec.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "attention/sizing/rule.h"
#include "device/error.h"

namespace holdfast {
namespace {

constexpr std::int64_t kMostLayers = 1024;
constexpr char kPartGrammar[] = "BACKEND or BACKEND:key=value,key=value; parts are joined by '+'";

struct LayerKeys {
  std::int64_t layers = 1;
  std::int64_t heads = 16, key_heads = 4, latent = 512, rope = 64, topk = 2048, window = 128;
  std::int64_t compress_ratio = 1, page_tokens = 64, type = 0, quantized = 0;
  std::int64_t prefill_ranks = 1, decode_ranks = 1, hisparse = 0;
  std::int64_t split_parts = 1, prefill_factor = 5, path_gating = 1;
};

KeyTable<LayerKeys> Table() {
  using K = LayerKeys;
  return {
      Count("layers", &K::layers, 1, kMostLayers, "how many such layers"),
      Count("heads", &K::heads, 1, 128, "query heads; value heads of gated_delta_net"),
      Count("key_heads", &K::key_heads, 1, 128, "of gated_delta_net: a divisor of heads"),
      Count("latent", &K::latent, 8, 512, "elements of a latent key; of a gated_delta_net head"),
      Count("rope", &K::rope, 0, 64, "further key elements"),
      Count("topk", &K::topk, 1, 1 << 20, "keys a sparse row reads"),
      Count("window", &K::window, 1, kMostCount, "keys a windowed row reads"),
      Count("compress_ratio", &K::compress_ratio, 1, kMostCount, "tokens to one compressed key"),
      Count("page_tokens", &K::page_tokens, 1, 1 << 20, "tokens of a page"),
      Choice("type", &K::type, {"bf16", "f32"}, "of activations and of an unquantised cache"),
      Switch("quantized", &K::quantized, "fp8 cache"),
      Count("prefill_ranks", &K::prefill_ranks, 1, 4096, "ranks that share a prefill's context"),
      Count("decode_ranks", &K::decode_ranks, 1, 4096, "ranks that share a sequence's cache"),
      Switch("hisparse", &K::hisparse, "top-k served from host memory"),
      Count("split_parts", &K::split_parts, 1, 4096, "parts the split planner cuts a step into"),
      Count("prefill_factor", &K::prefill_factor, 1, 1024,
            "context of a sparse prefill group, in max_model_len"),
      Switch("path_gating", &K::path_gating, "0: reserve for every path, run the selected one"),
  };
}

// Sparse backends have two paths over an fp8 cache only, so theirs is fp8 unless told otherwise. A
// state is latent times latent elements a head: small unless told otherwise.
LayerKeys DefaultsOf(const std::string& backend) {
  LayerKeys keys;
  if (backend == "mla_sparse" || backend == "flashmla_sparse") keys.quantized = 1;
  if (backend == "gated_delta_net") keys.latent = 64;
  return keys;
}

AttentionConfig ConfigOf(const LayerKeys& keys, const SyntheticLimits& limits) {
  return {.max_batched_tokens = limits.max_batched_tokens,
          .max_sequences = limits.max_sequences,
          .max_model_len = limits.max_model_len,
          .heads = keys.heads,
          .key_heads = keys.key_heads,
          .latent = keys.latent,
          .rope = keys.rope,
          .topk = keys.topk,
          .window = keys.window,
          .compress_ratio = keys.compress_ratio,
          .page_tokens = keys.page_tokens,
          .type = keys.type == 0 ? DType::kBF16 : DType::kF32,
          .quantized = keys.quantized != 0,
          .prefill_ranks = keys.prefill_ranks,
          .decode_ranks = keys.decode_ranks,
          .hisparse = keys.hisparse != 0,
          .arch = limits.arch,
          .sms = limits.sms,
          .split_parts = keys.split_parts,
          .prefill_factor = keys.prefill_factor,
          .path_gating = keys.path_gating != 0};
}

absl::Status ParsePart(const std::string& part, const SyntheticLimits& limits,
                       std::vector<SyntheticLayer>& layers) {
  const std::size_t colon = part.find(':');
  const std::string backend = part.substr(0, colon);
  if (backend.empty()) return RefuseField("synthetic", "part", QuoteValue(part), kPartGrammar);
  const std::vector<std::string> known = BackendNames();
  if (std::find(known.begin(), known.end(), backend) == known.end()) {
    return MakeError(
        {.kind = ErrorKind::kNotFound, .object = absl::StrCat("backend ", QuoteValue(backend))},
        absl::StrCat("there are ", absl::StrJoin(known, ", ")));
  }
  std::vector<std::string> arguments;
  if (colon != std::string::npos) {
    arguments = absl::StrSplit(part.substr(colon + 1), ',');
  }
  // The same parser and wording as `holdfast size`, with this backend's defaults.
  KeyTable<LayerKeys> table = Table();
  const LayerKeys defaults = DefaultsOf(backend);
  for (BoundKey<LayerKeys>& bound : table) bound.key.default_value = defaults.*bound.member;
  LayerKeys keys;
  const SizingRule rule = MakeRule<LayerKeys>(
      {.name = backend}, table,
      [&keys](const LayerKeys& parsed) -> absl::StatusOr<SizingResult> {
        keys = parsed;
        return SizingResult{};
      });
  HOLDFAST_RETURN_IF_ERROR(Evaluate(rule, arguments).status());
  if (layers.size() + static_cast<std::size_t>(keys.layers) > kMostLayers) {
    return RefuseField("synthetic", "layers", absl::StrCat(keys.layers, " more"),
                       absl::StrCat("at most ", kMostLayers, " in all"));
  }
  for (std::int64_t i = 0; i < keys.layers; ++i) layers.push_back({backend, ConfigOf(keys, limits)});
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<SyntheticLayer>> ParseSyntheticSpec(const std::string& spec,
                                                               const SyntheticLimits& limits) {
  std::vector<SyntheticLayer> layers;
  for (const std::string& part : std::vector<std::string>(absl::StrSplit(spec, '+'))) {
    HOLDFAST_RETURN_IF_ERROR(ParsePart(part, limits, layers));
  }
  return layers;
}

std::string SyntheticSpecHelp() {
  std::string text = absl::StrCat(
      "BACKEND: ", absl::StrJoin(BackendNames(), ", "), "\n",
      "keys (quantized is 1 for mla_sparse and flashmla_sparse; latent 64 for gated_delta_net):\n");
  for (const BoundKey<LayerKeys>& bound : Table()) {
    absl::StrAppend(&text, "  ", bound.key.name, ": ", bound.key.doc, "; ", bound.key.Grammar(),
                    " [", bound.key.Format(bound.key.default_value), "]\n");
  }
  return text;
}

}  // namespace holdfast
