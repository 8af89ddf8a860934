#include "allocator/leaf_hashes.h"

#include "device/error.h"

namespace holdfast {

absl::Status LaunchHashes(Device& device, Stream& stream, const std::vector<HashPiece>& pieces,
                          Hash128* out) {
  HashPiece run;
  const auto launch = [&]() -> absl::Status {
    if (run.range.bytes == 0) return absl::OkStatus();
    return device.HashLeaves(stream, run.range, out + run.first_leaf);
  };
  for (const HashPiece& piece : pieces) {
    if (piece.range.bytes == 0) continue;
    const bool follows = run.range.bytes > 0 && run.range.end() == piece.range.base &&
                         run.range.bytes % kHashLeafBytes == 0 &&
                         run.first_leaf + run.range.bytes / kHashLeafBytes == piece.first_leaf;
    if (follows) {
      run.range.bytes += piece.range.bytes;
      continue;
    }
    HOLDFAST_RETURN_IF_ERROR(launch());
    run = piece;
  }
  return launch();
}

}  // namespace holdfast
