// A small program around one arena: weights, state, a cache, a workspace and pinned staging.
#ifndef HOLDFAST_TESTS_GRAPHS_TOY_H_
#define HOLDFAST_TESTS_GRAPHS_TOY_H_

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "allocator/arena.h"
#include "allocator/residency.h"
#include "graphs/lane.h"
#include "tests/device/status_matchers.h"
#include "tests/device/test_device.h"

namespace holdfast {

inline constexpr std::uint64_t kToyRows = 64;             // most rows of a toy step
inline constexpr std::uint64_t kToyBytes = kToyRows * 4;  // (rows) floats

// `weights` and `bias` touch; only the first half of `kv` is committed, and it wakes undefined.
class Toy {
 public:
  Toy() : device(TestDevice()) {
    const std::uint64_t extent = 2 * device->info().granularity;
    const std::uint64_t chunk = device->info().granularity;
    const auto group = [&](const char* tag, Role role) {
      return GroupSpec{.tag = tag, .role = role, .extent_bytes = extent, .chunk_bytes = chunk};
    };
    Take(arena, Arena::Create(
                    *device,
                    {.groups = {group("weights", Role::kImmutable), group("state", Role::kMutable),
                                group("kv", Role::kCache), group("workspace", Role::kScratch)}}));
    weights = Reserve("weights", "weights", Role::kImmutable, kToyBytes);
    bias = Reserve("bias", "weights", Role::kImmutable, kToyBytes);
    input = Reserve("input", "state", Role::kMutable, kToyBytes);
    output = Reserve("output", "state", Role::kMutable, kToyBytes);
    input2 = Reserve("input2", "state", Role::kMutable, kToyBytes);
    output2 = Reserve("output2", "state", Role::kMutable, kToyBytes);
    kv = Reserve("kv", "kv", Role::kCache, extent, WakeContents::kUndefined);
    workspace = Reserve("workspace", "workspace", Role::kScratch, 16 * kKiB);
    workspace2 = Reserve("workspace2", "workspace", Role::kScratch, 16 * kKiB);
    for (const char* tag : {"weights", "state", "workspace"}) EXPECT_OK(arena->CommitTag(tag));
    EXPECT_OK(arena->Commit(kv, chunk));
    Take(staging_in, arena->AddHostSpan("staging.in", kToyBytes));
    Take(staging_out, arena->AddHostSpan("staging.out", kToyBytes));
    Take(staging_out2, arena->AddHostSpan("staging.out2", kToyBytes));
    Take(residency, Residency::Create(*arena));
    Take(lane, Lane::Create(*arena, "lane"));
  }

  std::uint64_t At(SpanId span, std::uint64_t offset = 0) const {
    return arena->range(span).base.value + offset;
  }
  float* In() const { return reinterpret_cast<float*>(staging_in->buffer.data()); }
  float* Out() const { return reinterpret_cast<float*>(staging_out->buffer.data()); }

  absl::Status Sleep(const std::vector<std::string>& tags) {
    return residency->Sleep(tags, std::chrono::steady_clock::now() + std::chrono::seconds(60))
        .status();
  }
  absl::Status Wake(const std::vector<std::string>& tags) { return residency->Wake(tags).status(); }

  std::unique_ptr<Device> device;
  std::unique_ptr<Arena> arena;
  SpanId weights, bias, input, input2, output, output2, kv, workspace, workspace2;
  const HostSpan* staging_in = nullptr;
  const HostSpan* staging_out = nullptr;
  const HostSpan* staging_out2 = nullptr;
  std::unique_ptr<Residency> residency;
  std::unique_ptr<Lane> lane;

 private:
  template <typename T>
  static void Take(T& to, absl::StatusOr<T> from) {
    EXPECT_OK(from);
    if (from.ok()) to = *std::move(from);
  }
  SpanId Reserve(const char* name, const char* tag, Role role, std::uint64_t bytes,
                 WakeContents wake = WakeContents::kZero) {
    SpanId id;
    Take(id, arena->Reserve(
                 {.name = name, .tag = tag, .role = role, .bytes = bytes, .wake_contents = wake}));
    return id;
  }
};

// Device memory that no arena knows: one chunk mapped at an address of its own.
class StrayChunk {
 public:
  explicit StrayChunk(Device& device) : device_(device), bytes_(device.info().granularity) {
    range_ = *device_.ReserveAddress(bytes_, {});
    chunk_ = *device_.CreateChunk(bytes_);
    EXPECT_OK(device_.Map(range_.base, bytes_, chunk_));
    EXPECT_OK(device_.SetAccess(range_, Access::kReadWrite));
  }
  ~StrayChunk() {
    EXPECT_OK(device_.Unmap(range_));
    EXPECT_OK(device_.ReleaseChunk(chunk_));
    EXPECT_OK(device_.FreeAddress(range_));
  }
  std::uint64_t At(std::uint64_t offset = 0) const { return range_.base.value + offset; }
  AddressRange range() const { return range_; }

 private:
  Device& device_;
  std::uint64_t bytes_;
  AddressRange range_;
  ChunkHandle chunk_;
};

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_GRAPHS_TOY_H_
