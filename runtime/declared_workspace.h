// A backend's declaration, held to: the same object reserves its scratch and, at each call,
// compares what the call asks with what was declared.
//
// Which way a configuration takes is decided by the backend's path predicates, once, when it
// declares; a call brings the path and the requests that the same predicates gave for it. A call
// that takes another path, or asks for something else or more, fails, and only that call: nothing
// of it is kept, and nothing was enqueued.
#ifndef HOLDFAST_RUNTIME_DECLARED_WORKSPACE_H_
#define HOLDFAST_RUNTIME_DECLARED_WORKSPACE_H_

#include <source_location>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/workspace.h"
#include "attention/declaration.h"

namespace holdfast {

// Faults for negative controls; never set otherwise.
struct DeclaredWorkspaceFaults {
  bool reserve_nothing = false;  // the reservation is forgotten
  bool trust_calls = false;      // no call is compared with its declaration
};

class DeclaredWorkspace {
 public:
  // Reserves the declared scratch in every slot, under the user `layer backend` ("layer" may be
  // empty: one for all layers of a backend). Errors of WorkspaceManager::Reserve. The manager must
  // outlive it.
  static absl::StatusOr<DeclaredWorkspace> Create(
      WorkspaceManager& workspace, AttentionDeclaration declaration, const std::string& layer = "",
      const DeclaredWorkspaceFaults& faults = {},
      const std::source_location& where = std::source_location::current());
  // Makes the declared persistent resources, bytes by name, in every slot; their keys are "user
  // name". Errors of WorkspaceManager::Persistent.
  absl::Status MakePersistent();
  // One of them. kPlanMismatch for a name that was not declared.
  absl::StatusOr<PersistentResource> Persistent(WorkspaceSlot slot, const std::string& name);

  // kPlanMismatch naming the backend: `running` takes another path (both named), asks for something
  // that was not declared, or for more of it (need, have). A call may ask for less.
  absl::Status Check(const AttentionDeclaration& running) const;
  // The scratch of one call, in the order of `running.scratch`: Check, then AcquireIn or Acquire.
  absl::StatusOr<WorkspaceLease> AcquireIn(
      StepContext& step, WorkspaceSlot slot, const AttentionDeclaration& running,
      const std::source_location& where = std::source_location::current()) const;
  absl::StatusOr<WorkspaceLease> Acquire(
      WorkspaceSlot slot, Stream& stream, const AttentionDeclaration& running,
      const std::source_location& where = std::source_location::current()) const;

  const AttentionDeclaration& declaration() const { return declaration_; }
  const std::string& user() const { return user_; }

 private:
  DeclaredWorkspace(WorkspaceManager& workspace, AttentionDeclaration declaration, std::string user,
                    const DeclaredWorkspaceFaults& faults)
      : workspace_(&workspace),
        declaration_(std::move(declaration)),
        check_(declaration_.Check()),
        user_(std::move(user)),
        faults_(faults) {}

  WorkspaceManager* workspace_;
  AttentionDeclaration declaration_;
  PathCheck check_;
  std::string user_;
  DeclaredWorkspaceFaults faults_;
};

// Neutral requests of the workspace.
std::vector<WorkspaceRequest> ToWorkspaceRequests(const std::vector<DeclaredRequest>& declared);

}  // namespace holdfast

#endif  // HOLDFAST_RUNTIME_DECLARED_WORKSPACE_H_
