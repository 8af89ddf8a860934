// Which way through a backend a configuration takes, and the check that a run takes that way.
//
// A path's predicate is one object, used three times: to choose the path, to decide what is
// reserved for it, and at run time to say which path a call takes. So a buffer is reserved if and
// only if the path that uses it runs.
#ifndef HOLDFAST_ATTENTION_ATTENTION_PATH_H_
#define HOLDFAST_ATTENTION_ATTENTION_PATH_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "attention/attention_config.h"

namespace holdfast {

class AttentionPath {
 public:
  using Predicate = bool (*)(const AttentionConfig& config);

  constexpr AttentionPath(const char* name, Predicate selects) : name_(name), selects_(selects) {}

  const char* name() const { return name_; }
  bool Selects(const AttentionConfig& config) const { return selects_(config); }

 private:
  const char* name_;
  Predicate selects_;
};

// The one path of `paths` that selects `config`. kInternal naming the backend if none or several
// do: its predicates do not partition the configurations.
absl::StatusOr<AttentionPath> ChoosePath(const std::string& backend,
                                         const std::vector<AttentionPath>& paths,
                                         const AttentionConfig& config);

// Held by a backend from its declaration on and asked before each call enqueues anything.
class PathCheck {
 public:
  PathCheck(std::string backend, std::string declared)
      : backend_(std::move(backend)), declared_(std::move(declared)) {}

  // kPlanMismatch naming backend, declared path and `path` if they differ: nothing was reserved for
  // `path`. Only that call fails; the check keeps nothing of it.
  absl::Status Check(const std::string& path) const;
  absl::Status Check(const AttentionPath& path) const { return Check(std::string(path.name())); }

  const std::string& declared() const { return declared_; }

 private:
  std::string backend_, declared_;
};

}  // namespace holdfast

#endif  // HOLDFAST_ATTENTION_ATTENTION_PATH_H_
