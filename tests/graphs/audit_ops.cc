#include "tests/graphs/audit_ops.h"

namespace holdfast {
namespace {

void PackedHost(const PackedParams& p) { *p.data += p.add; }

void TableHost(const TableParams& p) {
  for (std::int64_t i = 0; i < p.count; ++i) *p.table[i] = p.value;
}

}  // namespace

const Op& PackedOp() {
  static const Op op = MakeOp<PackedParams, PackedHost>("packed", HOLDFAST_CUDA_TWIN(PackedCuda));
  return op;
}

const Op& TableOp() {
  static const Op op = MakeOp<TableParams, TableHost>("table", HOLDFAST_CUDA_TWIN(TableCuda));
  return op;
}

}  // namespace holdfast
