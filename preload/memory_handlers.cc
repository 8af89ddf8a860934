// Memory that is given out and taken back.
#include "preload/handlers.h"
#include "preload/lookup.h"
#include "preload/session.h"

namespace holdfast::preload {
namespace {

// Counts what a driver call gave out, under the name the program used.
int GaveOut(const char* call, int code, const Word* address, std::size_t bytes, Word pool = 0) {
  if (code == kSuccess && address != nullptr) {
    Session::Get().Allocated(call, *address, bytes, pool);
  }
  return code;
}

template <typename Real, typename... Rest>
int TakeBack(const char* call, Real* real, Word address, Rest... rest) {
  const auto freed = Session::Get().Freeing(call, address);
  const int code = real(address, rest...);
  Session::Get().Settle(freed, code == kSuccess);
  return code;
}

// In a capture an asynchronous allocation is a node of the graph, which then owns the memory.
bool RecordedInto(Word stream) {
  if (!Session::Get().capturing()) return false;
  static auto* const is_capturing =
      reinterpret_cast<int (*)(Word, int*)>(FindInDriver("cuStreamIsCapturing"));
  int status = 0;
  return is_capturing != nullptr && is_capturing(stream, &status) == kSuccess && status != 0;
}

}  // namespace

int OnAlloc(cuMemAlloc_v2_Type::Function* real, Word* address, std::size_t bytes) {
  return GaveOut("cuMemAlloc", real(address, bytes), address, bytes);
}

int OnAllocPitch(cuMemAllocPitch_v2_Type::Function* real, Word* address, std::size_t* pitch,
                 std::size_t width, std::size_t height, unsigned element) {
  const int code = real(address, pitch, width, height, element);
  const std::size_t row = code == kSuccess && pitch != nullptr ? *pitch : width;
  return GaveOut("cuMemAllocPitch", code, address, row * height);
}

int OnAllocManaged(cuMemAllocManaged_Type::Function* real, Word* address, std::size_t bytes,
                   unsigned flags) {
  return GaveOut("cuMemAllocManaged", real(address, bytes, flags), address, bytes);
}

int OnFree(cuMemFree_v2_Type::Function* real, Word address) {
  return TakeBack("cuMemFree", real, address);
}

int OnAllocHost(cuMemAllocHost_v2_Type::Function* real, Word* address, std::size_t bytes) {
  return GaveOut("cuMemAllocHost", real(address, bytes), address, bytes);
}

int OnHostAlloc(cuMemHostAlloc_Type::Function* real, Word* address, std::size_t bytes,
                unsigned flags) {
  return GaveOut("cuMemHostAlloc", real(address, bytes, flags), address, bytes);
}

int OnFreeHost(cuMemFreeHost_Type::Function* real, Word address) {
  return TakeBack("cuMemFreeHost", real, address);
}

int OnHostRegister(cuMemHostRegister_v2_Type::Function* real, Word address, std::size_t bytes,
                   unsigned flags) {
  return GaveOut("cuMemHostRegister", real(address, bytes, flags), &address, bytes);
}

int OnHostUnregister(cuMemHostUnregister_Type::Function* real, Word address) {
  return TakeBack("cuMemHostUnregister", real, address);
}

int OnAllocAsync(cuMemAllocAsync_Type::Function* real, Word* address, std::size_t bytes,
                 Word stream) {
  const bool node = RecordedInto(stream);
  return GaveOut(node ? "allocation node" : "cuMemAllocAsync", real(address, bytes, stream),
                 address, bytes);
}

int OnAllocFromPoolAsync(cuMemAllocFromPoolAsync_Type::Function* real, Word* address,
                         std::size_t bytes, Word pool, Word stream) {
  const bool node = RecordedInto(stream);
  return GaveOut(node ? "allocation node" : "cuMemAllocFromPoolAsync",
                 real(address, bytes, pool, stream), address, bytes, pool);
}

int OnFreeAsync(cuMemFreeAsync_Type::Function* real, Word address, Word stream) {
  if (RecordedInto(stream)) return real(address, stream);  // a node: nothing goes yet
  return TakeBack("cuMemFreeAsync", real, address, stream);
}

int OnPoolDestroy(cuMemPoolDestroy_Type::Function* real, Word pool) {
  const int code = real(pool);
  if (code == kSuccess) Session::Get().PoolDestroyed(pool);
  return code;
}

int OnMap(cuMemMap_Type::Function* real, Word address, std::size_t bytes, std::size_t offset,
          Word handle, unsigned long long flags) {
  return GaveOut("cuMemMap", real(address, bytes, offset, handle, flags), &address, bytes);
}

int OnUnmap(cuMemUnmap_Type::Function* real, Word address, std::size_t bytes) {
  const auto gone = Session::Get().Unmapping("cuMemUnmap", address, bytes);
  const int code = real(address, bytes);
  Session::Get().Settle(gone, code == kSuccess);
  return code;
}

int OnContextDestroy(cuCtxDestroy_v2_Type::Function* real, Word context) {
  const int code = real(context);
  if (code == kSuccess) Session::Get().ContextDestroyed();
  return code;
}

int OnContextReset(cuDevicePrimaryCtxReset_v2_Type::Function* real, int device) {
  const int code = real(device);
  if (code == kSuccess) Session::Get().ContextDestroyed();
  return code;
}

}  // namespace holdfast::preload
