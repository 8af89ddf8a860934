#include "tools/bench_arena.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/chunk_sizes.h"
#include "device/bytes.h"
#include "tools/kernels/contents.h"

namespace holdfast {
namespace {

constexpr std::uint64_t kSpanAlignment = 256;
constexpr std::uint64_t kFirstSeed = 0x5eed;

absl::Status BadFlag(const std::string& flag, const std::string& why) {
  return MakeError({.kind = ErrorKind::kInvalidArgument, .object = flag}, why);
}

}  // namespace

absl::StatusOr<std::unique_ptr<BenchArena>> BenchArena::Create(Device& device,
                                                               const BenchArenaOptions& options,
                                                               bool through_pool) {
  if (options.spans < 1) return BadFlag("--spans", "must be at least 1");
  if (options.kept_bytes / 8 < options.spans) {
    return BadFlag("--bytes", "must be at least 8 for each span");
  }
  if (options.chunk_bytes < 1) return BadFlag("--chunk-bytes", "must be at least 1");
  std::unique_ptr<BenchArena> bench(new BenchArena(device, options));
  HOLDFAST_RETURN_IF_ERROR(bench->Build());
  HOLDFAST_RETURN_IF_ERROR(bench->Load(through_pool));
  return bench;
}

absl::Status BenchArena::Build() {
  const Role role = options_.sealed ? Role::kImmutable : Role::kMutable;
  const std::uint64_t each = AlignDown(options_.kept_bytes / options_.spans, 8);
  std::vector<GroupSpec> groups = {{.tag = kBenchKept,
                                    .role = role,
                                    .extent_bytes = AlignUp(each, kSpanAlignment) * options_.spans,
                                    .chunk_bytes = options_.chunk_bytes}};
  if (options_.dropped_bytes > 0) {
    groups.push_back({.tag = kBenchDropped,
                      .role = Role::kCache,
                      .extent_bytes = options_.dropped_bytes,
                      .chunk_bytes = kDroppedChunkFactor * options_.chunk_bytes});
  }
  HOLDFAST_ASSIGN_OR_RETURN(stream_, device_.CreateStream("bench"));
  HOLDFAST_ASSIGN_OR_RETURN(
      arena_, Arena::Create(device_, {.name = "bench", .groups = groups, .candidate_bases = {}}));
  for (std::uint64_t i = 0; i < options_.spans; ++i) {
    HOLDFAST_ASSIGN_OR_RETURN(const SpanId span, arena_->Reserve({.name = absl::StrCat("kept", i),
                                                                  .tag = kBenchKept,
                                                                  .role = role,
                                                                  .bytes = each,
                                                                  .alignment = kSpanAlignment,
                                                                  .owner = "bench"}));
    kept_.push_back(span);
    kept_logical_ += each;
  }
  HOLDFAST_RETURN_IF_ERROR(arena_->CommitTag(kBenchKept));
  if (options_.dropped_bytes > 0) {
    HOLDFAST_RETURN_IF_ERROR(arena_
                                 ->Reserve({.name = "dropped",
                                            .tag = kBenchDropped,
                                            .role = Role::kCache,
                                            .bytes = options_.dropped_bytes,
                                            .owner = "bench"})
                                 .status());
    HOLDFAST_RETURN_IF_ERROR(arena_->CommitTag(kBenchDropped));
  }
  arena_->Lock();
  HOLDFAST_ASSIGN_OR_RETURN(residency_, Residency::Create(*arena_, options_.residency));
  return absl::OkStatus();
}

AddressRange BenchArena::KeptRange() const {
  const AddressRange first = arena_->range(kept_.front()), last = arena_->range(kept_.back());
  return {first.base, last.end() - first.base};
}

absl::Status BenchArena::WriteContents(AddressRange range, std::uint64_t seed) {
  const std::uint64_t count = range.bytes / 8;
  return Launch(device_, *stream_, ContentsOp(), ContentsShape(count),
                ContentsParams{range.base.As<std::uint64_t>(), count, seed});
}

absl::Status BenchArena::Load(bool through_pool) {
  HOLDFAST_RETURN_IF_ERROR(WriteContents(KeptRange(), kFirstSeed));
  HOLDFAST_RETURN_IF_ERROR(device_.Synchronize(*stream_));
  if (through_pool) HOLDFAST_RETURN_IF_ERROR(LoadThroughPool());
  if (options_.sealed) HOLDFAST_RETURN_IF_ERROR(arena_->Seal(kBenchKept));
  return through_pool ? residency_->AdoptStaged(kBenchKept) : absl::OkStatus();
}

// As a loader that reads a file would: contents in the rooms first, from there to the device. Here
// they come from the device itself, which makes them fastest.
absl::Status BenchArena::LoadThroughPool() {
  for (const SpanId span : kept_) {
    HOLDFAST_ASSIGN_OR_RETURN(const std::vector<StagedPiece> pieces, residency_->Stage(span));
    for (const StagedPiece& piece : pieces) {
      const AddressRange to = piece.device;
      HOLDFAST_RETURN_IF_ERROR(device_.CopyToHost(*stream_, piece.host, to.base, to.bytes));
      HOLDFAST_RETURN_IF_ERROR(device_.Fill(*stream_, to.base, 0, to.bytes));
      HOLDFAST_RETURN_IF_ERROR(device_.CopyToDevice(*stream_, to.base, piece.host, to.bytes));
    }
  }
  return device_.Synchronize(*stream_);
}

absl::Status BenchArena::Rewrite(double fraction, std::uint64_t seed) {
  if (options_.sealed) HOLDFAST_RETURN_IF_ERROR(arena_->Unseal(kBenchKept));
  const AddressRange all = KeptRange();
  const std::uint64_t leaves = (all.bytes + kHashLeafBytes - 1) / kHashLeafBytes;
  const auto changed = std::clamp<std::uint64_t>(
      static_cast<std::uint64_t>(std::ceil(fraction * static_cast<double>(leaves))), 1, leaves);
  for (std::uint64_t i = 0; i < changed; ++i) {
    const std::uint64_t at = i * leaves / changed * kHashLeafBytes;
    const AddressRange leaf{all.base + at, std::min(kHashLeafBytes, all.bytes - at)};
    HOLDFAST_RETURN_IF_ERROR(WriteContents(leaf, seed + i * kHashLeafBytes));
  }
  HOLDFAST_RETURN_IF_ERROR(device_.Synchronize(*stream_));
  return options_.sealed ? arena_->Seal(kBenchKept) : absl::OkStatus();
}

absl::StatusOr<Hash128> BenchArena::HashContents() {
  const AddressRange all = KeptRange();
  const std::uint64_t leaves = (all.bytes + kHashLeafBytes - 1) / kHashLeafBytes;
  HOLDFAST_ASSIGN_OR_RETURN(const HostBuffer out, device_.AllocateHost(leaves * sizeof(Hash128)));
  HOLDFAST_RETURN_IF_ERROR(
      device_.HashLeaves(*stream_, all, reinterpret_cast<Hash128*>(out.data())));
  HOLDFAST_RETURN_IF_ERROR(device_.Synchronize(*stream_));
  return HashLeafOnHost(out.data(), out.size());
}

std::uint64_t BenchArena::mapped_kept_bytes() const {
  std::uint64_t bytes = 0;
  for (const TagBytes& row : arena_->bytes_by_tag()) {
    if (row.tag == kBenchKept) bytes += row.committed_bytes;
  }
  return bytes;
}

}  // namespace holdfast
