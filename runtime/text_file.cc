#include "runtime/text_file.h"

#include <sys/stat.h>

#include <fstream>

#include "device/error.h"

namespace holdfast {

absl::StatusOr<std::string> ReadTextFile(const std::string& path, std::uint64_t max_bytes) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return MakeError({.kind = ErrorKind::kNotFound, .object = path}, "there is no such file");
  }
  const std::uint64_t bytes = static_cast<std::uint64_t>(info.st_size);
  if (bytes > max_bytes) {
    return MakeError(
        {.kind = ErrorKind::kCorrupted, .object = path, .need = bytes, .have = max_bytes},
        "is longer than a file of its kind may be");
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) return MakeError({.kind = ErrorKind::kNotFound, .object = path}, "cannot be opened");
  std::string text(bytes, '\0');
  in.read(text.data(), static_cast<std::streamsize>(bytes));
  if (static_cast<std::uint64_t>(in.gcount()) != bytes) {
    return MakeError({.kind = ErrorKind::kCorrupted, .object = path},
                     "became shorter while it was read");
  }
  return text;
}

}  // namespace holdfast
