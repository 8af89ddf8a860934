// Graphs that are recorded, made executable, changed and destroyed.
#include "preload/bypass.h"
#include "preload/exit.h"
#include "preload/handlers.h"
#include "preload/session.h"

namespace holdfast::preload {
namespace {

// Audited whatever the driver answered: a pointer into freed memory may be why it refused.
int Made(int code, const Word* exec, Word graph) {
  WatchExit();
  Session::Get().Instantiated(graph, code == kSuccess && exec != nullptr ? *exec : 0);
  return code;
}

int Updated(int code, Word exec, Word graph) {
  if (code == kSuccess) Session::Get().ExecUpdated(exec, graph);
  return code;
}

int NodeChanged(int code, Word exec) {
  if (code == kSuccess) Session::Get().ExecChangedOneNode(exec);
  return code;
}

// The driver's function with the hooks out of the way, should it call itself by name.
template <typename Real, typename... Arguments>
int Plain(Real* real, Arguments... arguments) {
  const BypassScope inside;
  return real(arguments...);
}

}  // namespace

int OnBeginCapture(cuStreamBeginCapture_v2_Type::Function* real, Word stream, int mode) {
  // Before the driver is asked: what is called in here could break the capture.
  Session::Get().CaptureBegan(stream);
  const int code = real(stream, mode);
  if (code != kSuccess) Session::Get().CaptureEnded(stream, 0);
  return code;
}

int OnBeginCaptureToGraph(cuStreamBeginCaptureToGraph_Type::Function* real, Word stream, Word graph,
                          const void* nodes, const void* edges, std::size_t count, int mode) {
  Session::Get().CaptureBegan(stream);
  const int code = real(stream, graph, nodes, edges, count, mode);
  if (code != kSuccess) Session::Get().CaptureEnded(stream, 0);
  return code;
}

int OnEndCapture(cuStreamEndCapture_Type::Function* real, Word stream, Word* graph) {
  const int code = real(stream, graph);
  Session::Get().CaptureEnded(stream, code == kSuccess && graph != nullptr ? *graph : 0);
  return code;
}

int OnGraphClone(cuGraphClone_Type::Function* real, Word* clone, Word graph) {
  const int code = real(clone, graph);
  if (code == kSuccess && clone != nullptr) Session::Get().GraphCloned(graph, *clone);
  return code;
}

int OnGraphDestroy(cuGraphDestroy_Type::Function* real, Word graph) {
  Session::Get().GraphDestroyed(graph);
  return real(graph);
}

int OnInstantiate(cuGraphInstantiate_Type::Function* real, Word* exec, Word graph, Word third,
                  void* log, std::size_t bytes) {
  // Newer drivers know this name with three parameters; two more registers hurt nobody.
  return Made(Plain(real, exec, graph, third, log, bytes), exec, graph);
}

int OnInstantiateWithFlags(cuGraphInstantiateWithFlags_Type::Function* real, Word* exec, Word graph,
                           unsigned long long flags) {
  return Made(Plain(real, exec, graph, flags), exec, graph);
}

int OnInstantiateWithParams(cuGraphInstantiateWithParams_Type::Function* real, Word* exec,
                            Word graph, void* params) {
  return Made(Plain(real, exec, graph, params), exec, graph);
}

int OnExecUpdateV1(cuGraphExecUpdate_Type::Function* real, Word exec, Word graph, void* node,
                   void* result) {
  return Updated(Plain(real, exec, graph, node, result), exec, graph);
}

int OnExecUpdate(cuGraphExecUpdate_v2_Type::Function* real, Word exec, Word graph, void* result) {
  return Updated(Plain(real, exec, graph, result), exec, graph);
}

int OnSetNode(cuGraphExecNodeSetParams_Type::Function* real, Word exec, Word node,
              const void* params) {
  return NodeChanged(Plain(real, exec, node, params), exec);
}

int OnSetCopyNode(cuGraphExecMemcpyNodeSetParams_Type::Function* real, Word exec, Word node,
                  const void* params, Word context) {
  return NodeChanged(Plain(real, exec, node, params, context), exec);
}

int OnExecDestroy(cuGraphExecDestroy_Type::Function* real, Word exec) {
  Session::Get().ExecDestroyed(exec);
  return real(exec);
}

}  // namespace holdfast::preload
