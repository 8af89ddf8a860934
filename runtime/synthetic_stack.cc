#include "runtime/synthetic_stack.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "device/bytes.h"
#include "runtime/mla_weights.h"
#include "runtime/synthetic_pass.h"

namespace holdfast {
namespace {

constexpr std::uint64_t kAlign = 256;  // of spans

absl::Status CheckSameLimits(const std::vector<SyntheticLayer>& layers) {
  const AttentionConfig& first = layers.front().config;
  for (const SyntheticLayer& layer : layers) {
    const AttentionConfig& c = layer.config;
    if (c.max_batched_tokens == first.max_batched_tokens &&
        c.max_sequences == first.max_sequences && c.max_model_len == first.max_model_len) {
      continue;
    }
    return MakeError({.kind = ErrorKind::kInvalidArgument, .object = layer.backend},
                     "its limits of tokens, sequences and length are not those of the first layer");
  }
  if (first.max_model_len > INT32_MAX || first.max_batched_tokens > INT32_MAX) {
    return MakeError({.kind = ErrorKind::kInvalidArgument, .object = layers.front().backend},
                     "a stack that runs takes fewer than 2^31 tokens");
  }
  return absl::OkStatus();
}

absl::Status CheckWithin(const char* what, std::int64_t value, std::int64_t declared) {
  if (value <= declared) return absl::OkStatus();
  return MakeError({.kind = ErrorKind::kInvalidArgument,
                    .object = what,
                    .need = static_cast<std::uint64_t>(value),
                    .have = static_cast<std::uint64_t>(declared)},
                   "a pass larger than the layers are declared for");
}

// Words of a pattern from `offset` (a multiple of 8) on, to host memory.
void FillPattern(std::uint64_t key, std::uint64_t offset, std::uint64_t bytes, std::byte* out) {
  for (std::uint64_t at = 0; at < bytes; at += 8) {
    const std::uint64_t word = PatternWord(key, (offset + at) / 8);
    std::memcpy(out + at, &word, std::min<std::uint64_t>(8, bytes - at));
  }
}

}  // namespace

SyntheticStack::SyntheticStack(std::vector<DeclaredLayer> layers, SyntheticCacheMap caches,
                               const SyntheticOptions& options)
    : layers_(std::move(layers)), caches_(std::move(caches)), options_(options) {
  limits_ = {.vocab = options.vocab,
             .max_position = static_cast<std::int32_t>(layers_.front().config().max_model_len)};
  embed_ = MakeBuffer("synthetic.embed");
  head_ = MakeBuffer("synthetic.head");
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const std::string prefix = absl::StrCat("layers.", i, ".", layers_[i].backend(), ".");
    Layer part;
    part.weight = MakeBuffer(prefix + "weight");
    for (const DeclaredRequest& request : layers_[i].declaration().scratch) {
      part.scratch.push_back(MakeBuffer(prefix + request.name));
    }
    for (const DeclaredRequest& request : layers_[i].declaration().persistent) {
      part.persistent.push_back(MakeBuffer(prefix + request.name));
    }
    parts_.push_back(std::move(part));
  }
  for (const SyntheticCache& cache : caches_.caches) {
    cache_buffers_.push_back(
        MakeBuffer(absl::StrCat("layers.", cache.layer, ".", layers_[cache.layer].backend(),
                                cache.extra ? ".extra_kv" : ".kv")));
  }
}

SyntheticStack::Buffer SyntheticStack::MakeBuffer(const std::string& name) {
  const std::size_t row = fault_names_.size();
  fault_names_.push_back(name);
  return {
      .name = name, .key = HashMix(HashMix(options_.seed) + (row + 1) * kHashKeyHi), .fault = row};
}

absl::StatusOr<std::unique_ptr<SyntheticStack>> SyntheticStack::Create(
    const std::vector<SyntheticLayer>& layers, const SyntheticOptions& options) {
  if (layers.empty()) {
    return MakeError({.kind = ErrorKind::kInvalidArgument, .object = "synthetic"},
                     "a stack of no layers");
  }
  if (options.vocab < 1) {
    return MakeError({.kind = ErrorKind::kInvalidArgument, .object = "vocab"},
                     "must be at least 1");
  }
  HOLDFAST_RETURN_IF_ERROR(CheckSameLimits(layers));
  std::vector<DeclaredLayer> declared;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    absl::StatusOr<DeclaredLayer> layer = DeclaredLayer::Of(layers[i]);
    if (!layer.ok()) return Annotate(layer.status(), absl::StrCat("layer ", i));
    declared.push_back(*std::move(layer));
  }
  HOLDFAST_ASSIGN_OR_RETURN(SyntheticCacheMap caches, MapCaches(declared));
  return std::unique_ptr<SyntheticStack>(
      new SyntheticStack(std::move(declared), std::move(caches), options));
}

