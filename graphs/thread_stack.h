// Where the calling thread's stack lies. Libraries pass the address of temporaries of their own as
// kernel parameters (cuBLASLt's split-K reduction does): such words are neither pointers of a graph
// nor the same in two captures.
#ifndef HOLDFAST_GRAPHS_THREAD_STACK_H_
#define HOLDFAST_GRAPHS_THREAD_STACK_H_

#include "device/address.h"

namespace holdfast {

// Empty if the system does not say.
AddressRange ThisThreadsStack();

}  // namespace holdfast

#endif  // HOLDFAST_GRAPHS_THREAD_STACK_H_
