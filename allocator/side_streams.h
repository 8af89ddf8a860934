// The side streams of a lane: what a step forks onto. Made when first asked for, kept, and known to
// the arena's gate, so that a transition waits for their work too.
#ifndef HOLDFAST_ALLOCATOR_SIDE_STREAMS_H_
#define HOLDFAST_ALLOCATOR_SIDE_STREAMS_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/admission_gate.h"
#include "device/device.h"

namespace holdfast {

// Belongs to one thread at a time, as its lane does. Device and gate must outlive it.
class SideStreams {
 public:
  struct Side {
    std::unique_ptr<Stream> stream;
    std::unique_ptr<Event> event;  // carries a fork to it, and later the join back
  };

  SideStreams(Device& device, AdmissionGate& gate, std::string name)
      : device_(device), gate_(gate), name_(std::move(name)) {}
  ~SideStreams();  // waits for their work
  SideStreams(const SideStreams&) = delete;
  SideStreams& operator=(const SideStreams&) = delete;

  // Number `index`, from 0; its stream is called "<name>.side<index>".
  absl::StatusOr<Side*> Get(std::size_t index);
  // Waits for the work of all of them.
  absl::Status Synchronize();

 private:
  Device& device_;
  AdmissionGate& gate_;
  std::string name_;
  std::vector<std::unique_ptr<Side>> sides_;
};

}  // namespace holdfast

#endif  // HOLDFAST_ALLOCATOR_SIDE_STREAMS_H_
