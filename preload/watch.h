// Which living executable graph refers to which allocation, and what is wrong with that. Plain
// book-keeping, without a driver.
#ifndef HOLDFAST_PRELOAD_WATCH_H_
#define HOLDFAST_PRELOAD_WATCH_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "graphs/audit.h"
#include "preload/history.h"

namespace holdfast::preload {

// When the graph was recorded; {0, 0} if it was built node by node.
struct CaptureTimes {
  std::uint64_t number = 0;  // "capture 3"
  Tick begin = 0, end = 0;
};

// A word of a graph that points into something.
struct Reference {
  std::uint32_t node = 0;
  const std::string* node_name = nullptr;  // "kernel scale"; lives for ever
  std::string where;                       // "parameter 1 + 0"
  std::uint64_t word = 0;
};

enum class Fault {
  kFreedBeforeCapture,
  kFreedDuringCapture,
  kFreedAfterCapture,       // and before the graph was instantiated
  kFreedBeforeInstantiate,  // of a graph that was not captured
  kFreedWhileAlive,         // while the executable graph could be launched
  kReplaced,                // recorded when the allocation was there; its address has a new owner
};
// Of a free: "before the capture"
const char* FaultText(Fault fault);

// One graph, one allocation: the first words that point into it, and how many there are.
struct Finding {
  std::uint64_t graph = 0;  // "graph 2"
  CaptureTimes capture;
  Fault fault = Fault::kFreedWhileAlive;
  AllocationPtr allocation;
  AllocationPtr ending;  // in use, and ends where the first word points
  std::vector<Reference> references;
  std::uint64_t words = 0;
};
inline constexpr std::size_t kReferencesKept = 8;

struct GraphFacts {
  std::uint64_t number = 0;
  CaptureTimes capture;
  std::uint64_t exec = 0;  // 0: could not be instantiated
  bool alive = false;
  std::uint64_t nodes = 0, words = 0, pointers = 0, unrecorded = 0;
  std::uint64_t updates = 0;               // of the executable, by a whole graph
  std::uint64_t changed_node_by_node = 0;  // what it holds since is not known
  std::vector<std::string> unreadable;     // labels of nodes whose pointers cannot be read
};

// Not thread-safe.
class Watch {
 public:
  // What one word points into, at the time of the audit.
  struct Seen {
    Reference reference;
    History::Place place;
  };

  // A graph was made executable (exec 0: was refused). Judges what is seen and, if it lives,
  // watches it from now on.
  void Instantiated(GraphFacts facts, const std::vector<Seen>& seen);
  // The executable now holds what `seen` says. An executable nobody saw made counts as a new graph.
  void Updated(std::uint64_t exec, GraphFacts facts, const std::vector<Seen>& seen);
  void ChangedOneNode(std::uint64_t exec);
  void Destroyed(std::uint64_t exec);
  // An allocation that went: a finding for each living graph that refers to it.
  void Freed(const AllocationPtr& allocation);
  // Executables live on unseen, or not at all.
  void ForgetExecutables();

  std::uint64_t next_number() const { return graphs_.size() + 1; }
  const std::vector<GraphFacts>& graphs() const { return graphs_; }
  const std::vector<Finding>& findings() const { return findings_; }

 private:
  struct Held {
    std::vector<Reference> references;
    std::uint64_t words = 0;
  };
  struct Executable {
    std::uint64_t graph = 0;
    std::map<AllocationPtr, Held> holds;
  };
  void Judge(const GraphFacts& facts, const std::vector<Seen>& seen, Executable* executable);
  void Release(Executable& executable);
  void Find(const GraphFacts& facts, Fault fault, const AllocationPtr& allocation,
            const Reference& reference);

  std::vector<GraphFacts> graphs_;                          // [number - 1]
  std::map<std::uint64_t, Executable> executables_;         // by handle
  std::map<Allocation*, std::set<std::uint64_t>> held_by_;  // handles
  std::vector<Finding> findings_;
  std::map<std::pair<std::uint64_t, Allocation*>, std::size_t> found_;  // index into findings_
};

}  // namespace holdfast::preload

#endif  // HOLDFAST_PRELOAD_WATCH_H_
