// What must be the same before and after: taken of a subject on which nothing runs, and compared.
#ifndef HOLDFAST_TESTING_PICTURE_H_
#define HOLDFAST_TESTING_PICTURE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "device/hash.h"
#include "testing/subject.h"

namespace holdfast::testing {

struct Picture {
  // State
  std::uint64_t own_bytes = 0;
  bool gate_closed = false;
  std::map<std::string, bool> asleep;             // by tag
  std::map<std::string, AddressRange> addresses;  // by span
  // Contents of what is awake, as hashes of leaves
  std::map<std::string, std::vector<Hash128>> kept;      // by "tag/role"
  std::map<std::string, std::vector<Hash128>> refilled;  // spans with a hook, by name
};

// Of the state alone: no work, no waiting.
absl::StatusOr<Picture> TakeStatePicture(Subject& subject);
// With contents: hashes on the device, waits for the lane. No transition runs meanwhile.
absl::StatusOr<Picture> TakePicture(Subject& subject);

// The first difference, naming tag, span or leaf; nullopt if there is none.
std::optional<std::string> StateDifference(const Picture& before, const Picture& now);
std::optional<std::string> AddressDifference(const Picture& before, const Picture& now);
// Of what is awake in both.
std::optional<std::string> KeptDifference(const Picture& before, const Picture& now);
std::optional<std::string> RefilledDifference(const Picture& before, const Picture& now);

std::uint64_t LeavesOf(const Picture& picture);  // how many it compares

// The first dropped span of these tags (which just woke) that does not hold what it declares: all
// zero or all 0xFF. Spans that come back undefined or are refilled are passed over; `spans`, if not
// null, counts the others.
absl::StatusOr<std::optional<std::string>> DeclaredDifference(Subject& subject,
                                                              const std::vector<std::string>& tags,
                                                              std::uint64_t* spans);

// A dropped span that declares what it holds after wake, and has no hook.
bool DeclaresContents(const SpanSpec& spec);
// A span whose every byte is kept.
bool IsKept(const SpanSpec& spec);

}  // namespace holdfast::testing

#endif  // HOLDFAST_TESTING_PICTURE_H_
