#include "graphs/holdfast_audit.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "device/error.h"
#include "graphs/stand_alone_audit.h"

namespace holdfast {
namespace {

struct Session {
  std::mutex mutex;  // serialises calls on one handle
  std::unique_ptr<StandAloneAudit> audit;
  std::vector<std::string> problems;  // of the last audit or scan
};

// Handles are (generation, slot): a slot is used again, a generation is not.
class Sessions {
 public:
  std::uint64_t Add(std::shared_ptr<Session> session) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::size_t slot = 0;
    while (slot < slots_.size() && slots_[slot].session != nullptr) ++slot;
    if (slot == slots_.size()) slots_.emplace_back();
    slots_[slot].session = std::move(session);
    slots_[slot].id = next_generation_++ << kSlotBits | slot;
    return slots_[slot].id;
  }
  // Null for what is no live handle.
  std::shared_ptr<Session> Find(std::uint64_t id) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    const std::size_t slot = id & kSlotMask;
    return slot < slots_.size() && slots_[slot].id == id ? slots_[slot].session : nullptr;
  }
  std::shared_ptr<Session> Remove(std::uint64_t id) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const std::size_t slot = id & kSlotMask;
    if (slot >= slots_.size() || slots_[slot].id != id) return nullptr;
    slots_[slot].id = 0;
    return std::exchange(slots_[slot].session, nullptr);
  }

 private:
  static constexpr int kSlotBits = 24;
  static constexpr std::uint64_t kSlotMask = (std::uint64_t{1} << kSlotBits) - 1;
  struct Slot {
    std::uint64_t id = 0;
    std::shared_ptr<Session> session;
  };
  mutable std::mutex mutex_;
  std::vector<Slot> slots_;
  std::uint64_t next_generation_ = 1;
};

// Never destroyed: handles may be used by destructors of static objects.
Sessions& AllSessions() {
  static Sessions& sessions = *new Sessions;
  return sessions;
}

holdfast_code CodeOf(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInvalidArgument: return HOLDFAST_INVALID_ARGUMENT;
    case ErrorKind::kNotFound: return HOLDFAST_NOT_FOUND;
    case ErrorKind::kAlreadyExists: return HOLDFAST_ALREADY_EXISTS;
    case ErrorKind::kUnsupported: return HOLDFAST_UNSUPPORTED;
    case ErrorKind::kOutOfMemory:
    case ErrorKind::kOutOfHostMemory: return HOLDFAST_OUT_OF_MEMORY;
    case ErrorKind::kDriver: return HOLDFAST_DRIVER_ERROR;
    case ErrorKind::kDeviceLost: return HOLDFAST_DEVICE_LOST;
    case ErrorKind::kForeignPointer: return HOLDFAST_FOREIGN_POINTER;
    case ErrorKind::kUnauditable: return HOLDFAST_UNAUDITABLE;
    default: return HOLDFAST_OTHER_ERROR;
  }
}

// As much of `text` as fits, and a zero byte.
void CopyText(const std::string& text, char* to, std::size_t capacity) {
  if (capacity == 0) return;
  const std::size_t length = std::min(text.size(), capacity - 1);
  std::memcpy(to, text.data(), length);
  to[length] = '\0';
}

holdfast_code Report(const absl::Status& status, holdfast_error* error) {
  if (status.ok()) return HOLDFAST_OK;
  const ErrorInfo info = GetErrorInfo(status).value_or(ErrorInfo{});
  const holdfast_code code = CodeOf(info.kind);
  if (error == nullptr) return code;
  *error = {};
  error->code = code;
  error->driver_code = info.code;
  error->need = info.need;
  error->have = info.have;
  CopyText(info.object, error->object, sizeof(error->object));
  CopyText(info.call, error->call, sizeof(error->call));
  CopyText(std::string(status.message()), error->message, sizeof(error->message));
  return code;
}

absl::Status Invalid(const std::string& object, const std::string& message) {
  return MakeError({.kind = ErrorKind::kInvalidArgument, .object = object}, message);
}

// Runs `body`, whose exceptions (memory may run out) stop here.
template <typename Body>
holdfast_code Guarded(const char* call, holdfast_error* error, Body body) {
  try {
    return Report(Annotate(body(), call), error);
  } catch (const std::exception& e) {
    return Report(MakeError({.kind = ErrorKind::kInternal, .object = call},
                            std::string("threw: ") + e.what()),
                  error);
  }
}

// The same with the session of a handle, locked.
template <typename Body>
holdfast_code WithSession(const char* call, holdfast_audit audit, holdfast_error* error,
                          Body body) {
  return Guarded(call, error, [&]() -> absl::Status {
    const std::shared_ptr<Session> session = AllSessions().Find(audit.id);
    if (session == nullptr) return Invalid("audit", "no such handle, or destroyed");
    const std::lock_guard<std::mutex> lock(session->mutex);
    return body(*session);
  });
}

absl::Status GiveText(const std::string& text, char* to, std::size_t capacity,
                      std::size_t* length) {
  if (to == nullptr && capacity > 0) return Invalid("text", "null");
  CopyText(text, to, capacity);
  if (length != nullptr) *length = text.size();
  return absl::OkStatus();
}

}  // namespace
}  // namespace holdfast

