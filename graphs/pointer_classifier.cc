#include "graphs/pointer_classifier.h"

#include <optional>

#include "device/bytes.h"

namespace holdfast {
namespace {

// The first 64 KiB are never mapped, and a GPU's virtual addresses have at most 49 bits: what lies
// outside is a number. Counts, strides, pairs of floats and doubles nearly all do.
constexpr std::uint64_t kLowestAddress = 64 * kKiB;
constexpr std::uint64_t kHighestAddress = std::uint64_t{1} << 49;

bool CouldBeAddress(std::uint64_t word) { return word >= kLowestAddress && word < kHighestAddress; }

}  // namespace

PointerClassifier::PointerClassifier(const Device& device, const Arena* arena,
                                     const std::vector<ExternalRange>& externals)
    : device_(device), arena_(arena), externals_(externals) {
  if (arena_ == nullptr) return;
  window_base_ = arena_->window().base.value;
  window_bytes_ = arena_->window().bytes;
}

const SpanFacts& PointerClassifier::Facts(SpanId id) {
  const auto found = facts_.find(id.index);
  if (found != facts_.end()) return found->second;
  SpanInfo info = arena_->span(id);
  SpanFacts facts{.name = info.spec.name, .role = info.spec.role, .range = info.range};
  facts.asleep = arena_->asleep(info.spec.tag);
  return facts_.emplace(id.index, std::move(facts)).first->second;
}

PointerTarget PointerClassifier::InSpan(std::uint64_t address) {
  const std::optional<SpanHit> hit = arena_->Locate({address});
  if (!hit.has_value()) return {};
  const SpanFacts& facts = Facts(hit->span);
  return {PointerClass::kSpan, &facts.name, hit->offset, facts.range.bytes - hit->offset, &facts};
}

PointerTarget PointerClassifier::Declared(std::uint64_t address) const {
  if (arena_ != nullptr) {
    if (const HostSpan* host = arena_->LocateHost(address); host != nullptr) {
      const std::uint64_t offset = address - reinterpret_cast<std::uint64_t>(host->buffer.data());
      return {PointerClass::kHostSpan, &host->name, offset, host->buffer.size() - offset, nullptr};
    }
  }
  PointerTarget end;  // a range that only ends here counts if none begins here
  for (const ExternalRange& external : externals_) {
    if (!external.range.ContainsOrEnds({address})) continue;
    const std::uint64_t offset = address - external.range.base.value;
    const PointerTarget target{PointerClass::kExternal, &external.name, offset,
                               external.range.bytes - offset, nullptr};
    if (target.left > 0) return target;
    end = target;
  }
  return end;
}

PointerTarget PointerClassifier::Word(std::uint64_t word) {
  const bool in_window = arena_ != nullptr && InWindow(word);
  if (in_window) {
    const PointerTarget target = InSpan(word);
    if (target.kind != PointerClass::kNotPointer) return target;
  } else if (!CouldBeAddress(word)) {
    return {};
  }
  const auto [memo, added] = outside_.try_emplace(word);
  if (!added) return memo->second;
  PointerTarget target = Declared(word);
  if (target.kind == PointerClass::kNotPointer) {
    // Just past the window's end may be somebody else's first byte, or nothing.
    if (in_window && word != window_base_ + window_bytes_) {
      target.kind = PointerClass::kUnmapped;
    } else if (device_.Query({word}).mapped) {
      target.kind = PointerClass::kForeign;
    }
  }
  memo->second = target;
  return target;
}

PointerTarget PointerClassifier::Side(std::uint64_t address, CopySide side) {
  PointerTarget target = side == CopySide::kHost ? Declared(address) : Word(address);
  if (target.kind == PointerClass::kNotPointer) {
    target.kind = side == CopySide::kDevice ? PointerClass::kUnmapped : PointerClass::kHost;
  }
  return target;
}

}  // namespace holdfast
