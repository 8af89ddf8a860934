#include "testing/scribbler_program.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "device/error.h"

namespace holdfast::testing {
namespace {

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool CanRun(const std::string& path) { return access(path.c_str(), X_OK) == 0; }

// Where the helper may lie, the likeliest first.
std::vector<std::string> Places() {
  std::vector<std::string> places;
  std::error_code none;
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe", none);
  if (!none) {
    const std::filesystem::path folder = own.parent_path();
    for (const char* step : {".", "../libexec/holdfast", "../bin"}) {
      places.push_back((folder / step / kScribblerName).lexically_normal());
    }
  }
#ifdef HOLDFAST_SCRIBBLER_PLACES
  std::istringstream built(HOLDFAST_SCRIBBLER_PLACES);
  for (std::string place; std::getline(built, place, ':');) places.push_back(place);
#endif
  std::istringstream path(Variable("PATH"));
  for (std::string folder; std::getline(path, folder, ':');) {
    if (!folder.empty()) places.push_back(absl::StrCat(folder, "/", kScribblerName));
  }
  return places;
}

absl::Status NoSuchProgram(const std::string& what, const std::string& why) {
  return MakeError({.kind = ErrorKind::kNotFound, .object = what}, why);
}

}  // namespace

absl::StatusOr<ScribblerProgram> FindScribbler(const ScribblerProgram& wanted) {
  if (!wanted.path.empty()) {
    if (CanRun(wanted.path)) return wanted;
    return NoSuchProgram(wanted.path, "is no program that could scribble");
  }
  if (const std::string named = Variable(kScribblerVariable); !named.empty()) {
    if (CanRun(named)) return ScribblerProgram{named, {}};
    return NoSuchProgram(named,
                         absl::StrCat("is no program, but ", kScribblerVariable, " says so"));
  }
  const std::vector<std::string> places = Places();
  for (const std::string& place : places) {
    if (CanRun(place)) return ScribblerProgram{place, {}};
  }
  return NoSuchProgram(kScribblerName,
                       absl::StrCat("name it by ", kScribblerVariable,
                                    " or an option; looked at: ", absl::StrJoin(places, ", ")));
}

ScribblerProgram ScribblerInThisProgram() { return {"/proc/self/exe", {"scribble"}}; }

}  // namespace holdfast::testing
