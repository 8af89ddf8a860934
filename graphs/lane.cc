#include "graphs/lane.h"

#include "absl/strings/str_cat.h"
#include "device/error.h"

namespace holdfast {

absl::StatusOr<std::unique_ptr<Lane>> Lane::Create(Arena& arena, std::string name,
                                                   LaneOptions options) {
  std::unique_ptr<Lane> lane(new Lane(arena, std::move(name), options));
  absl::StatusOr<std::unique_ptr<Event>> event = arena.device().CreateEvent();
  if (!event.ok()) return Annotate(event.status(), "lane " + lane->name_);
  lane->event_ = *std::move(event);
  absl::StatusOr<std::unique_ptr<Stream>> stream = arena.device().CreateStream(lane->name_);
  if (!stream.ok()) return Annotate(stream.status(), "lane " + lane->name_);
  lane->stream_ = *std::move(stream);
  lane->sides_ = std::make_unique<SideStreams>(arena.device(), arena.gate(), lane->name_);
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

absl::Status Lane::Synchronize() {
  const absl::Status own = device_.Synchronize(*stream_);
  const absl::Status sides = sides_->Synchronize();
  return own.ok() ? sides : own;
}

Lane::Turn::~Turn() {
  if (lane_ == nullptr) return;
  std::lock_guard<std::mutex> lock(lane_->mutex_);
  lane_->taken_ = false;
}

absl::StatusOr<Lane::Turn> Lane::TakeTurn(const std::string& graph) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (taken_) {
    return MakeError({.kind = ErrorKind::kBusy, .object = graph},
                     absl::StrCat("lane '", name_, "' is taken by ", taken_by_));
  }
  taken_ = true;
  taken_by_ = graph;
  return Turn(this);
}

absl::Status Lane::Lend(Stream& stream) {
  HOLDFAST_RETURN_IF_ERROR(device_.Record(*event_, *stream_));
  return device_.Wait(stream, *event_);
}

absl::Status Lane::Return(Stream& stream) {
  absl::Status status = device_.Record(*event_, stream);
  if (status.ok()) status = device_.Wait(*stream_, *event_);
  if (!status.ok()) device_.Synchronize(stream).IgnoreError();
  return status;
}

}  // namespace holdfast
