// What `holdfast run` is asked to do.
#ifndef HOLDFAST_TOOLS_RUN_OPTIONS_H_
#define HOLDFAST_TOOLS_RUN_OPTIONS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "device/bytes.h"

namespace holdfast {

// The faults a negative control can plant; each must end in FAIL naming it.
enum class Injection { kNone, kStalePointer, kSwapChunks, kFlipBit, kLostRefresh, kEarlyUnmap };
const char* InjectionName(Injection injection);  // "stale-pointer", ...
// What --inject takes: all but kNone, by name.
std::map<std::string, Injection> InjectionsByName();

struct RunOptions {
  // What runs
  std::string model;                 // folder with config.json and safetensors
  std::string synthetic;             // or: layers of declared backends (runtime/synthetic_spec.h)
  std::vector<std::string> prompts;  // the user's, before the built-in ones
  std::int32_t max_tokens = 32;
  std::int32_t cycles = 3;
  Injection inject = Injection::kNone;
  // Where
  std::string device = "auto";
  std::string dtype = "auto";  // f32 or bf16; auto: f32 on the host, bf16 on a GPU
  // Sampling of the seeded half
  float temperature = 0.8f;
  std::int32_t top_k = 40;
  std::uint64_t seed = 1234;
  // Shapes and memory
  std::int32_t max_batch = 16;
  std::int32_t max_prefill_tokens = 128;
  std::int32_t max_sequence = 256;
  std::optional<double> utilization;  // at most one of the three; none: 0.9 of the device
  std::optional<std::uint64_t> kv_bytes;
  std::optional<std::int64_t> kv_blocks;
  std::uint64_t chunk_bytes = 256 * kMiB;
  std::uint64_t host_capacity_bytes = 4 * kGiB;  // of the host device
  std::uint64_t host_cap_bytes = UINT64_MAX;     // pinned memory for backups
  bool through_pool = false;                     // weights stay in the pool they are read into
  bool deterministic = false;
  bool scribble = true;
  // Text check
  std::string dictionary = "/usr/share/dict/words";
  double min_dictionary_share = 0;  // FAIL below it; 0: the share is printed only
  // Output
  std::string json;      // file; empty: none
  std::string manifest;  // file for the graphs' manifest; empty: none
};

}  // namespace holdfast

#endif  // HOLDFAST_TOOLS_RUN_OPTIONS_H_
