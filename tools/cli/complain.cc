#include <cstdio>

#include "tools/command.h"
#include "tools/progress.h"

namespace holdfast {

int Complain(const std::string& what) {
  ClearProgress();
  std::fprintf(stderr, "holdfast: %s\n", what.c_str());
  return kBadInput;
}

int Complain(const absl::Status& status) { return Complain(std::string(status.message())); }

}  // namespace holdfast
