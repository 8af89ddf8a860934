// Which operations of a step are over before another begins: stream order, forks and joins, as the
// step is measured. From it follows which scratch buffers may share memory.
//
// Operations are numbered in the order they are enqueued, over all streams of the step. A clock has
// one entry a stream: one more than the number of the last operation on it that is surely over, 0
// for none. Operations of one stream are in order, so that says all.
#ifndef HOLDFAST_ALLOCATOR_OPERATION_ORDER_H_
#define HOLDFAST_ALLOCATOR_OPERATION_ORDER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace holdfast {

using OperationClock = std::vector<std::uint64_t>;  // a missing entry is 0

// True if everything `over` says is also in `clock`.
bool ClockCovers(const OperationClock& clock, const OperationClock& over);

// How an operation starts.
enum class OperationStart {
  kFull,          // when all before it in its stream is over
  kProgrammatic,  // when its predecessor lets it: that may still be running
};

class OperationOrder {
 public:
  // The next operation on `stream`.
  void Add(std::size_t stream, OperationStart start = OperationStart::kFull);
  // What `later` is given from now on starts after all that `earlier` was given so far.
  void Follow(std::size_t later, std::size_t earlier);

  std::uint64_t count() const { return operations_.size(); }
  // True once operations may overlap: more than one stream, or a programmatic start.
  bool branched() const { return branched_; }
  // Equal for equal sequences of calls; 0 until branched, for one stream needs no comparing.
  std::uint64_t fingerprint() const { return branched_ ? fingerprint_ : 0; }

  // Of the operations [first, last]: the last one of each stream,
  OperationClock Latest(std::uint64_t first, std::uint64_t last) const;
  // and what is over before any of them begins. Both empty if there are none.
  OperationClock OverBefore(std::uint64_t first, std::uint64_t last) const;

 private:
  struct Operation {
    std::size_t stream = 0;
    OperationClock over_before;
  };
  struct StreamState {
    OperationClock over;               // before the next full start
    OperationClock over_programmatic;  // before the next programmatic start
    bool used = false;
  };

  StreamState& State(std::size_t stream);
  void Mix(std::uint64_t value);

  std::vector<Operation> operations_;
  std::vector<StreamState> streams_;
  bool branched_ = false;
  std::uint64_t fingerprint_ = 0;
};

}  // namespace holdfast

#endif  // HOLDFAST_ALLOCATOR_OPERATION_ORDER_H_
