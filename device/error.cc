#include "device/error.h"

#include <cstring>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace holdfast {
namespace {

constexpr char kPayloadUrl[] = "holdfast/error-info";

// The payload never leaves the process, so it is this header followed by `object` and `call`.
struct PayloadHeader {
  std::uint64_t need, have, object_bytes;
  std::int32_t kind, code;
};

absl::StatusCode CodeOf(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInvalidArgument: return absl::StatusCode::kInvalidArgument;
    case ErrorKind::kNotFound: return absl::StatusCode::kNotFound;
    case ErrorKind::kAlreadyExists: return absl::StatusCode::kAlreadyExists;
    case ErrorKind::kUnsupported: return absl::StatusCode::kUnimplemented;
    case ErrorKind::kOutOfMemory:
    case ErrorKind::kOutOfHostMemory:
    case ErrorKind::kOutOfExtent: return absl::StatusCode::kResourceExhausted;
    case ErrorKind::kAddressTaken: return absl::StatusCode::kUnavailable;
    case ErrorKind::kLocked:
    case ErrorKind::kAsleep:
    case ErrorKind::kUndefinedContents:
    case ErrorKind::kPlanMismatch:
    case ErrorKind::kForeignPointer:
    case ErrorKind::kUnauditable:
    case ErrorKind::kUncapturable:
    case ErrorKind::kClosed: return absl::StatusCode::kFailedPrecondition;
    case ErrorKind::kBusy: return absl::StatusCode::kAborted;
    case ErrorKind::kDeadlineExceeded: return absl::StatusCode::kDeadlineExceeded;
    case ErrorKind::kCorrupted:
    case ErrorKind::kMisplaced: return absl::StatusCode::kDataLoss;
    case ErrorKind::kHeld:
    case ErrorKind::kStale: return absl::StatusCode::kFailedPrecondition;
    case ErrorKind::kDriver: return absl::StatusCode::kUnknown;
    case ErrorKind::kDeviceLost: return absl::StatusCode::kUnavailable;
    case ErrorKind::kInternal: return absl::StatusCode::kInternal;
  }
  return absl::StatusCode::kInternal;
}

absl::Cord EncodePayload(const ErrorInfo& info) {
  const PayloadHeader header{.need = info.need,
                             .have = info.have,
                             .object_bytes = info.object.size(),
                             .kind = static_cast<std::int32_t>(info.kind),
                             .code = info.code};
  std::string bytes(sizeof(header), '\0');
  std::memcpy(bytes.data(), &header, sizeof(header));
  return absl::Cord(absl::StrCat(bytes, info.object, info.call));
}

// " (need N, have M; call C code K)" with the empty parts left out; "" if all are empty.
std::string Details(const ErrorInfo& info) {
  std::string sizes;
  if (info.need != 0 || info.have != 0) {
    sizes = absl::StrCat("need ", info.need, ", have ", info.have);
  }
  std::string call;
  if (!info.call.empty()) call = absl::StrCat("call ", info.call);
  if (info.code != 0) absl::StrAppend(&call, call.empty() ? "" : " ", "code ", info.code);
  if (sizes.empty() && call.empty()) return "";
  return absl::StrCat(" (", sizes, sizes.empty() || call.empty() ? "" : "; ", call, ")");
}

}  // namespace

const char* ErrorKindName(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInvalidArgument: return "invalid argument";
    case ErrorKind::kNotFound: return "not found";
    case ErrorKind::kAlreadyExists: return "already exists";
    case ErrorKind::kUnsupported: return "unsupported";
    case ErrorKind::kOutOfMemory: return "out of memory";
    case ErrorKind::kOutOfHostMemory: return "out of host memory";
    case ErrorKind::kOutOfExtent: return "out of extent";
    case ErrorKind::kAddressTaken: return "address taken";
    case ErrorKind::kLocked: return "locked";
    case ErrorKind::kAsleep: return "asleep";
    case ErrorKind::kUndefinedContents: return "undefined contents";
    case ErrorKind::kBusy: return "busy";
    case ErrorKind::kDeadlineExceeded: return "deadline exceeded";
    case ErrorKind::kPlanMismatch: return "plan mismatch";
    case ErrorKind::kForeignPointer: return "foreign pointer";
    case ErrorKind::kUnauditable: return "unauditable";
    case ErrorKind::kCorrupted: return "corrupted";
    case ErrorKind::kMisplaced: return "misplaced";
    case ErrorKind::kUncapturable: return "not capturable";
    case ErrorKind::kClosed: return "closed";
    case ErrorKind::kHeld: return "held";
    case ErrorKind::kStale: return "stale";
    case ErrorKind::kDriver: return "driver";
    case ErrorKind::kDeviceLost: return "device lost";
    case ErrorKind::kInternal: return "internal";
  }
  return "unknown";
}

absl::Status MakeError(const ErrorInfo& info, const std::string& message) {
  absl::Status status(CodeOf(info.kind),
                      absl::StrCat(ErrorKindName(info.kind), ": ", info.object,
                                   info.object.empty() ? "" : ": ", message, Details(info)));
  status.SetPayload(kPayloadUrl, EncodePayload(info));
  return status;
}

std::optional<ErrorInfo> GetErrorInfo(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kPayloadUrl);
  if (!payload.has_value() || payload->size() < sizeof(PayloadHeader)) return std::nullopt;
  const std::string bytes(*payload);
  PayloadHeader header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (bytes.size() < sizeof(header) + header.object_bytes) return std::nullopt;
  return ErrorInfo{.kind = static_cast<ErrorKind>(header.kind),
                   .object = bytes.substr(sizeof(header), header.object_bytes),
                   .need = header.need,
                   .have = header.have,
                   .call = bytes.substr(sizeof(header) + header.object_bytes),
                   .code = header.code};
}

bool IsErrorKind(const absl::Status& status, ErrorKind kind) {
  const std::optional<ErrorInfo> info = GetErrorInfo(status);
  return info.has_value() && info->kind == kind;
}

absl::Status Annotate(const absl::Status& status, const std::string& context) {
  if (status.ok()) return status;
  absl::Status annotated(status.code(), absl::StrCat(context, ": ", status.message()));
  status.ForEachPayload([&annotated](absl::string_view url, const absl::Cord& payload) {
    annotated.SetPayload(url, payload);
  });
  return annotated;
}

}  // namespace holdfast
