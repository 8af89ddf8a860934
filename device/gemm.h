// Matrix products as the device offers them: cuBLASLt on a GPU, Eigen on the host.
#ifndef HOLDFAST_DEVICE_GEMM_H_
#define HOLDFAST_DEVICE_GEMM_H_

#include <cstdint>
#include <string>

#include "device/address.h"
#include "device/dtype.h"

namespace holdfast {

// D[b] = A[b] * op(B[b]) (+ D[b] if accumulate), all row-major, for b in [0, batch).
//   A: (m, k), leading dimension lda, `in`
//   B: (n, k) with ldb if b_is_nk (a Linear weight as stored), else (k, n) with ldb, `in`
//   D: (m, n), leading dimension ldd, `out`
// Leading dimensions and batch strides are in elements. Accumulation is in float.
struct GemmSpec {
  std::string name;  // of the weight; for errors, and the key of a pinned algorithm
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t lda = 0, ldb = 0, ldd = 0;
  std::int64_t batch = 1;
  std::int64_t stride_a = 0, stride_b = 0, stride_d = 0;
  DType in = DType::kF32;   // kF32 or kBF16
  DType out = DType::kF32;  // kF32, or equal to `in`
  bool b_is_nk = true;
  bool accumulate = false;  // needs out == kF32
  // One algorithm for this weight whatever m is, without split-K: a row's bits do not depend on the
  // other rows. (The host is always like that.)
  bool deterministic = false;
};

struct GemmOperands {
  DeviceAddress a, b, d;
  DeviceAddress
      workspace;  // workspace_bytes() of the plan, 256-byte aligned; may be null if that is 0
};

// An algorithm chosen for a spec. Immutable; usable from any thread; outlives no device.
class GemmPlan {
 public:
  virtual ~GemmPlan() = default;
  const GemmSpec& spec() const { return spec_; }
  std::uint64_t workspace_bytes() const { return workspace_bytes_; }

 protected:
  GemmPlan(GemmSpec spec, std::uint64_t workspace_bytes)
      : spec_(std::move(spec)), workspace_bytes_(workspace_bytes) {}

 private:
  GemmSpec spec_;
  std::uint64_t workspace_bytes_;
};

}  // namespace holdfast

#endif  // HOLDFAST_DEVICE_GEMM_H_
