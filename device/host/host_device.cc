#include "device/host/host_device.h"

#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "device/bytes.h"
#include "device/host/chunk_store.h"
#include "device/host/device_loss.h"
#include "device/host/fault_guard.h"
#include "device/host/host_event.h"
#include "device/host/host_gemm.h"
#include "device/host/host_memory.h"
#include "device/host/host_stream.h"
#include "device/host/work.h"

namespace holdfast {
namespace {

using Recorded = std::shared_ptr<const RecordedGraph>;

// The captured graphs of this process, by address: what AdoptGraph may be given.
class GraphRegistry {
 public:
  void Add(const void* graph, Recorded graph_of) {
    const std::lock_guard<std::mutex> lock(mutex_);
    graphs_[graph] = std::move(graph_of);
  }
  void Remove(const void* graph) {
    const std::lock_guard<std::mutex> lock(mutex_);
    graphs_.erase(graph);
  }
  Recorded Find(const void* graph) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = graphs_.find(graph);
    return found == graphs_.end() ? nullptr : found->second;
  }

 private:
  mutable std::mutex mutex_;
  std::map<const void*, Recorded> graphs_;
};

// Never destroyed: graphs may outlive static objects.
GraphRegistry& LiveGraphs() {
  static GraphRegistry& live = *new GraphRegistry;
  return live;
}

class HostCapturedGraph final : public CapturedGraph {
 public:
  explicit HostCapturedGraph(Recorded graph) : graph_(std::move(graph)) {
    LiveGraphs().Add(this, graph_);
  }
  ~HostCapturedGraph() override { LiveGraphs().Remove(this); }
  const RecordedGraph& graph() const { return *graph_; }
  void* native() override { return this; }

  absl::StatusOr<GraphView> View() const override {
    GraphView view;
    for (const Work& node : graph_->nodes) view.nodes.push_back(ViewOf(node));
    view.edges = graph_->edges;
    return view;
  }

 private:
  Recorded graph_;
};

class HostExecutableGraph final : public ExecutableGraph {
 public:
  explicit HostExecutableGraph(const RecordedGraph& graph) {
    std::vector<Work> nodes;
    for (const std::size_t node : graph.ReplayOrder()) nodes.push_back(graph.nodes[node]);
    nodes_ = std::make_shared<const std::vector<Work>>(std::move(nodes));
  }
  const std::shared_ptr<const std::vector<Work>>& nodes() const { return nodes_; }

 private:
  std::shared_ptr<const std::vector<Work>> nodes_;  // in the order of replay
};

absl::Status Foreign(const std::string& what) {
  return MakeError({.kind = ErrorKind::kInvalidArgument, .object = what}, "of another device");
}

class HostDevice final : public Device {
 public:
  HostDevice(ChunkStore chunks, const DeviceOptions& options)
      : memory_(std::move(chunks), options.host_pin_limit_bytes), costs_(options.host_driver) {
    DeviceInfo info;
    info.name = "host";
    info.spec = "host";
    info.granularity = kHostGranularity;
    info.capacity_bytes = options.host_capacity_bytes;
    info.multiprocessors = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    info.driver = "none";
    set_info(std::move(info));
  }

  HostMemory& memory() { return memory_; }

 private:
  absl::StatusOr<AddressRange> DoReserveAddress(std::uint64_t bytes, DeviceAddress hint) override {
    return memory_.Reserve(bytes, hint);
  }
  absl::Status DoFreeAddress(AddressRange range) override { return memory_.Free(range); }
  absl::StatusOr<ChunkHandle> DoCreateChunk(std::uint64_t bytes,
                                            const ChunkOptions& options) override {
    return memory_.CreateChunk(bytes, options);
  }
  absl::StatusOr<FileDescriptor> DoExportChunk(ChunkHandle chunk) override {
    return memory_.ExportChunk(chunk);
  }
  absl::StatusOr<ChunkHandle> DoImportChunk(int file, std::uint64_t bytes) override {
    return memory_.ImportChunk(file, bytes);
  }
  absl::Status DoReleaseChunk(ChunkHandle chunk) override { return memory_.ReleaseChunk(chunk); }
  absl::Status DoMap(DeviceAddress address, std::uint64_t bytes, ChunkHandle chunk) override {
    return memory_.Map(address, bytes, chunk);
  }
  absl::Status DoUnmap(AddressRange range) override { return memory_.Unmap(range); }
  absl::Status DoSetAccess(AddressRange range, Access access) override {
    return memory_.SetAccess(range, access);
  }
  AddressState DoQuery(DeviceAddress address) const override { return memory_.Query(address); }
  absl::StatusOr<MemoryUse> DoMemory() const override { return memory_.Use(); }
  absl::StatusOr<std::byte*> DoAllocateHost(std::uint64_t bytes, HostMemoryKind kind) override {
    return memory_.AllocateBuffer(bytes, kind);
  }
  absl::Status DoFreeHost(std::byte* data, HostMemoryKind) override {
    return memory_.FreeBuffer(data);
  }