KvSpec SyntheticStack::kv() const {
  KvSpec spec{.layers = static_cast<std::int32_t>(layers_.size()),
              .groups = caches_.groups,
              .longest = caches_.longest};
  for (const SyntheticCache& cache : caches_.caches) {
    if (cache.page.page_tokens == 0) continue;  // a state holds no tokens
    spec.page_tokens = static_cast<std::int32_t>(cache.page.page_tokens);
    break;
  }
  return spec;
}

std::vector<AttentionDeclaration> SyntheticStack::declarations() const {
  std::vector<AttentionDeclaration> declarations;
  for (const DeclaredLayer& layer : layers_) declarations.push_back(layer.declaration());
  return declarations;
}

std::vector<GroupSpec> SyntheticStack::groups() const {
  const std::uint64_t vocab_bytes =
      AlignUp(static_cast<std::uint64_t>(options_.vocab) * sizeof(std::uint64_t), kAlign);
  const std::uint64_t weights = 2 * vocab_bytes + layers_.size() * kSyntheticWeightBytes;
  std::uint64_t persistent = AlignUp(fault_names_.size() * sizeof(PatternFault), kAlign);
  for (const DeclaredLayer& layer : layers_) {
    for (const DeclaredRequest& request : layer.declaration().persistent) {
      persistent += AlignUp(request.bytes, kAlign);
    }
  }
  return {{.tag = kWeightsTag, .role = Role::kImmutable, .extent_bytes = weights},
          {.tag = kPersistentTag, .role = Role::kMutable, .extent_bytes = persistent}};
}

std::uint64_t SyntheticStack::ScratchBound(const BatchShape& shape) const {
  std::uint64_t largest = 0;
  for (const DeclaredLayer& layer : layers_) largest = std::max(largest, layer.packed_bytes());
  return largest + kScratchAlignment +
         AlignUp(static_cast<std::uint64_t>(shape.rows) * sizeof(std::uint64_t), kScratchAlignment);
}

std::vector<SyntheticStack::Weight> SyntheticStack::Weights() {
  const auto vocab_bytes = static_cast<std::uint64_t>(options_.vocab) * sizeof(std::uint64_t);
  std::vector<Weight> weights = {{&embed_, &embed_span_, vocab_bytes},
                                 {&head_, &head_span_, vocab_bytes}};
  for (Layer& layer : parts_) {
    weights.push_back({&layer.weight, &layer.weight_span, kSyntheticWeightBytes});
  }
  return weights;
}

absl::Status SyntheticStack::ReserveSpans(Arena& arena) {
  const auto reserve = [&arena](const std::string& name, const char* tag, Role role,
                                std::uint64_t bytes) {
    return arena.Reserve(
        {.name = name, .tag = tag, .role = role, .bytes = bytes, .owner = "model"});
  };
  for (const Weight& weight : Weights()) {
    HOLDFAST_ASSIGN_OR_RETURN(
        *weight.span, reserve(weight.buffer->name, kWeightsTag, Role::kImmutable, weight.bytes));
  }
  HOLDFAST_ASSIGN_OR_RETURN(faults_span_,
                            reserve("synthetic.faults", kPersistentTag, Role::kMutable,
                                    fault_names_.size() * sizeof(PatternFault)));
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    parts_[i].persistent_spans.clear();
    const std::vector<DeclaredRequest>& requests = layers_[i].declaration().persistent;
    for (std::size_t r = 0; r < requests.size(); ++r) {
      HOLDFAST_ASSIGN_OR_RETURN(
          const SpanId span,
          reserve(parts_[i].persistent[r].name, kPersistentTag, Role::kMutable, requests[r].bytes));
      parts_[i].persistent_spans.push_back(span);
    }
  }
  reserved_ = true;
  return absl::OkStatus();
}

absl::Status SyntheticStack::Load(Arena& arena, const LoadOptions& options) {
  HOLDFAST_RETURN_IF_ERROR(ReserveSpans(arena));
  HOLDFAST_RETURN_IF_ERROR(LoadWeights(arena, options));
  HOLDFAST_ASSIGN_OR_RETURN(const std::unique_ptr<Stream> stream,
                            arena.device().CreateStream("persistent"));
  HOLDFAST_RETURN_IF_ERROR(LoadPersistent(arena, *stream));
  HOLDFAST_RETURN_IF_ERROR(arena.device().Synchronize(*stream));
  arena_ = &arena;
  return absl::OkStatus();
}

