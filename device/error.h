// Errors as values: every fallible call returns absl::Status with an ErrorInfo payload, so that
// callers and tests match what went wrong (kind, object, sizes) and never the wording.
//
//   return MakeError({.kind = ErrorKind::kOutOfMemory, .object = "weights", .need = n, .have =
//   free,
//                     .call = "cuMemCreate"}, "no room for the chunk");
#ifndef HOLDFAST_DEVICE_ERROR_H_
#define HOLDFAST_DEVICE_ERROR_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace holdfast {

enum class ErrorKind {
  kInvalidArgument,    // the request itself is wrong
  kNotFound,           // no such file, tag, span, graph, device
  kAlreadyExists,      // a name is taken
  kUnsupported,        // understood, but not offered here
  kOutOfMemory,        // device memory: need and have in bytes
  kOutOfHostMemory,    // host memory: need and have in bytes
  kOutOfExtent,        // an address range planned too small: need and have in bytes
  kAddressTaken,       // no candidate base could be reserved
  kLocked,             // refused because the arena is locked
  kAsleep,             // a needed tag is not resident
  kUndefinedContents,  // resident, but not refilled
  kBusy,               // another transition or capture is under way
  kDeadlineExceeded,   // waited as long as allowed; nothing changed
  kPlanMismatch,       // a capture asked for other scratch than was measured
  kForeignPointer,     // a captured graph refers to memory nobody declared
  kUnauditable,        // a node whose pointers cannot be read
  kCorrupted,          // contents or a file are not what they must be
  kMisplaced,          // contents are intact, but another piece's
  kUncapturable,       // a capture met what it cannot hold: an allocation, a wait, the legacy
                       // stream, work that never joined; `call` names it where known
  kClosed,             // used after it was closed
  kHeld,               // somebody else refers to these pages and cannot let go
  kStale,              // refers to pages that were replaced since
  kDriver,             // a device call failed
  kDeviceLost,         // the context is gone; only process restart helps
  kInternal,           // a bug of ours
};

// "kOutOfMemory" -> "out of memory". Stable; used in messages and JSON.
const char* ErrorKindName(ErrorKind kind);

struct ErrorInfo {
  ErrorKind kind = ErrorKind::kInternal;
  std::string object;      // the span, tag, graph, file or flag concerned
  std::uint64_t need = 0;  // bytes (or units named in the message); 0 if not about sizes
  std::uint64_t have = 0;
  std::string call;  // the device or OS call, if one failed
  int code = 0;      // its code
};

// The message becomes "<kind>: <object>: <message> (need N, have M; call C code K)", empty parts
// left out.
absl::Status MakeError(const ErrorInfo& info, const std::string& message);

// The payload of an error made by MakeError; nullopt for OK or for statuses made elsewhere.
std::optional<ErrorInfo> GetErrorInfo(const absl::Status& status);

// True if `status` is an error of that kind.
bool IsErrorKind(const absl::Status& status, ErrorKind kind);

// The same error with "context: " put before its message; the payload stays. OK stays OK.
absl::Status Annotate(const absl::Status& status, const std::string& context);

}  // namespace holdfast

#define HOLDFAST_CONCAT_INNER(a, b) a##b
#define HOLDFAST_CONCAT(a, b) HOLDFAST_CONCAT_INNER(a, b)

// Returns from the enclosing function if `expr` (an absl::Status) is an error.
#define HOLDFAST_RETURN_IF_ERROR(expr)                                                        \
  do {                                                                                        \
    if (absl::Status holdfast_status = (expr); !holdfast_status.ok()) return holdfast_status; \
  } while (false)

// HOLDFAST_ASSIGN_OR_RETURN(auto x, F()): declares or assigns x from a StatusOr, or returns its
// error.
#define HOLDFAST_ASSIGN_OR_RETURN(lhs, expr) \
  HOLDFAST_ASSIGN_OR_RETURN_IMPL(HOLDFAST_CONCAT(holdfast_result_, __LINE__), lhs, expr)
#define HOLDFAST_ASSIGN_OR_RETURN_IMPL(result, lhs, expr) \
  auto result = (expr);                                   \
  if (!result.ok()) return result.status();               \
  lhs = *std::move(result)

#endif  // HOLDFAST_DEVICE_ERROR_H_
