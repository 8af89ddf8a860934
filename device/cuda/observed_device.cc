#include "device/cuda/observed_device.h"

#include <array>
#include <utility>

#include "absl/strings/str_format.h"
#include "device/cuda/cuda_context.h"
#include "device/cuda/driver_table.h"
#include "device/cuda/function_layouts.h"
#include "device/cuda/graph_view.h"

namespace holdfast {
namespace {

absl::Status OnlyLooks(const char* what) {
  return MakeError({.kind = ErrorKind::kUnsupported, .object = what},
                   "an observed device is read, never used");
}

// Somebody else's graph, and nothing is made current to read it.
class ObservedGraph final : public CapturedGraph {
 public:
  ObservedGraph(const CudaContext& context, FunctionLayouts& layouts, CUgraph graph)
      : context_(context), layouts_(layouts), graph_(graph) {}
  absl::StatusOr<GraphView> View() const override { return ReadGraph(context_, layouts_, graph_); }
  void* native() override { return graph_; }

 private:
  const CudaContext& context_;
  FunctionLayouts& layouts_;
  CUgraph graph_;
};

class ObservedDevice final : public Device {
 public:
  ObservedDevice(const DriverTable& driver, AddressBook book)
      : context_(CudaContext::ForReading(driver)), book_(std::move(book)) {
    set_info(
        {.name = "observed",
         .spec = "cuda",
         .is_cuda = true,
         .driver = absl::StrFormat("%d.%d", driver.version / 1000, driver.version % 1000 / 10)});
  }

 private:
  AddressState DoQuery(DeviceAddress address) const override {
    if (const auto known = book_(address); known.has_value()) return *known;
    enum { kMapped, kType, kCount };
    std::array<CUpointer_attribute, kCount> attributes = {CU_POINTER_ATTRIBUTE_MAPPED,
                                                          CU_POINTER_ATTRIBUTE_MEMORY_TYPE};
    // Wide enough for any of them, whatever the driver writes.
    std::array<std::uint64_t, kCount> values = {};
    std::array<void*, kCount> slots = {&values[kMapped], &values[kType]};
    if (context_.driver().PointerGetAttributes(kCount, attributes.data(), slots.data(),
                                               address.value) != CUDA_SUCCESS) {
      return {};
    }
    const bool host = values[kType] == CU_MEMORYTYPE_HOST;
    return {.mapped = values[kMapped] != 0 || host, .host = host};
  }
  absl::StatusOr<std::unique_ptr<CapturedGraph>> DoAdoptGraph(void* graph) override {
    // A function's handle may be another function's after its module was unloaded, which nobody
    // tells an observer: names and layouts are kept for one graph.
    layouts_ = std::make_unique<FunctionLayouts>(&context_);
    return std::make_unique<ObservedGraph>(context_, *layouts_, static_cast<CUgraph>(graph));
  }

  absl::StatusOr<AddressRange> DoReserveAddress(std::uint64_t, DeviceAddress) override {
    return OnlyLooks("reservation");
  }
  absl::Status DoFreeAddress(AddressRange) override { return OnlyLooks("reservation"); }
  absl::StatusOr<ChunkHandle> DoCreateChunk(std::uint64_t, const ChunkOptions&) override {
    return OnlyLooks("chunk");
  }
  absl::Status DoReleaseChunk(ChunkHandle) override { return OnlyLooks("chunk"); }
  absl::StatusOr<FileDescriptor> DoExportChunk(ChunkHandle) override { return OnlyLooks("chunk"); }
  absl::StatusOr<ChunkHandle> DoImportChunk(int, std::uint64_t) override {
    return OnlyLooks("chunk");
  }
  absl::Status DoMap(DeviceAddress, std::uint64_t, ChunkHandle) override {
    return OnlyLooks("mapping");
  }
  absl::Status DoUnmap(AddressRange) override { return OnlyLooks("mapping"); }
  absl::Status DoSetAccess(AddressRange, Access) override { return OnlyLooks("mapping"); }
  absl::StatusOr<MemoryUse> DoMemory() const override { return OnlyLooks("memory"); }
  absl::StatusOr<std::byte*> DoAllocateHost(std::uint64_t, HostMemoryKind) override {
    return OnlyLooks("host memory");
  }
  absl::Status DoFreeHost(std::byte*, HostMemoryKind) override { return OnlyLooks("host memory"); }
  absl::Status DoReleaseLocalMemory() override { return OnlyLooks("local memory"); }
  absl::Status DoRestoreLocalMemory() override { return OnlyLooks("local memory"); }
  absl::StatusOr<std::unique_ptr<Stream>> DoCreateStream(std::string) override {
    return OnlyLooks("stream");
  }
  absl::Status DoSynchronize(Stream&, std::chrono::steady_clock::time_point) override {
    return OnlyLooks("stream");
  }
  absl::StatusOr<std::unique_ptr<Event>> DoCreateEvent() override { return OnlyLooks("event"); }
  absl::Status DoRecord(Event&, Stream&) override { return OnlyLooks("event"); }
  absl::Status DoWait(Stream&, Event&) override { return OnlyLooks("event"); }
  absl::Status DoSynchronizeEvent(Event&, std::chrono::steady_clock::time_point) override {
    return OnlyLooks("event");
  }
  absl::Status DoLaunch(Stream&, const Op&, const LaunchShape&, const void*) override {
    return OnlyLooks("launch");
  }
  absl::Status DoCopy(Stream&, const CopyView&) override { return OnlyLooks("copy"); }
  absl::Status DoFill(Stream&, const FillView&) override { return OnlyLooks("fill"); }
  absl::Status DoHashLeaves(Stream&, AddressRange, Hash128*) override { return OnlyLooks("hash"); }
  absl::Status DoScanWords(Stream&, AddressRange, WordScan*) override { return OnlyLooks("scan"); }
  absl::Status DoHostFunction(Stream&, void (*)(void*), void*) override {
    return OnlyLooks("host function");
  }
  absl::StatusOr<std::unique_ptr<GemmPlan>> DoPlanGemm(const GemmSpec&) override {
    return OnlyLooks("gemm");
  }
  absl::Status DoGemm(Stream&, const GemmPlan&, const GemmOperands&) override {
    return OnlyLooks("gemm");
  }
  absl::Status DoBeginCapture(Stream&, LegacyStream) override { return OnlyLooks("capture"); }
  absl::StatusOr<std::unique_ptr<CapturedGraph>> DoEndCapture(Stream&) override {
    return OnlyLooks("capture");
  }
  absl::StatusOr<std::unique_ptr<ExecutableGraph>> DoInstantiate(const CapturedGraph&) override {
    return OnlyLooks("graph");
  }
  absl::Status DoLaunchGraph(Stream&, ExecutableGraph&) override { return OnlyLooks("graph"); }
  BareLaunch DoGetBareLaunch(Stream&, ExecutableGraph&) override { return {}; }

  const CudaContext& context_;
  const AddressBook book_;
  std::unique_ptr<FunctionLayouts> layouts_;
};

}  // namespace

// Never destroyed: it holds nothing that could be given back.
const CudaContext& CudaContext::ForReading(const DriverTable& driver) {
  static const CudaContext& context =
      *new CudaContext(&driver, /*device=*/0, /*context=*/nullptr, "observed");
  return context;
}

absl::StatusOr<std::unique_ptr<Device>> ObserveCudaDriver(AddressBook book) {
  HOLDFAST_ASSIGN_OR_RETURN(const DriverTable* driver, LoadDriver());
  return std::make_unique<ObservedDevice>(*driver, std::move(book));
}

}  // namespace holdfast
