// What a GPU is to Holdfast: address windows, physical chunks, access, streams, work, and captured
// graphs. One contract, two implementations (cuda/, host/), one conformance suite (tests/device).
//
// Public methods pass the call table (counting, fail-at-call-k) and then the implementation. All
// methods are thread-safe; work on one stream runs in the order it was enqueued. A method that
// fails leaves things as they were unless it says otherwise. Only this folder includes driver or OS
// memory headers.
#ifndef HOLDFAST_DEVICE_DEVICE_H_
#define HOLDFAST_DEVICE_DEVICE_H_

#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device/address.h"
#include "device/call_table.h"
#include "device/capture_watch.h"
#include "device/error.h"
#include "device/file_descriptor.h"
#include "device/gemm.h"
#include "device/hash.h"
#include "device/node_view.h"
#include "device/op.h"
#include "device/range_set.h"
#include "device/word_scan.h"

namespace holdfast {

struct DeviceInfo {
  std::string name;  // "host", or the GPU's name
  std::string spec;  // "host", "cuda:0": what OpenDevice takes
  bool is_cuda = false;
  std::uint64_t granularity = 0;     // chunk sizes and mapped addresses are multiples of it
  std::uint64_t capacity_bytes = 0;  // physical memory
  int multiprocessors = 0;           // host: threads usable at once
  std::string driver;                // version, or "none"
};

struct ChunkOptions {
  bool shareable = false;  // can be exported; fixed when the chunk is made
};

enum class Access { kNone, kRead, kReadWrite };

// One physical allocation. 0 is no chunk.
struct ChunkHandle {
  std::uint64_t id = 0;
  explicit operator bool() const { return id != 0; }
  bool operator==(const ChunkHandle&) const = default;
};

// What the device knows of an address. Never an error: an unknown address is simply not mapped.
struct AddressState {
  bool mapped = false;  // physical memory stands behind it (device or registered host memory)
  bool host = false;    // pinned host memory this device can reach
  Access access = Access::kNone;
  std::uint64_t generation = 0;  // changes with the physical pages; 0 if not mapped
  // Of an address that is not mapped: it lies in reserved address space; this device gave it back
  // (a reservation or a host buffer) and nobody has taken it since through this device.
  bool reserved = false;
  bool freed = false;
};

// The size of a driver's tensor map, as kernels are given it.
inline constexpr std::size_t kTensorMapBytes = 128;

struct MemoryUse {
  std::uint64_t own_bytes = 0;       // chunks this Device object made and holds
  std::uint64_t imported_bytes = 0;  // chunks it holds that others made: counted where they were
  std::uint64_t process_bytes =
      0;  // device memory of this process as the driver counts it; 0 if unknown
  std::uint64_t free_bytes = 0;  // free on the whole device now
};

// Pinned: copies run at the speed of the link, and kernels and captured copies may use it.
// Pageable: for copies that run at once, at a fraction of the speed; where the system refuses to
// pin.
enum class HostMemoryKind { kPinned, kPageable };

// Host memory made by a device, given back on destruction. Move-only.
class HostBuffer {
 public:
  HostBuffer() = default;
  HostBuffer(HostBuffer&& other) noexcept;
  HostBuffer& operator=(HostBuffer&& other) noexcept;
  ~HostBuffer();

  std::byte* data() const { return data_; }
  std::uint64_t size() const { return size_; }
  HostMemoryKind kind() const { return kind_; }

 private:
  friend class Device;
  HostBuffer(class Device* device, std::byte* data, std::uint64_t size, HostMemoryKind kind)
      : device_(device), data_(data), size_(size), kind_(kind) {}

  Device* device_ = nullptr;
  std::byte* data_ = nullptr;
  std::uint64_t size_ = 0;
  HostMemoryKind kind_ = HostMemoryKind::kPinned;
};

// An order of execution. Destruction waits for its work. Made by Device::CreateStream, which must
// outlive it.
class Stream {
 public:
  virtual ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  const std::string& name() const { return name_; }
  // The device that made it; null for one that a device uses inside.
  class Device* device() const {
    return device_;
  }
  // What CUDA libraries take: the cudaStream_t of a GPU's stream. Null on the host.
  virtual void* native() const { return nullptr; }

 protected:
  explicit Stream(std::string name) : name_(std::move(name)) {}

