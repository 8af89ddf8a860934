// Whose is every byte of device memory that this process holds.
//
// Spans and rounding are known exactly. What the driver takes for itself (context, modules, library
// handles, graph executables, local memory) is measured at the event that takes it, as the change
// of the process's own figure less the change of our chunks. No line is a remainder: what the lines
// do not explain is printed as `unexplained`.
#ifndef HOLDFAST_ALLOCATOR_LEDGER_H_
#define HOLDFAST_ALLOCATOR_LEDGER_H_

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/arena.h"
#include "device/bytes.h"
#include "device/device.h"

namespace holdfast {

// Owners of driver memory, the names of the ledger's lines.
inline constexpr char kContextOwner[] = "context";
inline constexpr char kModulesOwner[] = "modules";
inline constexpr char kLibrariesOwner[] = "library handles";
inline constexpr char kExecutablesOwner[] = "graph executables";
inline constexpr char kLocalMemoryOwner[] = "local memory";

struct LedgerLine {
  std::string owner;  // "weights/immutable", "context", ...
  std::string what;   // "spans", "rounding", "driver"
  // Now. Negative only for a driver's line that gave back more than was put down under it.
  std::int64_t bytes = 0;
  // What sleep can do about it: true, gone while its tag sleeps (local memory: while everything
  // sleeps); false, stays until the context goes: the printed floor.
  bool sleeps = false;
};

struct LedgerReport {
  std::vector<LedgerLine> lines;
  std::int64_t explained_bytes = 0;    // their sum
  std::uint64_t process_bytes = 0;     // the driver's figure for this process; 0 if it gives none
  std::int64_t unexplained_bytes = 0;  // process - explained; 0 if the driver gives no figure
  std::int64_t floor_bytes = 0;        // what only the end of the context frees
  // Parts of other figures, not lines: spans that somebody else has imported, and pages of others
  // that are mapped here (counted in the process that made them).
  std::uint64_t exported_bytes = 0;
  std::uint64_t imported_bytes = 0;

  // How much may stay unexplained before something is wrong: 2 MiB + 0.1 % of the process.
  std::int64_t bound_bytes() const {
    return static_cast<std::int64_t>(2 * kMiB + process_bytes / 1000);
  }
  bool adds_up() const {
    return unexplained_bytes <= bound_bytes() && unexplained_bytes >= -bound_bytes();
  }
};

class Ledger;

// Measures from its making to its end: what the driver took meanwhile, or gave back, is put down
// under the owner. Nothing else may take device memory in this process meanwhile. Ends in the
// thread that made it.
class LedgerEvent {
 public:
  LedgerEvent(LedgerEvent&& other) noexcept;
  LedgerEvent& operator=(LedgerEvent&&) = delete;
  ~LedgerEvent();

 private:
  friend class Ledger;
  LedgerEvent(Ledger& ledger, std::string owner);

  Ledger* ledger_;
  std::string owner_;
  std::unique_lock<std::mutex> alone_;
  std::optional<std::int64_t> before_;
};

// One a device: what other Device objects take of the same GPU is unexplained here. Thread-safe;
// events do not overlap (the second waits), readers wait for none.
class Ledger {
 public:
  // Puts down what the process holds now, less chunks, under "context". The device outlives it, and
  // its local memory is there.
  explicit Ledger(Device& device);

  LedgerEvent Measure(const std::string& owner);
  // Tells the local memory from the rest: gives it back, looks, and takes it again. What it grew by
  // since the last time was put down under `taken_by`, and moves. Nothing of ours may run. From
  // then on its line is what was measured, or 0 while it is given back. Does nothing where the
  // driver gives no figure, or while it is given back. kOutOfMemory: it could not be taken again.
  absl::Status SeparateLocalMemory(const std::string& taken_by);

  // Put down under a driver's owner so far.
  std::int64_t BytesOf(const std::string& owner) const;
  // Lines of the arenas (of this device) by tag and role, then the driver's.
  absl::StatusOr<LedgerReport> Report(const std::vector<const Arena*>& arenas) const;

 private:
  friend class LedgerEvent;
  // Process bytes less our chunks; nullopt if the driver gives no figure.
  std::optional<std::int64_t> DriverBytes() const;
  void PutDown(const std::string& owner, std::int64_t change);

  Device& device_;
  std::mutex event_mutex_;    // held through an event; taken before mutex_
  mutable std::mutex mutex_;  // guards by_owner_
  std::vector<std::pair<std::string, std::int64_t>> by_owner_;  // in the order they first took any
};

}  // namespace holdfast

#endif  // HOLDFAST_ALLOCATOR_LEDGER_H_
