#include "tools/kernels/contents.h"

#include <algorithm>

namespace holdfast {
namespace {

constexpr std::uint32_t kThreads = 256;
constexpr std::uint64_t kMostBlocks = 4096;  // each thread then takes several words

void ContentsHost(const ContentsParams& p) {
  for (std::uint64_t i = 0; i < p.count; ++i) p.words[i] = HashMix(p.seed + i);
}

}  // namespace

const Op& ContentsOp() {
  static const Op op =
      MakeOp<ContentsParams, ContentsHost>("bench_contents", HOLDFAST_CUDA_TWIN(ContentsCuda));
  return op;
}

LaunchShape ContentsShape(std::uint64_t count) {
  const std::uint64_t blocks = std::min(kMostBlocks, (count + kThreads - 1) / kThreads);
  return {.grid = {static_cast<std::uint32_t>(blocks)}, .block = {kThreads}};
}

}  // namespace holdfast
