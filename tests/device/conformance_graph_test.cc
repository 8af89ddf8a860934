// Capture, what a captured graph shows, and replay, as every device must do them.
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/device/device_fixture.h"
#include "tests/device/test_ops.h"

namespace holdfast {
namespace {

class GraphConformance : public DeviceTest {
 protected:
  GraphConformance() : memory_(*device_, granularity(), kTestBase) {}

  DeviceAddress At(std::uint64_t offset) const { return memory_.base() + offset; }

  absl::Status Scale(float factor, float offset) {
    return Launch(*device_, *stream_, ScaleOp(), ShapeFor(4),
                  ScaleParams{At(0).As<float>(), 4, factor, offset});
  }

  MappedMemory memory_;
};

// All words of a node's parameters that can hold a pointer.
std::vector<std::uint64_t> Words(const NodeView& node) {
  std::vector<std::uint64_t> words;
  for (const ParameterView& parameter : node.parameters) {
    for (std::size_t i = 0; i + 8 <= parameter.bytes.size(); ++i) {
      if ((parameter.offset + i) % 8 != 0) continue;
      std::uint64_t word;
      std::memcpy(&word, parameter.bytes.data() + i, 8);
      words.push_back(word);
    }
  }
  return words;
}

TEST_F(GraphConformance, CapturedWorkRunsAtReplayNotAtCapture) {
  Upload(At(0), std::vector<float>(4, 1.0f));
  ASSERT_OK(device_->BeginCapture(*stream_));
  ASSERT_OK(Scale(2.0f, 0.0f));
  ASSERT_OK(Scale(1.0f, 3.0f));
  ASSERT_OK(device_->CopyOnDevice(*stream_, At(1024), At(0), 16));
  ASSERT_OK(device_->Fill(*stream_, At(2048), 7, 16));
  ASSERT_OK_AND_ASSIGN(auto graph, device_->EndCapture(*stream_));
  EXPECT_EQ(Download<float>(At(0), 4), std::vector<float>(4, 1.0f));

  ASSERT_OK_AND_ASSIGN(auto executable, device_->Instantiate(*graph));
  graph.reset();  // the executable keeps what it needs
  for (int replay = 0; replay < 3; ++replay) {
    ASSERT_OK(device_->LaunchGraph(*stream_, *executable));
  }
  // 1 -> 5 -> 13 -> 29
  EXPECT_EQ(Download<float>(At(0), 4), std::vector<float>(4, 29.0f));
  EXPECT_EQ(Download<float>(At(1024), 4), std::vector<float>(4, 29.0f));
  EXPECT_EQ(Download<std::uint8_t>(At(2048), 16), std::vector<std::uint8_t>(16, 7));
}

TEST_F(GraphConformance, ReplayUsesTheBytesOfCaptureAndThePagesOfToday) {
  Upload(At(0), std::vector<float>(4, 1.0f));
  ASSERT_OK(device_->BeginCapture(*stream_));
  ASSERT_OK(Scale(3.0f, 0.0f));
  ASSERT_OK_AND_ASSIGN(const auto graph, device_->EndCapture(*stream_));
  ASSERT_OK_AND_ASSIGN(const auto executable, device_->Instantiate(*graph));
  // Other pages at the same address.
  ASSERT_OK(device_->Unmap(memory_.range()));
  ASSERT_OK_AND_ASSIGN(const ChunkHandle chunk, device_->CreateChunk(memory_.range().bytes));
  ASSERT_OK(device_->Map(memory_.base(), memory_.range().bytes, chunk));
  ASSERT_OK(device_->SetAccess(memory_.range(), Access::kReadWrite));
  ASSERT_OK(device_->ReleaseChunk(chunk));
  Upload(At(0), std::vector<float>(4, 2.0f));
  ASSERT_OK(device_->LaunchGraph(*stream_, *executable));
  EXPECT_EQ(Download<float>(At(0), 4), std::vector<float>(4, 6.0f));
}

TEST_F(GraphConformance, ViewShowsEveryPointerWord) {
  ASSERT_OK_AND_ASSIGN(const HostBuffer pinned, device_->AllocateHost(64));
  const std::uint64_t host = reinterpret_cast<std::uint64_t>(pinned.data());
  ASSERT_OK(device_->BeginCapture(*stream_));
  ASSERT_OK(Launch(
      *device_, *stream_, AddOp(), ShapeFor(4),
      AddParams{At(0).As<const float>(), At(256).As<const float>(), At(512).As<float>(), 4}));
  ASSERT_OK(device_->CopyToDevice(*stream_, At(1024), pinned.data(), 32));
  ASSERT_OK(device_->CopyToHost(*stream_, pinned.data() + 32, At(1024), 32));
  ASSERT_OK(device_->CopyOnDevice(*stream_, At(1536), At(1024), 48));
  ASSERT_OK(device_->Fill(*stream_, At(2048), 0xcd, 100));
  ASSERT_OK(device_->HostFunction(
      *stream_, [](void*) {}, nullptr));
  ASSERT_OK_AND_ASSIGN(const auto graph, device_->EndCapture(*stream_));
  ASSERT_OK_AND_ASSIGN(const GraphView view, graph->View());

  ASSERT_EQ(view.nodes.size(), 6u);
  const NodeView& add = view.nodes[0];
  EXPECT_EQ(add.kind, NodeKind::kKernel);
  const std::vector<std::uint64_t> expected = {At(0).value, At(256).value, At(512).value, 4};
  EXPECT_EQ(Words(add), expected);

  const NodeView& up = view.nodes[1];
  EXPECT_EQ(up.kind, NodeKind::kCopy);
  EXPECT_EQ(up.copy.source, host);
  EXPECT_EQ(up.copy.destination, At(1024).value);
  EXPECT_NE(up.copy.source_side, CopySide::kDevice);
  EXPECT_NE(up.copy.destination_side, CopySide::kHost);
  EXPECT_EQ(up.copy.bytes, 32u);
  const NodeView& down = view.nodes[2];
  EXPECT_EQ(down.copy.source, At(1024).value);
  EXPECT_EQ(down.copy.destination, host + 32);
  EXPECT_NE(down.copy.destination_side, CopySide::kDevice);
  EXPECT_EQ(view.nodes[3].copy.source, At(1024).value);
  EXPECT_EQ(view.nodes[3].copy.destination, At(1536).value);
  EXPECT_EQ(view.nodes[3].copy.bytes, 48u);

  const NodeView& fill = view.nodes[4];
  EXPECT_EQ(fill.kind, NodeKind::kFill);
  EXPECT_EQ(fill.fill.destination, At(2048).value);
  EXPECT_EQ(fill.fill.bytes, 100u);
  EXPECT_EQ(fill.fill.value & 0xffu, 0xcdu);
  EXPECT_EQ(view.nodes[5].kind, NodeKind::kHost);

  const std::vector<std::pair<std::size_t, std::size_t>> chain = {
      {0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}};
  EXPECT_EQ(view.edges, chain);
}

TEST_F(GraphConformance, AMatrixProductShowsItsOperands) {
  GemmSpec spec{.name = "w", .m = 16, .n = 16, .k = 16, .lda = 16, .ldb = 16, .ldd = 16};
  ASSERT_OK_AND_ASSIGN(const auto plan, device_->PlanGemm(spec));
  ASSERT_LE(plan->workspace_bytes(), granularity() / 2);
  std::vector<float> identity(256, 0.0f);
  for (int i = 0; i < 16; ++i) identity[i * 17] = 1.0f;
  std::vector<float> values(256);
  for (int i = 0; i < 256; ++i) values[i] = static_cast<float>(i % 23);
  Upload(At(0), values);
  Upload(At(4096), identity);
  ASSERT_OK(device_->BeginCapture(*stream_));
  ASSERT_OK(device_->Gemm(
      *stream_, *plan,
      {.a = At(0), .b = At(4096), .d = At(8192), .workspace = At(granularity() / 2)}));
  ASSERT_OK_AND_ASSIGN(const auto graph, device_->EndCapture(*stream_));
  ASSERT_OK_AND_ASSIGN(const GraphView view, graph->View());
  std::vector<std::uint64_t> words;
  for (const NodeView& node : view.nodes) {
    const auto more = Words(node);
    words.insert(words.end(), more.begin(), more.end());
  }
  EXPECT_THAT(words, testing::Contains(At(0).value));
  EXPECT_THAT(words, testing::Contains(At(4096).value));
  EXPECT_THAT(words, testing::Contains(At(8192).value));

  ASSERT_OK_AND_ASSIGN(const auto executable, device_->Instantiate(*graph));
  ASSERT_OK(device_->LaunchGraph(*stream_, *executable));
  EXPECT_EQ(Download<float>(At(8192), 256), values);
}

TEST_F(GraphConformance, TwoCapturesOfTheSameWorkAreTheSameWords) {
  std::vector<GraphView> views;
  for (int round = 0; round < 2; ++round) {
    ASSERT_OK(device_->BeginCapture(*stream_));
    ASSERT_OK(Scale(2.0f, 1.0f));
    ASSERT_OK_AND_ASSIGN(const auto graph, device_->EndCapture(*stream_));
    ASSERT_OK_AND_ASSIGN(GraphView view, graph->View());
    views.push_back(std::move(view));
  }
  EXPECT_EQ(Words(views[0].nodes[0]), Words(views[1].nodes[0]));
}

TEST_F(GraphConformance, AFailedCaptureLeavesTheStreamUsable) {
  ASSERT_OK_AND_ASSIGN(const HostBuffer hashes, device_->AllocateHost(64));
  Upload(At(0), std::vector<float>(4, 1.0f));
  for (const bool by_hash : {false, true}) {
    ASSERT_OK(device_->BeginCapture(*stream_));
    ASSERT_OK(Scale(2.0f, 0.0f));
    if (by_hash) {
      EXPECT_FALSE(
          device_->HashLeaves(*stream_, memory_.range(), reinterpret_cast<Hash128*>(hashes.data()))
              .ok());
    } else {
      EXPECT_FALSE(device_->Synchronize(*stream_).ok());
    }
    EXPECT_FALSE(device_->EndCapture(*stream_).ok());
    EXPECT_FALSE(device_->EndCapture(*stream_).ok()) << "no capture is under way";
  }
  EXPECT_EQ(Download<float>(At(0), 4), std::vector<float>(4, 1.0f));
  ASSERT_OK(Scale(2.0f, 0.0f));
  EXPECT_EQ(Download<float>(At(0), 4), std::vector<float>(4, 2.0f));
  ASSERT_OK(device_->BeginCapture(*stream_));
  ASSERT_OK(Scale(2.0f, 0.0f));
  EXPECT_OK(device_->EndCapture(*stream_));
}

TEST_F(GraphConformance, OneCaptureAStream) {
  ASSERT_OK(device_->BeginCapture(*stream_));
  EXPECT_FALSE(device_->BeginCapture(*stream_).ok());
  device_->EndCapture(*stream_).status().IgnoreError();
  ASSERT_OK(device_->BeginCapture(*stream_));
  ASSERT_OK_AND_ASSIGN(const auto graph, device_->EndCapture(*stream_));
  ASSERT_OK_AND_ASSIGN(const GraphView view, graph->View());
  EXPECT_TRUE(view.nodes.empty());
  ASSERT_OK_AND_ASSIGN(const auto executable, device_->Instantiate(*graph));
  EXPECT_OK(device_->LaunchGraph(*stream_, *executable));
  EXPECT_OK(device_->Synchronize(*stream_));
}

TEST_F(GraphConformance, InstantiatingKernelsNeedsNoPages) {
  ASSERT_OK(device_->BeginCapture(*stream_));
  ASSERT_OK(Scale(2.0f, 0.0f));
  ASSERT_OK_AND_ASSIGN(const auto kernels, device_->EndCapture(*stream_));
  ASSERT_OK(device_->BeginCapture(*stream_));
  ASSERT_OK(device_->Fill(*stream_, At(0), 1, 64));
  ASSERT_OK_AND_ASSIGN(const auto fills, device_->EndCapture(*stream_));

  ASSERT_OK(device_->Unmap(memory_.range()));
  ASSERT_OK_AND_ASSIGN(const auto executable, device_->Instantiate(*kernels));
  EXPECT_FALSE(device_->Instantiate(*fills).ok());
  ASSERT_OK(device_->Map(memory_.base(), memory_.range().bytes, memory_.chunk()));
  ASSERT_OK(device_->SetAccess(memory_.range(), Access::kReadWrite));
  Upload(At(0), std::vector<float>(4, 1.0f));
  ASSERT_OK(device_->LaunchGraph(*stream_, *executable));
  EXPECT_EQ(Download<float>(At(0), 4), std::vector<float>(4, 2.0f));
}

}  // namespace
}  // namespace holdfast
