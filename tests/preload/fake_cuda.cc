// A libcuda.so.1 without a GPU: as much of the driver as the preload library's tests need. Memory
// is addresses only, and freed addresses are given out again first, the last freed before the
// others. Kernels have a name and the layout (pointer, pointer, int), and never run.
#include <cuda.h>

#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace {

struct Function {
  std::string name;
  std::vector<std::size_t> offsets = {0, 8, 16};
  std::vector<std::size_t> sizes = {8, 8, 4};
};

struct Node {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  Function* function = nullptr;
  std::vector<std::vector<char>> parameters;
  std::vector<void*> pointers;
  CUDA_MEMCPY3D copy = {};
  CUDA_MEMSET_NODE_PARAMS fill = {};
};

struct Graph {
  std::vector<Node*> nodes;
};

struct Executable {
  Graph* graph = nullptr;
};

struct Stream {
  Graph* capture = nullptr;
};

std::mutex mutex;
std::uint64_t next_address = 0x2f1740000000;
std::map<std::uint64_t, std::size_t> live;
std::map<std::size_t, std::vector<std::uint64_t>> reusable;
std::map<std::uint64_t, std::size_t> mapped;
std::uint64_t next_handle = 1;
int context_object = 0;

CUresult Take(CUdeviceptr* address, std::size_t bytes) {
  if (address == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard<std::mutex> lock(mutex);
  auto& again = reusable[bytes];
  if (!again.empty()) {
    *address = again.back();
    again.pop_back();
  } else {
    *address = next_address;
    next_address += (bytes + 0x1fffff) & ~std::size_t{0x1fffff};
  }
  live[*address] = bytes;
  return CUDA_SUCCESS;
}

CUresult Give(CUdeviceptr address) {
  if (address == 0) return CUDA_SUCCESS;
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = live.find(address);
  if (found == live.end()) return CUDA_ERROR_INVALID_VALUE;
  reusable[found->second].push_back(address);
  live.erase(found);
  return CUDA_SUCCESS;
}

Node* AddNode(Graph* graph, CUgraphNodeType type) {
  graph->nodes.push_back(new Node{.type = type});
  return graph->nodes.back();
}

void SetKernel(Node* node, CUfunction function, void** parameters) {
  node->function = reinterpret_cast<Function*>(function);
  node->parameters.clear();
  node->pointers.clear();
  for (std::size_t i = 0; i < node->function->sizes.size(); ++i) {
    const char* const from = static_cast<const char*>(parameters[i]);
    node->parameters.emplace_back(from, from + node->function->sizes[i]);
  }
  for (auto& bytes : node->parameters) node->pointers.push_back(bytes.data());
}

Graph* CaptureOf(CUstream stream) {
  return stream != nullptr ? reinterpret_cast<Stream*>(stream)->capture : nullptr;
}

int NotInThisDriver() { return CUDA_ERROR_NOT_SUPPORTED; }

}  // namespace

extern "C" {

CUresult cuInit(unsigned) { return CUDA_SUCCESS; }
CUresult cuDriverGetVersion(int* version) {
  *version = 13000;
  return CUDA_SUCCESS;
}
CUresult cuCtxGetCurrent(CUcontext* context) {
  *context = reinterpret_cast<CUcontext>(&context_object);
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxReset(CUdevice) { return CUDA_SUCCESS; }

CUresult cuMemAlloc(CUdeviceptr* address, std::size_t bytes) { return Take(address, bytes); }
CUresult cuMemFree(CUdeviceptr address) { return Give(address); }
CUresult cuMemAllocManaged(CUdeviceptr* address, std::size_t bytes, unsigned) {
  return Take(address, bytes);
}
CUresult cuMemHostAlloc(void** address, std::size_t bytes, unsigned) {
  return Take(reinterpret_cast<CUdeviceptr*>(address), bytes);
}
CUresult cuMemFreeHost(void* address) { return Give(reinterpret_cast<CUdeviceptr>(address)); }
CUresult cuMemAllocAsync(CUdeviceptr* address, std::size_t bytes, CUstream stream) {
  if (Graph* const graph = CaptureOf(stream)) AddNode(graph, CU_GRAPH_NODE_TYPE_MEM_ALLOC);
  return Take(address, bytes);
}
CUresult cuMemAllocFromPoolAsync(CUdeviceptr* address, std::size_t bytes, CUmemoryPool, CUstream) {
  return Take(address, bytes);
}
CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  if (Graph* const graph = CaptureOf(stream)) {
    AddNode(graph, CU_GRAPH_NODE_TYPE_MEM_FREE);
    return CUDA_SUCCESS;
  }
  return Give(address);
}
CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps*) {
  *pool = reinterpret_cast<CUmemoryPool>(++next_handle * 16);
  return CUDA_SUCCESS;
}
CUresult cuMemPoolDestroy(CUmemoryPool) { return CUDA_SUCCESS; }