 private:
  friend class Device;
  std::string name_;
  class Device* device_ = nullptr;
};

// A point in the order of a stream. Made by Device::CreateEvent, which must outlive it.
class Event {
 public:
  virtual ~Event() = default;
};

// The template of a graph, as recorded. Readable; never runs.
class CapturedGraph {
 public:
  virtual ~CapturedGraph() = default;
  // The nodes as data. kUnreadable nodes appear as such; only a lost device makes this fail.
  virtual absl::StatusOr<GraphView> View() const = 0;
  // What AdoptGraph and other libraries take: the cudaGraph_t of a GPU's graph, or this object.
  virtual void* native() = 0;
};

// What can be launched. Keeps what it needs of its template.
class ExecutableGraph {
 public:
  // What making it took, in seconds.
  struct Times {
    double instantiate = 0;
    double upload = 0;
  };
  virtual ~ExecutableGraph() = default;
  const Times& times() const { return times_; }

 protected:
  Times times_;
};

// What a capture does about the legacy default stream, which it cannot record. Only a GPU has one.
enum class LegacyStream {
  // Work on it, by any thread of the process, fails and spoils the capture.
  kRefuse,
  // Nothing is seen: a step that uses it runs that part at once, and the graph lacks it.
  kIgnore,
};

// The launch of a graph as one plain call of the driver: what LaunchGraph costs beyond it is
// measured against this. Nothing is checked or counted. Valid while graph and stream live.
struct BareLaunch {
  int (*call)(void* graph, void* stream) = nullptr;
  void* graph = nullptr;
  void* stream = nullptr;
  int operator()() const { return call(graph, stream); }  // 0: launched
};

class Device {
 public:
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const DeviceInfo& info() const { return info_; }
  CallTable& calls() { return calls_; }

  // -- Address space and physical memory

  // Reserves `bytes` (rounded up to the granularity), at `hint` if the device honours it: compare
  // the result. Nothing is mapped; kAddressTaken or kDriver.
  absl::StatusOr<AddressRange> ReserveAddress(std::uint64_t bytes, DeviceAddress hint);
  // Gives back a whole reservation in which nothing is mapped.
  absl::Status FreeAddress(AddressRange range);
  // `bytes` is a positive multiple of the granularity. kOutOfMemory with need and have.
  absl::StatusOr<ChunkHandle> CreateChunk(std::uint64_t bytes, const ChunkOptions& options = {});
  // Physical memory goes when the last mapping is gone too.
  absl::Status ReleaseChunk(ChunkHandle chunk);
  // The chunk as a file that any process on the machine may import; the pages live as long as any
  // chunk, mapping or file of them. kUnsupported for a chunk that was not made shareable: memory of
  // this kind cannot be exported afterwards, by legacy IPC handles either.
  absl::StatusOr<FileDescriptor> ExportChunk(ChunkHandle chunk);
  // A chunk of this device over the same pages, released like any other. `bytes` is the exported
  // chunk's size. kInvalidArgument for a file that is none (a GPU may notice a wrong size only when
  // it is mapped).
  absl::StatusOr<ChunkHandle> ImportChunk(const FileDescriptor& file, std::uint64_t bytes);
  // Maps the whole chunk at `address`, inside a reservation, over nothing. No access yet.
  absl::Status Map(DeviceAddress address, std::uint64_t bytes, ChunkHandle chunk);
  // Unmaps exactly one or several whole mappings. Does not wait for work that uses them: the caller
  // must have drained every stream that may touch the range.
  absl::Status Unmap(AddressRange range);
  // Sets what kernels and copies may do to whole mappings.
  absl::Status SetAccess(AddressRange range, Access access);
  AddressState Query(DeviceAddress address) const;
  absl::StatusOr<MemoryUse> Memory() const { return DoMemory(); }
  // Zeroed host memory of exactly `bytes` > 0. kOutOfHostMemory, also where the system would give
  // the memory but not pin it; then kPageable may still be had.
  absl::StatusOr<HostBuffer> AllocateHost(std::uint64_t bytes,
                                          HostMemoryKind kind = HostMemoryKind::kPinned);

  // -- Local memory

