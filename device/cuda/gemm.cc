#include "device/cuda/gemm.h"

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "device/bytes.h"
#include "device/cuda/cuda_context.h"
#include "device/cuda/cuda_error.h"

namespace holdfast {
namespace {

// cuBLAS's own recommendation for this generation of GPUs.
constexpr std::uint64_t kMaxWorkspaceBytes = 32 * kMiB;

// A pinned algorithm is the one that is best for this many rows, and must run for all of these.
constexpr std::int64_t kCanonicalRows = 256;
constexpr std::array<std::int64_t, 3> kRowsThatMustRun = {1, 8, 256};
constexpr int kCandidates = 64;

class CudaGemmPlan final : public GemmPlan {
 public:
  CudaGemmPlan(GemmProblem problem, const cublasLtMatmulAlgo_t& algorithm, const GemmSpec& spec,
               std::uint64_t workspace_bytes)
      : GemmPlan(spec, workspace_bytes),
        problem_(std::move(problem)),
        algorithm_(algorithm),
        alignment_(GemmAlignment::Of(spec)) {}

  absl::Status Run(cublasLtHandle_t handle, const GemmOperands& operands,
                   cudaStream_t stream) const {
    // A less aligned operand would fault on the GPU: the algorithm was chosen for these alignments.
    if (operands.a.value % alignment_.a != 0 || operands.b.value % alignment_.b != 0 ||
        operands.d.value % alignment_.d != 0) {
      return MakeError({.kind = ErrorKind::kInvalidArgument, .object = spec().name},
                       absl::StrCat("gemm operands must be aligned to ", alignment_.a, ", ",
                                    alignment_.b, " and ", alignment_.d, " bytes"));
    }
    return problem_.Run(handle, algorithm_, operands, workspace_bytes(), stream);
  }

