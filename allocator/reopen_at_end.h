// Opens a gate that was closed and drained, whichever way the scope is left. Private to allocator/.
#ifndef HOLDFAST_ALLOCATOR_REOPEN_AT_END_H_
#define HOLDFAST_ALLOCATOR_REOPEN_AT_END_H_

#include "allocator/admission_gate.h"

namespace holdfast {

class ReopenAtEnd {
 public:
  explicit ReopenAtEnd(AdmissionGate& gate) : gate_(gate) {}
  ~ReopenAtEnd() { gate_.Reopen(); }
  ReopenAtEnd(const ReopenAtEnd&) = delete;
  ReopenAtEnd& operator=(const ReopenAtEnd&) = delete;

 private:
  AdmissionGate& gate_;
};

}  // namespace holdfast

#endif  // HOLDFAST_ALLOCATOR_REOPEN_AT_END_H_
