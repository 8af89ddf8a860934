// The driver's functions that are watched, one row each. Types are those of the driver's binary
// interface, without its header: handles and device addresses are 64-bit words, a result is an int.
#ifndef HOLDFAST_PRELOAD_DRIVER_CALLS_H_
#define HOLDFAST_PRELOAD_DRIVER_CALLS_H_

#include <cstddef>
#include <cstdint>

namespace holdfast::preload {

using Word = std::uint64_t;  // a handle or a device address
inline constexpr int kSuccess = 0;
inline constexpr int kNotInitialized = 3;

// Which default stream a function is for; most know none.
enum class Flavour { kAny, kLegacy, kPerThread };

// X(symbol, name for cuGetProcAddress, its version from, flavour, what handles it, (parameters),
//   (arguments)). Of the rows of one name the one with the highest version not above the asked is
// meant. cuGraphLaunch is not here: a replay costs what it costs without this library.
#define HOLDFAST_WATCHED_CALLS(X)                                                                  \
  X(cuMemAlloc_v2, cuMemAlloc, 3020, kAny, OnAlloc, (Word * address, std::size_t bytes),           \
    (address, bytes))                                                                              \
  X(cuMemAllocPitch_v2, cuMemAllocPitch, 3020, kAny, OnAllocPitch,                                 \
    (Word * address, std::size_t * pitch, std::size_t width, std::size_t height,                   \
     unsigned element),                                                                            \
    (address, pitch, width, height, element))                                                      \
  X(cuMemAllocManaged, cuMemAllocManaged, 6000, kAny, OnAllocManaged,                              \
    (Word * address, std::size_t bytes, unsigned flags), (address, bytes, flags))                  \
  X(cuMemFree_v2, cuMemFree, 3020, kAny, OnFree, (Word address), (address))                        \
  X(cuMemAllocHost_v2, cuMemAllocHost, 3020, kAny, OnAllocHost,                                    \
    (Word * address, std::size_t bytes), (address, bytes))                                         \
  X(cuMemHostAlloc, cuMemHostAlloc, 2020, kAny, OnHostAlloc,                                       \
    (Word * address, std::size_t bytes, unsigned flags), (address, bytes, flags))                  \
  X(cuMemFreeHost, cuMemFreeHost, 2000, kAny, OnFreeHost, (Word address), (address))               \
  X(cuMemHostRegister_v2, cuMemHostRegister, 6050, kAny, OnHostRegister,                           \
    (Word address, std::size_t bytes, unsigned flags), (address, bytes, flags))                    \
  X(cuMemHostUnregister, cuMemHostUnregister, 4000, kAny, OnHostUnregister, (Word address),        \
    (address))                                                                                     \
  X(cuMemAllocAsync, cuMemAllocAsync, 11020, kLegacy, OnAllocAsync,                                \
    (Word * address, std::size_t bytes, Word stream), (address, bytes, stream))                    \
  X(cuMemAllocAsync_ptsz, cuMemAllocAsync, 11020, kPerThread, OnAllocAsync,                        \
    (Word * address, std::size_t bytes, Word stream), (address, bytes, stream))                    \
  X(cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync, 11020, kLegacy, OnAllocFromPoolAsync,        \
    (Word * address, std::size_t bytes, Word pool, Word stream), (address, bytes, pool, stream))   \
  X(cuMemAllocFromPoolAsync_ptsz, cuMemAllocFromPoolAsync, 11020, kPerThread,                      \
    OnAllocFromPoolAsync, (Word * address, std::size_t bytes, Word pool, Word stream),             \
    (address, bytes, pool, stream))                                                                \
  X(cuMemFreeAsync, cuMemFreeAsync, 11020, kLegacy, OnFreeAsync, (Word address, Word stream),      \
    (address, stream))                                                                             \
  X(cuMemFreeAsync_ptsz, cuMemFreeAsync, 11020, kPerThread, OnFreeAsync,                           \
    (Word address, Word stream), (address, stream))                                                \
  X(cuMemPoolDestroy, cuMemPoolDestroy, 11020, kAny, OnPoolDestroy, (Word pool), (pool))           \
  X(cuMemMap, cuMemMap, 10020, kAny, OnMap,                                                        \
    (Word address, std::size_t bytes, std::size_t offset, Word handle, unsigned long long flags),  \
    (address, bytes, offset, handle, flags))                                                       \
  X(cuMemUnmap, cuMemUnmap, 10020, kAny, OnUnmap, (Word address, std::size_t bytes),               \
    (address, bytes))                                                                              \
  X(cuCtxDestroy_v2, cuCtxDestroy, 4000, kAny, OnContextDestroy, (Word context), (context))        \
  X(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset, 7000, kAny, OnContextReset, (int device),    \
    (device))                                                                                      \
  X(cuDevicePrimaryCtxReset_v2, cuDevicePrimaryCtxReset, 11000, kAny, OnContextReset,              \
    (int device), (device))                                                                        \
  X(cuStreamBeginCapture_v2, cuStreamBeginCapture, 10010, kLegacy, OnBeginCapture,                 \
    (Word stream, int mode), (stream, mode))                                                       \
  X(cuStreamBeginCapture_v2_ptsz, cuStreamBeginCapture, 10010, kPerThread, OnBeginCapture,         \
    (Word stream, int mode), (stream, mode))                                                       \
  X(cuStreamBeginCaptureToGraph, cuStreamBeginCaptureToGraph, 12030, kLegacy,                      \
    OnBeginCaptureToGraph,                                                                         \
    (Word stream, Word graph, const void* nodes, const void* edges, std::size_t count, int mode),  \
    (stream, graph, nodes, edges, count, mode))                                                    \
  X(cuStreamBeginCaptureToGraph_ptsz, cuStreamBeginCaptureToGraph, 12030, kPerThread,              \
    OnBeginCaptureToGraph,                                                                         \
    (Word stream, Word graph, const void* nodes, const void* edges, std::size_t count, int mode),  \
    (stream, graph, nodes, edges, count, mode))                                                    \
  X(cuStreamEndCapture, cuStreamEndCapture, 10000, kLegacy, OnEndCapture,                          \
    (Word stream, Word * graph), (stream, graph))                                                  \
  X(cuStreamEndCapture_ptsz, cuStreamEndCapture, 10000, kPerThread, OnEndCapture,                  \
    (Word stream, Word * graph), (stream, graph))                                                  \
  X(cuGraphClone, cuGraphClone, 10000, kAny, OnGraphClone, (Word * clone, Word graph),             \
    (clone, graph))                                                                                \
  X(cuGraphDestroy, cuGraphDestroy, 10000, kAny, OnGraphDestroy, (Word graph), (graph))            \
  X(cuGraphInstantiate, cuGraphInstantiate, 10000, kAny, OnInstantiate,                            \
    (Word * exec, Word graph, Word third, void* log, std::size_t bytes),                           \
    (exec, graph, third, log, bytes))                                                              \
  X(cuGraphInstantiate_v2, cuGraphInstantiate, 11000, kAny, OnInstantiate,                         \
    (Word * exec, Word graph, Word third, void* log, std::size_t bytes),                           \
    (exec, graph, third, log, bytes))                                                              \
  X(cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags, 11040, kAny, OnInstantiateWithFlags, \
    (Word * exec, Word graph, unsigned long long flags), (exec, graph, flags))                     \
  X(cuGraphInstantiateWithParams, cuGraphInstantiateWithParams, 12000, kLegacy,                    \
    OnInstantiateWithParams, (Word * exec, Word graph, void* params), (exec, graph, params))       \
  X(cuGraphInstantiateWithParams_ptsz, cuGraphInstantiateWithParams, 12000, kPerThread,            \
    OnInstantiateWithParams, (Word * exec, Word graph, void* params), (exec, graph, params))       \
  X(cuGraphExecUpdate, cuGraphExecUpdate, 10020, kAny, OnExecUpdateV1,                             \
    (Word exec, Word graph, void* node, void* result), (exec, graph, node, result))                \
  X(cuGraphExecUpdate_v2, cuGraphExecUpdate, 12000, kAny, OnExecUpdate,                            \
    (Word exec, Word graph, void* result), (exec, graph, result))                                  \
  X(cuGraphExecKernelNodeSetParams, cuGraphExecKernelNodeSetParams, 10010, kAny, OnSetNode,        \
    (Word exec, Word node, const void* params), (exec, node, params))                              \
  X(cuGraphExecKernelNodeSetParams_v2, cuGraphExecKernelNodeSetParams, 12000, kAny, OnSetNode,     \
    (Word exec, Word node, const void* params), (exec, node, params))                              \
  X(cuGraphExecMemcpyNodeSetParams, cuGraphExecMemcpyNodeSetParams, 10020, kAny, OnSetCopyNode,    \
    (Word exec, Word node, const void* params, Word context), (exec, node, params, context))       \
  X(cuGraphExecMemsetNodeSetParams, cuGraphExecMemsetNodeSetParams, 10020, kAny, OnSetCopyNode,    \
    (Word exec, Word node, const void* params, Word context), (exec, node, params, context))       \
  X(cuGraphExecChildGraphNodeSetParams, cuGraphExecChildGraphNodeSetParams, 11010, kAny,           \
    OnSetNode, (Word exec, Word node, const void* child), (exec, node, child))                     \
  X(cuGraphExecBatchMemOpNodeSetParams, cuGraphExecBatchMemOpNodeSetParams, 11070, kAny,           \
    OnSetNode, (Word exec, Word node, const void* params), (exec, node, params))                   \
  X(cuGraphExecNodeSetParams, cuGraphExecNodeSetParams, 12020, kAny, OnSetNode,                    \
    (Word exec, Word node, const void* params), (exec, node, params))                              \
  X(cuGraphExecDestroy, cuGraphExecDestroy, 10000, kAny, OnExecDestroy, (Word exec), (exec))       \
  X(cuGetProcAddress, cuGetProcAddress, 11030, kAny, OnGetProcAddressV1,                           \
    (const char* name, void** function, int version, Word flags),                                  \
    (name, function, version, flags))                                                              \
  X(cuGetProcAddress_v2, cuGetProcAddress, 12000, kAny, OnGetProcAddress,                          \
    (const char* name, void** function, int version, Word flags, int* found),                      \
    (name, function, version, flags, found))

// cuMemAlloc_v2_Type::Function and so on.
#define HOLDFAST_PRELOAD_DECLARE(symbol, name, version, flavour, handler, parameters, arguments) \
  struct symbol##_Type {                                                                         \
    using Function = int parameters;                                                             \
  };
HOLDFAST_WATCHED_CALLS(HOLDFAST_PRELOAD_DECLARE)
#undef HOLDFAST_PRELOAD_DECLARE

}  // namespace holdfast::preload

#endif  // HOLDFAST_PRELOAD_DRIVER_CALLS_H_
