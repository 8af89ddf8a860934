// What is done at a watched call. Each is given the driver's own function first, calls it exactly
// once, and returns its answer.
#ifndef HOLDFAST_PRELOAD_HANDLERS_H_
#define HOLDFAST_PRELOAD_HANDLERS_H_

#include "preload/driver_calls.h"

namespace holdfast::preload {

// Memory: memory_handlers.cc
int OnAlloc(cuMemAlloc_v2_Type::Function* real, Word* address, std::size_t bytes);
int OnAllocPitch(cuMemAllocPitch_v2_Type::Function* real, Word* address, std::size_t* pitch,
                 std::size_t width, std::size_t height, unsigned element);
int OnAllocManaged(cuMemAllocManaged_Type::Function* real, Word* address, std::size_t bytes,
                   unsigned flags);
int OnFree(cuMemFree_v2_Type::Function* real, Word address);
int OnAllocHost(cuMemAllocHost_v2_Type::Function* real, Word* address, std::size_t bytes);
int OnHostAlloc(cuMemHostAlloc_Type::Function* real, Word* address, std::size_t bytes,
                unsigned flags);
int OnFreeHost(cuMemFreeHost_Type::Function* real, Word address);
int OnHostRegister(cuMemHostRegister_v2_Type::Function* real, Word address, std::size_t bytes,
                   unsigned flags);
int OnHostUnregister(cuMemHostUnregister_Type::Function* real, Word address);
int OnAllocAsync(cuMemAllocAsync_Type::Function* real, Word* address, std::size_t bytes,
                 Word stream);
int OnAllocFromPoolAsync(cuMemAllocFromPoolAsync_Type::Function* real, Word* address,
                         std::size_t bytes, Word pool, Word stream);
int OnFreeAsync(cuMemFreeAsync_Type::Function* real, Word address, Word stream);
int OnPoolDestroy(cuMemPoolDestroy_Type::Function* real, Word pool);
int OnMap(cuMemMap_Type::Function* real, Word address, std::size_t bytes, std::size_t offset,
          Word handle, unsigned long long flags);
int OnUnmap(cuMemUnmap_Type::Function* real, Word address, std::size_t bytes);
int OnContextDestroy(cuCtxDestroy_v2_Type::Function* real, Word context);
int OnContextReset(cuDevicePrimaryCtxReset_v2_Type::Function* real, int device);

// Graphs: graph_handlers.cc
int OnBeginCapture(cuStreamBeginCapture_v2_Type::Function* real, Word stream, int mode);
int OnBeginCaptureToGraph(cuStreamBeginCaptureToGraph_Type::Function* real, Word stream, Word graph,
                          const void* nodes, const void* edges, std::size_t count, int mode);
int OnEndCapture(cuStreamEndCapture_Type::Function* real, Word stream, Word* graph);
int OnGraphClone(cuGraphClone_Type::Function* real, Word* clone, Word graph);
int OnGraphDestroy(cuGraphDestroy_Type::Function* real, Word graph);
int OnInstantiate(cuGraphInstantiate_Type::Function* real, Word* exec, Word graph, Word third,
                  void* log, std::size_t bytes);
int OnInstantiateWithFlags(cuGraphInstantiateWithFlags_Type::Function* real, Word* exec, Word graph,
                           unsigned long long flags);
int OnInstantiateWithParams(cuGraphInstantiateWithParams_Type::Function* real, Word* exec,
                            Word graph, void* params);
int OnExecUpdateV1(cuGraphExecUpdate_Type::Function* real, Word exec, Word graph, void* node,
                   void* result);
int OnExecUpdate(cuGraphExecUpdate_v2_Type::Function* real, Word exec, Word graph, void* result);
int OnSetNode(cuGraphExecNodeSetParams_Type::Function* real, Word exec, Word node,
              const void* params);
int OnSetCopyNode(cuGraphExecMemcpyNodeSetParams_Type::Function* real, Word exec, Word node,
                  const void* params, Word context);
int OnExecDestroy(cuGraphExecDestroy_Type::Function* real, Word exec);

// Look-ups: lookup.cc
int OnGetProcAddressV1(cuGetProcAddress_Type::Function* real, const char* name, void** function,
                       int version, Word flags);
int OnGetProcAddress(cuGetProcAddress_v2_Type::Function* real, const char* name, void** function,
                     int version, Word flags, int* found);

}  // namespace holdfast::preload

#endif  // HOLDFAST_PRELOAD_HANDLERS_H_
