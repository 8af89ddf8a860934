// Puts the parts of this folder behind the Device contract. What is decided here is only what each
// call needs before it may reach them: the context current, and no capture where none is allowed.
#include "device/cuda/cuda_device.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "device/cuda/address_space.h"
#include "device/cuda/cuda_context.h"
#include "device/cuda/cuda_error.h"
#include "device/cuda/cuda_event.h"
#include "device/cuda/cuda_graph.h"
#include "device/cuda/function_layouts.h"
#include "device/cuda/gemm.h"
#include "device/cuda/kernel_launch.h"
#include "device/cuda/kernels.h"
#include "device/cuda/local_memory.h"
#include "device/cuda/nvml.h"
#include "device/cuda/pageable_memory.h"
#include "device/cuda/pinned_memory.h"
#include "device/cuda/streams.h"

namespace holdfast {
namespace {

constexpr char kHashName[] = "hash_leaves";

cudaMemcpyKind CopyKind(const CopyView& copy) {
  const bool from_host = copy.source_side == CopySide::kHost;
  const bool to_host = copy.destination_side == CopySide::kHost;
  if (copy.source_side == CopySide::kUnified || copy.destination_side == CopySide::kUnified) {
    return cudaMemcpyDefault;
  }
  if (from_host) return to_host ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice;
  return to_host ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice;
}

class CudaDevice final : public Device {
 public:
  static absl::StatusOr<std::unique_ptr<Device>> Open(int ordinal);

  ~CudaDevice() override {
    // The members' destructors want it; if it is lost, so is what they would give back.
    context_->MakeCurrent().IgnoreError();
  }

 private:
  explicit CudaDevice(std::unique_ptr<CudaContext> context)
      : context_(std::move(context)),
        address_space_(context_.get()),
        local_memory_(context_.get()),
        layouts_(context_.get()) {}

  absl::Status Start(int ordinal);

  absl::StatusOr<AddressRange> DoReserveAddress(std::uint64_t bytes, DeviceAddress hint) override {
    HOLDFAST_RETURN_IF_ERROR(context_->MakeCurrent());
    const RelaxedCaptureScope relaxed;
    return address_space_.Reserve(bytes, hint);
  }
  absl::Status DoFreeAddress(AddressRange range) override {
    HOLDFAST_RETURN_IF_ERROR(context_->MakeCurrent());
    const RelaxedCaptureScope relaxed;
    return address_space_.Free(range);
  }
  absl::StatusOr<ChunkHandle> DoCreateChunk(std::uint64_t bytes,
                                            const ChunkOptions& options) override {
    HOLDFAST_RETURN_IF_ERROR(context_->MakeCurrent());
    const RelaxedCaptureScope relaxed;
    return address_space_.Create(bytes, options);
  }
  absl::StatusOr<FileDescriptor> DoExportChunk(ChunkHandle chunk) override {
    HOLDFAST_RETURN_IF_ERROR(context_->MakeCurrent());
    const RelaxedCaptureScope relaxed;
    return address_space_.Export(chunk);
  }
  absl::StatusOr<ChunkHandle> DoImportChunk(int file, std::uint64_t bytes) override {
    HOLDFAST_RETURN_IF_ERROR(context_->MakeCurrent());
    const RelaxedCaptureScope relaxed;
    return address_space_.Import(file, bytes);
  }
  absl::Status DoReleaseChunk(ChunkHandle chunk) override {
    HOLDFAST_RETURN_IF_ERROR(context_->MakeCurrent());
    const RelaxedCaptureScope relaxed;
    return address_space_.Release(chunk);
  }
  absl::Status DoMap(DeviceAddress address, std::uint64_t bytes, ChunkHandle chunk) override {
    HOLDFAST_RETURN_IF_ERROR(context_->MakeCurrent());
    const RelaxedCaptureScope relaxed;
    return address_space_.Map(address, bytes, chunk);
  }
  absl::Status DoUnmap(AddressRange range) override {
    HOLDFAST_RETURN_IF_ERROR(context_->MakeCurrent());
    const RelaxedCaptureScope relaxed;
    return address_space_.Unmap(range);
  }
  absl::Status DoSetAccess(AddressRange range, Access access) override {
    HOLDFAST_RETURN_IF_ERROR(context_->MakeCurrent());
    const RelaxedCaptureScope relaxed;
    return address_space_.SetAccess(range, access);
  }
  AddressState DoQuery(DeviceAddress address) const override {
    if (const auto pinned = pinned_memory_.Query(address); pinned) return *pinned;
    if (!context_->MakeCurrent().ok()) return {};
    return address_space_.Query(address);
  }
  absl::StatusOr<MemoryUse> DoMemory() const override;

