// A program that knows nothing of Holdfast: allocates, captures, instantiates, frees. Each case
// plants one fault, or none; audit_test.py says what must be found.
#include <unistd.h>

#include <cstring>
#include <functional>
#include <map>
#include <string>

#include "tests/preload/driver.h"

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

class Program {
 public:
  Program() : driver(OpenDriver()) {
    driver.StreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    driver.ModuleGetFunction(&scale, nullptr, "scale");
  }

  CUdeviceptr Alloc(std::size_t mib) {
    CUdeviceptr address = 0;
    driver.MemAlloc(&address, mib * kMiB);
    return address;
  }
  // scale(to, from, 7)
  void Launch(CUdeviceptr to, CUdeviceptr from) {
    int seven = 7;
    void* parameters[] = {&to, &from, &seven};
    driver.LaunchKernel(scale, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr);
  }
  CUgraph Capture(const std::function<void()>& step) {
    driver.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    step();
    CUgraph graph = nullptr;
    driver.StreamEndCapture(stream, &graph);
    return graph;
  }
  CUgraphExec Instantiate(CUgraph graph) {
    CUgraphExec exec = nullptr;
    driver.GraphInstantiateWithFlags(&exec, graph, 0);
    return exec;
  }
  CUgraphExec Record(const std::function<void()>& step) { return Instantiate(Capture(step)); }

  Driver driver;
  CUstream stream = nullptr;
  CUfunction scale = nullptr;
};

using Case = void (*)(Program&);

void Clean(Program& p) {
  const CUdeviceptr in = p.Alloc(4), out = p.Alloc(4), old = p.Alloc(2);
  p.driver.MemFree(old);  // nobody refers to it
  const CUgraphExec exec = p.Record([&] {
    p.driver.MemsetD8Async(out, 0, 4 * kMiB, p.stream);
    p.Launch(out, in);
    p.Launch(in + 4 * kMiB, in + 64);  // the end of a buffer, and inside one
  });
  const CUdeviceptr other = p.Alloc(2);  // where `old` was
  p.Launch(other, in);
  p.driver.GraphLaunch(exec, p.stream);
  p.driver.GraphExecDestroy(exec);
  p.driver.MemFree(in);  // after the graph: fine
}

void FreedInput(Program& p) {
  const CUdeviceptr in = p.Alloc(4), out = p.Alloc(4);
  p.Record([&] { p.Launch(out, in); });
  p.driver.MemFree(in);
}

void FreedBeforeCapture(Program& p) {
  const CUdeviceptr in = p.Alloc(4), out = p.Alloc(4);
  p.driver.MemFree(in);
  p.Record([&] { p.Launch(out, in); });
}

// The end of a buffer in use, and the begin of a freed one: told, with the doubt.
void FreedOrEnd(Program& p) {
  const CUdeviceptr out = p.Alloc(4), in = p.Alloc(4);
  p.driver.MemFree(in);
  p.Record([&] { p.Launch(out, in); });
}

void FreedBeforeInstantiate(Program& p) {
  const CUdeviceptr in = p.Alloc(4), out = p.Alloc(4);
  const CUgraph graph = p.Capture([&] { p.Launch(out, in); });
  p.driver.MemFree(in);
  p.Instantiate(graph);
}

void Reused(Program& p) {
  const CUdeviceptr in = p.Alloc(4), out = p.Alloc(4);
  p.Record([&] { p.Launch(out, in); });
  p.driver.MemFree(in);
  p.Alloc(4);  // gets the same address
}

void ReusedBeforeInstantiate(Program& p) {
  const CUdeviceptr in = p.Alloc(4), out = p.Alloc(4);
  const CUgraph graph = p.Capture([&] { p.Launch(out, in); });
  p.driver.MemFree(in);
  p.Alloc(4);
  p.Instantiate(graph);
}

void WorkspaceGrown(Program& p) {
  const CUdeviceptr out = p.Alloc(4), space = p.Alloc(2);
  p.Record([&] {
    p.Launch(space, out);
    p.Launch(out, space);
  });
  p.Alloc(6);
  p.driver.MemFree(space);
}

void DeadPool(Program& p) {
  CUmemoryPool pool = nullptr;
  p.driver.MemPoolCreate(&pool, nullptr);
  CUdeviceptr in = 0;
  p.driver.MemAllocFromPoolAsync(&in, 4 * kMiB, pool, p.stream);
  const CUdeviceptr out = p.Alloc(4);
  p.Record([&] { p.Launch(out, in); });
  p.driver.MemFreeAsync(in, p.stream);
  p.driver.MemPoolDestroy(pool);
}

