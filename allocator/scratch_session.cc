#include "allocator/scratch_session.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "device/bytes.h"
#include "device/error.h"

namespace holdfast {
namespace {

// While a buffer is alive its end is unknown: until then it shares with nobody that comes later.
constexpr std::uint64_t kStillAlive = std::numeric_limits<std::uint64_t>::max();

}  // namespace

ScratchBuffer::ScratchBuffer(ScratchBuffer&& other) noexcept
    : session_(std::exchange(other.session_, nullptr)),
      ordinal_(other.ordinal_),
      address_(std::exchange(other.address_, {})),
      bytes_(std::exchange(other.bytes_, 0)) {}

ScratchBuffer& ScratchBuffer::operator=(ScratchBuffer&& other) noexcept {
  if (this == &other) return *this;
  Release();
  session_ = std::exchange(other.session_, nullptr);
  ordinal_ = other.ordinal_;
  address_ = std::exchange(other.address_, {});
  bytes_ = std::exchange(other.bytes_, 0);
  return *this;
}

ScratchBuffer::~ScratchBuffer() { Release(); }

void ScratchBuffer::Release() {
  if (session_ != nullptr) session_->End(ordinal_);
  session_ = nullptr;
  address_ = {};
  bytes_ = 0;
}

ScratchSession ScratchSession::Measure(std::string scope, DeviceAddress base) {
  ScratchSession session;
  session.scope_ = std::move(scope);
  session.base_ = base;
  return session;
}

ScratchSession ScratchSession::Serve(std::string scope, DeviceAddress base, std::uint64_t capacity,
                                     const ScratchPlan& plan) {
  ScratchSession session;
  session.scope_ = std::move(scope);
  session.base_ = base;
  session.capacity_ = capacity;
  session.plan_ = &plan;
  return session;
}

absl::StatusOr<ScratchBuffer> ScratchSession::Request(const std::string& name,
                                                      std::uint64_t bytes) {
  std::uint64_t offset = 0;
  if (measuring()) {
    HOLDFAST_ASSIGN_OR_RETURN(const std::uint64_t rounded,
                              CheckedAdd(bytes, kScratchAlignment - 1, scope_ + " " + name));
    offset = cursor_;
    HOLDFAST_ASSIGN_OR_RETURN(
        cursor_, CheckedAdd(cursor_, AlignDown(rounded, kScratchAlignment), scope_ + " " + name));
  } else {
    HOLDFAST_RETURN_IF_ERROR(CheckPlanned(name, bytes));
    offset = plan_->offsets[requests_.size()];
  }
  ScratchBuffer buffer;
  buffer.session_ = this;
  buffer.ordinal_ = requests_.size();
  buffer.address_ = base_ + offset;
  buffer.bytes_ = bytes;
  requests_.push_back({.name = name, .bytes = bytes, .first = order_.count(), .last = kStillAlive});
  return buffer;
}

absl::Status ScratchSession::CheckPlanned(const std::string& name, std::uint64_t bytes) const {
  if (plan_->height > capacity_) {
    return MakeError({.kind = ErrorKind::kOutOfExtent,
                      .object = scope_,
                      .need = plan_->height,
                      .have = capacity_},
                     "the scratch plan is higher than its span");
  }
  const std::size_t ordinal = requests_.size();
  if (ordinal >= plan_->requests.size()) {
    return MakeError({.kind = ErrorKind::kPlanMismatch, .object = scope_, .need = bytes},
                     absl::StrCat("scratch request ", ordinal, " ('", name, "', ", bytes,
                                  " B): only ", plan_->requests.size(), " were measured"));
  }
  const ScratchRequest& planned = plan_->requests[ordinal];
  if (planned.name != name || planned.bytes != bytes) {
    return MakeError(
        {.kind = ErrorKind::kPlanMismatch, .object = scope_, .need = bytes, .have = planned.bytes},
        absl::StrCat("scratch request ", ordinal, ": '", name, "' of ", bytes, " B now, '",
                     planned.name, "' of ", planned.bytes, " B when measured"));
  }
  if (planned.first != order_.count()) {
    return MakeError({.kind = ErrorKind::kPlanMismatch, .object = scope_},
                     absl::StrCat("scratch request ", ordinal, " ('", name, "'): before operation ",
                                  order_.count(), " now, ", planned.first, " when measured"));
  }
  return absl::OkStatus();
}

void ScratchSession::End(std::size_t ordinal) {
  ScratchRequest& request = requests_[ordinal];
  // One that saw no operation still counts as alive at its own place.
  request.last = order_.count() > request.first ? order_.count() - 1 : request.first;
  if (measuring() || !overstayed_.ok()) return;
  const ScratchRequest& planned = plan_->requests[ordinal];
  if (request.last <= planned.last) return;
  overstayed_ = MakeError(
      {.kind = ErrorKind::kPlanMismatch, .object = scope_},
      absl::StrCat("scratch request ", ordinal, " ('", request.name, "'): alive until operation ",
                   request.last, " now, ", planned.last, " when measured"));
}

std::vector<ScratchRequest> ScratchSession::measured() const {
  std::vector<ScratchRequest> requests = requests_;
  if (!order_.branched()) return requests;
  for (ScratchRequest& request : requests) {
    request.latest = order_.Latest(request.first, request.last);
    request.over_before = order_.OverBefore(request.first, request.last);
  }
  return requests;
}

absl::Status ScratchSession::Finish() const {
  HOLDFAST_RETURN_IF_ERROR(overstayed_);
  if (measuring()) return absl::OkStatus();
  if (requests_.size() == plan_->requests.size()) {
    if (plan_->order == order_.fingerprint()) return absl::OkStatus();
    return MakeError({.kind = ErrorKind::kPlanMismatch, .object = scope_},
                     absl::StrCat("its ", order_.count(),
                                  " operations were not put on the same streams, forked and joined "
                                  "as when measured"));
  }
  const ScratchRequest& missing = plan_->requests[requests_.size()];
  return MakeError({.kind = ErrorKind::kPlanMismatch, .object = scope_, .have = missing.bytes},
                   absl::StrCat("only ", requests_.size(), " of ", plan_->requests.size(),
                                " measured scratch requests were made; '", missing.name,
                                "' is the first one missing"));
}

}  // namespace holdfast