  absl::StatusOr<std::byte*> DoAllocateHost(std::uint64_t bytes, HostMemoryKind kind) override {
    if (kind == HostMemoryKind::kPageable) return pageable_memory_.Allocate(bytes);
    HOLDFAST_RETURN_IF_ERROR(context_->MakeCurrent());
    const RelaxedCaptureScope relaxed;
    return pinned_memory_.Allocate(bytes);
  }
  absl::Status DoFreeHost(std::byte* data, HostMemoryKind kind) override {
    if (kind == HostMemoryKind::kPageable) return pageable_memory_.Free(data);
    HOLDFAST_RETURN_IF_ERROR(context_->MakeCurrent());
    const RelaxedCaptureScope relaxed;
    return pinned_memory_.Free(data);
  }

  absl::Status DoReleaseLocalMemory() override {
    HOLDFAST_RETURN_IF_ERROR(context_->MakeCurrent());
    const RelaxedCaptureScope relaxed;
    return local_memory_.Release();
  }
  absl::Status DoRestoreLocalMemory() override {
    HOLDFAST_RETURN_IF_ERROR(context_->MakeCurrent());
    const RelaxedCaptureScope relaxed;
    return local_memory_.Restore();
  }

  absl::StatusOr<std::unique_ptr<Stream>> DoCreateStream(std::string name) override {
    HOLDFAST_RETURN_IF_ERROR(context_->MakeCurrent());
    return CudaStream::Create(context_.get(), std::move(name));
  }
  absl::Status DoSynchronize(Stream& stream,
                             std::chrono::steady_clock::time_point deadline) override {
    HOLDFAST_RETURN_IF_ERROR(context_->MakeCurrent());
    return AsCuda(stream).WaitUntil(deadline);
  }

  absl::StatusOr<std::unique_ptr<Event>> DoCreateEvent() override {
    HOLDFAST_RETURN_IF_ERROR(context_->MakeCurrent());
    return CudaEvent::Create(context_.get());
  }
  absl::Status DoRecord(Event& event, Stream& stream) override {
    HOLDFAST_RETURN_IF_ERROR(context_->MakeCurrent());
    HOLDFAST_RETURN_IF_ERROR(AsCuda(stream).RefuseInCapture("an event"));
    return ToStatus(cudaEventRecord(AsCuda(event).get(), AsCuda(stream).get()), "cudaEventRecord",
                    {.object = stream.name()});
  }
  absl::Status DoWait(Stream& stream, Event& event) override {
    HOLDFAST_RETURN_IF_ERROR(context_->MakeCurrent());
    HOLDFAST_RETURN_IF_ERROR(AsCuda(stream).RefuseInCapture("a wait for an event"));
    return ToStatus(cudaStreamWaitEvent(AsCuda(stream).get(), AsCuda(event).get(), 0),
                    "cudaStreamWaitEvent", {.object = stream.name()});
  }
  absl::Status DoSynchronizeEvent(Event& event,
                                  std::chrono::steady_clock::time_point deadline) override {
    HOLDFAST_RETURN_IF_ERROR(context_->MakeCurrent());
    return AsCuda(event).WaitUntil(deadline);
  }