absl::Status SyntheticStack::LoadWeights(Arena& arena, const LoadOptions& options) {
  const std::vector<Weight> weights = Weights();
  std::uint64_t total = 0, largest = 0;
  for (const Weight& weight : weights) {
    total += weight.bytes;
    largest = std::max(largest, weight.bytes);
  }
  HOLDFAST_RETURN_IF_ERROR(arena.CommitTag(kWeightsTag));
  Device& device = arena.device();
  HOLDFAST_ASSIGN_OR_RETURN(const HostBuffer staging, device.AllocateHost(largest));
  HOLDFAST_ASSIGN_OR_RETURN(const std::unique_ptr<Stream> stream, device.CreateStream("weights"));
  std::uint64_t done = 0;
  for (const Weight& weight : weights) {
    const AddressRange to = arena.range(*weight.span);
    std::vector<StagedPiece> pieces = {{.device = to, .host = staging.data()}};
    if (options.through != nullptr) {
      HOLDFAST_ASSIGN_OR_RETURN(pieces, options.through->Stage(*weight.span));
    }
    for (const StagedPiece& piece : pieces) {
      FillPattern(weight.buffer->key, piece.device.base - to.base, piece.device.bytes, piece.host);
      HOLDFAST_RETURN_IF_ERROR(
          device.CopyToDevice(*stream, piece.device.base, piece.host, piece.device.bytes));
    }
    HOLDFAST_RETURN_IF_ERROR(device.Synchronize(*stream));
    done += weight.bytes;
    if (options.progress != nullptr) options.progress(done, total);
  }
  HOLDFAST_RETURN_IF_ERROR(arena.Seal(kWeightsTag));
  return options.through == nullptr ? absl::OkStatus() : options.through->AdoptStaged(kWeightsTag);
}

absl::Status SyntheticStack::LoadPersistent(Arena& arena, Stream& stream) {
  HOLDFAST_RETURN_IF_ERROR(arena.CommitTag(kPersistentTag));  // new pages read as zero: no fault
  for (const Layer& layer : parts_) {
    for (std::size_t r = 0; r < layer.persistent_spans.size(); ++r) {
      const AddressRange range = arena.range(layer.persistent_spans[r]);
      const PatternWriteParams params{.data = range.base.As<void>(),
                                      .salt = nullptr,
                                      .bytes = range.bytes,
                                      .key = layer.persistent[r].key};
      HOLDFAST_RETURN_IF_ERROR(
          Launch(arena.device(), stream, PatternWriteOp(), PatternShape(range.bytes), params));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ModelPass>> SyntheticStack::PlanPass(const BatchShape& shape,
                                                                    bool /*deterministic*/) {
  if (!reserved_) {
    return MakeError({.kind = ErrorKind::kInternal, .object = "model"},
                     "planned before it was loaded");
  }
  const AttentionConfig& config = layers_.front().config();
  HOLDFAST_RETURN_IF_ERROR(CheckWithin("rows", shape.rows, config.max_batched_tokens));
  HOLDFAST_RETURN_IF_ERROR(CheckWithin("sequences", shape.sequences, config.max_sequences));
  HOLDFAST_RETURN_IF_ERROR(CheckWithin("block table", shape.table_stride, caches_.tables.stride()));
  return std::make_unique<SyntheticPass>(*this, shape);
}

absl::StatusOr<std::vector<SyntheticFinding>> SyntheticStack::Findings(Stream& stream) const {
  if (arena_ == nullptr) return std::vector<SyntheticFinding>{};
  const AddressRange table = arena_->range(faults_span_);
  HOLDFAST_RETURN_IF_ERROR(arena_->CheckAccessible(faults_span_, 0, table.bytes, true));
  Device& device = arena_->device();
  HOLDFAST_ASSIGN_OR_RETURN(const HostBuffer out, device.AllocateHost(table.bytes));
  HOLDFAST_RETURN_IF_ERROR(device.CopyToHost(stream, out.data(), table.base, table.bytes));
  HOLDFAST_RETURN_IF_ERROR(device.Synchronize(stream));
  const auto* const faults = reinterpret_cast<const PatternFault*>(out.data());
  std::vector<SyntheticFinding> findings;
  for (std::size_t i = 0; i < fault_names_.size(); ++i) {
    if (faults[i].differing == 0) continue;
    findings.push_back({.buffer = fault_names_[i],
                        .differing = faults[i].differing,
                        .first = ~faults[i].first_from_end});
  }
  return findings;
}

}  // namespace holdfast
