// Verifies, on a GPU, that every pointer planted into a graph of real library calls is found and
// named: cuBLASLt products, CUB scan, sort and reduction, by-value structs, tensor maps, copies and
// fills of every kind, nested graphs; and that what no graph may hold is refused by name.
#include "gmock/gmock.h"
#include "tests/device/status_matchers.h"
#include "tests/device/test_device.h"

#if HOLDFAST_WITH_CUDA

#include "device/cuda/cuda_graph.h"
#include "graphs/compare.h"
#include "graphs/graph_set.h"
#include "graphs/shifted_window.h"
#include "graphs/stand_alone_audit.h"
#include "tests/graphs/audit_ops.h"
#include "tests/graphs/cuda_zoo_fixture.h"
#include "tests/graphs/toy.h"

namespace holdfast {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(CudaAuditTest, EveryPlantedAlignedPointerIsFoundAndNothingElseIsWrong) {
  const cudaGraph_t graph = CaptureZoo(0);
  ASSERT_NE(graph, nullptr);
  const GraphView view = View(graph);
  const AuditReport report = Audited(view);
  ExpectPlanted(view, report);
  EXPECT_THAT(report.problems, IsEmpty()) << Listing(view, report);
  EXPECT_THAT(report.objects_of(PointerClass::kHostSpan), ElementsAre("staging"));
  EXPECT_THAT(report.spans(), Contains("temporary"));
  // The packed one is what tier 1 cannot see.
  const bool seen = std::any_of(report.pointers.begin(), report.pointers.end(),
                                [&](const PointerFinding& p) { return p.word == At("more", 64); });
  EXPECT_FALSE(seen) << Listing(view, report);
  cudaGraphDestroy(graph);
}

TEST_F(CudaAuditTest, TheShiftedCaptureProvesEveryWordAndFindsThePackedPointer) {
  const cudaGraph_t graph = CaptureZoo(0);
  const std::lock_guard<std::mutex> still(arena_->transition_mutex());
  ASSERT_OK_AND_ASSIGN(const auto window, ShiftedWindow::Create(*arena_, kShift));
  const cudaGraph_t moved = CaptureZoo(kShift);
  ASSERT_TRUE(graph != nullptr && moved != nullptr);
  const GraphView base = View(graph), shifted = View(moved);
  const AuditReport report = Audited(base);
  const ShiftReport proof =
      CompareShifted(base, report, shifted, kShift, arena_.get(), device_.get());
  EXPECT_THAT(proof.problems, IsEmpty()) << Listing(base, report);
  ASSERT_THAT(proof.packed, SizeIs(1));
  EXPECT_EQ(proof.packed[0].span, "more");
  EXPECT_EQ(proof.packed[0].offset, 64u);
  EXPECT_GE(proof.moved, planted_.size());
  cudaGraphDestroy(graph);
  cudaGraphDestroy(moved);
}

TEST_F(CudaAuditTest, ATensorMapMovesAsTheDriverWouldMoveIt) {
  alignas(128) CUtensorMap map = EncodeMap(As<void>("map", 1024));
  const CUtensorMap other = EncodeMap(As<void>("map", 2048));
  ASSERT_OK(device_->RebaseTensorMap(&map, {At("map", 2048)}));
  EXPECT_EQ(std::memcmp(&map, &other, sizeof(map)), 0);
}

TEST_F(CudaAuditTest, ProductsOfCublasLtNameOperandsAndWorkspace) {
  ASSERT_OK_AND_ASSIGN(const auto stream, device_->CreateStream("gemm"));
  for (const std::int64_t m : {1, 16, 256, 1024}) {
    ASSERT_OK_AND_ASSIGN(const auto plan, device_->PlanGemm({.name = "w",
                                                             .m = m,
                                                             .n = 512,
                                                             .k = 512,
                                                             .lda = 512,
                                                             .ldb = 512,
                                                             .ldd = 512,
                                                             .in = DType::kBF16,
                                                             .out = DType::kBF16}));
    const GemmOperands operands{
        .a = {At("in")}, .b = {At("keys")}, .d = {At("out")}, .workspace = {At("workspace")}};
    ASSERT_OK(device_->Gemm(*stream, *plan, operands));
    ASSERT_OK(device_->Synchronize(*stream));
    ASSERT_OK(device_->BeginCapture(*stream));
    ASSERT_OK(device_->Gemm(*stream, *plan, operands));
    ASSERT_OK_AND_ASSIGN(const auto graph, device_->EndCapture(*stream));
    ASSERT_OK_AND_ASSIGN(const GraphView view, graph->View());
    const AuditReport report = Audited(view);
    EXPECT_THAT(report.problems, IsEmpty()) << "m " << m << "\n" << Listing(view, report);
    for (const char* span : {"in", "keys", "out"}) {
      EXPECT_THAT(report.spans(), Contains(span)) << "m " << m << "\n" << Listing(view, report);
    }

    // As a child of somebody's graph it is the same, and says where it lies.
    cudaGraph_t parent = nullptr;
    ASSERT_CUDA(cudaGraphCreate(&parent, 0));
    cudaGraphNode_t node;
    ASSERT_CUDA(cudaGraphAddChildGraphNode(&node, parent, nullptr, 0,
                                           dynamic_cast<CudaCapturedGraph&>(*graph).get()));
    const GraphView nested = View(parent);
    ASSERT_EQ(nested.nodes.size(), view.nodes.size());
    EXPECT_EQ(nested.nodes[0].scope, "child 0");
    EXPECT_EQ(Audited(nested).spans(), report.spans());
    cudaGraphDestroy(parent);
  }
}

TEST_F(CudaAuditTest, AStepOfProductsAndAPackedPointerPassesTheShiftedCapture) {
  ASSERT_OK_AND_ASSIGN(const auto lane, Lane::Create(*arena_, "lane"));
  ASSERT_OK_AND_ASSIGN(const auto plan, device_->PlanGemm({.name = "w",
                                                           .m = 64,
                                                           .n = 512,
                                                           .k = 512,
                                                           .lda = 512,
                                                           .ldb = 512,
                                                           .ldd = 512,
                                                           .in = DType::kBF16,
                                                           .out = DType::kBF16}));
  const SpanId in = *arena_->Find("in"), keys = *arena_->Find("keys"), out = *arena_->Find("out");
  const SpanId more = *arena_->Find("more");
  const Step step = [&](StepContext& context) -> absl::Status {
    HOLDFAST_RETURN_IF_ERROR(
        context.Gemm(*plan, context.Resolve(in), context.Resolve(keys), context.Resolve(out)));
    const PackedParams packed{1, (context.Resolve(more) + 64).As<std::uint32_t>()};
    return context.Launch(PackedOp(), {}, packed);
  };
  GraphSet graphs(*lane, [&](const GraphKey&) -> absl::StatusOr<Step> { return step; });
  ASSERT_OK_AND_ASSIGN(BucketList buckets, BucketList::Of({64}, 64));
  ASSERT_OK(graphs.AddPhase(Phase::kDecode, std::move(buckets)));
  ASSERT_OK(graphs.Measure());
  ASSERT_OK(graphs.WarmUp(workspace_));
  ASSERT_OK(graphs.Capture(workspace_));
  ASSERT_OK_AND_ASSIGN(const auto problems, graphs.ShiftedCapture(workspace_, kShift));
  EXPECT_THAT(problems, IsEmpty());
  EXPECT_THAT(graphs.graphs().at(0)->manifest().packed, SizeIs(1));
}

TEST_F(CudaAuditTest, PlantedFaultsAreReportedByName) {
  const auto problems_of = [&](auto enqueue) {
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    enqueue();
    EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
    const GraphView view = View(graph);
    const AuditReport report = Audited(view);
    cudaGraphDestroy(graph);
    return report.problems;
  };
  const auto launch = [&](std::uint64_t address) {
    return [this, address] {
      EXPECT_EQ(LaunchMixed(stream_, 'x', reinterpret_cast<const float*>(address), 3,
                            As<float>("out"), 4),
                cudaSuccess);
    };
  };
  {
    const StrayChunk stray(*device_);
    EXPECT_THAT(problems_of(launch(stray.At(64))), ElementsAre(HasSubstr("foreign")));
  }
  void* raw = nullptr;
  ASSERT_CUDA(cudaMalloc(&raw, 1 << 20));
  EXPECT_THAT(problems_of(launch(reinterpret_cast<std::uint64_t>(raw))),
              ElementsAre(HasSubstr("foreign")))
      << "a buffer of another allocator";
  ASSERT_CUDA(cudaFree(raw));
  std::uint64_t freed;
  {
    const StrayChunk gone(*device_);
    freed = gone.At(64);
  }
  EXPECT_THAT(problems_of(launch(freed)), ElementsAre(HasSubstr("freed")));
  std::vector<char> pageable(4096);
  EXPECT_THAT(problems_of([&] {
                EXPECT_EQ(cudaMemcpyAsync(As<void>("in"), pageable.data(), 4096,
                                          cudaMemcpyHostToDevice, stream_),
                          cudaSuccess);
              }),
              ElementsAre(AllOf(HasSubstr("copy source"), HasSubstr("no registered host span"))));
  EXPECT_THAT(problems_of([&] {
                void* inside = nullptr;
                EXPECT_EQ(cudaMallocAsync(&inside, 4096, stream_), cudaSuccess);
                EXPECT_EQ(cudaFreeAsync(inside, stream_), cudaSuccess);
              }),
              ElementsAre(HasSubstr("(allocation)"), HasSubstr("(free)")));
}

TEST_F(CudaAuditTest, AConditionalNodeIsReadOrRefusedByName) {
  cudaGraph_t graph = nullptr;
  ASSERT_CUDA(cudaGraphCreate(&graph, 0));
  cudaGraphConditionalHandle handle;
  ASSERT_CUDA(cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault));
  cudaGraphNodeParams params = {};
  params.type = cudaGraphNodeTypeConditional;
  params.conditional.handle = handle;
  params.conditional.type = cudaGraphCondTypeIf;
  params.conditional.size = 1;
  cudaGraphNode_t node;
#if CUDART_VERSION >= 13000
  ASSERT_CUDA(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &params));