 private:
  GemmProblem problem_;
  cublasLtMatmulAlgo_t algorithm_;
  GemmAlignment alignment_;
};

std::string ShapeText(const GemmSpec& spec) {
  return absl::StrCat("m ", spec.m, ", n ", spec.n, ", k ", spec.k, ", batch ", spec.batch, ", ",
                      DTypeName(spec.in), " to ", DTypeName(spec.out));
}

absl::Status NoAlgorithm(const GemmSpec& spec, const std::string& which) {
  return MakeError({.kind = ErrorKind::kUnsupported, .object = spec.name},
                   absl::StrCat("cuBLASLt has no ", which, " for ", ShapeText(spec)));
}

// The same product with another number of rows, and at most as many matrices. A batch stride of A
// or D over whole matrices follows the rows; one inside a row (heads side by side) does not.
GemmSpec Resized(GemmSpec spec, std::int64_t rows, std::int64_t batch) {
  if (spec.stride_a >= spec.lda) spec.stride_a = rows * spec.lda;
  if (spec.stride_d >= spec.ldd) spec.stride_d = rows * spec.ldd;
  spec.m = rows;
  spec.batch = batch;
  return spec;
}

// All that decides the algorithm of a weight: never the number of rows or matrices, nor how far
// apart the matrices lie, but for the alignment that leaves.
std::string PinKey(const GemmSpec& spec) {
  const GemmAlignment alignment = GemmAlignment::Of(spec);
  return absl::StrCat(spec.name, "|", spec.n, "|", spec.k, "|", spec.lda, "|", spec.ldb, "|",
                      spec.ldd, "|", DTypeName(spec.in), "|", DTypeName(spec.out), "|",
                      spec.b_is_nk ? "nk" : "kn", "|", spec.accumulate ? "+=" : "=", "|",
                      alignment.a, "|", alignment.b, "|", alignment.d);
}

template <typename T>
std::optional<T> Config(const CublasLtTable& lt, const cublasLtMatmulAlgo_t& algorithm,
                        cublasLtMatmulAlgoConfigAttributes_t attribute) {
  T value = 0;
  std::size_t written = 0;
  if (lt.MatmulAlgoConfigGetAttribute(&algorithm, attribute, &value, sizeof(value), &written) !=
      CUBLAS_STATUS_SUCCESS) {
    return std::nullopt;
  }
  return value;
}

// True if each output element is summed by one block in one order, as far as the library tells.
bool SumsInOnePiece(const CublasLtTable& lt, const cublasLtMatmulAlgo_t& algorithm) {
  const auto splits = Config<std::int32_t>(lt, algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM);
  const auto reduction =
      Config<std::uint32_t>(lt, algorithm, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME);
  return splits && *splits <= 1 && reduction && *reduction == CUBLASLT_REDUCTION_SCHEME_NONE;
}

}  // namespace

GemmLibrary::~GemmLibrary() {
  if (handle_ != nullptr) static_cast<void>(lt_->Destroy(handle_));
}

absl::Status GemmLibrary::Start() {
  if (handle_ != nullptr) return absl::OkStatus();
  HOLDFAST_ASSIGN_OR_RETURN(lt_, LoadCublasLt());
  return ToStatus(lt_->Create(&handle_), "cublasLtCreate", {.object = "cuBLASLt"});
}

absl::StatusOr<cublasLtMatmulAlgo_t> GemmLibrary::Pinned(const GemmSpec& spec) {
  const std::string key = PinKey(spec);
  if (const auto known = pinned_.find(key); known != pinned_.end()) return known->second;
  HOLDFAST_ASSIGN_OR_RETURN(const GemmProblem canonical,
                            GemmProblem::Describe(*lt_, Resized(spec, kCanonicalRows, 1)));
  std::vector<GemmProblem> must_run;
  for (const std::int64_t rows : kRowsThatMustRun) {
    for (const std::int64_t batch : {std::int64_t{1}, spec.batch}) {
      HOLDFAST_ASSIGN_OR_RETURN(GemmProblem problem,
                                GemmProblem::Describe(*lt_, Resized(spec, rows, batch)));
      must_run.push_back(std::move(problem));
    }
  }
  const auto runs_everywhere = [&](const cublasLtMatmulAlgo_t& algorithm) {
    for (const GemmProblem& problem : must_run) {
      const auto workspace = problem.Check(handle_, algorithm);
      if (!workspace.ok() || *workspace > kMaxWorkspaceBytes) return false;
    }
    return true;
  };
  // Algorithms that share one output between blocks without calling it split-K need a workspace for
  // that: first look among those that need none. The last search trusts no filter but our own.
  const GemmAlignment alignment = GemmAlignment::Of(spec);
  const std::array<GemmProblem::Search, 3> searches = {{
      {.alignment = alignment, .workspace_bytes = 0, .count = kCandidates},
      {.alignment = alignment, .workspace_bytes = kMaxWorkspaceBytes, .count = kCandidates},
      {.alignment = alignment,
       .workspace_bytes = kMaxWorkspaceBytes,
       .allow_split = true,
       .count = kCandidates},
  }};
  for (const GemmProblem::Search& search : searches) {
    HOLDFAST_ASSIGN_OR_RETURN(const auto candidates, canonical.Algorithms(handle_, search));
    for (const cublasLtMatmulHeuristicResult_t& candidate : candidates) {
      if (!SumsInOnePiece(*lt_, candidate.algo) || !runs_everywhere(candidate.algo)) continue;
      pinned_[key] = candidate.algo;
      return candidate.algo;
    }
  }
  return NoAlgorithm(spec, "deterministic algorithm that runs for every number of rows");
}

absl::StatusOr<std::unique_ptr<GemmPlan>> GemmLibrary::Plan(const GemmSpec& spec) {
  const RelaxedCaptureScope relaxed;  // the library may allocate and load code
  const std::lock_guard<std::mutex> lock(mutex_);
  HOLDFAST_RETURN_IF_ERROR(Start());
  HOLDFAST_ASSIGN_OR_RETURN(GemmProblem problem, GemmProblem::Describe(*lt_, spec));
  if (spec.deterministic) {
    HOLDFAST_ASSIGN_OR_RETURN(const cublasLtMatmulAlgo_t algorithm, Pinned(spec));
    const auto workspace = problem.Check(handle_, algorithm);
    if (!workspace.ok()) {
      return Annotate(workspace.status(), "pinned algorithm, " + ShapeText(spec));
    }
    return std::make_unique<CudaGemmPlan>(std::move(problem), algorithm, spec, *workspace);
  }
  HOLDFAST_ASSIGN_OR_RETURN(const auto found,
                            problem.Algorithms(handle_, {.alignment = GemmAlignment::Of(spec),
                                                         .workspace_bytes = kMaxWorkspaceBytes,
                                                         .allow_split = true}));
  if (found.empty()) return NoAlgorithm(spec, "algorithm");
  return std::make_unique<CudaGemmPlan>(std::move(problem), found[0].algo, spec,
                                        found[0].workspaceSize);
}

absl::Status GemmLibrary::Run(const GemmPlan& plan, const GemmOperands& operands,
                              cudaStream_t stream) const {
  return static_cast<const CudaGemmPlan&>(plan).Run(handle_, operands, stream);
}

}  // namespace holdfast
