#include "tools/dictionary.h"

#include <cctype>
#include <fstream>
#include <vector>

#include "device/error.h"

namespace holdfast {
namespace {

bool IsLetter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

std::string Lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

}  // namespace

absl::StatusOr<Dictionary> Dictionary::Load(const std::string& path) {
  std::ifstream in(path);
  if (!in) return MakeError({.kind = ErrorKind::kNotFound, .object = path}, "no such word list");
  std::unordered_set<std::string> words;
  for (std::string line; std::getline(in, line);) words.insert(Lower(line));
  return Dictionary(std::move(words));
}

void Dictionary::Count(const std::string& text, Share& share) const {
  std::vector<std::string> runs(1);
  for (char c : text) {
    if (IsLetter(c)) {
      runs.back().push_back(c);
    } else if (!runs.back().empty()) {
      runs.emplace_back();
    }
  }
  for (std::size_t i = 1; i + 1 < runs.size(); ++i) {
    if (runs[i].size() < 2) continue;
    ++share.words;
    if (words_.count(Lower(runs[i])) != 0) ++share.known;
  }
}

}  // namespace holdfast