  absl::Status DoLaunch(Stream& stream, const Op& op, const LaunchShape& shape,
                        const void* params) override {
    HOLDFAST_RETURN_IF_ERROR(context_->MakeCurrent());
    return launcher_.Launch(AsCuda(stream).get(), op.name, op.cuda, shape, params, op.params_bytes);
  }
  absl::Status DoCopy(Stream& stream, const CopyView& copy) override;
  absl::Status DoFill(Stream& stream, const FillView& fill) override;
  absl::Status DoHashLeaves(Stream& stream, AddressRange range, Hash128* out) override;
  absl::Status DoHostFunction(Stream& stream, void (*function)(void*), void* argument) override {
    HOLDFAST_RETURN_IF_ERROR(context_->MakeCurrent());
    return ToStatus(cudaLaunchHostFunc(AsCuda(stream).get(), function, argument),
                    "cudaLaunchHostFunc", {.object = stream.name()});
  }

  absl::StatusOr<std::unique_ptr<GemmPlan>> DoPlanGemm(const GemmSpec& spec) override {
    HOLDFAST_RETURN_IF_ERROR(context_->MakeCurrent());
    return gemm_.Plan(spec);
  }
  absl::Status DoGemm(Stream& stream, const GemmPlan& plan, const GemmOperands& operands) override {
    HOLDFAST_RETURN_IF_ERROR(context_->MakeCurrent());
    const RelaxedCaptureScope relaxed;  // a first run loads code
    return gemm_.Run(plan, operands, AsCuda(stream).get());
  }

  absl::Status DoBeginCapture(Stream& stream) override {
    HOLDFAST_RETURN_IF_ERROR(context_->MakeCurrent());
    return AsCuda(stream).BeginCapture();
  }
  absl::StatusOr<std::unique_ptr<CapturedGraph>> DoEndCapture(Stream& stream) override {
    HOLDFAST_RETURN_IF_ERROR(context_->MakeCurrent());
    HOLDFAST_ASSIGN_OR_RETURN(const cudaGraph_t graph, AsCuda(stream).EndCapture());
    return std::make_unique<CudaCapturedGraph>(context_.get(), &layouts_, graph);
  }
  absl::StatusOr<std::unique_ptr<ExecutableGraph>> DoInstantiate(
      const CapturedGraph& graph) override {
    HOLDFAST_RETURN_IF_ERROR(context_->MakeCurrent());
    return CudaExecutableGraph::Create(
        context_.get(), static_cast<const CudaCapturedGraph&>(graph).get(), *upload_stream_);
  }
  absl::Status DoLaunchGraph(Stream& stream, ExecutableGraph& graph) override {
    HOLDFAST_RETURN_IF_ERROR(context_->MakeCurrent());
    HOLDFAST_RETURN_IF_ERROR(AsCuda(stream).RefuseInCapture("a graph launch"));
    const cudaError_t code =
        cudaGraphLaunch(static_cast<CudaExecutableGraph&>(graph).get(), AsCuda(stream).get());
    if (code == cudaSuccess) return absl::OkStatus();
    return ToStatus(code, "cudaGraphLaunch", {.object = stream.name()});
  }

