#include "device/host/work.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "absl/strings/str_format.h"

namespace holdfast {
namespace {

template <typename... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <typename... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

void RunKernel(const void* work) {
  const KernelWork& kernel = *static_cast<const KernelWork*>(work);
  kernel.run(kernel.params.data());
}

void RunCopy(const void* work) {
  const CopyView& copy = *static_cast<const CopyView*>(work);
  std::memmove(reinterpret_cast<void*>(copy.destination), reinterpret_cast<void*>(copy.source),
               copy.bytes);
}

void RunFill(const void* work) {
  const FillView& fill = *static_cast<const FillView*>(work);
  std::memset(reinterpret_cast<void*>(fill.destination), static_cast<int>(fill.value), fill.bytes);
}

void RunHash(const void* work) {
  const HashWork& hash = *static_cast<const HashWork*>(work);
  for (std::uint64_t at = 0, leaf = 0; at < hash.range.bytes; at += kHashLeafBytes, ++leaf) {
    hash.out[leaf] = HashLeafOnHost((hash.range.base + at).As<void>(),
                                    std::min(kHashLeafBytes, hash.range.bytes - at));
  }
}

void RunScan(const void* work) {
  const ScanWork& scan = *static_cast<const ScanWork*>(work);
  ScanWordsOnHost(scan.data.base.As<void>(), scan.data.bytes, scan.scan);
}

// body(&work), and the loss of the device if it faults.
template <typename T>
void Guarded(void (*body)(const void*), const T& work, const std::string& what, DeviceLoss& loss) {
  const std::optional<Fault> fault = RunGuarded(body, &work);
  if (!fault.has_value()) return;
  loss.Set(absl::StrFormat("%s accessed 0x%x, which it may not (signal %d)", what, fault->address,
                           fault->signal));
}

void RunHostFunction(const HostFunctionWork& work, HostMemory& memory) {
  memory.LeaveExecutor();
  work.function(work.argument);
  memory.EnterExecutor();
}

void RunWait(const WaitWork& work, HostMemory& memory) {
  memory.LeaveExecutor();
  work.marks->WaitFor(work.mark, std::chrono::steady_clock::time_point::max());
  memory.EnterExecutor();
}

}  // namespace

ParameterBytes::ParameterBytes(const void* data, std::size_t bytes)
    : blocks_((bytes + sizeof(Block) - 1) / sizeof(Block)), bytes_(bytes) {
  if (bytes != 0) std::memcpy(blocks_.data(), data, bytes);
}

void RunWork(const Work& work, HostMemory& memory, DeviceLoss& loss) {
  if (const auto* record = std::get_if<RecordWork>(&work)) record->marks->Reach(record->mark);
  if (loss.lost()) return;
  std::visit(Overloaded{
                 [&](const KernelWork& kernel) { Guarded(&RunKernel, kernel, kernel.name, loss); },
                 [&](const CopyView& copy) { Guarded(&RunCopy, copy, "a copy", loss); },
                 [&](const FillView& fill) { Guarded(&RunFill, fill, "a fill", loss); },
                 [&](const HashWork& hash) { Guarded(&RunHash, hash, "a hash", loss); },
                 [&](const ScanWork& scan) { Guarded(&RunScan, scan, "a scan", loss); },
                 [&](const HostFunctionWork& function) { RunHostFunction(function, memory); },
                 [&](const RecordWork&) {},  // reached above
                 [&](const WaitWork& wait) { RunWait(wait, memory); },
                 [&](const GraphWork& graph) {
                   for (const Work& node : *graph.nodes) RunWork(node, memory, loss);
                 },
             },
             work);
}

NodeView ViewOf(const Work& work) {
  NodeView view;
  std::visit(
      Overloaded{
          [&](const KernelWork& kernel) {
            view.kind = NodeKind::kKernel;
            const std::byte* bytes = static_cast<const std::byte*>(kernel.params.data());
            view.parameters = {{.offset = 0, .bytes = {bytes, bytes + kernel.params.size()}}};
            view.name = kernel.name;
          },
          [&](const CopyView& copy) {
            view.kind = NodeKind::kCopy;
            view.copy = copy;
          },
          [&](const FillView& fill) {
            view.kind = NodeKind::kFill;
            view.fill = fill;
          },
          [&](const HostFunctionWork&) { view.kind = NodeKind::kHost; },
          [&](const HashWork&) { view.kind = NodeKind::kUnreadable; },
          [&](const ScanWork&) { view.kind = NodeKind::kUnreadable; },
          [&](const RecordWork&) { view.kind = NodeKind::kUnreadable; },
          [&](const WaitWork&) { view.kind = NodeKind::kUnreadable; },
          [&](const GraphWork&) { view.kind = NodeKind::kUnreadable; },
      },
      work);
  if (view.name.empty()) view.name = NodeKindName(view.kind);
  return view;
}

}  // namespace holdfast
