// A small arena for the failure matrix: spans of one role (or of every role) with known contents,
// and what must be true of them before and after a transition that failed.
#ifndef HOLDFAST_TESTING_FAILURE_RIG_H_
#define HOLDFAST_TESTING_FAILURE_RIG_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/arena.h"
#include "allocator/residency.h"

namespace holdfast::testing {

// The columns of the matrix.
inline const std::vector<std::string>& FailureRoles() {
  static const std::vector<std::string> roles = {"immutable", "mutable",  "cache",
                                                 "scratch",   "refilled", "all together"};
  return roles;
}

class FailureRig {
 public:
  // Two spans over two chunks for each role, awake, written and (immutable) sealed.
  static absl::StatusOr<std::unique_ptr<FailureRig>> Create(Device& device, const std::string& role,
                                                            std::uint64_t seed);
  ~FailureRig();

  const std::vector<std::string>& tags() const { return tags_; }
  Residency& residency() { return *residency_; }
  Arena& arena() { return *arena_; }
  absl::Status Sleep();
  absl::Status Wake();
  // Other contents for mutable and cache spans: what a later sleep has to copy, or to drop.
  absl::Status Rewrite(std::uint64_t seed);

  struct Look {
    std::uint64_t own_bytes = 0;
    std::vector<bool> asleep;
    std::vector<AddressRange> addresses;
    bool gate_closed = false;
    bool operator==(const Look&) const = default;
  };
  absl::StatusOr<Look> LookAround();

  enum class Contents {
    kAsWritten,   // every span
    kAsDeclared,  // kept ones as written, some dropped ones as they declare
    kOther,       // something else in `span`
  };
  struct ContentsFound {
    Contents contents = Contents::kAsWritten;
    std::string span;
  };
  // Of awake spans. `dropped_gone`: dropped contents have to be as declared.
  absl::StatusOr<ContentsFound> CheckContents(bool dropped_gone);

  // Overwrites the first word of a kept span: the fault of a negative control.
  absl::Status LoseBytes();

 private:
  struct Part {
    SpanId id;
    SpanSpec spec;
    std::vector<std::byte> written;  // empty: undefined contents
  };
  explicit FailureRig(Device& device) : device_(device) {}
  absl::Status Build(const std::string& role, std::uint64_t seed);
  absl::Status AddRole(const std::string& role, std::uint64_t seed);
  absl::Status Write(const AddressRange& range, const std::vector<std::byte>& bytes);

  Device& device_;
  std::unique_ptr<Stream> stream_;
  HostBuffer room_;  // one span
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<Residency> residency_;
  std::vector<std::string> tags_;
  std::vector<Part> parts_;
};

}  // namespace holdfast::testing

#endif  // HOLDFAST_TESTING_FAILURE_RIG_H_
