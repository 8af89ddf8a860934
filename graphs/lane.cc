#include "graphs/lane.h"

#include "device/error.h"

namespace holdfast {

absl::StatusOr<std::unique_ptr<Lane>> Lane::Create(Arena& arena, std::string name) {
  std::unique_ptr<Lane> lane(new Lane(arena, std::move(name)));
  absl::StatusOr<std::unique_ptr<Stream>> stream = arena.device().CreateStream(lane->name_);
  if (!stream.ok()) return Annotate(stream.status(), "lane " + lane->name_);
  lane->stream_ = *std::move(stream);
  arena.gate().RegisterStream(lane->stream_.get());
  return lane;
}

Lane::~Lane() {
  if (stream_ == nullptr) return;
  // Registered until the work is done: a transition in between must still see it. What a failed
  // wait leaves, the stream's own destruction waits for.
  Synchronize().IgnoreError();
  arena_.gate().UnregisterStream(stream_.get());
}

}  // namespace holdfast
