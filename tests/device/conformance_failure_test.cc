// Failing any device call of a small life leaves balanced books and a device that works.
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "tests/device/device_fixture.h"
#include "tests/device/test_ops.h"

namespace holdfast {
namespace {

// Gives back what a scenario made, in whatever state it stopped. Failures of the cleaning calls
// themselves are repeated once: the injection fires once.
class Books {
 public:
  Books() = default;
  ~Books() {
    for (auto it = undo_.rbegin(); it != undo_.rend(); ++it) {
      if (!(*it)().ok()) {
        EXPECT_OK((*it)());
      }
    }
  }
  template <typename F>
  void OnExit(F undo) {
    undo_.push_back(std::move(undo));
  }

 private:
  std::vector<std::function<absl::Status()>> undo_;
};

// Passes every entry of the call table at least once.
absl::Status SmallLife(Device& device) {
  Books books;
  const std::uint64_t bytes = device.info().granularity;
  HOLDFAST_ASSIGN_OR_RETURN(const AddressRange range, device.ReserveAddress(bytes, {}));
  books.OnExit([&device, range] { return device.FreeAddress(range); });
  HOLDFAST_ASSIGN_OR_RETURN(const ChunkHandle chunk, device.CreateChunk(bytes));
  books.OnExit([&device, chunk] { return device.ReleaseChunk(chunk); });
  HOLDFAST_RETURN_IF_ERROR(device.Map(range.base, bytes, chunk));
  books.OnExit([&device, range] { return device.Unmap(range); });
  HOLDFAST_RETURN_IF_ERROR(device.SetAccess(range, Access::kReadWrite));
  HOLDFAST_RETURN_IF_ERROR(device.ReleaseLocalMemory());
  books.OnExit([&device] { return device.RestoreLocalMemory(); });
  HOLDFAST_RETURN_IF_ERROR(device.RestoreLocalMemory());

  HOLDFAST_ASSIGN_OR_RETURN(const ChunkHandle shared,
                            device.CreateChunk(bytes, {.shareable = true}));
  books.OnExit([&device, shared] { return device.ReleaseChunk(shared); });
  HOLDFAST_ASSIGN_OR_RETURN(const FileDescriptor file, device.ExportChunk(shared));
  HOLDFAST_ASSIGN_OR_RETURN(const ChunkHandle imported, device.ImportChunk(file, bytes));
  books.OnExit([&device, imported] { return device.ReleaseChunk(imported); });

  HOLDFAST_ASSIGN_OR_RETURN(const HostBuffer buffer, device.AllocateHost(4096));
  HOLDFAST_ASSIGN_OR_RETURN(const HostBuffer scan_room, device.AllocateHost(sizeof(WordScan)));
  // Before the stream, so that it outlives the work that is drained when the stream goes.
  std::unique_ptr<ExecutableGraph> executable;
  HOLDFAST_ASSIGN_OR_RETURN(const std::unique_ptr<Stream> stream, device.CreateStream("life"));
  HOLDFAST_ASSIGN_OR_RETURN(const std::unique_ptr<Event> event, device.CreateEvent());
  HOLDFAST_RETURN_IF_ERROR(device.Record(*event, *stream));
  HOLDFAST_RETURN_IF_ERROR(device.Wait(*stream, *event));

  const GemmSpec spec{.name = "w", .m = 16, .n = 16, .k = 16, .lda = 16, .ldb = 16, .ldd = 16};
  HOLDFAST_ASSIGN_OR_RETURN(const auto plan, device.PlanGemm(spec));
  const GemmOperands operands{.a = range.base,
                              .b = range.base + 4096,
                              .d = range.base + 8192,
                              .workspace = range.base + bytes / 2};
  HOLDFAST_RETURN_IF_ERROR(device.CopyToDevice(*stream, range.base, buffer.data(), 1024));
  HOLDFAST_RETURN_IF_ERROR(device.Gemm(*stream, *plan, operands));
  HOLDFAST_RETURN_IF_ERROR(
      device.HashLeaves(*stream, range, reinterpret_cast<Hash128*>(buffer.data())));
  HOLDFAST_RETURN_IF_ERROR(device.ScanWords(*stream, range, new (scan_room.data()) WordScan{}));
  HOLDFAST_RETURN_IF_ERROR(device.Synchronize(*stream));

  HOLDFAST_RETURN_IF_ERROR(device.BeginCapture(*stream));
  const auto record = [&]() -> absl::Status {
    HOLDFAST_RETURN_IF_ERROR(Launch(device, *stream, ScaleOp(), ShapeFor(4),
                                    ScaleParams{range.base.As<float>(), 4, 2.0f, 0.0f}));
    HOLDFAST_RETURN_IF_ERROR(device.Fill(*stream, range.base, 1, 64));
    return device.HostFunction(
        *stream, [](void*) {}, nullptr);
  };
  const absl::Status recorded = record();
  absl::StatusOr<std::unique_ptr<CapturedGraph>> graph = device.EndCapture(*stream);
  HOLDFAST_RETURN_IF_ERROR(recorded);
  HOLDFAST_RETURN_IF_ERROR(graph.status());
  HOLDFAST_RETURN_IF_ERROR(device.AdoptGraph((*graph)->native()).status());
  HOLDFAST_ASSIGN_OR_RETURN(executable, device.Instantiate(**graph));
  HOLDFAST_RETURN_IF_ERROR(device.LaunchGraph(*stream, *executable));
  return device.Synchronize(*stream);
}

TEST(FailureConformance, FailingAnyCallLeavesBalancedBooks) {
  const std::unique_ptr<Device> device = TestDevice();
  device->calls().FailAt(0);  // never fires: only counts
  ASSERT_OK(SmallLife(*device));
  const std::uint64_t last = device->calls().counted();
  EXPECT_GE(last, static_cast<std::uint64_t>(Call::kCount_));
  for (int call = 0; call < static_cast<int>(Call::kCount_); ++call) {
    EXPECT_GE(device->calls().succeeded(static_cast<Call>(call)), 1u)
        << CallName(static_cast<Call>(call)) << " is not part of the scenario";
  }
  device->calls().Disarm();
  const std::uint64_t free_before = device->Memory()->own_bytes;
  for (std::uint64_t k = 1; k <= last; ++k) {
    device->calls().FailAt(k);
    SmallLife(*device).IgnoreError();  // failures in cleaning up do not come back from it
    EXPECT_TRUE(device->calls().Disarm()) << "call " << k;
    EXPECT_TRUE(device->calls().Balanced()) << "call " << k;
    EXPECT_EQ(device->Memory()->own_bytes, free_before) << "call " << k;
    ASSERT_OK(SmallLife(*device)) << "call " << k;
  }
}

TEST(FailureConformance, EveryCallByNameReportsItsInjectedFailure) {
  const std::unique_ptr<Device> device = TestDevice();
  for (int i = 0; i < static_cast<int>(Call::kCount_); ++i) {
    const Call call = static_cast<Call>(i);
    // What runs only while cleaning up has no caller to report to.
    if (call == Call::kFreeAddress || call == Call::kReleaseChunk || call == Call::kUnmap ||
        call == Call::kFreeHost) {
      continue;
    }
    device->calls().FailAt(1, {call});
    const absl::Status status = SmallLife(*device);
    EXPECT_TRUE(device->calls().Disarm()) << CallName(call);
    ASSERT_THAT(status, IsErrorKind(ErrorKind::kDriver)) << CallName(call);
    EXPECT_EQ(GetErrorInfo(status)->call, CallName(call));
  }
}

TEST(FailureConformance, ALeakUnbalancesTheBooks) {
  const std::unique_ptr<Device> device = TestDevice();
  ASSERT_OK_AND_ASSIGN(const ChunkHandle chunk, device->CreateChunk(device->info().granularity));
  EXPECT_FALSE(device->calls().Balanced());
  ASSERT_OK(device->ReleaseChunk(chunk));
  EXPECT_TRUE(device->calls().Balanced());
}

}  // namespace
}  // namespace holdfast
