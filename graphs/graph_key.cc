#include "graphs/graph_key.h"

#include "absl/strings/str_cat.h"

namespace holdfast {

const char* PhaseName(Phase phase) {
  switch (phase) {
    case Phase::kPrefill: return "prefill";
    case Phase::kDecode: return "decode";
  }
  return "?";
}

std::string GraphFamily::Name() const {
  std::string name = PhaseName(phase);
  if (query_length != 1) absl::StrAppend(&name, "/q", query_length);
  if (!variant.empty()) absl::StrAppend(&name, "/", variant);
  return name;
}

GraphKey KeyOf(const GraphFamily& family, int size) {
  return {.phase = family.phase,
          .size = size,
          .query_length = family.query_length,
          .variant = family.variant};
}

std::string GraphKey::Name() const {
  std::string name = absl::StrCat(PhaseName(phase), "/", size);
  if (query_length != 1) absl::StrAppend(&name, "/q", query_length);
  if (!variant.empty()) absl::StrAppend(&name, "/", variant);
  return name;
}

}  // namespace holdfast
