// A folder of one test, gone with it, and safetensors files to put there, sound or not.
#ifndef HOLDFAST_TESTS_RUNTIME_FOLDER_H_
#define HOLDFAST_TESTS_RUNTIME_FOLDER_H_

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "gtest/gtest.h"

namespace holdfast {

class Folder {
 public:
  Folder() {
    std::string name = testing::TempDir() + "/holdfast.XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::string& path() const { return path_; }

  // Writes the file and returns its path.
  std::string Write(const std::string& name, const std::string& contents) const {
    const std::string path = path_ + "/" + name;
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    out << contents;
    EXPECT_TRUE(out.good()) << path;
    return path;
  }

 private:
  std::string path_;
};

// The bytes of a safetensors file: a length (the header's own unless said otherwise), header, data.
inline std::string Safetensors(const std::string& header, const std::string& data,
                               std::uint64_t length) {
  std::string file;
  for (int i = 0; i < 8; ++i) file += static_cast<char>(length >> (8 * i));
  return file + header + data;
}
inline std::string Safetensors(const std::string& header, const std::string& data) {
  return Safetensors(header, data, header.size());
}

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_RUNTIME_FOLDER_H_