  // A driver keeps room for the largest stack of all kernels that ran, for every thread the GPU can
  // hold at once: gigabytes. Whoever runs kernels holds that reserve while awake. Dropped by the
  // last holder it goes back to the device, which waits for every running kernel, so nothing may
  // run; the first to hold it again takes it back at once. A kernel launched without it takes it,
  // too, but late, and fails where the memory is gone.
  absl::Status HoldLocalMemory();  // kOutOfMemory: not held
  absl::Status DropLocalMemory();  // fails: still held. Without a holder: kInvalidArgument
  // The same without counting, for measuring it. Idempotent; on failure as before.
  absl::Status ReleaseLocalMemory();
  absl::Status RestoreLocalMemory();
  bool local_memory_released() const;

  // -- Streams and work

  absl::StatusOr<std::unique_ptr<Stream>> CreateStream(std::string name);
  // Waits until all work enqueued so far is done. kDeviceLost if some of it faulted. Not during
  // capture.
  absl::Status Synchronize(Stream& stream);
  // The same with a deadline; kDeadlineExceeded leaves the work running.
  absl::Status SynchronizeBy(Stream& stream, std::chrono::steady_clock::time_point deadline);
  absl::StatusOr<std::unique_ptr<Event>> CreateEvent();
  // Marks what the stream was given so far; a later Record moves the mark. On a stream that is
  // capturing it marks a place in that capture, for Wait alone and until the capture ends.
  absl::Status Record(Event& event, Stream& stream);
  // What the stream is given from now on starts after the work marked now. An event never recorded
  // marks nothing. An event recorded in a capture draws the stream into that capture: a side
  // stream, which has to be joined (recorded, and waited for by the stream that began) before the
  // end. A stream that is capturing cannot wait for an event from outside its capture.
  absl::Status Wait(Stream& stream, Event& event);
  // Waits on the host until the marked work is done; kDeadlineExceeded leaves it running. Not by a
  // thread that is capturing.
  absl::Status SynchronizeBy(Event& event, std::chrono::steady_clock::time_point deadline);

  // Asynchronous unless said otherwise; recorded instead of run if the stream is capturing.
  // `params` points to op.params_bytes bytes and is copied before the call returns.
  absl::Status Launch(Stream& stream, const Op& op, const LaunchShape& shape, const void* params);
  // Between device memory and HostBuffer memory, or within either; the host side must live until
  // the copy has run (when captured: as long as the graph). Pageable memory: not capturable, and
  // the call may wait for the copy.
  absl::Status CopyToDevice(Stream& stream, DeviceAddress to, const void* from,
                            std::uint64_t bytes);
  absl::Status CopyToHost(Stream& stream, void* to, DeviceAddress from, std::uint64_t bytes);
  absl::Status CopyOnDevice(Stream& stream, DeviceAddress to, DeviceAddress from,
                            std::uint64_t bytes);
  absl::Status Fill(Stream& stream, DeviceAddress to, std::uint8_t value, std::uint64_t bytes);
  // Hashes each kHashLeafBytes of the range (the last leaf may be shorter) into out[i], pinned host
  // memory of ceil(bytes / kHashLeafBytes) entries. base is 8-byte aligned. Not capturable.
  absl::Status HashLeaves(Stream& stream, AddressRange range, Hash128* out);
  // Looks for addresses in device memory: see WordScan, which lies in pinned memory, holds the
  // question and takes the answer. `data` is 8-byte aligned. Not capturable.
  absl::Status ScanWords(Stream& stream, AddressRange data, WordScan* scan);
  // Runs function(argument) in stream order on a host thread; it must not call the device.
  absl::Status HostFunction(Stream& stream, void (*function)(void*), void* argument);

  // -- Matrix products

  absl::StatusOr<std::unique_ptr<GemmPlan>> PlanGemm(const GemmSpec& spec);
  absl::Status Gemm(Stream& stream, const GemmPlan& plan, const GemmOperands& operands);

  // -- Graphs

