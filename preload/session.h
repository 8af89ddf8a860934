// The one session of this process: what the hooks tell, and what is known from it. Every method may
// be called from any thread, swallows its own failures into the report, and never throws.
#ifndef HOLDFAST_PRELOAD_SESSION_H_
#define HOLDFAST_PRELOAD_SESSION_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "device/device.h"
#include "preload/history.h"
#include "preload/settings.h"
#include "preload/watch.h"

namespace holdfast::preload {

// Everything a report says, taken at one time.
struct Account {
  Settings settings;
  std::string driver;                                // "" if no audit asked for it
  std::map<std::string, std::uint64_t> allocations;  // by call
  std::vector<GraphFacts> graphs;
  struct Entry {
    Finding finding;
    AllocationPtr owner;  // who was given the address since; null: nobody
  };
  std::vector<Entry> findings, remapped;  // `remapped`: allowed by the settings
  std::uint64_t open_captures = 0;        // at the end of the process
  std::uint64_t contexts_destroyed = 0;   // and with each what was known before
  std::vector<std::string> errors;        // what this library could not do
};

class Session {
 public:
  // Never destroyed: hooks run until the process is gone.
  static Session& Get();

  // -- Memory. `call` is what the program asked for.
  void Allocated(const char* call, std::uint64_t address, std::uint64_t bytes,
                 std::uint64_t pool = 0);
  // Before the driver is asked, since the address may be another thread's the moment it answers;
  // then Settle says how the driver answered.
  std::vector<AllocationPtr> Freeing(const char* call, std::uint64_t address);
  std::vector<AllocationPtr> Unmapping(const char* call, std::uint64_t address,
                                       std::uint64_t bytes);
  void Settle(const std::vector<AllocationPtr>& freed, bool done);
  void PoolDestroyed(std::uint64_t pool);
  // All that was known may be gone with it.
  void ContextDestroyed();

  // -- Blocks inside allocations, as a caching allocator hands them out.
  void NoteRange(const char* name, std::uint64_t address, std::uint64_t bytes);
  void ForgetRange(std::uint64_t address);
  // Called before each capture and audit, on the thread that asks for it. Null: nobody.
  void OnAudit(void (*refresh)());

  // -- Graphs, by handle.
  void CaptureBegan(std::uint64_t stream);
  void CaptureEnded(std::uint64_t stream, std::uint64_t graph);  // 0: failed
  bool capturing();
  void GraphCloned(std::uint64_t from, std::uint64_t to);
  void GraphDestroyed(std::uint64_t graph);
  void Instantiated(std::uint64_t graph, std::uint64_t exec);
  void ExecUpdated(std::uint64_t exec, std::uint64_t graph);
  void ExecChangedOneNode(std::uint64_t exec);
  void ExecDestroyed(std::uint64_t exec);

  void Error(const std::string& what);
  // From now on what is freed is teardown.
  void Exiting();
  std::uint64_t findings();
  Account Take();

 private:
  Session() = default;
  struct Audited {
    GraphFacts facts;
    std::vector<Watch::Seen> seen;
  };
  // Whatever fails in `body`, the program goes on: a line in the report.
  template <typename Body>
  void Swallow(const char* what, const Body& body);
  void Refresh();
  Audited Read(std::uint64_t graph);
  Device* Observer();                              // null: why is in the report
  History::Place At(DeviceAddress address) const;  // with mutex_ held
  const std::string* Intern(const std::string& name);

  const Settings settings_ = Settings::FromEnvironment();
  std::mutex audit_mutex_;  // one audit at a time; taken before mutex_
  std::unique_ptr<Device> observer_;
  bool observer_failed_ = false;

  std::mutex mutex_;  // guards what follows
  Tick now_ = 0;
  std::uint64_t allocations_ = 0, captures_ = 0, contexts_destroyed_ = 0;
  std::map<std::string, std::uint64_t> by_call_;
  History memory_, blocks_;
  Watch watch_;
  std::map<std::uint64_t, CaptureTimes> open_;      // by stream
  std::map<std::uint64_t, CaptureTimes> recorded_;  // by graph
  std::set<std::string> names_;
  std::vector<std::string> errors_;
  void (*refresh_)() = nullptr;
  bool exiting_ = false;
};

}  // namespace holdfast::preload

#endif  // HOLDFAST_PRELOAD_SESSION_H_