using holdfast::Invalid;
using holdfast::Session;

holdfast_code holdfast_audit_create(const char* device, holdfast_audit* audit,
                                    holdfast_error* error) {
  return holdfast::Guarded(__func__, error, [&]() -> absl::Status {
    if (device == nullptr || audit == nullptr) return Invalid("audit", "null argument");
    auto session = std::make_shared<Session>();
    HOLDFAST_ASSIGN_OR_RETURN(session->audit, holdfast::StandAloneAudit::Create(device));
    audit->id = holdfast::AllSessions().Add(std::move(session));
    return absl::OkStatus();
  });
}

holdfast_code holdfast_audit_destroy(holdfast_audit audit, holdfast_error* error) {
  return holdfast::Guarded(__func__, error, [&]() -> absl::Status {
    // A call that is under way on another thread keeps the session until it returns.
    if (holdfast::AllSessions().Remove(audit.id) == nullptr) {
      return Invalid("audit", "no such handle, or destroyed");
    }
    return absl::OkStatus();
  });
}

holdfast_code holdfast_audit_add_range(holdfast_audit audit, const char* name, uint64_t base,
                                       uint64_t bytes, uint32_t flags, holdfast_error* error) {
  return holdfast::WithSession(__func__, audit, error, [&](Session& session) -> absl::Status {
    if (name == nullptr) return Invalid("range", "null name");
    constexpr uint32_t known =
        HOLDFAST_RANGE_SEALED | HOLDFAST_RANGE_RETIRED | HOLDFAST_RANGE_CONTAINS_POINTERS;
    if ((flags & ~known) != 0) return Invalid(name, "unknown flags");
    return session.audit->AddRange(
        {.name = name,
         .range = {{base}, bytes},
         .sealed = (flags & HOLDFAST_RANGE_SEALED) != 0,
         .retired = (flags & HOLDFAST_RANGE_RETIRED) != 0,
         .contains_pointers = (flags & HOLDFAST_RANGE_CONTAINS_POINTERS) != 0});
  });
}

holdfast_code holdfast_audit_allow_node(holdfast_audit audit, const char* name,
                                        holdfast_error* error) {
  return holdfast::WithSession(__func__, audit, error, [&](Session& session) -> absl::Status {
    if (name == nullptr) return Invalid("node", "null name");
    session.audit->AllowNode(name);
    return absl::OkStatus();
  });
}

holdfast_code holdfast_audit_graph(holdfast_audit audit, const char* name, void* cu_graph,
                                   uint64_t* problems, holdfast_error* error) {
  return holdfast::WithSession(__func__, audit, error, [&](Session& session) -> absl::Status {
    if (name == nullptr || problems == nullptr) return Invalid("graph", "null argument");
    HOLDFAST_ASSIGN_OR_RETURN(holdfast::AuditReport report, session.audit->Graph(name, cu_graph));
    session.problems = std::move(report.problems);
    *problems = session.problems.size();
    return absl::OkStatus();
  });
}

holdfast_code holdfast_audit_scan(holdfast_audit audit, uint64_t* problems, holdfast_error* error) {
  return holdfast::WithSession(__func__, audit, error, [&](Session& session) -> absl::Status {
    if (problems == nullptr) return Invalid("scan", "null argument");
    HOLDFAST_ASSIGN_OR_RETURN(holdfast::DeepScanReport report, session.audit->Scan());
    session.problems = std::move(report.problems);
    *problems = session.problems.size();
    return absl::OkStatus();
  });
}

holdfast_code holdfast_audit_problem(holdfast_audit audit, uint64_t index, char* text,
                                     size_t capacity, size_t* length, holdfast_error* error) {
  return holdfast::WithSession(__func__, audit, error, [&](Session& session) -> absl::Status {
    if (index >= session.problems.size()) {
      return holdfast::MakeError({.kind = holdfast::ErrorKind::kNotFound,
                                  .object = "problem",
                                  .need = index,
                                  .have = session.problems.size()},
                                 "there are not so many");
    }
    return holdfast::GiveText(session.problems[index], text, capacity, length);
  });
}

holdfast_code holdfast_audit_manifest(holdfast_audit audit, char* text, size_t capacity,
                                      size_t* length, holdfast_error* error) {
  return holdfast::WithSession(__func__, audit, error, [&](Session& session) -> absl::Status {
    return holdfast::GiveText(holdfast::ManifestJson(session.audit->manifest()), text, capacity,
                              length);
  });
}

holdfast_code holdfast_audit_dot(holdfast_audit audit, const char* graph, char* text,
                                 size_t capacity, size_t* length, holdfast_error* error) {
  return holdfast::WithSession(__func__, audit, error, [&](Session& session) -> absl::Status {
    if (graph == nullptr) return Invalid("graph", "null name");
    HOLDFAST_ASSIGN_OR_RETURN(const std::string dot, session.audit->Dot(graph));
    return holdfast::GiveText(dot, text, capacity, length);
  });
}
