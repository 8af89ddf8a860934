#include "allocator/side_streams.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace holdfast {

SideStreams::~SideStreams() {
  // Registered until the work is done, as a lane's own stream is. What a failed wait leaves, the
  // stream's own destruction waits for.
  Synchronize().IgnoreError();
  for (const std::unique_ptr<Side>& side : sides_) gate_.UnregisterStream(side->stream.get());
}

absl::StatusOr<SideStreams::Side*> SideStreams::Get(std::size_t index) {
  while (sides_.size() <= index) {
    auto side = std::make_unique<Side>();
    HOLDFAST_ASSIGN_OR_RETURN(side->stream,
                              device_.CreateStream(absl::StrCat(name_, ".side", sides_.size())));
    HOLDFAST_ASSIGN_OR_RETURN(side->event, device_.CreateEvent());
    gate_.RegisterStream(side->stream.get());
    sides_.push_back(std::move(side));
  }
  return sides_[index].get();
}

absl::Status SideStreams::Synchronize() {
  absl::Status first;
  for (const std::unique_ptr<Side>& side : sides_) {
    const absl::Status status = device_.Synchronize(*side->stream);
    if (first.ok()) first = status;
  }
  return first;
}

}  // namespace holdfast