  // Work enqueued to `stream`, and to streams that wait for its events, is recorded from now on.
  // One capture a stream, kBusy otherwise. Until the end the calling thread allocates nothing here
  // (CreateChunk, AllocateHost) and waits for nothing (Synchronize): kUncapturable naming the call,
  // and the capture is spoiled. Other threads go on as they like.
  absl::Status BeginCapture(Stream& stream, LegacyStream legacy = LegacyStream::kRefuse);
  // Ends it, in success or failure: the streams are usable again either way. kUncapturable for a
  // spoiled capture, naming the call where it is known, and for work that was never joined, naming
  // the streams and their last operations. On the thread that began it, and with the stream that
  // began it; kInvalidArgument otherwise, and the capture goes on.
  absl::StatusOr<std::unique_ptr<CapturedGraph>> EndCapture(Stream& stream);
  // A graph made by somebody else, to be read and no more: a CUgraph (or cudaGraph_t) of this
  // device, which must outlive the result and is not owned. A host device takes a CapturedGraph* of
  // any host device of this process, and kInvalidArgument for what is none.
  absl::StatusOr<std::unique_ptr<CapturedGraph>> AdoptGraph(void* graph);
  // Makes the tensor map in these kTensorMapBytes bytes, aligned to 64, describe memory at
  // `address`, all else unchanged: how the driver says what of an opaque map is its address.
  // kUnsupported where there are no tensor maps; kInvalidArgument if it is none.
  absl::Status RebaseTensorMap(void* map, DeviceAddress address) const;
  // Makes it launchable and uploads it. All memory it names may be unmapped, but for copies and
  // fills.
  absl::StatusOr<std::unique_ptr<ExecutableGraph>> Instantiate(const CapturedGraph& graph);
  // Asynchronous, and nothing is checked: see graphs/ for the guard. `graph` must live until it has
  // run.
  absl::Status LaunchGraph(Stream& stream, ExecutableGraph& graph) {
    HOLDFAST_RETURN_IF_ERROR(calls_.Enter(Call::kLaunchGraph));
    absl::Status status = DoLaunchGraph(stream, graph);
    if (status.ok()) calls_.Succeeded(Call::kLaunchGraph);
    return status;
  }
  // For benchmarks. Both objects are this device's.
  BareLaunch GetBareLaunch(Stream& stream, ExecutableGraph& graph) {
    return DoGetBareLaunch(stream, graph);
  }

 protected:
  Device() = default;
  void set_info(DeviceInfo info) { info_ = std::move(info); }

 private:
  friend class HostBuffer;
  friend class Stream;

  virtual absl::StatusOr<AddressRange> DoReserveAddress(std::uint64_t bytes,
                                                        DeviceAddress hint) = 0;
  virtual absl::Status DoFreeAddress(AddressRange range) = 0;
  virtual absl::StatusOr<ChunkHandle> DoCreateChunk(std::uint64_t bytes,
                                                    const ChunkOptions& options) = 0;
  virtual absl::Status DoReleaseChunk(ChunkHandle chunk) = 0;
  virtual absl::StatusOr<FileDescriptor> DoExportChunk(ChunkHandle chunk) = 0;
  virtual absl::StatusOr<ChunkHandle> DoImportChunk(int file, std::uint64_t bytes) = 0;
  virtual absl::Status DoMap(DeviceAddress address, std::uint64_t bytes, ChunkHandle chunk) = 0;
  virtual absl::Status DoUnmap(AddressRange range) = 0;
  virtual absl::Status DoSetAccess(AddressRange range, Access access) = 0;
  virtual AddressState DoQuery(DeviceAddress address) const = 0;
  virtual absl::StatusOr<MemoryUse> DoMemory() const = 0;
  virtual absl::StatusOr<std::byte*> DoAllocateHost(std::uint64_t bytes, HostMemoryKind kind) = 0;
  virtual absl::Status DoFreeHost(std::byte* data, HostMemoryKind kind) = 0;
  virtual absl::Status DoReleaseLocalMemory() = 0;
  virtual absl::Status DoRestoreLocalMemory() = 0;
  virtual absl::StatusOr<std::unique_ptr<Stream>> DoCreateStream(std::string name) = 0;
  virtual absl::Status DoSynchronize(Stream& stream,
                                     std::chrono::steady_clock::time_point deadline) = 0;
  virtual absl::StatusOr<std::unique_ptr<Event>> DoCreateEvent() = 0;
  virtual absl::Status DoRecord(Event& event, Stream& stream) = 0;
  virtual absl::Status DoWait(Stream& stream, Event& event) = 0;
  virtual absl::Status DoSynchronizeEvent(Event& event,
                                          std::chrono::steady_clock::time_point deadline) = 0;
  virtual absl::Status DoLaunch(Stream& stream, const Op& op, const LaunchShape& shape,
                                const void* params) = 0;
  virtual absl::Status DoCopy(Stream& stream, const CopyView& copy) = 0;
  virtual absl::Status DoFill(Stream& stream, const FillView& fill) = 0;
  virtual absl::Status DoHashLeaves(Stream& stream, AddressRange range, Hash128* out) = 0;
  virtual absl::Status DoScanWords(Stream& stream, AddressRange data, WordScan* scan) = 0;
  virtual absl::Status DoHostFunction(Stream& stream, void (*function)(void*), void* argument) = 0;
  virtual absl::StatusOr<std::unique_ptr<GemmPlan>> DoPlanGemm(const GemmSpec& spec) = 0;
  virtual absl::Status DoGemm(Stream& stream, const GemmPlan& plan,
                              const GemmOperands& operands) = 0;
  virtual absl::Status DoBeginCapture(Stream& stream, LegacyStream legacy) = 0;
  virtual absl::StatusOr<std::unique_ptr<CapturedGraph>> DoEndCapture(Stream& stream) = 0;
  virtual absl::StatusOr<std::unique_ptr<CapturedGraph>> DoAdoptGraph(void* graph) = 0;
  virtual absl::Status DoRebaseTensorMap(void* map, DeviceAddress address) const;
  virtual absl::StatusOr<std::unique_ptr<ExecutableGraph>> DoInstantiate(
      const CapturedGraph& graph) = 0;
  virtual absl::Status DoLaunchGraph(Stream& stream, ExecutableGraph& graph) = 0;
  virtual BareLaunch DoGetBareLaunch(Stream& stream, ExecutableGraph& graph) = 0;