CUresult cuMemAddressReserve(CUdeviceptr* address, std::size_t bytes, std::size_t, CUdeviceptr,
                             unsigned long long) {
  const std::lock_guard<std::mutex> lock(mutex);
  *address = next_address;
  next_address += bytes;
  return CUDA_SUCCESS;
}
CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, std::size_t, const CUmemAllocationProp*,
                     unsigned long long) {
  *handle = ++next_handle;
  return CUDA_SUCCESS;
}
CUresult cuMemRelease(CUmemGenericAllocationHandle) { return CUDA_SUCCESS; }
CUresult cuMemMap(CUdeviceptr address, std::size_t bytes, std::size_t, CUmemGenericAllocationHandle,
                  unsigned long long) {
  const std::lock_guard<std::mutex> lock(mutex);
  return mapped.emplace(address, bytes).second ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuMemUnmap(CUdeviceptr address, std::size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex);
  mapped.erase(mapped.lower_bound(address), mapped.lower_bound(address + bytes));
  return CUDA_SUCCESS;
}

CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** data,
                                CUdeviceptr address) {
  const std::lock_guard<std::mutex> lock(mutex);
  bool there = false;
  for (const auto* ranges : {&live, &mapped}) {
    const auto after = ranges->upper_bound(address);
    if (after != ranges->begin()) {
      const auto& [base, bytes] = *std::prev(after);
      there = there || address < base + bytes;
    }
  }
  for (unsigned i = 0; i < count; ++i) {
    if (attributes[i] == CU_POINTER_ATTRIBUTE_MAPPED) {
      *static_cast<std::uint32_t*>(data[i]) = there ? 1 : 0;
    }
  }
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule, const char* name) {
  *function = reinterpret_cast<CUfunction>(new Function{.name = name});
  return CUDA_SUCCESS;
}
CUresult cuFuncGetName(const char** name, CUfunction function) {
  *name = reinterpret_cast<Function*>(function)->name.c_str();
  return CUDA_SUCCESS;
}
CUresult cuFuncGetParamInfo(CUfunction function, std::size_t index, std::size_t* offset,
                            std::size_t* bytes) {
  const Function* const known = reinterpret_cast<Function*>(function);
  if (index >= known->sizes.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = known->offsets[index];
  *bytes = known->sizes[index];
  return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream* stream, unsigned) {
  *stream = reinterpret_cast<CUstream>(new Stream);
  return CUDA_SUCCESS;
}
CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode) {
  reinterpret_cast<Stream*>(stream)->capture = new Graph;
  return CUDA_SUCCESS;
}
CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  Stream* const known = reinterpret_cast<Stream*>(stream);
  if (known->capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  *graph = reinterpret_cast<CUgraph>(known->capture);
  known->capture = nullptr;
  return CUDA_SUCCESS;
}
CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  *status = CaptureOf(stream) != nullptr ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                                         : CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}
CUresult cuLaunchKernel(CUfunction function, unsigned, unsigned, unsigned, unsigned, unsigned,
                        unsigned, unsigned, CUstream stream, void** parameters, void**) {
  if (Graph* const graph = CaptureOf(stream)) {
    SetKernel(AddNode(graph, CU_GRAPH_NODE_TYPE_KERNEL), function, parameters);
  }
  return CUDA_SUCCESS;
}
CUresult cuMemsetD8Async(CUdeviceptr address, unsigned char value, std::size_t bytes,
                         CUstream stream) {
  if (Graph* const graph = CaptureOf(stream)) {
    AddNode(graph, CU_GRAPH_NODE_TYPE_MEMSET)->fill = {
        .dst = address, .value = value, .elementSize = 1, .width = bytes, .height = 1};
  }
  return CUDA_SUCCESS;
}
CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream) {
  if (Graph* const graph = CaptureOf(stream)) {
    CUDA_MEMCPY3D& copy = AddNode(graph, CU_GRAPH_NODE_TYPE_MEMCPY)->copy;
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = from;
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = to;
    copy.WidthInBytes = bytes;
    copy.Height = copy.Depth = 1;
  }
  return CUDA_SUCCESS;
}

