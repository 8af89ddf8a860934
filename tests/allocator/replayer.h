// A thread that replays: work on a lane of its own, admitted by the gate and by readiness, as the
// guard of a captured graph does it.
#ifndef HOLDFAST_TESTS_ALLOCATOR_REPLAYER_H_
#define HOLDFAST_TESTS_ALLOCATOR_REPLAYER_H_

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "allocator/arena.h"
#include "device/device.h"

namespace holdfast {

class Replayer {
 public:
  using Work = std::function<absl::Status(Device& device, Stream& lane)>;

  // `work` touches only spans of `tags`.
  Replayer(Arena& arena, std::vector<std::string> tags, Work work)
      : arena_(arena), tags_(std::move(tags)), work_(std::move(work)) {
    absl::StatusOr<std::unique_ptr<Stream>> lane = arena.device().CreateStream("replayer");
    if (!lane.ok()) return;
    lane_ = *std::move(lane);
    arena_.gate().RegisterStream(lane_.get());
    thread_ = std::thread([this] { Run(); });
  }
  ~Replayer() { Stop(); }
  Replayer(const Replayer&) = delete;
  Replayer& operator=(const Replayer&) = delete;

  void Stop() {
    if (!thread_.joinable()) return;
    stop_.store(true);
    thread_.join();
    arena_.gate().UnregisterStream(lane_.get());
    lane_.reset();
  }
  bool lost_device() const { return lost_.load(); }
  int replays() const { return replays_.load(); }
  int refusals() const { return refusals_.load(); }

 private:
  void Run() {
    while (!stop_.load()) {
      const bool admitted = Replay();
      // Outside the gate, as a host that waits for results would be; keeps the queue short.
      if (admitted && IsErrorKind(arena_.device().Synchronize(*lane_), ErrorKind::kDeviceLost)) {
        lost_.store(true);
        return;
      }
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }
  bool Replay() {
    const auto pass = arena_.gate().Enter();
    if (!pass.ok() || !arena_.CheckReady(tags_).ok()) {
      refusals_.fetch_add(1);
      return false;
    }
    // An injected failure may hit this call instead of the transition it was meant for.
    if (IsErrorKind(work_(arena_.device(), *lane_), ErrorKind::kDeviceLost)) lost_.store(true);
    replays_.fetch_add(1);
    return true;
  }

  Arena& arena_;
  std::vector<std::string> tags_;
  Work work_;
  std::unique_ptr<Stream> lane_;
  std::atomic<bool> stop_{false}, lost_{false};
  std::atomic<int> replays_{0}, refusals_{0};
  std::thread thread_;
};

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_ALLOCATOR_REPLAYER_H_
