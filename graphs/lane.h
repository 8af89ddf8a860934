// A lane: one order of execution. Graphs of a lane share scratch and never run at the same time.
#ifndef HOLDFAST_GRAPHS_LANE_H_
#define HOLDFAST_GRAPHS_LANE_H_

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/arena.h"
#include "allocator/side_streams.h"

namespace holdfast {

// What happens when a graph of a lane is replayed on a stream that is not the lane's.
enum class OtherStream {
  kWait,    // the replay waits for the lane's work by an event, and the lane for the replay
  kRefuse,  // kInvalidArgument
};

struct LaneOptions {
  OtherStream other_stream = OtherStream::kWait;
};

// Belongs to one thread at a time.
class Lane {
 public:
  // Makes the lane's stream and registers it with the arena's gate, so that transitions wait for
  // its work. The arena must outlive it.
  static absl::StatusOr<std::unique_ptr<Lane>> Create(Arena& arena, std::string name,
                                                      LaneOptions options = {});
  ~Lane();  // waits for its work
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  const std::string& name() const { return name_; }
  const LaneOptions& options() const { return options_; }
  Arena& arena() const { return arena_; }
  Device& device() const { return device_; }
  Stream& stream() const { return *stream_; }
  SideStreams& sides() const { return *sides_; }
  // Waits for the work of the lane's stream and of its side streams.
  absl::Status Synchronize();

  // The lane to oneself for a capture or an eager run; given back on destruction. Move-only.
  class Turn {
   public:
    Turn(Turn&& other) noexcept : lane_(std::exchange(other.lane_, nullptr)) {}
    Turn& operator=(Turn&&) = delete;
    ~Turn();

   private:
    friend class Lane;
    explicit Turn(Lane* lane) : lane_(lane) {}
    Lane* lane_;
  };
  // kBusy at once, naming `graph` and the one that has the lane. Never waits.
  absl::StatusOr<Turn> TakeTurn(const std::string& graph);

  // Orders `stream` behind everything the lane was given, and later the lane behind what `stream`
  // was given: a visit of another stream, after which the lane's own stream stands for all its work
  // again. If Return fails it has waited for `stream`.
  absl::Status Lend(Stream& stream);
  absl::Status Return(Stream& stream);

 private:
  Lane(Arena& arena, std::string name, LaneOptions options)
      : arena_(arena), device_(arena.device()), name_(std::move(name)), options_(options) {}

  Arena& arena_;
  Device& device_;
  std::string name_;
  LaneOptions options_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<SideStreams> sides_;
  std::unique_ptr<Event> event_;  // carries visits of other streams

  std::mutex mutex_;
  bool taken_ = false;    // guarded by mutex_
  std::string taken_by_;  // guarded by mutex_
};

}  // namespace holdfast

#endif  // HOLDFAST_GRAPHS_LANE_H_
