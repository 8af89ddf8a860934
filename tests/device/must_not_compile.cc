// What the types of device/ refuse. Each case is compiled by itself and must fail; without a case
// this file compiles. Run by must_not_compile_test.py.
#include "device/address.h"
#include "device/op.h"

namespace holdfast {

struct Plain {
  float* data;
};
void PlainHost(const Plain&) {}

// Has a copy of its own: its bytes are not all there is to it.
struct Owner {
  Owner(const Owner&) {}
};
void OwnerHost(const Owner&) {}

void Case(DeviceAddress a, DeviceAddress b, const void* pointer) {
  static_cast<void>(MakeOp<Plain, PlainHost>("plain", nullptr));
  static_cast<void>(a + std::uint64_t{8});
  static_cast<void>(b);
  static_cast<void>(pointer);
#if defined(CASE_SUM_OF_ADDRESSES)
  static_cast<void>(a + b);
#elif defined(CASE_DEREFERENCED_ADDRESS)
  static_cast<void>(*a);
#elif defined(CASE_ADDRESS_AS_POINTER)
  pointer = a;
#elif defined(CASE_POINTER_AS_ADDRESS)
  a = pointer;
#elif defined(CASE_ADDRESS_AS_NUMBER)
  std::uint64_t number = a;
#elif defined(CASE_PARAMETERS_THAT_ARE_NOT_BYTES)
  static_cast<void>(MakeOp<Owner, OwnerHost>("owner", nullptr));
#elif defined(CASE_OTHER_PARAMETERS)
  static_cast<void>(MakeOp<Owner, PlainHost>("other", nullptr));
#endif
}

}  // namespace holdfast