  absl::Status DoReleaseLocalMemory() override {
    memory_.GiveFromDriver(costs_.local_memory_bytes);
    return absl::OkStatus();
  }
  absl::Status DoRestoreLocalMemory() override {
    return memory_.TakeForDriver(costs_.local_memory_bytes, "restore local memory");
  }

  absl::StatusOr<std::unique_ptr<Stream>> DoCreateStream(std::string name) override {
    HOLDFAST_RETURN_IF_ERROR(loss_.Check());
    return std::make_unique<HostStream>(std::move(name), memory_, loss_);
  }
  absl::Status DoSynchronize(Stream& stream,
                             std::chrono::steady_clock::time_point deadline) override {
    HOLDFAST_ASSIGN_OR_RETURN(HostStream * own, Own(stream));
    return own->WaitUntil(deadline);
  }

  absl::StatusOr<std::unique_ptr<Event>> DoCreateEvent() override {
    HOLDFAST_RETURN_IF_ERROR(loss_.Check());
    return std::make_unique<HostEvent>();
  }
  absl::Status DoRecord(Event& event, Stream& stream) override {
    HOLDFAST_ASSIGN_OR_RETURN(HostStream * own, Own(stream));
    return own->Record(static_cast<HostEvent&>(event).marks());
  }
  absl::Status DoWait(Stream& stream, Event& event) override {
    HOLDFAST_ASSIGN_OR_RETURN(HostStream * own, Own(stream));
    return own->Wait(static_cast<HostEvent&>(event).marks());
  }
  absl::Status DoSynchronizeEvent(Event& event,
                                  std::chrono::steady_clock::time_point deadline) override {
    const auto& marks = static_cast<HostEvent&>(event).marks();
    if (marks->captured().capture != nullptr) {
      return MakeError({.kind = ErrorKind::kUncapturable, .object = "event", .call = "synchronize"},
                       "the event marks a place in a capture");
    }
    if (!marks->WaitFor(marks->recorded(), deadline)) {
      return MakeError({.kind = ErrorKind::kDeadlineExceeded, .object = "event"},
                       "the work is still running");
    }
    return loss_.Check();
  }

  absl::Status DoLaunch(Stream& stream, const Op& op, const LaunchShape&,
                        const void* params) override {
    HOLDFAST_ASSIGN_OR_RETURN(HostStream * own, Own(stream));
    if (op.host == nullptr) {
      return MakeError({.kind = ErrorKind::kUnsupported, .object = op.name},
                       "the kernel has no host twin");
    }
    return own->Submit(KernelWork{op.name, op.host, ParameterBytes(params, op.params_bytes)});
  }
  absl::Status DoCopy(Stream& stream, const CopyView& copy) override {
    HOLDFAST_ASSIGN_OR_RETURN(HostStream * own, Own(stream));
    HOLDFAST_RETURN_IF_ERROR(loss_.Check());
    HOLDFAST_RETURN_IF_ERROR(CheckCopy(copy, own->IsCapturing() ? kRecorded : kRunNow));
    return own->Submit(copy);
  }
  absl::Status DoFill(Stream& stream, const FillView& fill) override {
    HOLDFAST_ASSIGN_OR_RETURN(HostStream * own, Own(stream));
    HOLDFAST_RETURN_IF_ERROR(loss_.Check());
    // A driver looks at a fill's memory when it runs or is instantiated, not when it is recorded.
    if (!own->IsCapturing()) HOLDFAST_RETURN_IF_ERROR(CheckFill(fill, kRunNow));
    return own->Submit(fill);
  }
  absl::Status DoHashLeaves(Stream& stream, AddressRange range, Hash128* out) override {
    HOLDFAST_ASSIGN_OR_RETURN(HostStream * own, Own(stream));
    HOLDFAST_RETURN_IF_ERROR(loss_.Check());
    HOLDFAST_RETURN_IF_ERROR(memory_.CheckDevice(range, Access::kRead, "hash range"));
    const std::uint64_t leaves = (range.bytes + kHashLeafBytes - 1) / kHashLeafBytes;
    HOLDFAST_RETURN_IF_ERROR(memory_.CheckPinned(
        {{reinterpret_cast<std::uint64_t>(out)}, leaves * sizeof(Hash128)}, "hash output"));
    return own->SubmitUncapturable(HashWork{range, out}, "hash");
  }
  absl::Status DoScanWords(Stream& stream, AddressRange data, WordScan* scan) override {
    HOLDFAST_ASSIGN_OR_RETURN(HostStream * own, Own(stream));
    HOLDFAST_RETURN_IF_ERROR(loss_.Check());
    HOLDFAST_RETURN_IF_ERROR(memory_.CheckDevice(data, Access::kRead, "scan range"));
    HOLDFAST_RETURN_IF_ERROR(memory_.CheckPinned(
        {{reinterpret_cast<std::uint64_t>(scan)}, sizeof(WordScan)}, "scan question"));
    return own->SubmitUncapturable(ScanWork{data, scan}, "scan");
  }
  absl::Status DoHostFunction(Stream& stream, void (*function)(void*), void* argument) override {
    HOLDFAST_ASSIGN_OR_RETURN(HostStream * own, Own(stream));
    return own->Submit(HostFunctionWork{function, argument});
  }

