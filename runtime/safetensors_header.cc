#include "runtime/safetensors_header.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "device/bytes.h"
#include "device/error.h"
#include "runtime/json.h"

namespace holdfast {
namespace {

using Json = nlohmann::json;

// Bytes an element; 0 if the format knows no such type of whole bytes.
std::uint64_t ElementBytes(const std::string& dtype) {
  static const auto* const known = new std::map<std::string, std::uint64_t>{
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"F8_E8M0", 1},
      {"U16", 2},  {"I16", 2}, {"F16", 2}, {"BF16", 2},    {"U32", 4},     {"I32", 4},
      {"F32", 4},  {"U64", 8}, {"I64", 8}, {"F64", 8},     {"C64", 8}};
  const auto it = known->find(dtype);
  return it == known->end() ? 0 : it->second;
}

// Checks the entries of one header. Every error names the file and the tensor.
class HeaderReader {
 public:
  HeaderReader(const std::string& path, std::uint64_t data_start, std::uint64_t data_bytes)
      : path_(path), data_start_(data_start), data_bytes_(data_bytes) {}

  absl::StatusOr<TensorInfo> ReadTensor(const std::string& name, const Json& entry) const {
    if (!entry.is_object()) return Fault(name, "is not described by an object");
    TensorInfo tensor;
    HOLDFAST_ASSIGN_OR_RETURN(const std::uint64_t element_bytes, ReadDType(name, entry, tensor));
    HOLDFAST_ASSIGN_OR_RETURN(const std::uint64_t elements, ReadShape(name, entry, tensor));
    if (elements > std::numeric_limits<std::uint64_t>::max() / element_bytes) {
      return Fault(name, "has more bytes than fit 64 bits");
    }
    HOLDFAST_RETURN_IF_ERROR(ReadRange(name, entry, tensor));
    if (tensor.bytes != elements * element_bytes) {
      return Fault(
          name, absl::StrCat("takes ", tensor.bytes, " bytes of data, its shape and dtype ask for ",
                             elements * element_bytes));
    }
    return tensor;
  }