void OtherGraphsPool(Program& p) {
  const CUdeviceptr out = p.Alloc(4);
  CUdeviceptr hidden = 0;
  const CUgraphExec first = p.Record([&] {
    hidden = p.Alloc(4);  // as a caching allocator does while it records
    p.Launch(hidden, out);
  });
  p.Record([&] { p.Launch(out, hidden); });
  p.driver.GraphExecDestroy(first);
  p.driver.MemFree(hidden);
}

void Unmapped(Program& p) {
  CUdeviceptr base = 0;
  p.driver.MemAddressReserve(&base, 8 * kMiB, 0, 0, 0);
  for (int i = 0; i < 2; ++i) {
    CUmemGenericAllocationHandle handle = 0;
    p.driver.MemCreate(&handle, 4 * kMiB, nullptr, 0);
    p.driver.MemMap(base + i * 4 * kMiB, 4 * kMiB, 0, handle, 0);
  }
  const CUdeviceptr out = p.Alloc(4);
  p.Record([&] { p.Launch(out, base + 4 * kMiB + 128); });
  p.driver.MemUnmap(base, 8 * kMiB);
}

void Remapped(Program& p) {
  CUdeviceptr base = 0;
  p.driver.MemAddressReserve(&base, 4 * kMiB, 0, 0, 0);
  CUmemGenericAllocationHandle handle = 0;
  p.driver.MemCreate(&handle, 4 * kMiB, nullptr, 0);
  p.driver.MemMap(base, 4 * kMiB, 0, handle, 0);
  const CUdeviceptr out = p.Alloc(4);
  p.Record([&] { p.Launch(out, base); });
  p.driver.MemUnmap(base, 4 * kMiB);
  p.driver.MemCreate(&handle, 4 * kMiB, nullptr, 0);
  p.driver.MemMap(base, 4 * kMiB, 0, handle, 0);
}

void Pinned(Program& p) {
  void* staging = nullptr;
  p.driver.MemHostAlloc(&staging, kMiB, 0);
  const CUdeviceptr out = p.Alloc(4);
  p.Record([&] { p.driver.MemcpyHtoDAsync(out, staging, kMiB, p.stream); });
  p.driver.MemFreeHost(staging);
}

void Managed(Program& p) {
  CUdeviceptr in = 0;
  p.driver.MemAllocManaged(&in, kMiB, CU_MEM_ATTACH_GLOBAL);
  p.Record([&] { p.driver.MemsetD8Async(in, 1, kMiB, p.stream); });
  p.driver.MemFree(in);
}

void Asynchronous(Program& p) {
  CUdeviceptr in = 0;
  p.driver.MemAllocAsync(&in, kMiB, p.stream);
  const CUdeviceptr out = p.Alloc(4);
  p.Record([&] { p.Launch(out, in); });
  p.driver.MemFreeAsync(in, p.stream);
}

void AllocationNodes(Program& p) {
  const CUdeviceptr out = p.Alloc(4);
  p.Record([&] {
    CUdeviceptr own = 0;
    p.driver.MemAllocAsync(&own, kMiB, p.stream);
    p.Launch(own, out);
    p.driver.MemFreeAsync(own, p.stream);
  });
}

void BuiltByHand(Program& p) {
  CUdeviceptr in = p.Alloc(4), out = p.Alloc(4);
  int seven = 7;
  void* parameters[] = {&out, &in, &seven};
  CUDA_KERNEL_NODE_PARAMS params = {};
  params.func = p.scale;
  params.kernelParams = parameters;
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  p.driver.GraphCreate(&graph, 0);
  p.driver.GraphAddKernelNode(&node, graph, nullptr, 0, &params);
  p.driver.MemFree(in);
  CUDA_GRAPH_INSTANTIATE_PARAMS how = {};
  CUgraphExec exec = nullptr;
  p.driver.GraphInstantiateWithParams(&exec, graph, &how);
}

// The update takes the graph away from `first`; what it points to after is what counts.
void Updated(Program& p) {
  const CUdeviceptr first = p.Alloc(4), second = p.Alloc(4), out = p.Alloc(4);
  const CUgraphExec exec = p.Record([&] { p.Launch(out, first); });
  CUgraphExecUpdateResultInfo result = {};
  p.driver.GraphExecUpdate(exec, p.Capture([&] { p.Launch(out, second); }), &result);
  p.driver.MemFree(first);
  p.driver.MemFree(second);
}

