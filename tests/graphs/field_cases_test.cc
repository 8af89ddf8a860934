// Field reports of sleep and wake, as they would show with captured graphs here: shared scratch
// that stays, tables that come back as junk, scales that are lost, spans freed under a graph.
#include <chrono>
#include <cstring>

#include "allocator/residency.h"
#include "graphs/graph.h"
#include "gtest/gtest.h"
#include "tests/allocator/bytes_on_device.h"
#include "tests/device/test_device.h"
#include "tests/device/test_ops.h"

namespace holdfast {
namespace {

Residency::Deadline Soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(60); }

class FieldCaseTest : public testing::Test {
 protected:
  void Make(std::vector<GroupSpec> groups) {
    for (GroupSpec& group : groups) group.chunk_bytes = g_;
    auto arena = Arena::Create(*device_, {.groups = std::move(groups)});
    ASSERT_OK(arena);
    arena_ = *std::move(arena);
    auto residency = Residency::Create(*arena_);
    ASSERT_OK(residency);
    residency_ = *std::move(residency);
    auto lane = Lane::Create(*arena_, "lane");
    ASSERT_OK(lane);
    lane_ = *std::move(lane);
  }
  SpanId Add(SpanSpec spec) {
    const std::string tag = spec.tag;
    auto id = arena_->Reserve(std::move(spec));
    EXPECT_OK(id);
    EXPECT_OK(arena_->CommitTag(tag));
    return id.ok() ? *id : SpanId{};
  }
  void Write(SpanId span, const Bytes& bytes) {
    WriteBytes(*device_, lane_->stream(), arena_->range(span).base, bytes);
  }
  Bytes Read(SpanId span) { return ReadBytes(*device_, lane_->stream(), arena_->range(span)); }

  // out = copy of the first 8 bytes of `from`, captured.
  std::unique_ptr<Graph> CapturePeek(SpanId from, SpanId out) {
    auto graph =
        Graph::Capture(*lane_, {.phase = Phase::kDecode, .size = 1},
                       [from, out](StepContext& step) {
                         const PeekParams params{step.Resolve(from).As<const std::uint64_t>(),
                                                 step.Resolve(out).As<std::uint64_t>()};
                         return step.Launch(PeekOp(), ShapeFor(1), params);
                       },
                       {});
    EXPECT_OK(graph);
    return graph.ok() ? *std::move(graph) : nullptr;
  }
  std::uint64_t Replay(Graph& graph, SpanId out) {
    EXPECT_OK(graph.Replay());
    EXPECT_OK(lane_->Synchronize());
    std::uint64_t value = 0;
    const Bytes bytes = Read(out);
    std::memcpy(&value, bytes.data(), sizeof(value));
    return value;
  }
  static Bytes Word(std::uint64_t value) {
    Bytes bytes(sizeof(value));
    std::memcpy(bytes.data(), &value, sizeof(value));
    return bytes;
  }

