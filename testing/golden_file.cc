#include "testing/golden_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "device/error.h"
#include "device/hash.h"

namespace holdfast::testing {
namespace {

// The number is the format's version.
constexpr char kMagic[] = "holdfast golden outputs 1\n";
constexpr std::size_t kMagicBytes = sizeof(kMagic) - 1;

void Put(std::string& to, std::uint64_t number) {
  for (int i = 0; i < 8; ++i) to.push_back(static_cast<char>(number >> (8 * i)));
}
void Put(std::string& to, const void* data, std::size_t bytes) {
  Put(to, bytes);
  to.append(static_cast<const char*>(data), bytes);
}
void Put(std::string& to, const std::string& text) { Put(to, text.data(), text.size()); }

// Reads what Put wrote; every step says whether there was enough.
class Reader {
 public:
  explicit Reader(const std::string& text, std::size_t from) : text_(text), at_(from) {}

  bool Take(std::uint64_t& number) {
    if (text_.size() - at_ < 8) return false;
    number = 0;
    for (int i = 0; i < 8; ++i) {
      number |= static_cast<std::uint64_t>(static_cast<unsigned char>(text_[at_ + i])) << (8 * i);
    }
    at_ += 8;
    return true;
  }
  bool Take(std::string& bytes) {
    std::uint64_t count = 0;
    if (!Take(count) || text_.size() - at_ < count) return false;
    bytes = text_.substr(at_, count);
    at_ += count;
    return true;
  }
  bool at_end() const { return at_ == text_.size(); }

 private:
  const std::string& text_;
  std::size_t at_;
};

absl::Status Wrong(const std::string& path, const std::string& why) {
  return MakeError({.kind = ErrorKind::kCorrupted, .object = path}, why);
}

absl::Status CannotUse(const std::string& path, const char* call) {
  return MakeError({.kind = ErrorKind::kNotFound, .object = path, .call = call, .code = errno},
                   "cannot be used");
}

}  // namespace

absl::Status SaveGolden(const std::string& path, const GoldenFile& golden) {
  std::string text = kMagic;
  Put(text, golden.subject);
  Put(text, golden.seed);
  Put(text, golden.outputs.size());
  for (const auto& [name, bytes] : golden.outputs) {
    Put(text, name);
    Put(text, bytes.data(), bytes.size());
  }
  const Hash128 hash = HashLeafOnHost(text.data(), text.size());
  Put(text, hash.lo);
  Put(text, hash.hi);

  const std::string beside = path + ".new";
  std::ofstream file(beside, std::ios::binary | std::ios::trunc);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  if (!file) return CannotUse(beside, "write");
  if (std::rename(beside.c_str(), path.c_str()) != 0) return CannotUse(path, "rename");
  return absl::OkStatus();
}

absl::StatusOr<GoldenFile> LoadGolden(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return CannotUse(path, "open");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (file.bad()) return CannotUse(path, "read");
  if (text.compare(0, kMagicBytes, kMagic) != 0) {
    return Wrong(path, "is no file of golden outputs, or of another version");
  }
  constexpr std::size_t kHashBytes = 16;
  if (text.size() < kMagicBytes + kHashBytes) return Wrong(path, "is truncated");
  const std::string body = text.substr(0, text.size() - kHashBytes);
  Hash128 hash;
  Reader tail(text, body.size());
  tail.Take(hash.lo);
  tail.Take(hash.hi);
  if (!(HashLeafOnHost(body.data(), body.size()) == hash)) {
    return Wrong(path, "is truncated or was changed: its hash does not fit");
  }
  GoldenFile golden;
  Reader reader(body, kMagicBytes);
  std::uint64_t count = 0;
  bool whole = reader.Take(golden.subject) && reader.Take(golden.seed) && reader.Take(count);
  for (std::uint64_t i = 0; whole && i < count; ++i) {
    std::string name, bytes;
    whole = reader.Take(name) && reader.Take(bytes);
    if (!whole) break;
    std::vector<std::byte>& output = golden.outputs[name];
    output.resize(bytes.size());
    if (!bytes.empty()) std::memcpy(output.data(), bytes.data(), bytes.size());
  }
  if (!whole || !reader.at_end()) return Wrong(path, "does not hold what it says");
  return golden;
}

}  // namespace holdfast::testing
