#include "runtime/kernels/pattern.h"

#include <algorithm>
#include <cstring>

#include "runtime/kernels/launch.h"

namespace holdfast {
namespace {

constexpr std::uint64_t kMostBlocks = 1024;  // each thread then takes several words

void PatternWriteHost(const PatternWriteParams& p) {
  const std::uint64_t key = PatternKey(p.key, p.salt);
  char* const data = static_cast<char*>(p.data);
  for (std::uint64_t at = 0; at < p.bytes; at += 8) {
    const std::uint64_t word = PatternWord(key, at / 8);
    std::memcpy(data + at, &word, std::min<std::uint64_t>(8, p.bytes - at));
  }
}

void PatternVerifyHost(const PatternVerifyParams& p) {
  const std::uint64_t key = PatternKey(p.key, p.salt);
  const char* const data = static_cast<const char*>(p.data);
  for (std::uint64_t at = 0; at < p.bytes; at += 8) {
    const std::uint64_t bytes = std::min<std::uint64_t>(8, p.bytes - at);
    const std::uint64_t wanted = FirstBytes(PatternWord(key, at / 8), bytes);
    std::uint64_t seen = 0;
    std::memcpy(&seen, data + at, bytes);
    if (seen == wanted) continue;
    ++p.fault->differing;
    p.fault->first_from_end = std::max(p.fault->first_from_end, ~at);
    *p.digest += PatternBlame(seen, wanted);
  }
}

}  // namespace

const Op& PatternWriteOp() {
  static const Op op = MakeOp<PatternWriteParams, PatternWriteHost>(
      "pattern_write", HOLDFAST_CUDA_TWIN(PatternWriteCuda));
  return op;
}

const Op& PatternVerifyOp() {
  static const Op op = MakeOp<PatternVerifyParams, PatternVerifyHost>(
      "pattern_verify", HOLDFAST_CUDA_TWIN(PatternVerifyCuda));
  return op;
}

LaunchShape PatternShape(std::uint64_t bytes) {
  const std::uint64_t per_block = std::uint64_t{8} * kRowThreads;
  const std::uint64_t blocks = std::clamp<std::uint64_t>(
      bytes / per_block + (bytes % per_block != 0), 1, kMostBlocks);
  return BlockPerRow(static_cast<std::int32_t>(blocks));
}

}  // namespace holdfast
