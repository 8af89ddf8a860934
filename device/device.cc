// What is the same on every device: the arguments are checked, the call table is passed, and only
// then the device's own part runs.
#include "device/device.h"

#include <iterator>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "device/bytes.h"
#include "device/pass.h"

namespace holdfast {
namespace {

absl::Status Invalid(const std::string& object, const std::string& message) {
  return MakeError({.kind = ErrorKind::kInvalidArgument, .object = object}, message);
}

absl::Status CheckMultiple(std::uint64_t value, std::uint64_t granularity,
                           const std::string& what) {
  if (value % granularity == 0) return absl::OkStatus();
  return MakeError({.kind = ErrorKind::kInvalidArgument,
                    .object = what,
                    .need = AlignUp(value, granularity),
                    .have = value},
                   absl::StrCat("not a multiple of the granularity ", granularity));
}

// [address, address + bytes) exists: not null, no wrap.
absl::Status CheckSpan(std::uint64_t address, std::uint64_t bytes, const std::string& what) {
  if (address == 0) return Invalid(what, "null address");
  return CheckedAdd(address, bytes, what).status();
}

absl::Status CheckMappable(AddressRange range, std::uint64_t granularity, const std::string& what) {
  if (range.bytes == 0) return Invalid(what, "empty range");
  HOLDFAST_RETURN_IF_ERROR(CheckSpan(range.base.value, range.bytes, what));
  HOLDFAST_RETURN_IF_ERROR(CheckMultiple(range.base.value, granularity, what + " address"));
  return CheckMultiple(range.bytes, granularity, what + " size");
}

CopyView MakeCopy(CopySide to_side, std::uint64_t to, CopySide from_side, std::uint64_t from,
                  std::uint64_t bytes) {
  return {.source = from,
          .destination = to,
          .source_side = from_side,
          .destination_side = to_side,
          .bytes = bytes};
}

std::uint64_t AddressOf(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

absl::Status CheckCopy(const CopyView& copy) {
  HOLDFAST_RETURN_IF_ERROR(CheckSpan(copy.destination, copy.bytes, "copy destination"));
  return CheckSpan(copy.source, copy.bytes, "copy source");
}

// Rows of `columns` elements, `ld` apart, `batch` matrices `stride` apart.
absl::Status CheckMatrix(std::int64_t columns, std::int64_t ld, std::int64_t stride,
                         const std::string& what) {
  if (ld < columns) {
    return Invalid(what, absl::StrCat("leading dimension ", ld, " for rows of ", columns));
  }
  if (stride < 0) return Invalid(what, "negative batch stride");
  return absl::OkStatus();
}

absl::Status CheckGemm(const GemmSpec& spec) {
  const std::string& name = spec.name;
  if (spec.m <= 0 || spec.n <= 0 || spec.k <= 0 || spec.batch <= 0) {
    return Invalid(name, absl::StrCat("gemm of m ", spec.m, ", n ", spec.n, ", k ", spec.k,
                                      ", batch ", spec.batch));
  }
  if (spec.in != DType::kF32 && spec.in != DType::kBF16) {
    return Invalid(name, absl::StrCat("gemm input of type ", DTypeName(spec.in)));
  }
  if (spec.out != DType::kF32 && spec.out != spec.in) {
    return Invalid(name, absl::StrCat("gemm output of type ", DTypeName(spec.out)));
  }
  if (spec.accumulate && spec.out != DType::kF32) {
    return Invalid(name, "accumulation needs f32 output");
  }
  HOLDFAST_RETURN_IF_ERROR(CheckMatrix(spec.k, spec.lda, spec.stride_a, name + " A"));
  HOLDFAST_RETURN_IF_ERROR(
      CheckMatrix(spec.b_is_nk ? spec.k : spec.n, spec.ldb, spec.stride_b, name + " B"));
  HOLDFAST_RETURN_IF_ERROR(CheckMatrix(spec.n, spec.ldd, spec.stride_d, name + " D"));
  if (spec.batch > 1 && spec.stride_d == 0) return Invalid(name, "batches write over each other");
  return absl::OkStatus();
}

absl::Status CheckOperands(const GemmPlan& plan, const GemmOperands& operands) {
  const GemmSpec& spec = plan.spec();
  if (!operands.a || !operands.b || !operands.d) return Invalid(spec.name, "null gemm operand");
  if (operands.a.value % DTypeBytes(spec.in) != 0 || operands.b.value % DTypeBytes(spec.in) != 0 ||
      operands.d.value % DTypeBytes(spec.out) != 0) {
    return Invalid(spec.name, "misaligned gemm operand");
  }
  if (plan.workspace_bytes() == 0) return absl::OkStatus();
  if (!operands.workspace || operands.workspace.value % 256 != 0) {
    return MakeError(
        {.kind = ErrorKind::kInvalidArgument, .object = spec.name, .need = plan.workspace_bytes()},
        "gemm workspace is missing or not 256-byte aligned");
  }
  return absl::OkStatus();
}

}  // namespace

// -- Address space and physical memory ------------------------------------------------------------

absl::StatusOr<AddressRange> Device::ReserveAddress(std::uint64_t bytes, DeviceAddress hint) {
  if (bytes == 0) return Invalid("reservation", "zero bytes");
  if (bytes > std::numeric_limits<std::uint64_t>::max() - info_.granularity) {
    return Invalid("reservation", "does not fit 64 bits");
  }
  HOLDFAST_RETURN_IF_ERROR(CheckMultiple(hint.value, info_.granularity, "reservation hint"));
  return Pass(calls_, Call::kReserveAddress,
              [&] { return DoReserveAddress(AlignUp(bytes, info_.granularity), hint); });
}

absl::Status Device::FreeAddress(AddressRange range) {
  return Pass(calls_, Call::kFreeAddress, [&] { return DoFreeAddress(range); });
}

absl::StatusOr<ChunkHandle> Device::CreateChunk(std::uint64_t bytes, const ChunkOptions& options) {
  if (bytes == 0) return Invalid("chunk", "zero bytes");
  HOLDFAST_RETURN_IF_ERROR(CheckMultiple(bytes, info_.granularity, "chunk size"));
  return Pass(calls_, Call::kCreateChunk, [&] { return DoCreateChunk(bytes, options); });
}

absl::Status Device::ReleaseChunk(ChunkHandle chunk) {
  if (!chunk) return Invalid("chunk", "no chunk");
  return Pass(calls_, Call::kReleaseChunk, [&] { return DoReleaseChunk(chunk); });
}

absl::StatusOr<FileDescriptor> Device::ExportChunk(ChunkHandle chunk) {
  if (!chunk) return Invalid("chunk", "no chunk");
  return Pass(calls_, Call::kExportChunk, [&] { return DoExportChunk(chunk); });
}

absl::StatusOr<ChunkHandle> Device::ImportChunk(const FileDescriptor& file, std::uint64_t bytes) {
  if (!file) return Invalid("imported chunk", "no file");
  if (bytes == 0) return Invalid("imported chunk", "zero bytes");
  HOLDFAST_RETURN_IF_ERROR(CheckMultiple(bytes, info_.granularity, "imported chunk size"));
  return Pass(calls_, Call::kImportChunk, [&] { return DoImportChunk(file.get(), bytes); });
}

absl::Status Device::Map(DeviceAddress address, std::uint64_t bytes, ChunkHandle chunk) {
  if (!chunk) return Invalid("mapping", "no chunk");
  HOLDFAST_RETURN_IF_ERROR(CheckMappable({address, bytes}, info_.granularity, "mapping"));
  std::lock_guard<std::mutex> lock(mapping_lock_);
  return Pass(calls_, Call::kMap, [&]() -> absl::Status {
    HOLDFAST_RETURN_IF_ERROR(DoMap(address, bytes, chunk));
    mapping_bases_.insert(address);
    return absl::OkStatus();
  });
}

absl::Status Device::Unmap(AddressRange range) {
  HOLDFAST_RETURN_IF_ERROR(CheckMappable(range, info_.granularity, "unmapping"));
  std::lock_guard<std::mutex> lock(mapping_lock_);
  const auto first = mapping_bases_.lower_bound(range.base);
  const auto last = mapping_bases_.lower_bound(range.end());
  // A driver may let this pass; here it is always a mistake of the caller's books.
  if (first == last) return Invalid("unmapping", "nothing begins in the range");
  HOLDFAST_RETURN_IF_ERROR(calls_.Enter(Call::kUnmap));
  HOLDFAST_RETURN_IF_ERROR(DoUnmap(range));
  for (auto mapping = first; mapping != last; ++mapping) calls_.Succeeded(Call::kUnmap);
  mapping_bases_.erase(first, last);
  return absl::OkStatus();
}

absl::Status Device::SetAccess(AddressRange range, Access access) {
  HOLDFAST_RETURN_IF_ERROR(CheckMappable(range, info_.granularity, "access"));
  return Pass(calls_, Call::kSetAccess, [&] { return DoSetAccess(range, access); });
}

absl::StatusOr<HostBuffer> Device::AllocateHost(std::uint64_t bytes, HostMemoryKind kind) {
  if (bytes == 0) return Invalid("host buffer", "zero bytes");
  HOLDFAST_ASSIGN_OR_RETURN(std::byte * data, Pass(calls_, Call::kAllocateHost,
                                                   [&] { return DoAllocateHost(bytes, kind); }));
  return HostBuffer(this, data, bytes, kind);
}

HostBuffer::HostBuffer(HostBuffer&& other) noexcept
    : device_(std::exchange(other.device_, nullptr)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      kind_(other.kind_) {}

HostBuffer& HostBuffer::operator=(HostBuffer&& other) noexcept {
  // The old buffer goes when `taken` does.
  HostBuffer taken(std::move(other));
  std::swap(device_, taken.device_);
  std::swap(data_, taken.data_);
  std::swap(size_, taken.size_);
  std::swap(kind_, taken.kind_);
  return *this;
}

HostBuffer::~HostBuffer() {
  if (device_ == nullptr) return;
  // A destructor has nobody to tell: an injected failure fires once, so the second attempt goes
  // through.
  for (int attempt = 0; attempt < 2; ++attempt) {
    const absl::Status status =
        Pass(device_->calls_, Call::kFreeHost, [&] { return device_->DoFreeHost(data_, kind_); });
    if (status.ok()) return;
  }
}

// -- Streams and work -----------------------------------------------------------------------------

absl::StatusOr<std::unique_ptr<Stream>> Device::CreateStream(std::string name) {
  return Pass(calls_, Call::kCreateStream, [&] { return DoCreateStream(std::move(name)); });
}

absl::Status Device::Synchronize(Stream& stream) {
  return SynchronizeBy(stream, std::chrono::steady_clock::time_point::max());
}

absl::Status Device::SynchronizeBy(Stream& stream, std::chrono::steady_clock::time_point deadline) {
  return Pass(calls_, Call::kSynchronize, [&] { return DoSynchronize(stream, deadline); });
}

absl::StatusOr<std::unique_ptr<Event>> Device::CreateEvent() {
  return Pass(calls_, Call::kCreateEvent, [&] { return DoCreateEvent(); });
}

absl::Status Device::Record(Event& event, Stream& stream) {
  return Pass(calls_, Call::kRecordEvent, [&] { return DoRecord(event, stream); });
}

absl::Status Device::Wait(Stream& stream, Event& event) {
  return Pass(calls_, Call::kWaitEvent, [&] { return DoWait(stream, event); });
}

absl::Status Device::SynchronizeBy(Event& event, std::chrono::steady_clock::time_point deadline) {
  return Pass(calls_, Call::kSynchronize, [&] { return DoSynchronizeEvent(event, deadline); });
}

absl::Status Device::Launch(Stream& stream, const Op& op, const LaunchShape& shape,
                            const void* params) {
  if (params == nullptr && op.params_bytes != 0) return Invalid(op.name, "no parameters");
  for (const Dim3& dim : {shape.grid, shape.block}) {
    if (dim.x == 0 || dim.y == 0 || dim.z == 0) return Invalid(op.name, "empty grid or block");
  }
  return Pass(calls_, Call::kLaunch, [&] { return DoLaunch(stream, op, shape, params); });
}

absl::Status Device::CopyToDevice(Stream& stream, DeviceAddress to, const void* from,
                                  std::uint64_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  const CopyView copy =
      MakeCopy(CopySide::kDevice, to.value, CopySide::kHost, AddressOf(from), bytes);
  HOLDFAST_RETURN_IF_ERROR(CheckCopy(copy));
  return Pass(calls_, Call::kCopy, [&] { return DoCopy(stream, copy); });
}

absl::Status Device::CopyToHost(Stream& stream, void* to, DeviceAddress from, std::uint64_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  const CopyView copy =
      MakeCopy(CopySide::kHost, AddressOf(to), CopySide::kDevice, from.value, bytes);
  HOLDFAST_RETURN_IF_ERROR(CheckCopy(copy));
  return Pass(calls_, Call::kCopy, [&] { return DoCopy(stream, copy); });
}

absl::Status Device::CopyOnDevice(Stream& stream, DeviceAddress to, DeviceAddress from,
                                  std::uint64_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  const CopyView copy = MakeCopy(CopySide::kDevice, to.value, CopySide::kDevice, from.value, bytes);
  HOLDFAST_RETURN_IF_ERROR(CheckCopy(copy));
  return Pass(calls_, Call::kCopy, [&] { return DoCopy(stream, copy); });
}

absl::Status Device::Fill(Stream& stream, DeviceAddress to, std::uint8_t value,
                          std::uint64_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  HOLDFAST_RETURN_IF_ERROR(CheckSpan(to.value, bytes, "fill destination"));
  const FillView fill{.destination = to.value, .bytes = bytes, .value = value};
  return Pass(calls_, Call::kFill, [&] { return DoFill(stream, fill); });
}

absl::Status Device::HashLeaves(Stream& stream, AddressRange range, Hash128* out) {
  if (range.bytes == 0) return absl::OkStatus();
  HOLDFAST_RETURN_IF_ERROR(CheckSpan(range.base.value, range.bytes, "hash range"));
  if (range.base.value % 8 != 0) return Invalid("hash range", "base is not 8-byte aligned");
  if (out == nullptr) return Invalid("hash range", "no place for the hashes");
  return Pass(calls_, Call::kHash, [&] { return DoHashLeaves(stream, range, out); });
}

absl::Status Device::HostFunction(Stream& stream, void (*function)(void*), void* argument) {
  if (function == nullptr) return Invalid("host function", "null");
  return Pass(calls_, Call::kHostFunction,
              [&] { return DoHostFunction(stream, function, argument); });
}

// -- Matrix products ------------------------------------------------------------------------------

absl::StatusOr<std::unique_ptr<GemmPlan>> Device::PlanGemm(const GemmSpec& spec) {
  HOLDFAST_RETURN_IF_ERROR(CheckGemm(spec));
  return Pass(calls_, Call::kPlanGemm, [&] { return DoPlanGemm(spec); });
}

absl::Status Device::Gemm(Stream& stream, const GemmPlan& plan, const GemmOperands& operands) {
  HOLDFAST_RETURN_IF_ERROR(CheckOperands(plan, operands));
  return Pass(calls_, Call::kGemm, [&] { return DoGemm(stream, plan, operands); });
}

// -- Graphs ---------------------------------------------------------------------------------------

absl::Status Device::BeginCapture(Stream& stream) {
  return Pass(calls_, Call::kBeginCapture, [&] { return DoBeginCapture(stream); });
}

absl::StatusOr<std::unique_ptr<CapturedGraph>> Device::EndCapture(Stream& stream) {
  if (absl::Status injected = calls_.Enter(Call::kEndCapture); !injected.ok()) {
    // The stream has to be usable again even so: the capture ends, and what it recorded is dropped.
    DoEndCapture(stream).status().IgnoreError();
    return injected;
  }
  absl::StatusOr<std::unique_ptr<CapturedGraph>> graph = DoEndCapture(stream);
  if (graph.ok()) calls_.Succeeded(Call::kEndCapture);
  return graph;
}

absl::StatusOr<std::unique_ptr<ExecutableGraph>> Device::Instantiate(const CapturedGraph& graph) {
  return Pass(calls_, Call::kInstantiate, [&] { return DoInstantiate(graph); });
}

absl::Status Device::LaunchGraph(Stream& stream, ExecutableGraph& graph) {
  return Pass(calls_, Call::kLaunchGraph, [&] { return DoLaunchGraph(stream, graph); });
}

}  // namespace holdfast
