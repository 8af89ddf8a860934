// A GPU, an arena, and one of everything enqueued to a stream of CUDA's own, with every planted
// address remembered by span and offset.
#ifndef HOLDFAST_TESTS_GRAPHS_CUDA_ZOO_FIXTURE_H_
#define HOLDFAST_TESTS_GRAPHS_CUDA_ZOO_FIXTURE_H_

#include <cudaTypedefs.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/arena.h"
#include "graphs/audit.h"
#include "gtest/gtest.h"
#include "tests/device/status_matchers.h"
#include "tests/device/test_device.h"
#include "tests/graphs/cuda_zoo.h"

namespace holdfast {

inline constexpr std::uint64_t kSpanBytes = 4 * kMiB;
inline constexpr int kCount = 1 << 16;
inline constexpr std::uint64_t kShift = std::uint64_t{0x1234} << 28;

#define ASSERT_CUDA(call)                                                      \
  do {                                                                         \
    const cudaError_t code = (call);                                           \
    ASSERT_EQ(code, cudaSuccess) << #call << ": " << cudaGetErrorString(code); \
  } while (false)

template <typename Function>
Function DriverFunction(const char* name, unsigned version) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult result;
  EXPECT_EQ(cudaGetDriverEntryPointByVersion(name, &function, version, cudaEnableDefault, &result),
            cudaSuccess);
  EXPECT_EQ(result, cudaDriverEntryPointSuccess) << name;
  return reinterpret_cast<Function>(function);
}

// Everything a report says, for a failure's message.
inline std::string Listing(const GraphView& view, const AuditReport& report) {
  std::string text;
  for (std::size_t n = 0; n < view.nodes.size(); ++n) {
    absl::StrAppend(&text, NodeLabel(n, view.nodes[n]), ", ", view.nodes[n].parameters.size(),
                    " parameters\n");
    for (const ParameterView& parameter : view.nodes[n].parameters) {
      absl::StrAppend(&text, "    at ", parameter.offset, ", ", parameter.bytes.size(), " bytes\n");
    }
    for (const PointerFinding& p : report.pointers) {
      if (p.node != n) continue;
      absl::StrAppend(&text, "  ", p.where(), " = ", HexWord(p.word), ": ",
                      PointerClassName(p.kind), " '", report.ObjectOf(p), "' + ", p.offset, "\n");
    }
  }
  for (const std::string& problem : report.problems)
    absl::StrAppend(&text, "PROBLEM ", problem, "\n");
  return text;
}

class CudaAuditTest : public testing::Test {
 protected:
  void SetUp() override {
    device_ = TestDevice();
    if (!device_->info().is_cuda) GTEST_SKIP() << "needs a GPU";
    auto arena = Arena::Create(
        *device_,
        {.groups = {{.tag = "state", .extent_bytes = 256 * kMiB, .chunk_bytes = 64 * kMiB},
                    {.tag = "workspace",
                     .role = Role::kScratch,
                     .extent_bytes = 256 * kMiB,
                     .chunk_bytes = 64 * kMiB}}});
    ASSERT_OK(arena);
    arena_ = *std::move(arena);
    for (const char* name : {"in", "out", "keys", "values", "more", "map"}) {
      Reserve(name, "state", Role::kMutable, kSpanBytes);
    }
    workspace_ = Reserve("workspace", "workspace", Role::kScratch, 64 * kMiB);
    temporary_ = Reserve("temporary", "workspace", Role::kScratch, 16 * kMiB);
    ASSERT_OK(arena_->CommitTag("state"));
    ASSERT_OK(arena_->CommitTag("workspace"));
    auto staging = arena_->AddHostSpan("staging", kSpanBytes);
    ASSERT_OK(staging);
    staging_ = (*staging)->buffer.data();
    ASSERT_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    // Code is loaded now: that is not allowed inside a capture. The scratch sizes come with it.
    ASSERT_NO_FATAL_FAILURE(Enqueue(0));
    ASSERT_CUDA(cudaStreamSynchronize(stream_));
  }
  void TearDown() override {
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }

