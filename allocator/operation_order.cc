#include "allocator/operation_order.h"

#include <algorithm>

namespace holdfast {
namespace {

std::uint64_t Entry(const OperationClock& clock, std::size_t stream) {
  return stream < clock.size() ? clock[stream] : 0;
}

void Raise(OperationClock& clock, std::size_t stream, std::uint64_t value) {
  if (clock.size() <= stream) clock.resize(stream + 1);
  clock[stream] = std::max(clock[stream], value);
}

void Merge(OperationClock& into, const OperationClock& from) {
  for (std::size_t s = 0; s < from.size(); ++s) Raise(into, s, from[s]);
}

}  // namespace

bool ClockCovers(const OperationClock& clock, const OperationClock& over) {
  for (std::size_t s = 0; s < over.size(); ++s) {
    if (over[s] > Entry(clock, s)) return false;
  }
  return true;
}

OperationOrder::StreamState& OperationOrder::State(std::size_t stream) {
  if (streams_.size() <= stream) streams_.resize(stream + 1);
  return streams_[stream];
}

// Any mixing that spreads the bits will do: only equality of two runs of one program is asked.
void OperationOrder::Mix(std::uint64_t value) {
  fingerprint_ = (fingerprint_ ^ value) * 0x9e3779b97f4a7c15u;
  fingerprint_ ^= fingerprint_ >> 29;
}

void OperationOrder::Add(std::size_t stream, OperationStart start) {
  StreamState& state = State(stream);
  // The first of a stream has no predecessor in it to run beside.
  const bool programmatic = start == OperationStart::kProgrammatic && state.used;
  if (stream != 0 || programmatic) branched_ = true;
  Mix(2 * (2 * stream + (programmatic ? 1 : 0)) + 1);
  Operation operation{.stream = stream,
                      .over_before = programmatic ? state.over_programmatic : state.over};
  // A programmatic start after this one runs beside it, so it knows no more than this one did.
  state.over_programmatic = operation.over_before;
  operations_.push_back(std::move(operation));
  Raise(state.over, stream, operations_.size());
  state.used = true;
}

void OperationOrder::Follow(std::size_t later, std::size_t earlier) {
  Mix(2 * ((later << 32) + earlier));
  const OperationClock over = State(earlier).over;
  Merge(State(later).over, over);
  // An event is waited for in full, whatever the start.
  Merge(State(later).over_programmatic, over);
}

OperationClock OperationOrder::Latest(std::uint64_t first, std::uint64_t last) const {
  OperationClock latest;
  const std::uint64_t end = last < count() ? last + 1 : count();
  for (std::uint64_t i = first; i < end; ++i) Raise(latest, operations_[i].stream, i + 1);
  return latest;
}

OperationClock OperationOrder::OverBefore(std::uint64_t first, std::uint64_t last) const {
  const std::uint64_t end = last < count() ? last + 1 : count();
  if (first >= end) return {};
  OperationClock over = operations_[first].over_before;
  for (std::uint64_t i = first + 1; i < end; ++i) {
    const OperationClock& other = operations_[i].over_before;
    for (std::size_t s = 0; s < over.size(); ++s) over[s] = std::min(over[s], Entry(other, s));
  }
  return over;
}

}  // namespace holdfast
