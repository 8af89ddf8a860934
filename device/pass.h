// How every public device call passes the call table.
#ifndef HOLDFAST_DEVICE_PASS_H_
#define HOLDFAST_DEVICE_PASS_H_

#include "device/call_table.h"
#include "device/error.h"

namespace holdfast {

// Runs `operation` between the two sides of the call table.
template <typename Operation>
auto Pass(CallTable& calls, Call call, Operation&& operation) -> decltype(operation()) {
  HOLDFAST_RETURN_IF_ERROR(calls.Enter(call));
  decltype(operation()) result = operation();
  if (result.ok()) calls.Succeeded(call);
  return result;
}

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_PASS_H_