  SpanId Reserve(const char* name, const char* tag, Role role, std::uint64_t bytes) {
    auto id = arena_->Reserve({.name = name, .tag = tag, .role = role, .bytes = bytes});
    EXPECT_OK(id);
    return id.ok() ? *id : SpanId{};
  }
  std::uint64_t At(const char* span, std::uint64_t offset = 0) const {
    return arena_->range(*arena_->Find(span)).base.value + offset + shift_;
  }
  template <typename T>
  T* As(const char* span, std::uint64_t offset = 0) const {
    return reinterpret_cast<T*>(At(span, offset));
  }
  // An address that is about to be planted, to be looked for later.
  template <typename T>
  T* Plant(const char* what, const char* span, std::uint64_t offset = 0) {
    planted_.push_back({what, span, offset});
    return As<T>(span, offset);
  }

  CUtensorMap EncodeMap(void* address) {
    alignas(128) CUtensorMap map = {};
    const cuuint64_t sizes[2] = {256, 256}, strides[1] = {256 * 4};
    const cuuint32_t box[2] = {32, 32}, step[2] = {1, 1};
    const auto encode =
        DriverFunction<PFN_cuTensorMapEncodeTiled_v12000>("cuTensorMapEncodeTiled", 12000);
    EXPECT_EQ(encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, address, sizes, strides, box, step,
                     CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                     CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
              CUDA_SUCCESS);
    return map;
  }

  // One of everything, to stream_, with every address `shift` bytes higher.
  void Enqueue(std::uint64_t shift) {
    shift_ = shift;
    planted_.clear();
    ASSERT_NO_FATAL_FAILURE(EnqueueStructs());
    ASSERT_NO_FATAL_FAILURE(EnqueueCub());
    ASSERT_NO_FATAL_FAILURE(EnqueueCopies());
    shift_ = 0;
  }
  void EnqueueStructs() {
    const NestedPointers nested{.count = 7,
                                .first = Plant<float>("struct, plain", "in", 256),
                                .inner = {.stride = 64,
                                          .data = {Plant<float>("struct, array 0", "in", 4096),
                                                   Plant<float>("struct, array 1", "out", 16)}},
                                .end = Plant<float>("struct, one past", "map", kSpanBytes)};
    ASSERT_CUDA(LaunchNested(stream_, nested));
    ASSERT_CUDA(LaunchPacked(stream_, {.value = 3, .target = As<std::uint32_t>("more", 64)}));
    const CUtensorMap map = EncodeMap(Plant<void>("tensor map", "map", 1024));
    ASSERT_CUDA(LaunchTensorMap(stream_, map, Plant<float>("beside a map", "out", 512)));
    alignas(128)
        MapAndPointer inside = {.map = EncodeMap(Plant<void>("map in a struct", "map", 2048)),
                                .out = Plant<float>("behind a map", "out", 768),
                                .zero = {}};
    ASSERT_CUDA(LaunchMapAndPointer(stream_, inside));
    ASSERT_CUDA(LaunchMixed(stream_, 'x', Plant<float>("mixed, in", "in", 12), 3,
                            Plant<float>("mixed, out", "out", 2048), 4));
  }
  void EnqueueCub() {
    std::size_t scan = 0, sort = 0, reduce = 0;
    ASSERT_CUDA(ScanSum(stream_, nullptr, &scan, nullptr, nullptr, kCount));
    ASSERT_CUDA(SortPairs(stream_, nullptr, &sort, nullptr, nullptr, nullptr, nullptr, kCount));
    ASSERT_CUDA(ReduceSum(stream_, nullptr, &reduce, nullptr, nullptr, kCount));
    ASSERT_LE(std::max({scan, sort, reduce}), std::size_t{16} * kMiB);
    ASSERT_CUDA(ScanSum(stream_, As<void>("temporary"), &scan, Plant<int>("scan in", "in"),
                        Plant<int>("scan out", "out", 1 << 20), kCount));
    ASSERT_CUDA(SortPairs(stream_, As<void>("temporary"), &sort,
                          Plant<std::uint32_t>("sort keys in", "keys"),
                          Plant<std::uint32_t>("sort keys out", "keys", 1 << 20),
                          Plant<std::uint32_t>("sort values in", "values"),
                          Plant<std::uint32_t>("sort values out", "values", 1 << 20), kCount));
    ASSERT_CUDA(ReduceSum(stream_, As<void>("temporary"), &reduce,
                          Plant<int>("reduce in", "in", 64), Plant<int>("reduce out", "out", 3072),
                          kCount));
  }
  void EnqueueCopies() {
    ASSERT_CUDA(cudaMemcpyAsync(Plant<void>("H2D", "in", 1 << 16), staging_, 4096,
                                cudaMemcpyHostToDevice, stream_));
    ASSERT_CUDA(cudaMemcpyAsync(staging_ + 8192, Plant<void>("D2H", "out", 1 << 16), 4096,
                                cudaMemcpyDeviceToHost, stream_));
    ASSERT_CUDA(cudaMemcpyAsync(Plant<void>("default", "in", 1 << 17), staging_, 4096,
                                cudaMemcpyDefault, stream_));
    ASSERT_CUDA(cudaMemcpyAsync(Plant<void>("D2D to", "more", 1 << 16),
                                Plant<void>("D2D from", "more"), 4096, cudaMemcpyDeviceToDevice,
                                stream_));
    // 16 rows of 256 bytes out of rows of 4096, to the last bytes of the span.
    ASSERT_CUDA(cudaMemcpy2DAsync(Plant<void>("2D to", "more", kSpanBytes - 4096), 256,
                                  Plant<void>("2D from", "in", 1 << 18), 4096, 256, 16,
                                  cudaMemcpyDeviceToDevice, stream_));
    ASSERT_CUDA(cudaMemsetAsync(Plant<void>("memset", "out", 1 << 17), 0, 4096, stream_));
    ASSERT_CUDA(
        cudaMemset2DAsync(Plant<void>("memset 2D", "out", 1 << 18), 4096, 1, 256, 16, stream_));
  }

