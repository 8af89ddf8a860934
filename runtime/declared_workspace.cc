#include "runtime/declared_workspace.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "device/error.h"

namespace holdfast {
namespace {

const DeclaredRequest* FindByName(const std::vector<DeclaredRequest>& requests,
                                  const std::string& name) {
  const auto found = std::find_if(requests.begin(), requests.end(),
                                  [&name](const DeclaredRequest& r) { return r.name == name; });
  return found == requests.end() ? nullptr : &*found;
}

PersistentSpec SpecOf(const std::string& user, const DeclaredRequest& request) {
  return {.user = user,
          .key = absl::StrCat(user, " ", request.name),
          .type = DType::kU8,
          .shape = {static_cast<std::int64_t>(request.bytes)}};
}

}  // namespace

std::vector<WorkspaceRequest> ToWorkspaceRequests(const std::vector<DeclaredRequest>& declared) {
  std::vector<WorkspaceRequest> requests;
  for (const DeclaredRequest& r : declared) requests.push_back({.name = r.name, .bytes = r.bytes});
  return requests;
}

absl::StatusOr<DeclaredWorkspace> DeclaredWorkspace::Create(WorkspaceManager& workspace,
                                                            AttentionDeclaration declaration,
                                                            const std::string& layer,
                                                            const DeclaredWorkspaceFaults& faults,
                                                            const std::source_location& where) {
  std::string user = absl::StrCat(layer, layer.empty() ? "" : " ", declaration.backend);
  if (!faults.reserve_nothing) {
    HOLDFAST_RETURN_IF_ERROR(
        workspace.Reserve(user, ToWorkspaceRequests(declaration.scratch), where));
  }
  return DeclaredWorkspace(workspace, std::move(declaration), std::move(user), faults);
}

absl::Status DeclaredWorkspace::MakePersistent() {
  for (const WorkspaceSlot slot : workspace_->slots()) {
    for (const DeclaredRequest& request : declaration_.persistent) {
      HOLDFAST_RETURN_IF_ERROR(workspace_->Persistent(slot, SpecOf(user_, request)).status());
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<PersistentResource> DeclaredWorkspace::Persistent(WorkspaceSlot slot,
                                                                 const std::string& name) {
  const DeclaredRequest* const request = FindByName(declaration_.persistent, name);
  if (request == nullptr) {
    return MakeError({.kind = ErrorKind::kPlanMismatch, .object = user_},
                     absl::StrCat("asks for ", name, ", which it did not declare"));
  }
  return workspace_->Persistent(slot, SpecOf(user_, *request));
}

absl::Status DeclaredWorkspace::Check(const AttentionDeclaration& running) const {
  if (faults_.trust_calls) return absl::OkStatus();
  HOLDFAST_RETURN_IF_ERROR(check_.Check(running.path));
  for (const DeclaredRequest& asked : running.scratch) {
    const DeclaredRequest* const declared = FindByName(declaration_.scratch, asked.name);
    if (declared != nullptr && asked.bytes <= declared->bytes) continue;
    return MakeError({.kind = ErrorKind::kPlanMismatch,
                      .object = user_,
                      .need = asked.bytes,
                      .have = declared == nullptr ? 0 : declared->bytes},
                     absl::StrCat("asks for ", asked.name, ", ", asked.why,
                                  declared == nullptr ? ", which it did not declare"
                                                      : ", more than it declared"));
  }
  return absl::OkStatus();
}

absl::StatusOr<WorkspaceLease> DeclaredWorkspace::AcquireIn(
    StepContext& step, WorkspaceSlot slot, const AttentionDeclaration& running,
    const std::source_location& where) const {
  HOLDFAST_RETURN_IF_ERROR(Check(running));
  return workspace_->AcquireIn(step, slot, user_, ToWorkspaceRequests(running.scratch), where);
}

absl::StatusOr<WorkspaceLease> DeclaredWorkspace::Acquire(WorkspaceSlot slot, Stream& stream,
                                                          const AttentionDeclaration& running,
                                                          const std::source_location& where) const {
  HOLDFAST_RETURN_IF_ERROR(Check(running));
  return workspace_->Acquire(slot, stream, user_, ToWorkspaceRequests(running.scratch), where);
}

}  // namespace holdfast