  // The data ranges must follow one another from the first byte to the last.
  absl::Status CheckLayout(const std::map<std::string, TensorInfo>& tensors) const {
    std::vector<std::pair<const std::string*, const TensorInfo*>> order;
    order.reserve(tensors.size());
    for (const auto& [name, tensor] : tensors) order.emplace_back(&name, &tensor);
    std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
      return std::pair(a.second->offset, a.second->bytes) <
             std::pair(b.second->offset, b.second->bytes);
    });
    std::uint64_t end = data_start_;
    const std::string* before = nullptr;
    for (const auto& [name, tensor] : order) {
      if (tensor->offset < end) return Fault(*name, absl::StrCat("overlaps ", QuoteName(*before)));
      if (tensor->offset > end) {
        return Fault(*name, absl::StrCat("follows ", tensor->offset - end, " bytes of no tensor"));
      }
      end = tensor->offset + tensor->bytes;
      before = name;
    }
    if (end != data_start_ + data_bytes_) {
      return MakeError({.kind = ErrorKind::kCorrupted,
                        .object = path_,
                        .need = end,
                        .have = data_start_ + data_bytes_},
                       "has bytes after its last tensor");
    }
    return absl::OkStatus();
  }

  absl::Status CheckMetadata(const Json& metadata) const {
    const bool strings =
        metadata.is_object() &&
        std::all_of(metadata.begin(), metadata.end(), [](const Json& v) { return v.is_string(); });
    if (strings) return absl::OkStatus();
    return MakeError({.kind = ErrorKind::kCorrupted, .object = path_},
                     "has __metadata__ that is not a map of strings");
  }

 private:
  absl::Status Fault(const std::string& name, const std::string& what,
                     ErrorKind kind = ErrorKind::kCorrupted) const {
    return MakeError({.kind = kind, .object = path_},
                     absl::StrCat("tensor ", QuoteName(name), " ", what));
  }

  absl::StatusOr<std::uint64_t> ReadDType(const std::string& name, const Json& entry,
                                          TensorInfo& tensor) const {
    const auto it = entry.find("dtype");
    if (it == entry.end() || !it->is_string()) return Fault(name, "has no dtype");
    tensor.dtype = it->get<std::string>();
    const std::uint64_t bytes = ElementBytes(tensor.dtype);
    if (bytes == 0) {
      return Fault(name, absl::StrCat("has the unknown dtype ", QuoteName(tensor.dtype)),
                   ErrorKind::kUnsupported);
    }
    return bytes;
  }

  // The number of elements. A zero extent does not hide that the others overflow.
  absl::StatusOr<std::uint64_t> ReadShape(const std::string& name, const Json& entry,
                                          TensorInfo& tensor) const {
    const auto it = entry.find("shape");
    if (it == entry.end() || !it->is_array()) return Fault(name, "has no shape");
    std::uint64_t product = 1;
    bool empty = false;
    for (const Json& extent : *it) {
      constexpr std::uint64_t kMax = std::numeric_limits<std::int64_t>::max();
      if (!extent.is_number_unsigned() || extent.get<std::uint64_t>() > kMax) {
        return Fault(name, "has a shape with an extent that is no 63-bit count");
      }
      const std::uint64_t count = extent.get<std::uint64_t>();
      tensor.shape.push_back(static_cast<std::int64_t>(count));
      empty |= count == 0;
      if (count == 0) continue;
      if (product > kMax / count) return Fault(name, "has a shape whose product overflows");
      product *= count;
    }
    return empty ? 0 : product;
  }

  absl::Status ReadRange(const std::string& name, const Json& entry, TensorInfo& tensor) const {
    const auto it = entry.find("data_offsets");
    if (it == entry.end() || !it->is_array() || it->size() != 2 || !(*it)[0].is_number_unsigned() ||
        !(*it)[1].is_number_unsigned()) {
      return Fault(name, "has no two data offsets");
    }
    const std::uint64_t begin = (*it)[0].get<std::uint64_t>(), end = (*it)[1].get<std::uint64_t>();
    if (begin > end)
      return Fault(name, absl::StrCat("ends at ", end, ", before it begins at ", begin));
    if (end > data_bytes_) {
      return MakeError(
          {.kind = ErrorKind::kCorrupted, .object = path_, .need = end, .have = data_bytes_},
          absl::StrCat("tensor ", QuoteName(name), " lies beyond the end: the file is truncated"));
    }
    tensor.offset = data_start_ + begin;
    tensor.bytes = end - begin;
    return absl::OkStatus();
  }

  const std::string& path_;
  const std::uint64_t data_start_, data_bytes_;
};

}  // namespace

absl::StatusOr<std::map<std::string, TensorInfo>> ParseSafetensorsHeader(const std::string& text,
                                                                         const std::string& path,
                                                                         std::uint64_t data_start,
                                                                         std::uint64_t data_bytes) {
  if (text.empty() || text.front() != '{') {
    return MakeError({.kind = ErrorKind::kCorrupted, .object = path},
                     "is no safetensors file: its header is no object");
  }
  HOLDFAST_ASSIGN_OR_RETURN(
      const Json header,
      ParseJson(text, path, {.max_bytes = kSafetensorsMaxHeaderBytes, .max_depth = 4}));
  const HeaderReader reader(path, data_start, data_bytes);
  std::map<std::string, TensorInfo> tensors;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      HOLDFAST_RETURN_IF_ERROR(reader.CheckMetadata(entry));
      continue;
    }
    HOLDFAST_ASSIGN_OR_RETURN(tensors[name], reader.ReadTensor(name, entry));
  }
  HOLDFAST_RETURN_IF_ERROR(reader.CheckLayout(tensors));
  return tensors;
}

}  // namespace holdfast
