#include <sys/stat.h>

#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "device/error.h"
#include "runtime/json.h"
#include "runtime/safetensors.h"
#include "runtime/text_file.h"

namespace holdfast {
namespace {

constexpr std::uint64_t kMaxIndexBytes = 64 << 20;
constexpr std::size_t kMaxShards = 1024;  // each takes a file descriptor

bool Exists(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0;
}

absl::Status IndexFault(const std::string& index, const std::string& what) {
  return MakeError({.kind = ErrorKind::kCorrupted, .object = index}, what);
}

// A file of the folder itself: no path, so that an index cannot name what lies elsewhere.
bool IsShardName(const std::string& name) {
  return absl::EndsWith(name, ".safetensors") && name.front() != '.' &&
         name.find('/') == std::string::npos && name.find('\0') == std::string::npos;
}

// tensor -> shard, as the index says.
absl::StatusOr<std::map<std::string, std::string>> ReadIndex(const std::string& index) {
  HOLDFAST_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(index, kMaxIndexBytes));
  HOLDFAST_ASSIGN_OR_RETURN(const nlohmann::json root,
                            ParseJson(text, index, {.max_bytes = kMaxIndexBytes}));
  if (!root.is_object() || !root.contains("weight_map") || !root["weight_map"].is_object() ||
      root["weight_map"].empty()) {
    return IndexFault(index, "has no weight_map");
  }
  std::map<std::string, std::string> shard_of;
  for (const auto& [tensor, shard] : root["weight_map"].items()) {
    if (!shard.is_string() || !IsShardName(shard.get<std::string>())) {
      return IndexFault(
          index, absl::StrCat("names no .safetensors file of its folder for ", QuoteName(tensor)));
    }
    shard_of[tensor] = shard.get<std::string>();
  }
  return shard_of;
}

}  // namespace

absl::StatusOr<Checkpoint> Checkpoint::Open(const std::string& folder) {
  const std::string single = folder + "/model.safetensors";
  const std::string index = folder + "/model.safetensors.index.json";
  std::map<std::string, std::string> shard_of;
  std::set<std::string> shards;
  if (!Exists(single) && Exists(index)) {
    HOLDFAST_ASSIGN_OR_RETURN(shard_of, ReadIndex(index));
    for (const auto& [tensor, shard] : shard_of) shards.insert(shard);
    if (shards.size() > kMaxShards)
      return IndexFault(index, absl::StrCat("has more than ", kMaxShards, " shards"));
  } else {
    shards.insert("model.safetensors");
  }

  Checkpoint checkpoint;
  for (const std::string& shard : shards) {
    HOLDFAST_ASSIGN_OR_RETURN(SafetensorsFile file,
                              SafetensorsFile::Open(absl::StrCat(folder, "/", shard)));
    for (const auto& [name, tensor] : file.tensors()) {
      if (const auto known = checkpoint.file_of_.find(name); known != checkpoint.file_of_.end()) {
        return IndexFault(
            index, absl::StrCat("leads to ", QuoteName(name), " both in ", file.path(), " and in ",
                                checkpoint.files_[known->second].path()));
      }
      checkpoint.file_of_[name] = checkpoint.files_.size();
    }
    checkpoint.files_.push_back(std::move(file));
  }
  for (const auto& [name, shard] : shard_of) {
    const auto found = checkpoint.file_of_.find(name);
    if (found == checkpoint.file_of_.end() ||
        checkpoint.files_[found->second].path() != absl::StrCat(folder, "/", shard)) {
      return IndexFault(index, absl::StrCat("says that ", QuoteName(name), " is in ", shard,
                                            ", which has it not"));
    }
  }
  return checkpoint;
}

const TensorInfo* Checkpoint::Find(const std::string& name) const {
  const auto it = file_of_.find(name);
  return it == file_of_.end() ? nullptr : &files_[it->second].tensors().at(name);
}

absl::Status Checkpoint::Read(const std::string& name, std::uint64_t offset, std::uint64_t bytes,
                              void* out) const {
  const auto it = file_of_.find(name);
  if (it == file_of_.end()) {
    return MakeError({.kind = ErrorKind::kNotFound, .object = name},
                     "the checkpoint has no such tensor");
  }
  const SafetensorsFile& file = files_[it->second];
  return Annotate(file.Read(file.tensors().at(name), offset, bytes, out), name);
}

std::vector<std::string> Checkpoint::names() const {
  std::vector<std::string> names;
  names.reserve(file_of_.size());
  for (const auto& [name, file] : file_of_) names.push_back(name);
  return names;
}

std::uint64_t Checkpoint::total_bytes() const {
  std::uint64_t total = 0;
  for (const SafetensorsFile& file : files_) {
    for (const auto& [name, tensor] : file.tensors()) total += tensor.bytes;
  }
  return total;
}

}  // namespace holdfast
