// What the environment asks of the preload library.
#ifndef HOLDFAST_PRELOAD_SETTINGS_H_
#define HOLDFAST_PRELOAD_SETTINGS_H_

#include <string>

namespace holdfast::preload {

struct Settings {
  std::string report;        // HOLDFAST_PRELOAD_REPORT: JSON to this file; empty: text to stderr
  bool fail = false;         // HOLDFAST_PRELOAD_FAIL=1: status 0 becomes kFailStatus with findings
  bool record = true;        // HOLDFAST_PRELOAD_RECORD=0: memory is not recorded
  bool allow_remap = false;  // HOLDFAST_PRELOAD_ALLOW_REMAP=1: see docs/preload.md

  static Settings FromEnvironment();
};
inline constexpr int kFailStatus = 1;

}  // namespace holdfast::preload

#endif  // HOLDFAST_PRELOAD_SETTINGS_H_
