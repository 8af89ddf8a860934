// The faults that negative controls plant into backups on their way back. Private to allocator/.
#ifndef HOLDFAST_ALLOCATOR_PLANTED_FAULTS_H_
#define HOLDFAST_ALLOCATOR_PLANTED_FAULTS_H_

#include <vector>

#include "absl/status/status.h"
#include "allocator/transition.h"

namespace holdfast {

// One copy from a backup.
struct CopyIn {
  KeptChunk chunk;
  const std::byte* from = nullptr;
  bool cross_leaves = false;  // the fault: its first two leaves change places
};

// Two pieces of equal size and different contents change places: two chunks, else the first two
// leaves of one. kInvalidArgument if there are no two such pieces.
absl::Status PlantSwap(std::vector<CopyIn>& copies);

// One bit of the first backup flips; nothing if there is none.
void PlantFlippedBit(Transition& t, const std::vector<CopyIn>& copies);

}  // namespace holdfast

#endif  // HOLDFAST_ALLOCATOR_PLANTED_FAULTS_H_
