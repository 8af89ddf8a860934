// One problem for mla_attention: random queries and keys of several sequences, how they lie in a
// paged cache on a device, and what float64 makes of the same stored values.
#ifndef HOLDFAST_TESTS_ATTENTION_MLA_CASE_H_
#define HOLDFAST_TESTS_ATTENTION_MLA_CASE_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "attention/kernels/mla_attention.h"
#include "tests/attention/numbers.h"
#include "tests/attention/test_memory.h"

namespace holdfast {

struct MlaShape {
  int heads = 4, latent = 64, rope = 16, page_tokens = 64;
  int width() const { return latent + rope; }
};

enum class Inputs {
  kUnit,    // q and keys N(0, 1): the weights are spread over many keys
  kPeaky,   // q six times as large: one key takes nearly all
  kOffset,  // q and keys N(0.5, 1): large scores, small differences
};

struct MlaRow {
  int sequence, kv_length;
};

template <typename T>
struct MlaCase {
  MlaShape shape;
  float scale = 0;
  std::vector<MlaRow> rows;
  std::vector<T> q;                  // (rows, heads, width); NaN in pad rows
  std::vector<std::vector<T>> keys;  // of each sequence: (length, width)

  std::size_t row_elements() const { return static_cast<std::size_t>(shape.heads) * shape.width(); }
};

// Sequences of the given lengths; each row sees the first kv_length keys of one of them.
template <typename T>
MlaCase<T> MakeMlaCase(const MlaShape& shape, const std::vector<int>& lengths,
                       const std::vector<MlaRow>& rows, Inputs inputs = Inputs::kUnit,
                       std::uint32_t seed = 1) {
  std::mt19937 random(seed);
  const float mean = inputs == Inputs::kOffset ? 0.5f : 0.0f;
  MlaCase<T> c{.shape = shape, .scale = 1 / std::sqrt(shape.width() / 3.0f), .rows = rows};
  c.q = Stored<T>(
      Normal(random, rows.size() * c.row_elements(), mean, inputs == Inputs::kPeaky ? 6 : 1));
  for (int length : lengths) {
    c.keys.push_back(Stored<T>(Normal(random, std::uint64_t(length) * shape.width(), mean)));
  }
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (rows[r].kv_length > 0) continue;
    std::fill_n(c.q.begin() + r * c.row_elements(), c.row_elements(), FromFloat<T>(kNaN));
  }
  return c;
}

// One row a sequence, seeing all of it.
template <typename T>
MlaCase<T> MakeDecodeCase(const MlaShape& shape, const std::vector<int>& lengths,
                          Inputs inputs = Inputs::kUnit, std::uint32_t seed = 1) {
  std::vector<MlaRow> rows;
  for (int length : lengths) rows.push_back({static_cast<int>(rows.size()), length});
  return MakeMlaCase<T>(shape, lengths, rows, inputs, seed);
}

template <typename T>
struct MlaResult {
  std::vector<T> out;      // (rows, heads, latent)
  std::vector<float> lse;  // (rows, heads)
  bool guards_intact = false;
};

// The cache as the device holds it: pages in shuffled order, the keys in layer 1 of 3, NaN in every
// place that holds no key, and page numbers that must not be followed behind each sequence's last.
template <typename T>
class PagedKeys {
 public:
  PagedKeys(const MlaCase<T>& c, std::uint32_t seed) : shape_(c.shape) {
    int pages = 2;  // at least two stay unused
    for (const std::vector<T>& keys : c.keys) {
      const int used = Pages(keys);
      table_stride = std::max(table_stride, used + 1);
      pages += used;
    }
    page_stride = 3 * LayerElements() + 8;
    cache.assign(pages * page_stride, FromFloat<T>(kNaN));
    table.assign(c.keys.size() * table_stride, INT32_MAX);
    std::vector<int> order(pages);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937(seed));
    for (std::size_t s = 0; s < c.keys.size(); ++s) {
      for (int p = 0; p < Pages(c.keys[s]); ++p) {
        table[s * table_stride + p] = order.back();
        Place(c.keys[s], p, order.back());
        order.pop_back();
      }
    }
  }

  std::int64_t layer_offset() const { return LayerElements(); }

  std::vector<T> cache;
  std::vector<std::int32_t> table;
  std::int64_t page_stride = 0;
  int table_stride = 1;

 private:
  std::int64_t LayerElements() const { return std::int64_t{shape_.page_tokens} * shape_.width(); }
  int Pages(const std::vector<T>& keys) const {
    return static_cast<int>((keys.size() + LayerElements() - 1) / LayerElements());
  }
  void Place(const std::vector<T>& keys, int index, int page) {
    const std::size_t begin = index * LayerElements();
    const std::size_t end = std::min<std::size_t>(begin + LayerElements(), keys.size());
    std::copy(keys.begin() + begin, keys.begin() + end,
              cache.begin() + page * page_stride + layer_offset());
  }

  MlaShape shape_;
};

