// The time of a measurement, for the files that keep it.
#ifndef HOLDFAST_TOOLS_UTC_DATE_H_
#define HOLDFAST_TOOLS_UTC_DATE_H_

#include <ctime>
#include <string>

namespace holdfast {

// "2026-01-31T12:00:00Z"
inline std::string UtcDate() {
  const std::time_t now = std::time(nullptr);
  std::tm utc = {};
  char text[32] = {};
  if (gmtime_r(&now, &utc) != nullptr) {
    std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
  }
  return text;
}

}  // namespace holdfast

#endif  // HOLDFAST_TOOLS_UTC_DATE_H_