CUresult cuGraphCreate(CUgraph* graph, unsigned) {
  *graph = reinterpret_cast<CUgraph>(new Graph);
  return CUDA_SUCCESS;
}
CUresult cuGraphAddKernelNode(CUgraphNode* node, CUgraph graph, const CUgraphNode*, std::size_t,
                              const CUDA_KERNEL_NODE_PARAMS* params) {
  Node* const added = AddNode(reinterpret_cast<Graph*>(graph), CU_GRAPH_NODE_TYPE_KERNEL);
  SetKernel(added, params->func, params->kernelParams);
  *node = reinterpret_cast<CUgraphNode>(added);
  return CUDA_SUCCESS;
}
CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, std::size_t* count) {
  const std::vector<Node*>& all = reinterpret_cast<Graph*>(graph)->nodes;
  if (nodes != nullptr) std::memcpy(nodes, all.data(), all.size() * sizeof(Node*));
  *count = all.size();
  return CUDA_SUCCESS;
}
// A straight line.
CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData*,
                         std::size_t* count) {
  const std::vector<Node*>& all = reinterpret_cast<Graph*>(graph)->nodes;
  *count = all.empty() ? 0 : all.size() - 1;
  for (std::size_t i = 0; from != nullptr && i < *count; ++i) {
    from[i] = reinterpret_cast<CUgraphNode>(all[i]);
    to[i] = reinterpret_cast<CUgraphNode>(all[i + 1]);
  }
  return CUDA_SUCCESS;
}
CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type) {
  *type = reinterpret_cast<Node*>(node)->type;
  return CUDA_SUCCESS;
}
CUresult cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* params) {
  Node* const known = reinterpret_cast<Node*>(node);
  *params = {};
  params->func = reinterpret_cast<CUfunction>(known->function);
  params->kernelParams = known->pointers.data();
  return CUDA_SUCCESS;
}
CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D* params) {
  *params = reinterpret_cast<Node*>(node)->copy;
  return CUDA_SUCCESS;
}
CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS* params) {
  *params = reinterpret_cast<Node*>(node)->fill;
  return CUDA_SUCCESS;
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long) {
  *exec = reinterpret_cast<CUgraphExec>(new Executable{reinterpret_cast<Graph*>(graph)});
  return CUDA_SUCCESS;
}
CUresult cuGraphInstantiateWithParams(CUgraphExec* exec, CUgraph graph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  params->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
  return cuGraphInstantiateWithFlags(exec, graph, params->flags);
}
CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo*) {
  reinterpret_cast<Executable*>(exec)->graph = reinterpret_cast<Graph*>(graph);
  return CUDA_SUCCESS;
}
CUresult cuGraphExecKernelNodeSetParams(CUgraphExec, CUgraphNode, const CUDA_KERNEL_NODE_PARAMS*) {
  return CUDA_SUCCESS;
}
CUresult cuGraphLaunch(CUgraphExec, CUstream) { return CUDA_SUCCESS; }
CUresult cuGraphExecDestroy(CUgraphExec exec) {
  delete reinterpret_cast<Executable*>(exec);
  return CUDA_SUCCESS;
}
CUresult cuGraphDestroy(CUgraph graph) {
  delete reinterpret_cast<Graph*>(graph);
  return CUDA_SUCCESS;
}

