// A lane: one order of execution. Graphs of a lane share scratch and never run at the same time.
#ifndef HOLDFAST_GRAPHS_LANE_H_
#define HOLDFAST_GRAPHS_LANE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "allocator/arena.h"

namespace holdfast {

class Lane {
 public:
  // Makes the lane's stream and registers it with the arena's gate, so that transitions wait for
  // its work. The arena must outlive it.
  static absl::StatusOr<std::unique_ptr<Lane>> Create(Arena& arena, std::string name);
  ~Lane();  // waits for its work
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  const std::string& name() const { return name_; }
  Arena& arena() const { return arena_; }
  Stream& stream() const { return *stream_; }
  absl::Status Synchronize() { return arena_.device().Synchronize(*stream_); }

 private:
  Lane(Arena& arena, std::string name) : arena_(arena), name_(std::move(name)) {}

  Arena& arena_;
  std::string name_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace holdfast

#endif  // HOLDFAST_GRAPHS_LANE_H_