#else
  ASSERT_CUDA(cudaGraphAddNode(&node, graph, nullptr, 0, &params));
#endif
  cudaMemsetParams fill = {};
  fill.dst = As<void>("out", 64);
  fill.elementSize = 1;
  fill.width = 256;
  fill.height = 1;
  cudaGraphNode_t inside;
  ASSERT_CUDA(
      cudaGraphAddMemsetNode(&inside, params.conditional.phGraph_out[0], nullptr, 0, &fill));
  const GraphView view = View(graph);
  const AuditReport report = Audited(view);
  if (view.nodes.size() == 1) {
    EXPECT_THAT(report.problems, ElementsAre(HasSubstr("conditional node")));
  } else {
    ASSERT_EQ(view.nodes.size(), 2u) << Listing(view, report);
    EXPECT_EQ(view.nodes[1].scope, "body 0 of 0");
    EXPECT_THAT(report.problems, IsEmpty());
    EXPECT_THAT(report.spans(), ElementsAre("out"));
  }
  cudaGraphDestroy(graph);
}

TEST_F(CudaAuditTest, MemoryOperationsAndPolicyWindowsShowTheirAddresses) {
  cudaGraph_t graph = CaptureZoo(0);
  ASSERT_NE(graph, nullptr);
  std::size_t count = 0;
  ASSERT_CUDA(cudaGraphGetNodes(graph, nullptr, &count));
  std::vector<cudaGraphNode_t> nodes(count);
  ASSERT_CUDA(cudaGraphGetNodes(graph, nodes.data(), &count));
  cudaKernelNodeAttrValue value = {};
  value.accessPolicyWindow.base_ptr = As<void>("values", 1 << 16);
  value.accessPolicyWindow.num_bytes = 1 << 16;
  value.accessPolicyWindow.hitRatio = 1;
  value.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
  value.accessPolicyWindow.missProp = cudaAccessPropertyStreaming;
  ASSERT_CUDA(
      cudaGraphKernelNodeSetAttribute(nodes[0], cudaLaunchAttributeAccessPolicyWindow, &value));
  CUstreamBatchMemOpParams write = {};
  write.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  write.writeValue.address = At("keys", 256);
  CUDA_BATCH_MEM_OP_NODE_PARAMS params = {};
  ASSERT_EQ(DriverFunction<PFN_cuCtxGetCurrent_v4000>("cuCtxGetCurrent", 4000)(&params.ctx),
            CUDA_SUCCESS);
  params.count = 1;
  params.paramArray = &write;
  CUgraphNode node;
  const auto add =
      DriverFunction<PFN_cuGraphAddBatchMemOpNode_v11070>("cuGraphAddBatchMemOpNode", 11070);
  ASSERT_EQ(add(&node, graph, nullptr, 0, &params), CUDA_SUCCESS);
  const GraphView view = View(graph);
  const AuditReport report = Audited(view);
  EXPECT_THAT(report.problems, IsEmpty()) << Listing(view, report);
  const auto has = [&](WordPlace place, std::uint64_t word) {
    return std::any_of(report.pointers.begin(), report.pointers.end(),
                       [&](const auto& p) { return p.place == place && p.word == word; });
  };
  EXPECT_TRUE(has(WordPlace::kOperation, At("keys", 256))) << Listing(view, report);
  EXPECT_TRUE(has(WordPlace::kPolicyWindow, At("values", 1 << 16))) << Listing(view, report);
  cudaGraphDestroy(graph);
}

TEST_F(CudaAuditTest, AForeignGraphIsAuditedWithoutAnArena) {
  const cudaGraph_t graph = CaptureZoo(0);
  ASSERT_OK_AND_ASSIGN(const auto audit, StandAloneAudit::Create(device_->info().spec));
  for (const SpanInfo& span : arena_->spans()) {
    ASSERT_OK(audit->AddRange({.name = span.spec.name, .range = span.range}));
  }
  ASSERT_OK(audit->AddRange(
      {.name = "staging", .range = {{reinterpret_cast<std::uint64_t>(staging_)}, kSpanBytes}}));
  ASSERT_OK_AND_ASSIGN(const AuditReport report, audit->Graph("zoo", graph));
  EXPECT_THAT(report.problems, IsEmpty()) << Listing(View(graph), report);
  ASSERT_CUDA(cudaGraphDestroy(graph));  // it was only borrowed
}

}  // namespace
}  // namespace holdfast

#else

TEST(CudaAuditTest, NeedsABuildWithCuda) { GTEST_SKIP() << "this build has no CUDA code"; }

#endif