  absl::StatusOr<std::unique_ptr<GemmPlan>> DoPlanGemm(const GemmSpec& spec) override {
    std::lock_guard<std::mutex> lock(library_mutex_);
    if (!library_loaded_) {
      HOLDFAST_RETURN_IF_ERROR(memory_.TakeForDriver(costs_.library_bytes, "plan gemm"));
      library_loaded_ = true;
    }
    return PlanHostGemm(spec);
  }
  absl::Status DoGemm(Stream& stream, const GemmPlan& plan, const GemmOperands& operands) override {
    HOLDFAST_ASSIGN_OR_RETURN(HostStream * own, Own(stream));
    const Op& op = HostGemmOp();
    const HostGemmParams params = MakeHostGemmParams(plan.spec(), operands);
    return own->Submit(KernelWork{op.name, op.host, ParameterBytes(&params, sizeof(params))});
  }

  absl::Status DoBeginCapture(Stream& stream, LegacyStream) override {
    HOLDFAST_ASSIGN_OR_RETURN(HostStream * own, Own(stream));
    return own->BeginCapture();
  }
  absl::StatusOr<std::unique_ptr<CapturedGraph>> DoEndCapture(Stream& stream) override {
    HOLDFAST_ASSIGN_OR_RETURN(HostStream * own, Own(stream));
    HOLDFAST_ASSIGN_OR_RETURN(RecordedGraph recorded, own->EndCapture());
    return std::make_unique<HostCapturedGraph>(
        std::make_shared<const RecordedGraph>(std::move(recorded)));
  }
  absl::StatusOr<std::unique_ptr<CapturedGraph>> DoAdoptGraph(void* graph) override {
    Recorded recorded = LiveGraphs().Find(graph);
    if (recorded == nullptr) return Foreign("graph");
    return std::make_unique<HostCapturedGraph>(std::move(recorded));
  }
  absl::StatusOr<std::unique_ptr<ExecutableGraph>> DoInstantiate(
      const CapturedGraph& graph) override {
    HOLDFAST_RETURN_IF_ERROR(loss_.Check());
    const auto* own = dynamic_cast<const HostCapturedGraph*>(&graph);
    if (own == nullptr) return Foreign("graph");
    for (const Work& node : own->graph().nodes) {
      if (const auto* copy = std::get_if<CopyView>(&node)) {
        HOLDFAST_RETURN_IF_ERROR(CheckCopy(*copy, kRecorded));
      } else if (const auto* fill = std::get_if<FillView>(&node)) {
        HOLDFAST_RETURN_IF_ERROR(CheckFill(*fill, kRecorded));
      }
    }
    HOLDFAST_RETURN_IF_ERROR(
        memory_.TakeForDriver(own->graph().nodes.size() * costs_.node_bytes, "instantiate"));
    return std::make_unique<HostExecutableGraph>(own->graph());
  }
  absl::Status DoLaunchGraph(Stream& stream, ExecutableGraph& graph) override {
    HOLDFAST_ASSIGN_OR_RETURN(HostStream * own, Own(stream));
    const auto* executable = dynamic_cast<const HostExecutableGraph*>(&graph);
    if (executable == nullptr) return Foreign("graph");
    return own->SubmitUncapturable(GraphWork{executable->nodes()}, "graph launch");
  }
  BareLaunch DoGetBareLaunch(Stream& stream, ExecutableGraph& graph) override {
    const auto launch = [](void* executable, void* to) {
      const Work work = GraphWork{static_cast<HostExecutableGraph*>(executable)->nodes()};
      return static_cast<HostStream*>(to)->Submit(work).ok() ? 0 : 1;
    };
    return {.call = launch,
            .graph = static_cast<HostExecutableGraph*>(&graph),
            .stream = static_cast<HostStream*>(&stream)};
  }

