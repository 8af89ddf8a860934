#include "tools/plain_copy.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <vector>

#include "allocator/arena.h"
#include "allocator/backing_pool.h"
#include "device/bytes.h"

namespace holdfast {
namespace {

constexpr std::uint64_t kMostRoom = 4 * kGiB;
constexpr int kRuns = 3;

std::uint64_t Pieces(std::uint64_t bytes, std::uint64_t piece_bytes) {
  const std::uint64_t all = (bytes + piece_bytes - 1) / piece_bytes;
  return std::clamp<std::uint64_t>(kMostRoom / piece_bytes, 1, all);
}

struct Ring {
  Device& device;
  Stream& stream;
  DeviceAddress base;
  std::vector<PooledBuffer> host;  // one a piece
  std::uint64_t piece_bytes;

  absl::StatusOr<double> Run(std::uint64_t bytes, bool out) {
    const auto start = std::chrono::steady_clock::now();
    std::size_t piece = 0;
    for (std::uint64_t at = 0; at < bytes; at += piece_bytes) {
      const std::uint64_t count = std::min(piece_bytes, bytes - at);
      const DeviceAddress there = base + piece * piece_bytes;
      HOLDFAST_RETURN_IF_ERROR(out ? device.CopyToHost(stream, host[piece].data(), there, count)
                                   : device.CopyToDevice(stream, there, host[piece].data(), count));
      piece = (piece + 1) % host.size();
    }
    HOLDFAST_RETURN_IF_ERROR(device.Synchronize(stream));
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  absl::StatusOr<double> Median(std::uint64_t bytes, bool out) {
    HOLDFAST_RETURN_IF_ERROR(Run(bytes, out).status());
    std::array<double, kRuns> seconds{};
    for (double& s : seconds) {
      HOLDFAST_ASSIGN_OR_RETURN(s, Run(bytes, out));
    }
    std::sort(seconds.begin(), seconds.end());
    return seconds[kRuns / 2];
  }
};

}  // namespace

std::uint64_t PlainCopyRoom(std::uint64_t bytes, std::uint64_t piece_bytes) {
  return Pieces(bytes, piece_bytes) * piece_bytes;
}

absl::StatusOr<PlainCopy> MeasurePlainCopy(Device& device, std::uint64_t bytes,
                                           std::uint64_t piece_bytes) {
  piece_bytes = AlignUp(std::min(piece_bytes, bytes), device.info().granularity);
  const std::uint64_t pieces = Pieces(bytes, piece_bytes);
  HOLDFAST_ASSIGN_OR_RETURN(const std::unique_ptr<Arena> arena,
                            Arena::Create(device, {.name = "plain copy",
                                                   .groups = {{.tag = "ring",
                                                               .extent_bytes = pieces * piece_bytes,
                                                               .chunk_bytes = piece_bytes}},
                                                   .candidate_bases = {}}));
  HOLDFAST_ASSIGN_OR_RETURN(
      const SpanId span,
      arena->Reserve({.name = "ring", .tag = "ring", .bytes = pieces * piece_bytes}));
  HOLDFAST_RETURN_IF_ERROR(arena->Commit(span));
  HOLDFAST_ASSIGN_OR_RETURN(const std::unique_ptr<Stream> stream, device.CreateStream("copy"));
  const std::shared_ptr<BackingPool> pool = BackingPool::Create(device);
  HOLDFAST_ASSIGN_OR_RETURN(const std::unique_ptr<BackingOrder> order,
                            pool->Order(std::vector<std::uint64_t>(pieces, piece_bytes)));
  Ring ring{device, *stream, arena->range(span).base, {}, piece_bytes};
  for (std::size_t i = 0; i < pieces; ++i) {
    HOLDFAST_ASSIGN_OR_RETURN(ring.host.emplace_back(), order->Take(i));
  }
  PlainCopy copy{.bytes = bytes};
  HOLDFAST_ASSIGN_OR_RETURN(copy.out_seconds, ring.Median(bytes, /*out=*/true));
  HOLDFAST_ASSIGN_OR_RETURN(copy.in_seconds, ring.Median(bytes, /*out=*/false));
  return copy;
}

}  // namespace holdfast
