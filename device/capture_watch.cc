#include "device/capture_watch.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "device/device.h"
#include "device/error.h"

namespace holdfast {

void CaptureWatch::Begin(const Stream& stream) {
  std::lock_guard<std::mutex> lock(mutex_);
  captures_.push_back({.stream = &stream, .thread = std::this_thread::get_id()});
  under_way_.store(static_cast<int>(captures_.size()), std::memory_order_release);
}

absl::Status CaptureWatch::RefuseIfCapturing(Call call) {
  std::lock_guard<std::mutex> lock(mutex_);
  const Stream* capturing = nullptr;
  for (Capture& capture : captures_) {
    if (capture.thread != std::this_thread::get_id()) continue;
    capturing = capture.stream;
    if (!capture.spoiled_by.has_value()) capture.spoiled_by = call;
  }
  if (capturing == nullptr) return absl::OkStatus();
  return MakeError(
      {.kind = ErrorKind::kUncapturable, .object = capturing->name(), .call = CallName(call)},
      "this thread is capturing: a graph cannot hold the call");
}

absl::Status CaptureWatch::CheckMayEnd(const Stream& stream) const {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const Capture& capture : captures_) {
    if (capture.stream != &stream || capture.thread == std::this_thread::get_id()) continue;
    return MakeError({.kind = ErrorKind::kInvalidArgument, .object = stream.name()},
                     "a capture ends on the thread that began it");
  }
  return absl::OkStatus();
}

absl::Status CaptureWatch::End(const Stream& stream) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = std::find_if(captures_.begin(), captures_.end(), [&](const Capture& capture) {
    return capture.stream == &stream;
  });
  if (found == captures_.end()) return absl::OkStatus();
  const std::optional<Call> spoiled_by = found->spoiled_by;
  captures_.erase(found);
  under_way_.store(static_cast<int>(captures_.size()), std::memory_order_release);
  if (!spoiled_by.has_value()) return absl::OkStatus();
  return MakeError(
      {.kind = ErrorKind::kUncapturable, .object = stream.name(), .call = CallName(*spoiled_by)},
      absl::StrCat("the capture was spoiled by: ", CallName(*spoiled_by)));
}

void CaptureWatch::Forget(const Stream& stream) { End(stream).IgnoreError(); }

}  // namespace holdfast
