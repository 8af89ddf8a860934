#include "graphs/pointer_classifier.h"

#include <algorithm>

namespace holdfast {

PointerClassifier::PointerClassifier(const Device& device, const Arena* arena,
                                     const std::vector<ExternalRange>& externals)
    : device_(device), arena_(arena), externals_(externals) {
  if (arena_ == nullptr) return;
  window_base_ = arena_->window().base.value;
  window_bytes_ = arena_->window().bytes;
  const std::vector<AddressRange> ranges = arena_->span_ranges();
  span_object_.assign(ranges.size(), PointerFinding::kNoObject);
  spans_.reserve(ranges.size());
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    spans_.push_back({ranges[i].base.value, ranges[i].end().value, static_cast<std::uint32_t>(i)});
  }
  std::sort(spans_.begin(), spans_.end(),
            [](const SpanStart& a, const SpanStart& b) { return a.begin < b.begin; });
}

std::uint32_t PointerClassifier::SpanObject(std::uint32_t span) {
  std::uint32_t& object = span_object_[span];
  if (object != PointerFinding::kNoObject) return object;
  object = static_cast<std::uint32_t>(objects_.size());
  const SpanInfo info = arena_->span({span});
  PointedObject facts{.bytes = info.range.bytes,
                      .committed_bytes = arena_->committed_bytes({span}),
                      .asleep = arena_->asleep(info.spec.tag)};
  if (info.spec.role == Role::kImmutable && facts.committed_bytes > 0) {
    // Access is a group's: one page answers for all. Asleep there are none to ask about.
    facts.sealed = facts.asleep || device_.Query(info.range.base).access != Access::kReadWrite;
  }
  objects_.push_back(facts);
  names_.push_back(info.spec.name);
  return object;
}

std::uint32_t PointerClassifier::NamedObject(const std::string& name, const PointedObject& facts) {
  const auto [entry, added] = named_.try_emplace(name, static_cast<std::uint32_t>(objects_.size()));
  if (added) {
    objects_.push_back(facts);
    names_.push_back(name);
  }
  return entry->second;
}

PointerTarget PointerClassifier::InWindow(std::uint64_t word) {
  // The last span that begins at or below the word. Where one ends and the next begins exactly
  // there, this is the next: the one that contains it.
  const auto after =
      std::upper_bound(spans_.begin(), spans_.end(), word,
                       [](std::uint64_t w, const SpanStart& span) { return w < span.begin; });
  if (after != spans_.begin()) {
    const SpanStart& span = *std::prev(after);
    if (word <= span.end) {
      return {.kind = PointerClass::kSpan,
              .object = SpanObject(span.span),
              .offset = word - span.begin};
    }
  }
  return Outside(word, /*in_window=*/true);
}

PointerTarget PointerClassifier::InExternal(std::size_t index, std::uint64_t address) {
  const ExternalRange& external = externals_[index];
  return {.kind = external.retired ? PointerClass::kUnmapped : PointerClass::kExternal,
          .freed = external.retired,
          .object = NamedObject(external.name,
                                {.bytes = external.range.bytes, .sealed = external.sealed}),
          .offset = address - external.range.base.value};
}

PointerTarget PointerClassifier::Declared(std::uint64_t address) {
  if (arena_ != nullptr) {
    if (const HostSpan* host = arena_->LocateHost(address); host != nullptr) {
      return {.kind = PointerClass::kHostSpan,
              .object = NamedObject(host->name, {.bytes = host->buffer.size()}),
              .offset = address - reinterpret_cast<std::uint64_t>(host->buffer.data())};
    }
  }
  // A range that holds the address comes before one that only ends there, and what is in use before
  // what is retired: its addresses may have been given to somebody else since. The end of a retired
  // range is nobody's.
  PointerTarget best;
  int best_rank = 0;
  for (std::size_t i = 0; i < externals_.size(); ++i) {
    const ExternalRange& external = externals_[i];
    const bool inside = external.range.Contains({address});
    if (!inside && (external.retired || !external.range.ContainsOrEnds({address}))) continue;
    const int rank = !inside ? 1 : external.retired ? 2 : 3;
    if (rank <= best_rank) continue;
    best = InExternal(i, address);
    best_rank = rank;
  }
  return best;
}

PointerTarget PointerClassifier::Outside(std::uint64_t word, bool in_window) {
  if (const auto memo = outside_.find(word); memo != outside_.end()) return memo->second;
  PointerTarget target = Declared(word);
  if (target.kind == PointerClass::kNotPointer) {
    // Just past the window's end may be somebody else's first byte, or nothing.
    if (in_window && word != window_base_ + window_bytes_) {
      target.kind = PointerClass::kUnmapped;
    } else if (const AddressState state = device_.Query({word}); state.mapped) {
      target.kind = PointerClass::kForeign;
    } else if ((state.reserved || state.freed) && !stack_.Contains({word})) {
      target.kind = PointerClass::kUnmapped;
      target.freed = state.freed;
    }
  }
  outside_.emplace(word, target);
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
