// The kernels as holdfast launches them.
#ifndef HOLDFAST_TESTS_OUTSIDE_HEAT_HOLDFAST_OPS_H_
#define HOLDFAST_TESTS_OUTSIDE_HEAT_HOLDFAST_OPS_H_

#include "holdfast/device/op.h"

namespace heat {

const holdfast::Op& FlowOp();
const holdfast::Op& SettleOp();

}  // namespace heat

#endif  // HOLDFAST_TESTS_OUTSIDE_HEAT_HOLDFAST_OPS_H_