// Test memory that holds the case, its result and their guards.
template <typename T>
std::uint64_t MlaCaseBytes(const MlaCase<T>& c) {
  const PagedKeys<T> paged(c, 0);
  return (paged.cache.size() + 2 * c.q.size()) * sizeof(T) +
         c.rows.size() * c.shape.heads * sizeof(float) + paged.table.size() * sizeof(std::int32_t) +
         64 * kKiB;
}

// Uploads the case and returns the kernel's parameters; `out` and `lse` hold NaN.
template <typename T>
MlaAttentionParams UploadMlaCase(TestMemory& memory, const MlaCase<T>& c, std::uint32_t page_seed) {
  const PagedKeys<T> paged(c, page_seed);
  std::vector<std::int32_t> sequence, kv_length;
  for (const MlaRow& row : c.rows) {
    sequence.push_back(row.kv_length > 0 ? row.sequence : -1);
    kv_length.push_back(row.kv_length);
  }
  const std::uint64_t heads = c.rows.size() * c.shape.heads;
  return {.q = memory.Upload(c.q),
          .cache = memory.Upload(paged.cache),
          .out = memory.Allocate<T>(heads * c.shape.latent),
          .lse = memory.Allocate<float>(heads),
          .block_table = memory.Upload(paged.table),
          .row_sequence = memory.Upload(sequence),
          .row_kv_length = memory.Upload(kv_length),
          .page_stride = paged.page_stride,
          .layer_offset = paged.layer_offset(),
          .rows = static_cast<std::int32_t>(c.rows.size()),
          .heads = c.shape.heads,
          .latent = c.shape.latent,
          .rope = c.shape.rope,
          .page_tokens = c.shape.page_tokens,
          .table_stride = paged.table_stride,
          .scale = c.scale};
}

template <typename T>
MlaResult<T> DownloadMlaResult(TestMemory& memory, const MlaAttentionParams& p) {
  const std::uint64_t heads = std::uint64_t(p.rows) * p.heads;
  return {.out = memory.Read(static_cast<const T*>(p.out), heads * p.latent),
          .lse = p.lse == nullptr ? std::vector<float>() : memory.Read<float>(p.lse, heads),
          .guards_intact = memory.GuardsIntact()};
}

// The reference, or the reference with one classic mistake planted.
enum class Mistake { kNone, kMaskOffByOne, kWrongScale, kRopePairing };

struct MlaReference {
  std::vector<double> out, lse;
};

template <typename T>
MlaReference ComputeReference(const MlaCase<T>& c, Mistake mistake = Mistake::kNone) {
  const int width = c.shape.width(), latent = c.shape.latent, half = c.shape.rope / 2;
  // Un-absorbed heads are what scales the scores; the width of a key is the trap.
  const double scale = mistake == Mistake::kWrongScale ? 1 / std::sqrt(double(width)) : c.scale;
  MlaReference reference;
  for (std::size_t r = 0; r < c.rows.size(); ++r) {
    const int length =
        std::max(0, c.rows[r].kv_length - (mistake == Mistake::kMaskOffByOne ? 1 : 0));
    for (int h = 0; h < c.shape.heads; ++h) {
      const T* stored = c.q.data() + r * c.row_elements() + std::size_t(h) * width;
      std::vector<double> q(width), out(latent, 0.0), scores(length);
      for (int i = 0; i < width; ++i) q[i] = ToFloat(stored[i]);
      if (mistake == Mistake::kRopePairing) {  // pairs (2i, 2i + 1) taken for (i, i + half)
        for (int i = 0; i < half; ++i) {
          q[latent + i] = ToFloat(stored[latent + 2 * i]);
          q[latent + half + i] = ToFloat(stored[latent + 2 * i + 1]);
        }
      }
      const std::vector<T>& keys = c.keys[length > 0 ? c.rows[r].sequence : 0];
      double maximum = -kInfinity, sum = 0;
      for (int j = 0; j < length; ++j) {
        const T* key = keys.data() + std::size_t(j) * width;
        double dot = 0;
        for (int i = 0; i < width; ++i) dot += q[i] * ToFloat(key[i]);
        scores[j] = scale * dot;
        maximum = std::max(maximum, scores[j]);
      }
      for (int j = 0; j < length; ++j) {
        const T* key = keys.data() + std::size_t(j) * width;
        const double weight = std::exp(scores[j] - maximum);
        sum += weight;
        for (int i = 0; i < latent; ++i) out[i] += weight * ToFloat(key[i]);
      }
      for (double value : out) reference.out.push_back(length > 0 ? value / sum : 0.0);
      reference.lse.push_back(length > 0 ? maximum + std::log(sum) : -kInfinity);
    }
  }
  return reference;
}

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_ATTENTION_MLA_CASE_H_