  // Destroyed in reverse order: the context last.
  std::unique_ptr<CudaContext> context_;
  AddressSpace address_space_;
  LocalMemory local_memory_;
  PinnedMemory pinned_memory_;
  PageableMemory pageable_memory_;
  KernelLauncher launcher_;
  FunctionLayouts layouts_;
  GemmLibrary gemm_;
  std::unique_ptr<CudaStream> upload_stream_;
  std::uint32_t hash_blocks_per_leaf_ = 1;
  std::string pci_bus_id_;  // empty if the driver does not say
};

absl::StatusOr<std::unique_ptr<Device>> CudaDevice::Open(int ordinal) {
  HOLDFAST_ASSIGN_OR_RETURN(std::unique_ptr<CudaContext> context, CudaContext::Retain(ordinal));
  std::unique_ptr<CudaDevice> device(new CudaDevice(std::move(context)));
  HOLDFAST_RETURN_IF_ERROR(device->Start(ordinal));
  return device;
}

absl::Status CudaDevice::Start(int ordinal) {
  const DriverTable& driver = context_->driver();
  const CUdevice device = context_->device();
  const std::string& spec = context_->name();

  HOLDFAST_ASSIGN_OR_RETURN(
      const int has_vmm,
      context_->Attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED));
  if (has_vmm == 0) {
    return MakeError({.kind = ErrorKind::kUnsupported, .object = spec},
                     "the GPU has no virtual memory management");
  }
  std::array<char, 256> name = {};
  HOLDFAST_RETURN_IF_ERROR(
      ToStatus(driver.DeviceGetName(name.data(), static_cast<int>(name.size() - 1), device),
               "cuDeviceGetName", {.object = spec}));
  std::size_t capacity = 0;
  HOLDFAST_RETURN_IF_ERROR(
      ToStatus(driver.DeviceTotalMem(&capacity, device), "cuDeviceTotalMem", {.object = spec}));
  HOLDFAST_ASSIGN_OR_RETURN(const int multiprocessors,
                            context_->Attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  HOLDFAST_ASSIGN_OR_RETURN(const std::uint64_t granularity, address_space_.Granularity());
  set_info({.name = name.data(),
            .spec = absl::StrFormat("cuda:%d", ordinal),
            .is_cuda = true,
            .granularity = granularity,
            .capacity_bytes = capacity,
            .multiprocessors = multiprocessors,
            .driver = absl::StrFormat("%d.%d", driver.version / 1000, driver.version % 1000 / 10)});

  std::array<char, 32> bus = {};
  if (driver.DeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size() - 1), device) ==
      CUDA_SUCCESS) {
    pci_bus_id_ = bus.data();
  }
  HOLDFAST_ASSIGN_OR_RETURN(upload_stream_, CudaStream::Create(context_.get(), spec + " uploads"));
  // Loaded now: a first use during a sleep would wait for whatever runs. It also shows at once
  // whether this build holds code for the GPU.
  const absl::Status loaded =
      launcher_.Prepare(kHashName, HashLeavesFunction(), sizeof(HashLeavesParams));
  if (loaded.ok()) {
    cudaFuncAttributes attributes = {};
    HOLDFAST_RETURN_IF_ERROR(ToStatus(cudaFuncGetAttributes(&attributes, HashLeavesFunction()),
                                      "cudaFuncGetAttributes", {.object = kHashName}));
    hash_blocks_per_leaf_ = std::max(1, attributes.requiredClusterWidth);
    return loaded;
  }
  const int code = GetErrorInfo(loaded).value_or(ErrorInfo{}).code;
  if (code == cudaErrorNoKernelImageForDevice || code == cudaErrorInvalidDeviceFunction) {
    return MakeError({.kind = ErrorKind::kUnsupported,
                      .object = spec,
                      .call = "cudaFuncGetParamInfo",
                      .code = code},
                     "this build holds no code for the GPU");
  }
  return loaded;
}

absl::StatusOr<MemoryUse> CudaDevice::DoMemory() const {
  HOLDFAST_RETURN_IF_ERROR(context_->MakeCurrent());
  const RelaxedCaptureScope relaxed;
  std::size_t free = 0;
  std::size_t total = 0;
  HOLDFAST_RETURN_IF_ERROR(ToStatus(context_->driver().MemGetInfo(&free, &total), "cuMemGetInfo",
                                    {.object = context_->name()}));
  return MemoryUse{.own_bytes = address_space_.own_bytes(),
                   .imported_bytes = address_space_.imported_bytes(),
                   .process_bytes = pci_bus_id_.empty() ? 0 : NvmlProcessBytes(pci_bus_id_),
                   .free_bytes = free};
}

