// Private to graphs/: the arena's pages a second time, at a chosen distance. Copies cannot be
// captured into unmapped addresses, so the shifted capture needs pages where it pretends the arena
// lies; nothing ever runs there.
#ifndef HOLDFAST_GRAPHS_SHIFTED_WINDOW_H_
#define HOLDFAST_GRAPHS_SHIFTED_WINDOW_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/arena.h"

namespace holdfast {

class ShiftedWindow {
 public:
  // Maps every resident chunk at its address + `shift`; sealed groups read-only. `shift` is a
  // multiple of the granularity and at least the window's size. The caller holds
  // arena.transition_mutex() for the life of this object: pages mapped twice would outlast a sleep.
  // kAddressTaken, kDriver; then nothing is left.
  static absl::StatusOr<std::unique_ptr<ShiftedWindow>> Create(Arena& arena, std::uint64_t shift);
  ~ShiftedWindow() { Close().IgnoreError(); }

  // Unmaps and gives the addresses back. Does nothing the second time.
  absl::Status Close();

 private:
  ShiftedWindow(Device& device, AddressRange window) : device_(device), window_(window) {}
  absl::Status MapChunk(AddressRange range, ChunkHandle chunk, Access access);

  Device& device_;
  AddressRange window_;
  std::vector<AddressRange> mapped_;
};

}  // namespace holdfast

#endif  // HOLDFAST_GRAPHS_SHIFTED_WINDOW_H_