CUresult cuGetProcAddress(const char* name, void** function, int version, cuuint64_t,
                          CUdriverProcAddressQueryResult* found) {
  struct Row {
    const char* name;
    void* function;
  };
#define HOLDFAST_ROW(function) \
  { #function, reinterpret_cast < void*>(&function) }
#define HOLDFAST_NAMED(name, function) \
  { name, reinterpret_cast<void*>(&function) }
  static const Row rows[] = {
      HOLDFAST_ROW(cuInit),
      HOLDFAST_ROW(cuDriverGetVersion),
      HOLDFAST_ROW(cuCtxGetCurrent),
      HOLDFAST_NAMED("cuDevicePrimaryCtxReset", cuDevicePrimaryCtxReset),
      HOLDFAST_NAMED("cuMemAlloc", cuMemAlloc),
      HOLDFAST_NAMED("cuMemFree", cuMemFree),
      HOLDFAST_ROW(cuMemAllocManaged),
      HOLDFAST_ROW(cuMemHostAlloc),
      HOLDFAST_ROW(cuMemFreeHost),
      HOLDFAST_ROW(cuMemAllocAsync),
      HOLDFAST_ROW(cuMemAllocFromPoolAsync),
      HOLDFAST_ROW(cuMemFreeAsync),
      HOLDFAST_ROW(cuMemPoolCreate),
      HOLDFAST_ROW(cuMemPoolDestroy),
      HOLDFAST_ROW(cuMemAddressReserve),
      HOLDFAST_ROW(cuMemCreate),
      HOLDFAST_ROW(cuMemRelease),
      HOLDFAST_ROW(cuMemMap),
      HOLDFAST_ROW(cuMemUnmap),
      HOLDFAST_ROW(cuPointerGetAttributes),
      HOLDFAST_ROW(cuModuleGetFunction),
      HOLDFAST_ROW(cuFuncGetName),
      HOLDFAST_ROW(cuFuncGetParamInfo),
      HOLDFAST_ROW(cuStreamCreate),
      HOLDFAST_NAMED("cuStreamBeginCapture", cuStreamBeginCapture),
      HOLDFAST_ROW(cuStreamEndCapture),
      HOLDFAST_ROW(cuStreamIsCapturing),
      HOLDFAST_ROW(cuLaunchKernel),
      HOLDFAST_ROW(cuMemsetD8Async),
      HOLDFAST_NAMED("cuMemcpyHtoDAsync", cuMemcpyHtoDAsync),
      HOLDFAST_ROW(cuGraphCreate),
      HOLDFAST_NAMED("cuGraphAddKernelNode", cuGraphAddKernelNode),
      HOLDFAST_ROW(cuGraphGetNodes),
      HOLDFAST_NAMED("cuGraphGetEdges", cuGraphGetEdges),
      HOLDFAST_ROW(cuGraphNodeGetType),
      HOLDFAST_NAMED("cuGraphKernelNodeGetParams", cuGraphKernelNodeGetParams),
      HOLDFAST_ROW(cuGraphMemcpyNodeGetParams),
      HOLDFAST_ROW(cuGraphMemsetNodeGetParams),
      HOLDFAST_ROW(cuGraphInstantiateWithFlags),
      HOLDFAST_ROW(cuGraphInstantiateWithParams),
      HOLDFAST_NAMED("cuGraphExecUpdate", cuGraphExecUpdate),
      HOLDFAST_NAMED("cuGraphExecKernelNodeSetParams", cuGraphExecKernelNodeSetParams),
      HOLDFAST_ROW(cuGraphLaunch),
      HOLDFAST_ROW(cuGraphExecDestroy),
      HOLDFAST_ROW(cuGraphDestroy),
      HOLDFAST_NAMED("cuGetProcAddress", cuGetProcAddress),
  };
#undef HOLDFAST_ROW
#undef HOLDFAST_NAMED
  *function = nullptr;
  for (const Row& row : rows) {
    if (std::strcmp(row.name, name) == 0) *function = row.function;
  }
  // All else exists and refuses, but for what is newer than this driver.
  if (*function == nullptr && version <= 13000) {
    *function = reinterpret_cast<void*>(&NotInThisDriver);
  }
  const bool there = *function != nullptr;
  if (found != nullptr) {
    *found = there ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }
  return there ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

}  // extern "C"
