#include "runtime/weight_upload.h"

#include <algorithm>
#include <cstring>

#include "device/bytes.h"
#include "device/element.h"

namespace holdfast {
namespace {

constexpr std::uint64_t kHalfBytes = 32 * kMiB;
// What is read and converted at once through the pool.
constexpr std::uint64_t kStepBytes = 32 * kMiB;

std::uint64_t FileElementBytes(const std::string& dtype) { return dtype == "F32" ? 4 : 2; }

// Turns `count` elements of a file's dtype into `To`, from `in` to `out` (both host memory).
template <typename To>
void ConvertTo(const std::string& dtype, const std::byte* in, std::uint64_t count, To* out) {
  for (std::uint64_t i = 0; i < count; ++i) {
    float value;
    if (dtype == "F32") {
      std::memcpy(&value, in + i * 4, 4);
    } else {
      Bf16 narrow;
      std::memcpy(&narrow, in + i * 2, 2);
      value = ToFloat(narrow);
    }
    out[i] = FromFloat<To>(value);
  }
}

}  // namespace

absl::StatusOr<WeightUpload> WeightUpload::Create(Arena& arena, Residency* through) {
  WeightUpload upload(arena, through);
  HOLDFAST_ASSIGN_OR_RETURN(upload.stream_, arena.device().CreateStream("weights"));
  if (through != nullptr) return upload;
  for (HostBuffer& half : upload.staging_) {
    HOLDFAST_ASSIGN_OR_RETURN(half, arena.device().AllocateHost(kHalfBytes));
  }
  return upload;
}

absl::Status WeightUpload::Read(const Checkpoint& checkpoint, const std::string& name, DType type,
                                std::uint64_t first, std::uint64_t count, std::byte* out) {
  const std::string& dtype = checkpoint.Find(name)->dtype;
  const std::uint64_t size = FileElementBytes(dtype);
  if (dtype == (type == DType::kF32 ? "F32" : "BF16")) {
    return checkpoint.Read(name, first * size, count * size, out);
  }
  raw_.resize(count * size);
  HOLDFAST_RETURN_IF_ERROR(checkpoint.Read(name, first * size, count * size, raw_.data()));
  if (type == DType::kF32) {
    ConvertTo(dtype, raw_.data(), count, reinterpret_cast<float*>(out));
  } else {
    ConvertTo(dtype, raw_.data(), count, reinterpret_cast<Bf16*>(out));
  }
  return absl::OkStatus();
}

absl::Status WeightUpload::Upload(const Checkpoint& checkpoint, const std::string& name, DType type,
                                  SpanId span) {
  if (through_ != nullptr) return UploadThrough(checkpoint, name, type, span);
  return UploadStaged(checkpoint, name, type, arena_->range(span));
}

absl::StatusOr<std::byte*> WeightUpload::NextHalf() {
  turn_ ^= 1;
  // The half's last copy is two copies back; waiting for the stream after each odd one is enough.
  if (pending_ == 2) {
    HOLDFAST_RETURN_IF_ERROR(arena_->device().Synchronize(*stream_));
    pending_ = 0;
  }
  ++pending_;
  return staging_[turn_].data();
}

absl::Status WeightUpload::UploadStaged(const Checkpoint& checkpoint, const std::string& name,
                                        DType type, AddressRange to) {
  const std::uint64_t size = DTypeBytes(type);
  for (std::uint64_t at = 0; at < to.bytes; at += kHalfBytes) {
    const std::uint64_t bytes = std::min(kHalfBytes, to.bytes - at);
    HOLDFAST_ASSIGN_OR_RETURN(std::byte* const half, NextHalf());
    HOLDFAST_RETURN_IF_ERROR(Read(checkpoint, name, type, at / size, bytes / size, half));
    HOLDFAST_RETURN_IF_ERROR(arena_->device().CopyToDevice(*stream_, to.base + at, half, bytes));
  }
  return absl::OkStatus();
}

absl::Status WeightUpload::UploadThrough(const Checkpoint& checkpoint, const std::string& name,
                                         DType type, SpanId span) {
  const std::uint64_t size = DTypeBytes(type);
  const DeviceAddress base = arena_->range(span).base;
  HOLDFAST_ASSIGN_OR_RETURN(const std::vector<StagedPiece> pieces, through_->Stage(span));
  // Spans are aligned to 256 bytes and pieces end at chunk borders: no element lies across two.
  for (const StagedPiece& piece : pieces) {
    const std::uint64_t begin = piece.device.base - base;
    for (std::uint64_t at = 0; at < piece.device.bytes; at += kStepBytes) {
      const std::uint64_t bytes = std::min(kStepBytes, piece.device.bytes - at);
      HOLDFAST_RETURN_IF_ERROR(
          Read(checkpoint, name, type, (begin + at) / size, bytes / size, piece.host + at));
      HOLDFAST_RETURN_IF_ERROR(
          arena_->device().CopyToDevice(*stream_, piece.device.base + at, piece.host + at, bytes));
    }
  }
  return absl::OkStatus();
}

absl::Status WeightUpload::Finish(const std::string& tag) {
  HOLDFAST_RETURN_IF_ERROR(arena_->device().Synchronize(*stream_));
  HOLDFAST_RETURN_IF_ERROR(arena_->Seal(tag));
  return through_ == nullptr ? absl::OkStatus() : through_->AdoptStaged(tag);
}

}  // namespace holdfast