  absl::StatusOr<HostStream*> Own(Stream& stream) const {
    auto* own = dynamic_cast<HostStream*>(&stream);
    if (own == nullptr || !own->BelongsTo(memory_)) return Foreign("stream " + stream.name());
    return own;
  }

  // Recorded copies and fills need mapped memory; what they may do to it shows when they run.
  // Recorded copies need pinned memory: a replay would not wait for pageable memory.
  enum Checked { kRunNow, kRecorded };

  absl::Status CheckSide(CopySide side, AddressRange range, Access access, Checked checked,
                         const char* what) const {
    if (side == CopySide::kDevice) return memory_.CheckDevice(range, access, what);
    return checked == kRunNow ? memory_.CheckBuffer(range, what) : memory_.CheckPinned(range, what);
  }
  absl::Status CheckCopy(const CopyView& copy, Checked checked) const {
    const bool now = checked == kRunNow;
    HOLDFAST_RETURN_IF_ERROR(CheckSide(copy.source_side, {{copy.source}, copy.bytes},
                                       now ? Access::kRead : Access::kNone, checked,
                                       "copy source"));
    return CheckSide(copy.destination_side, {{copy.destination}, copy.bytes},
                     now ? Access::kReadWrite : Access::kNone, checked, "copy destination");
  }
  absl::Status CheckFill(const FillView& fill, Checked checked) const {
    return memory_.CheckDevice({{fill.destination}, fill.bytes},
                               checked == kRunNow ? Access::kReadWrite : Access::kNone,
                               "fill destination");
  }

  HostMemory memory_;
  DeviceLoss loss_;
  const HostDriverCosts costs_;
  std::mutex library_mutex_;
  bool library_loaded_ = false;  // guarded by library_mutex_
};

}  // namespace

namespace {

absl::StatusOr<HostMemory*> HostMemoryOf(Device& device) {
  auto* const host = dynamic_cast<HostDevice*>(&device);
  if (host != nullptr) return &host->memory();
  return MakeError({.kind = ErrorKind::kUnsupported, .object = device.info().spec},
                   "only a host device pretends to have a neighbour");
}

}  // namespace

absl::Status TakeForNeighbour(Device& device, std::uint64_t bytes) {
  HOLDFAST_ASSIGN_OR_RETURN(HostMemory* const memory, HostMemoryOf(device));
  return memory->TakeForNeighbour(bytes);
}

absl::Status GiveFromNeighbour(Device& device, std::uint64_t bytes) {
  HOLDFAST_ASSIGN_OR_RETURN(HostMemory* const memory, HostMemoryOf(device));
  return memory->GiveFromNeighbour(bytes);
}

absl::StatusOr<std::unique_ptr<Device>> OpenHostDevice(const DeviceOptions& options) {
  const std::uint64_t capacity = options.host_capacity_bytes;
  if (capacity < kHostGranularity) {
    return MakeError({.kind = ErrorKind::kInvalidArgument,
                      .object = "host_capacity_bytes",
                      .need = kHostGranularity,
                      .have = capacity},
                     "less than one chunk");
  }
  InstallFaultHandlers();
  HOLDFAST_ASSIGN_OR_RETURN(ChunkStore chunks, ChunkStore::Create(capacity));
  const HostDriverCosts& costs = options.host_driver;
  HOLDFAST_RETURN_IF_ERROR(
      chunks.TakeForDriver(costs.context_bytes + costs.local_memory_bytes, "open"));
  return std::make_unique<HostDevice>(std::move(chunks), options);
}

}  // namespace holdfast