  cudaGraph_t CaptureZoo(std::uint64_t shift) {
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    Enqueue(shift);
    EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
    return graph;
  }
  GraphView View(cudaGraph_t graph) {
    auto adopted = device_->AdoptGraph(graph);
    EXPECT_OK(adopted);
    auto view = (*adopted)->View();
    EXPECT_OK(view);
    return view.ok() ? *std::move(view) : GraphView{};
  }
  AuditReport Audited(const GraphView& view) { return Audit(view, *device_, arena_.get()); }

  void ExpectPlanted(const GraphView& view, const AuditReport& report) {
    bool all = true;
    for (const Planted& planted : planted_) {
      const std::uint64_t word = At(planted.span) + planted.offset;
      const bool found =
          std::any_of(report.pointers.begin(), report.pointers.end(), [&](const PointerFinding& p) {
            return p.word == word && p.kind == PointerClass::kSpan &&
                   report.ObjectOf(p) == planted.span && p.offset == planted.offset;
          });
      EXPECT_TRUE(found) << planted.what << ": " << HexWord(word) << ", span '" << planted.span
                         << "' + " << planted.offset << " was not found";
      all = all && found;
    }
    if (!all) ADD_FAILURE() << Listing(view, report);
  }

  struct Planted {
    const char* what;
    const char* span;
    std::uint64_t offset;
  };
  std::unique_ptr<Device> device_;
  std::unique_ptr<Arena> arena_;
  SpanId workspace_, temporary_;
  std::byte* staging_ = nullptr;
  cudaStream_t stream_ = nullptr;
  std::uint64_t shift_ = 0;
  std::vector<Planted> planted_;
};

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_GRAPHS_CUDA_ZOO_FIXTURE_H_
