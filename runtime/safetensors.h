// Safetensors files, validated when opened: nothing that a reader relies on later is taken from the
// file unchecked.
//
// Format: 8 bytes little-endian header length N, N bytes of JSON {name: {dtype, shape,
// data_offsets}}, data.
#ifndef HOLDFAST_RUNTIME_SAFETENSORS_H_
#define HOLDFAST_RUNTIME_SAFETENSORS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace holdfast {

struct TensorInfo {
  std::string dtype;                // "F32", "BF16", ...: one of the format's known names
  std::vector<std::int64_t> shape;  // no negative extents
  std::uint64_t offset = 0;         // of its data, from the start of the file
  std::uint64_t bytes = 0;          // product of shape x dtype
};

class SafetensorsFile {
 public:
  // All checks are made here: that the header lies within the file, and that every tensor has a
  // known dtype, a shape whose product fits, and a data range of that size, which together fill the
  // data without overlap or gap. Errors carry the path as object: kNotFound if it cannot be opened,
  // kInvalidArgument if it is no regular file, kUnsupported for an unknown dtype, else kCorrupted.
  static absl::StatusOr<SafetensorsFile> Open(const std::string& path);
  SafetensorsFile(SafetensorsFile&& other) noexcept;
  SafetensorsFile& operator=(SafetensorsFile&& other) noexcept;
  ~SafetensorsFile();

  const std::string& path() const { return path_; }
  const std::map<std::string, TensorInfo>& tensors() const { return tensors_; }
  // Reads bytes [offset, offset + bytes) of a tensor's data into `out`. Thread-safe.
  // kInvalidArgument if that is beyond the tensor; kCorrupted if the file has changed since. `out`
  // is undefined after an error.
  absl::Status Read(const TensorInfo& tensor, std::uint64_t offset, std::uint64_t bytes,
                    void* out) const;

 private:
  SafetensorsFile() = default;
  std::string path_;
  int descriptor_ = -1;  // owned; -1 after a move
  std::map<std::string, TensorInfo> tensors_;
};

// The tensors of a folder: model.safetensors if there is one, else the shards that
// model.safetensors.index.json lists, which must lie in the folder itself and share no tensor.
class Checkpoint {
 public:
  // As SafetensorsFile::Open; kCorrupted with the index as object if it and the shards do not
  // agree.
  static absl::StatusOr<Checkpoint> Open(const std::string& folder);

  // Null if there is no such tensor.
  const TensorInfo* Find(const std::string& name) const;
  // kNotFound naming the tensor, or as SafetensorsFile::Read.
  absl::Status Read(const std::string& name, std::uint64_t offset, std::uint64_t bytes,
                    void* out) const;
  std::vector<std::string> names() const;
  std::uint64_t total_bytes() const;

 private:
  Checkpoint() = default;
  std::vector<SafetensorsFile> files_;
  std::map<std::string, std::size_t> file_of_;
};

}  // namespace holdfast

#endif  // HOLDFAST_RUNTIME_SAFETENSORS_H_