  std::unique_ptr<Device> device_ = TestDevice();
  const std::uint64_t g_ = device_->info().granularity;
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<Residency> residency_;
  std::unique_ptr<Lane> lane_;
};

// Field case 2: two users of one scratch slot, the larger of which counts, leave nothing behind
// asleep; a replay before the slot is back is refused; the slot comes back where it was.
TEST_F(FieldCaseTest, SharedScratchSleepsWithTheRest) {
  Make({{"weights", Role::kImmutable, 2 * g_},
        {"kv_cache", Role::kCache, 3 * g_},
        {"workspace", Role::kScratch, 4 * g_}});
  const SpanId weights =
      Add({.name = "w", .tag = "weights", .role = Role::kImmutable, .bytes = 2 * g_});
  const SpanId kv = Add({.name = "kv", .tag = "kv_cache", .role = Role::kCache, .bytes = 3 * g_});
  // Requests of 1 and 4 granules by two users of the slot: the larger is held.
  const SpanId slot =
      Add({.name = "slot", .tag = "workspace", .role = Role::kScratch, .bytes = 4 * g_});
  Write(weights, Word(42));
  const std::unique_ptr<Graph> graph = CapturePeek(weights, slot);
  ASSERT_NE(graph, nullptr);
  arena_->Lock();
  EXPECT_EQ(Replay(*graph, slot), 42u);
  const AddressRange before = arena_->range(slot);
  const std::uint64_t free_awake = device_->Memory()->free_bytes;
  const std::uint64_t own_awake = device_->Memory()->own_bytes;
  ASSERT_OK_AND_ASSIGN(const TransitionReport slept,
                       residency_->Sleep({"weights", "kv_cache", "workspace"}, Soon()));
  EXPECT_EQ(slept.freed_bytes, 9 * g_);
  EXPECT_EQ(device_->Memory()->own_bytes, own_awake - 9 * g_);
  if (!device_->info().is_cuda) {
    EXPECT_EQ(device_->Memory()->free_bytes, free_awake + 9 * g_);
  }

  ASSERT_OK(residency_->Wake({"weights", "kv_cache"}));
  const std::uint64_t launches = device_->calls().succeeded(Call::kLaunchGraph);
  const absl::Status refused = graph->Replay();
  EXPECT_THAT(refused, IsErrorKind(ErrorKind::kAsleep));
  EXPECT_EQ(GetErrorInfo(refused)->object, "workspace");
  EXPECT_EQ(device_->calls().succeeded(Call::kLaunchGraph), launches);
  ASSERT_OK(residency_->Wake({"workspace"}));
  EXPECT_EQ(arena_->range(slot), before);
  EXPECT_EQ(Replay(*graph, slot), 42u);
  EXPECT_OK(lane_->Synchronize());
  static_cast<void>(kv);
}

// Field case 14: small tables that a graph reads are refilled in place at wake, while another user
// of the device filled everything in between: same addresses, and a value changed at wake is seen.
TEST_F(FieldCaseTest, TablesAreRefreshedInPlaceAndTheReplaySeesTheNewValue) {
  Make({{"tables", Role::kMutable, g_, g_, true}, {"state", Role::kMutable, g_}});
  std::uint64_t stride = 128;
  HostBuffer source;
  const SpanId table = Add({.name = "block_table.strides",
                            .tag = "tables",
                            .bytes = 64,
                            .wake_contents = WakeContents::kUndefined,
                            .refill = [&](Device& device, Stream& stream, AddressRange span) {
                              HOLDFAST_ASSIGN_OR_RETURN(source, device.AllocateHost(span.bytes));
                              std::memcpy(source.data(), &stride, sizeof(stride));
                              HOLDFAST_RETURN_IF_ERROR(device.CopyToDevice(
                                  stream, span.base, source.data(), span.bytes));
                              return device.Synchronize(stream);
                            }});
  const SpanId out = Add({.name = "out", .tag = "state", .bytes = 8});
  Write(table, Word(stride));
  const std::unique_ptr<Graph> graph = CapturePeek(table, out);
  ASSERT_NE(graph, nullptr);
  EXPECT_EQ(Replay(*graph, out), 128u);
  const AddressRange before = arena_->range(table);
  for (const std::uint64_t value : {std::uint64_t{128}, std::uint64_t{256}}) {
    ASSERT_OK(residency_->Sleep({"tables", "state"}, Soon()));
    {
      // Somebody takes what was freed, writes all of it, and gives it back.
      ASSERT_OK_AND_ASSIGN(const AddressRange window, device_->ReserveAddress(2 * g_, {}));
      ASSERT_OK_AND_ASSIGN(const ChunkHandle chunk, device_->CreateChunk(2 * g_));
      ASSERT_OK(device_->Map(window.base, window.bytes, chunk));
      ASSERT_OK(device_->SetAccess(window, Access::kReadWrite));
      ASSERT_OK(device_->Fill(lane_->stream(), window.base, 0xA5, window.bytes));
      ASSERT_OK(lane_->Synchronize());
      ASSERT_OK(device_->Unmap(window));
      ASSERT_OK(device_->ReleaseChunk(chunk));
      ASSERT_OK(device_->FreeAddress(window));
    }
    stride = value;
    ASSERT_OK(residency_->Wake({"tables", "state"}));
    EXPECT_EQ(arena_->range(table), before);
    EXPECT_EQ(Replay(*graph, out), value);
  }
  source = {};
}

// Field case 15: a constant table made under the cache's tag. Where the tag holds only what may be
// lost it is refused; as mutable contents of the same tag it comes back bit for bit, though the
// cache beside it comes back poisoned.
TEST_F(FieldCaseTest, AConstantUnderTheCachesTagIsRefusedOrKept) {
  Make({{"kv_cache", Role::kCache, g_}, {"other", Role::kMutable, g_}});
  EXPECT_THAT(arena_->Reserve({.name = "table", .tag = "kv_cache", .bytes = 2048}),
              IsErrorKind(ErrorKind::kNotFound));
  lane_.reset();
  residency_.reset();
  arena_.reset();
  Make({{"kv_cache", Role::kCache, g_}, {"kv_cache", Role::kMutable, 2 * g_}});
  const SpanId kv = Add({.name = "kv",
                         .tag = "kv_cache",
                         .role = Role::kCache,
                         .bytes = g_,
                         .wake_contents = WakeContents::kPoison});
  const SpanId table = Add({.name = "table", .tag = "kv_cache", .bytes = 256 * 8});
  const SpanId out = Add({.name = "out", .tag = "kv_cache", .bytes = 8});
  Write(table, Pattern(256 * 8, 15));
  const std::unique_ptr<Graph> graph = CapturePeek(table, out);
  ASSERT_NE(graph, nullptr);
  const std::uint64_t golden = Replay(*graph, out);
  for (int cycle = 0; cycle < 2; ++cycle) {
    ASSERT_OK(residency_->Sleep({"kv_cache"}, Soon()));
    ASSERT_OK(residency_->Wake({"kv_cache"}));
    EXPECT_TRUE(AllBytesAre(Read(kv), 0xFF));
    EXPECT_EQ(Read(table), Pattern(256 * 8, 15));
    EXPECT_EQ(Replay(*graph, out), golden);
  }
}

// Field case 41: quantisation scales of every layer, some of them in a list of states of one layer,
// are what they were, kept or reloaded, whatever container held them.
TEST_F(FieldCaseTest, ScalesOfEveryLayerAreWhatTheyWere) {
  Make({{"kv_cache", Role::kCache, g_},
        {"kv_cache", Role::kMutable, g_},
        {"reloaded", Role::kMutable, g_, g_, true}});
  constexpr float kScale = 0.37f, kValueScale = 1.9f;
  const auto floats = [](float k, float v) {
    Bytes bytes(2 * sizeof(float));
    std::memcpy(bytes.data(), &k, sizeof(k));
    std::memcpy(bytes.data() + sizeof(k), &v, sizeof(v));
    return bytes;
  };
  const Bytes scales = floats(kScale, kValueScale);
  HostBuffer source;
  const Refill reload = [&](Device& device, Stream& stream, AddressRange span) -> absl::Status {
    HOLDFAST_ASSIGN_OR_RETURN(source, device.AllocateHost(span.bytes));
    std::memcpy(source.data(), scales.data(), scales.size());
    HOLDFAST_RETURN_IF_ERROR(device.CopyToDevice(stream, span.base, source.data(), span.bytes));
    return device.Synchronize(stream);
  };
  std::vector<SpanId> spans;
  for (const std::string layer : {"0", "1", "2.state0", "2.state1", "3"}) {
    spans.push_back(
        Add({.name = "layers." + layer + ".scales", .tag = "kv_cache", .bytes = scales.size()}));
    Write(spans.back(), scales);
    spans.push_back(Add({.name = "layers." + layer + ".scales.reloaded",
                         .tag = "reloaded",
                         .bytes = scales.size(),
                         .refill = reload}));
    Write(spans.back(), scales);
  }
  for (const std::vector<std::string>& tags :
       {std::vector<std::string>{"kv_cache"}, {"kv_cache", "reloaded"}, {"reloaded"}}) {
    ASSERT_OK(residency_->Sleep(tags, Soon()));
    ASSERT_OK(residency_->Wake(tags));
    for (const SpanId span : spans) {
      EXPECT_EQ(Read(span), scales) << arena_->span(span).spec.name;
    }
  }
}

// A graph whose span was freed refuses, also when another span takes the name; others go on.
TEST_F(FieldCaseTest, AGraphOfAFreedSpanRefuses) {
  Make({{"state", Role::kMutable, 8 * g_}});
  const SpanId out = Add({.name = "out", .tag = "state", .bytes = 8});
  const SpanId kept = Add({.name = "kept", .tag = "state", .bytes = 8});
  const SpanId gone = Add({.name = "gone", .tag = "state", .bytes = 2 * g_});
  Write(kept, Word(5));
  Write(gone, Word(6));
  const std::unique_ptr<Graph> of_kept = CapturePeek(kept, out);
  const std::unique_ptr<Graph> of_gone = CapturePeek(gone, out);
  ASSERT_TRUE(of_kept != nullptr && of_gone != nullptr);
  EXPECT_EQ(Replay(*of_gone, out), 6u);
  ASSERT_OK(arena_->Free(gone, Soon()));
  for (int attempt = 0; attempt < 2; ++attempt) {
    const std::uint64_t launches = device_->calls().succeeded(Call::kLaunchGraph);
    const absl::Status refused = of_gone->Replay();
    EXPECT_THAT(refused, IsErrorKind(ErrorKind::kNotFound));
    EXPECT_EQ(GetErrorInfo(refused)->object, "gone");
    EXPECT_EQ(device_->calls().succeeded(Call::kLaunchGraph), launches);
    EXPECT_EQ(Replay(*of_kept, out), 5u);
    if (attempt == 0) Add({.name = "gone", .tag = "state", .bytes = 2 * g_});
  }
}

}  // namespace
}  // namespace holdfast