absl::Status CudaDevice::DoCopy(Stream& stream, const CopyView& copy) {
  HOLDFAST_RETURN_IF_ERROR(context_->MakeCurrent());
  HOLDFAST_RETURN_IF_ERROR(
      address_space_.CheckAccess({{copy.source}, copy.bytes}, Access::kRead, "copy source"));
  HOLDFAST_RETURN_IF_ERROR(address_space_.CheckAccess({{copy.destination}, copy.bytes},
                                                      Access::kReadWrite, "copy destination"));
  // The driver would take any pageable memory, or record a pointer to it: ours stays while it is in
  // use, and is copied to or from at once.
  for (const auto& [side, address] : {std::pair{copy.source_side, copy.source},
                                      std::pair{copy.destination_side, copy.destination}}) {
    if (side != CopySide::kHost || DoQuery({address}).mapped) continue;
    if (!pageable_memory_.Holds({{address}, copy.bytes})) {
      return MakeError({.kind = ErrorKind::kInvalidArgument, .object = "copy"},
                       "host memory that no buffer of this device holds");
    }
    HOLDFAST_RETURN_IF_ERROR(AsCuda(stream).RefuseInCapture("a copy of pageable memory"));
  }
  return ToStatus(cudaMemcpyAsync(reinterpret_cast<void*>(copy.destination),
                                  reinterpret_cast<const void*>(copy.source), copy.bytes,
                                  CopyKind(copy), AsCuda(stream).get()),
                  "cudaMemcpyAsync", {.object = stream.name(), .need = copy.bytes});
}

absl::Status CudaDevice::DoFill(Stream& stream, const FillView& fill) {
  HOLDFAST_RETURN_IF_ERROR(context_->MakeCurrent());
  HOLDFAST_RETURN_IF_ERROR(address_space_.CheckAccess({{fill.destination}, fill.bytes},
                                                      Access::kReadWrite, "fill destination"));
  return ToStatus(
      cudaMemsetAsync(reinterpret_cast<void*>(fill.destination),
                      static_cast<int>(fill.value & 0xff), fill.bytes, AsCuda(stream).get()),
      "cudaMemsetAsync", {.object = stream.name(), .need = fill.bytes});
}

absl::Status CudaDevice::DoHashLeaves(Stream& stream, AddressRange range, Hash128* out) {
  HOLDFAST_RETURN_IF_ERROR(context_->MakeCurrent());
  HOLDFAST_RETURN_IF_ERROR(AsCuda(stream).RefuseInCapture("a hash"));
  HOLDFAST_RETURN_IF_ERROR(address_space_.CheckAccess(range, Access::kRead, "hash range"));
  const std::uint64_t leaves = (range.bytes + kHashLeafBytes - 1) / kHashLeafBytes;
  const DeviceAddress last_byte{reinterpret_cast<std::uint64_t>(out + leaves) - 1};
  if (!DoQuery({reinterpret_cast<std::uint64_t>(out)}).mapped || !DoQuery(last_byte).mapped) {
    return MakeError({.kind = ErrorKind::kInvalidArgument, .object = "hash output"},
                     "not memory the GPU reaches");
  }
  const HashLeavesParams params{.data = range.base.As<const std::uint8_t>(),
                                .bytes = range.bytes,
                                .out = out,
                                .blocks_per_leaf = hash_blocks_per_leaf_};
  const LaunchShape shape{.grid = {static_cast<std::uint32_t>(leaves) * hash_blocks_per_leaf_},
                          .block = {kHashBlockThreads}};
  return launcher_.Launch(AsCuda(stream).get(), kHashName, HashLeavesFunction(), shape, &params,
                          sizeof(params));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> OpenCudaDevice(int ordinal) {
  return CudaDevice::Open(ordinal);
}

}  // namespace holdfast
