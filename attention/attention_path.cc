#include "attention/attention_path.h"

#include "absl/strings/str_cat.h"
#include "device/error.h"

namespace holdfast {

const char* GpuArchName(GpuArch arch) {
  switch (arch) {
    case GpuArch::kSm90: return "sm90";
    case GpuArch::kSm100: return "sm100";
  }
  return "?";
}

absl::StatusOr<AttentionPath> ChoosePath(const std::string& backend,
                                         const std::vector<AttentionPath>& paths,
                                         const AttentionConfig& config) {
  const AttentionPath* chosen = nullptr;
  for (const AttentionPath& path : paths) {
    if (!path.Selects(config)) continue;
    if (chosen != nullptr) {
      return MakeError({.kind = ErrorKind::kInternal, .object = backend},
                       absl::StrCat("paths ", chosen->name(), " and ", path.name(),
                                    " both select one configuration"));
    }
    chosen = &path;
  }
  if (chosen == nullptr) {
    return MakeError({.kind = ErrorKind::kInternal, .object = backend},
                     "no path selects the configuration");
  }
  return *chosen;
}

absl::Status PathCheck::Check(const std::string& path) const {
  if (path == declared_) return absl::OkStatus();
  return MakeError({.kind = ErrorKind::kPlanMismatch, .object = backend_},
                   absl::StrCat("asked to run path ", path, ", but declared ", declared_,
                                "; nothing is reserved for the other"));
}

}  // namespace holdfast