  DeviceInfo info_;
  CallTable calls_;
  RangeSet freed_;  // reservations and host buffers that were given back
  CaptureWatch captures_;
  // Where each live mapping begins: one Unmap may end several, and each is counted.
  std::mutex mapping_lock_;
  std::set<DeviceAddress> mapping_bases_;

  // With local_memory_lock_ held.
  absl::Status GiveLocalMemoryBack();
  absl::Status TakeLocalMemoryAgain();
  mutable std::mutex local_memory_lock_;
  int local_memory_holders_ = 0;
  bool local_memory_released_ = false;
};

// Launch with the parameter struct's own type. Padding is cleared first: a captured graph is
// compared and audited word by word, and what happened to lie on the stack must not look like a
// pointer.
template <typename Params>
absl::Status Launch(Device& device, Stream& stream, const Op& op, const LaunchShape& shape,
                    Params params) {
  if (sizeof(Params) != op.params_bytes) {
    return MakeError({.kind = ErrorKind::kInternal,
                      .object = op.name,
                      .need = op.params_bytes,
                      .have = sizeof(Params)},
                     "parameter struct of the wrong size");
  }
#if __has_builtin(__builtin_clear_padding)
  __builtin_clear_padding(&params);
#endif
  return device.Launch(stream, op, shape, &params);
}

// What the host device pretends that a driver takes for itself: part of process_bytes, and gone
// from the free bytes. It gives back only the local memory, as a driver does.
struct HostDriverCosts {
  std::uint64_t context_bytes = 0;       // from the start
  std::uint64_t library_bytes = 0;       // from the first matrix product that is planned
  std::uint64_t node_bytes = 0;          // for each node of each graph made executable
  std::uint64_t local_memory_bytes = 0;  // from the start
};

struct DeviceOptions {
  // Host device only: physical bytes it pretends to have.
  std::uint64_t host_capacity_bytes = std::uint64_t{4} * 1024 * 1024 * 1024;
  // Host device only: pinned bytes it allows at once, as a memory-lock limit would. Beyond it
  // AllocateHost fails with the call "pin".
  std::uint64_t host_pin_limit_bytes = std::numeric_limits<std::uint64_t>::max();
  HostDriverCosts host_driver;
};

// Opens "host", "cuda:N", or "auto" (the first usable GPU, else the host). kInvalidArgument for any
// other text; kNotFound for a GPU that is not there, saying why (no driver, no such ordinal, not
// built in).
absl::StatusOr<std::unique_ptr<Device>> OpenDevice(const std::string& spec,
                                                   const DeviceOptions& options = {});

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_DEVICE_H_
