#include "attention/declaration.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "attention/declare/flashinfer.h"
#include "attention/declare/gated_delta_net.h"
#include "attention/declare/mla_dense.h"
#include "attention/declare/mla_sparse.h"
#include "attention/declare/mla_windowed.h"
#include "device/error.h"

namespace holdfast {
namespace {

using Declarer = absl::StatusOr<AttentionDeclaration> (*)(const AttentionConfig& config);

const std::map<std::string, Declarer>& Backends() {
  static const std::map<std::string, Declarer> backends = {
      {"flashinfer_mla", &DeclareFlashInferMla},
      {"flashinfer_sparse_mla", &DeclareFlashInferSparseMla},
      {"flashmla_sparse", &DeclareFlashMlaSparse},
      {"gated_delta_net", &DeclareGatedDeltaNet},
      {"mla_dense", &DeclareMlaDense},
      {"mla_sparse", &DeclareMlaSparse},
      {"mla_windowed", &DeclareMlaWindowed},
      {"sparse_indexer", &DeclareSparseIndexer},
  };
  return backends;
}

}  // namespace

const char* KvKindName(KvKind kind) {
  switch (kind) {
    case KvKind::kNone: return "none";
    case KvKind::kFull: return "full";
    case KvKind::kWindow: return "window";
    case KvKind::kState: return "state";
  }
  return "?";
}

const char* ProfilingSupportName(ProfilingSupport support) {
  switch (support) {
    case ProfilingSupport::kUnsupported: return "unsupported";
    case ProfilingSupport::kNeutral: return "neutral";
    case ProfilingSupport::kRequired: return "required";
  }
  return "?";
}

std::vector<std::string> BackendNames() {
  std::vector<std::string> names;
  for (const auto& [name, declare] : Backends()) names.push_back(name);
  return names;
}

absl::StatusOr<AttentionDeclaration> Declare(const std::string& backend,
                                             const AttentionConfig& config) {
  const auto found = Backends().find(backend);
  if (found == Backends().end()) {
    return MakeError({.kind = ErrorKind::kNotFound, .object = absl::StrCat("backend ", backend)},
                     absl::StrCat("there are ", absl::StrJoin(BackendNames(), ", ")));
  }
  return found->second(config);
}

ProfilingDecision DecideProfiling(const std::vector<AttentionDeclaration>& declarations) {
  std::vector<std::string> against;
  std::string first_required;
  for (const AttentionDeclaration& d : declarations) {
    if (d.profiling == ProfilingSupport::kUnsupported) against.push_back(d.backend);
    if (d.profiling == ProfilingSupport::kRequired && first_required.empty()) {
      first_required = d.backend;
    }
  }
  if (!against.empty()) return {false, absl::StrJoin(against, ", ") + ": not supported"};
  if (declarations.empty()) return {false, "no backend declares anything"};
  if (first_required.empty()) return {false, "every backend is neutral"};
  return {true, first_required + " requires it"};
}

}  // namespace holdfast
