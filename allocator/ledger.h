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
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/arena.h"
#include "device/device.h"

namespace holdfast {

// Owners of driver memory, the names of the ledger's lines.
inline constexpr char kContextOwner[] = "context";
inline constexpr char kModulesOwner[] = "modules";
inline constexpr char kLibrariesOwner[] = "library handles";
inline constexpr char kExecutablesOwner[] = "graph executables";
inline constexpr char kLocalMemoryOwner[] = "local memory";

struct LedgerLine {
  std::string owner;        // "weights/immutable", "context", ...
  std::string what;         // "spans", "rounding", "driver"
  std::uint64_t bytes = 0;  // now
  // What sleep can do about it: "sleeps", "stays" (until the context goes: the printed floor)
  bool sleeps = false;
};

struct LedgerReport {
  std::vector<LedgerLine> lines;
  std::uint64_t explained_bytes = 0;
  std::uint64_t process_bytes = 0;     // the driver's figure for this process; 0 if it gives none
  std::int64_t unexplained_bytes = 0;  // process - explained; 0 if the driver gives no figure
  std::uint64_t floor_bytes = 0;       // what only the end of the context frees
};

class Ledger;

// Measures from its making to End: what the driver took meanwhile is put down under the owner.
// Nothing else may take device memory in this process meanwhile.
class LedgerEvent {
 public:
  LedgerEvent(LedgerEvent&& other) noexcept;
  LedgerEvent& operator=(LedgerEvent&&) = delete;
  ~LedgerEvent();  // ends it
  void End();

 private:
  friend class Ledger;
  LedgerEvent(Ledger& ledger, std::string owner);
  Ledger* ledger_;
  std::string owner_;
  std::uint64_t before_ = 0;  // process bytes that are not chunks of ours
};

// One a device. Thread-safe; events do not overlap (the second waits).
class Ledger {
 public:
  // Puts down what the process holds now, less chunks, under "context".
  explicit Ledger(Device& device);

  LedgerEvent Measure(const std::string& owner);
  // Lines by owner, arenas first.
  absl::StatusOr<LedgerReport> Report(const std::vector<const Arena*>& arenas) const;

 private:
  friend class LedgerEvent;
  absl::StatusOr<std::uint64_t> DriverBytes() const;  // process bytes less our chunks

  Device& device_;
  mutable std::mutex mutex_;
  std::vector<std::pair<std::string, std::int64_t>> by_owner_;
};

}  // namespace holdfast

#endif  // HOLDFAST_ALLOCATOR_LEDGER_H_
