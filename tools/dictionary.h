// How much of a text is words: the plainest sign that a model says something.
#ifndef HOLDFAST_TOOLS_DICTIONARY_H_
#define HOLDFAST_TOOLS_DICTIONARY_H_

#include <cstdint>
#include <string>
#include <unordered_set>

#include "absl/status/statusor.h"

namespace holdfast {

class Dictionary {
 public:
  // One word a line. kNotFound if the file cannot be read.
  static absl::StatusOr<Dictionary> Load(const std::string& path);
  explicit Dictionary(std::unordered_set<std::string> words) : words_(std::move(words)) {}

  struct Share {
    std::uint64_t words =
        0;  // runs of two or more letters; the first and last run of a text may be cut: left out
    std::uint64_t known = 0;
    double value() const {
      return words == 0 ? 0 : static_cast<double>(known) / static_cast<double>(words);
    }
  };
  // Adds the words of `text` to `share`.
  void Count(const std::string& text, Share& share) const;

 private:
  std::unordered_set<std::string> words_;  // lower case
};

}  // namespace holdfast

#endif  // HOLDFAST_TOOLS_DICTIONARY_H_