void NodeChanged(Program& p) {
  const CUdeviceptr first = p.Alloc(4), out = p.Alloc(4);
  const CUgraphExec exec = p.Record([&] { p.Launch(out, first); });
  CUDA_KERNEL_NODE_PARAMS params = {};
  p.driver.GraphExecKernelNodeSetParams(exec, nullptr, &params);
  p.driver.MemFree(first);  // perhaps it is not in the graph any more
}

void RefusedFree(Program& p) {
  const CUdeviceptr in = p.Alloc(4), out = p.Alloc(4);
  p.Record([&] { p.Launch(out, in); });
  p.driver.MemFree(in + 64);  // the driver refuses: not the begin of anything
}

void TeardownFree(Program& p) {
  static Program* const program = &p;
  static CUdeviceptr in = 0;
  in = p.Alloc(4);
  const CUdeviceptr out = p.Alloc(4);
  struct AtExit {
    ~AtExit() { program->driver.MemFree(in); }
  };
  static AtExit at_exit;
  p.Record([&] { p.Launch(out, in); });
}

void MidCapture(Program& p) {
  const CUdeviceptr in = p.Alloc(4), out = p.Alloc(4);
  p.driver.StreamBeginCapture(p.stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
  p.Launch(out, in);
  std::exit(5);
}

void ContextReset(Program& p) {
  const CUdeviceptr in = p.Alloc(4), out = p.Alloc(4);
  p.Record([&] { p.Launch(out, in); });
  p.driver.DevicePrimaryCtxReset(0);
  p.Alloc(4);
}

void QuickExit(Program& p) {
  FreedInput(p);
  std::printf("done\n");
  std::fflush(stdout);
  _exit(0);
}

// Blocks cut from one large allocation, told by name.
void Blocks(Program& p) {
  const auto note = reinterpret_cast<void (*)(const char*, unsigned long, unsigned long)>(
      dlsym(RTLD_DEFAULT, "holdfast_preload_note_range"));
  const auto forget =
      reinterpret_cast<void (*)(unsigned long)>(dlsym(RTLD_DEFAULT, "holdfast_preload_forget"));
  if (note == nullptr || forget == nullptr) return;
  const CUdeviceptr segment = p.Alloc(8);
  note("input", segment, kMiB);
  note("output", segment + kMiB, kMiB);
  p.Record([&] { p.Launch(segment + kMiB, segment); });
  forget(segment);
  note("other", segment, 2 * kMiB / 4);
}

// 0 if the driver's launch is handed out as it is.
void LaunchIsBare(Program& p) {
  p.Alloc(1);
  Dl_info info = {};
  dladdr(reinterpret_cast<void*>(p.driver.GraphLaunch), &info);
  if (std::strstr(info.dli_fname, "libcuda.so") == nullptr) std::exit(4);
}

const std::map<std::string, Case> kCases = {
    {"clean", Clean},
    {"freed_input", FreedInput},
    {"freed_before_capture", FreedBeforeCapture},
    {"freed_or_end", FreedOrEnd},
    {"freed_before_instantiate", FreedBeforeInstantiate},
    {"reused", Reused},
    {"reused_before_instantiate", ReusedBeforeInstantiate},
    {"workspace_grown", WorkspaceGrown},
    {"dead_pool", DeadPool},
    {"other_graphs_pool", OtherGraphsPool},
    {"unmapped", Unmapped},
    {"remapped", Remapped},
    {"pinned", Pinned},
    {"managed", Managed},
    {"asynchronous", Asynchronous},
    {"allocation_nodes", AllocationNodes},
    {"built_by_hand", BuiltByHand},
    {"updated", Updated},
    {"node_changed", NodeChanged},
    {"refused_free", RefusedFree},
    {"teardown_free", TeardownFree},
    {"mid_capture", MidCapture},
    {"context_reset", ContextReset},
    {"quick_exit", QuickExit},
    {"blocks", Blocks},
    {"launch_is_bare", LaunchIsBare},
};

}  // namespace

int main(int argc, char** argv) {
  const auto found = kCases.find(argc > 1 ? argv[1] : "");
  if (found == kCases.end()) return 2;
  static Program& program = *new Program;
  found->second(program);
  std::printf("done\n");
  return 0;
}
