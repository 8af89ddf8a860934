#include "preload/settings.h"

#include <cstdlib>
#include <cstring>

namespace holdfast::preload {
namespace {

bool Is(const char* name, const char* value) {
  const char* const given = std::getenv(name);
  return given != nullptr && std::strcmp(given, value) == 0;
}

}  // namespace

Settings Settings::FromEnvironment() {
  Settings settings;
  if (const char* file = std::getenv("HOLDFAST_PRELOAD_REPORT")) settings.report = file;
  settings.fail = Is("HOLDFAST_PRELOAD_FAIL", "1");
  settings.record = !Is("HOLDFAST_PRELOAD_RECORD", "0");
  settings.allow_remap = Is("HOLDFAST_PRELOAD_ALLOW_REMAP", "1");
  return settings;
}

}  // namespace holdfast::preload
