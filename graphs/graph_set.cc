#include "graphs/graph_set.h"

#include <algorithm>
#include <exception>

#include "device/error.h"
#include "graphs/capture.h"

namespace holdfast {
namespace {

// The factory is the user's: its exceptions stop here.
absl::StatusOr<Step> MakeStep(const StepFactory& factory, const GraphKey& key) {
  const ErrorInfo thrown{.kind = ErrorKind::kInvalidArgument, .object = key.Name()};
  try {
    absl::StatusOr<Step> step = factory(key);
    if (!step.ok()) return Annotate(step.status(), key.Name());
    return step;
  } catch (const std::exception& e) {
    return MakeError(thrown, std::string("the step factory threw: ") + e.what());
  } catch (...) {
    return MakeError(thrown, "the step factory threw something that is no exception");
  }
}

}  // namespace

absl::StatusOr<FamilyId> GraphSet::AddFamily(const GraphFamily& family, BucketList buckets) {
  const std::string name = family.Name();
  if (!buckets_.empty()) {
    return MakeError({.kind = ErrorKind::kLocked, .object = name}, "the set is already measured");
  }
  if (family.query_length < 1) {
    return MakeError({.kind = ErrorKind::kInvalidArgument, .object = name},
                     "the query length is not positive");
  }
  for (const Family& other : families_) {
    if (other.family != family) continue;
    return MakeError({.kind = ErrorKind::kAlreadyExists, .object = name}, "declared twice");
  }
  families_.push_back({.family = family, .buckets = std::move(buckets), .by_size = {}});
  return FamilyId{families_.size() - 1};
}

absl::StatusOr<GraphSet::Bucket> GraphSet::MeasureBucket(const GraphKey& key) {
  const std::string name = key.Name();
  Bucket bucket{.key = key};
  HOLDFAST_ASSIGN_OR_RETURN(bucket.step, MakeStep(factory_, key));
  const Step guarded = [&](StepContext& context) { return CallStep(name, bucket.step, context); };
  HOLDFAST_ASSIGN_OR_RETURN(bucket.plan, MeasureStep(lane_.arena(), lane_.stream(), name, guarded));
  return bucket;
}

absl::Status GraphSet::Measure() {
  if (captured_) {
    return MakeError({.kind = ErrorKind::kLocked, .object = lane_.name()},
                     "graphs are captured already");
  }
  std::map<GraphKey, Bucket> measured;
  std::uint64_t height = 0, sum = 0, operations = 0;
  double ratio = 1;
  for (const Family& family : families_) {
    for (int size : family.buckets.sizes()) {
      const GraphKey key = KeyOf(family.family, size);
      HOLDFAST_ASSIGN_OR_RETURN(Bucket bucket, MeasureBucket(key));
      const ScratchPlan& plan = bucket.plan;
      height = std::max(height, plan.height);
      sum += plan.height;
      operations += plan.operations;
      ratio = std::max(ratio, plan.ratio());
      measured.emplace(key, std::move(bucket));
    }
  }
  buckets_ = std::move(measured);
  warm_ = false;
  scratch_bytes_ = height;
  scratch_sum_ = sum;
  operations_ = operations;
  plan_ratio_ = ratio;
  return absl::OkStatus();
}

std::vector<GraphSet::Bucket*> GraphSet::LargestFirst() {
  std::vector<Bucket*> order;
  for (auto& [key, bucket] : buckets_) order.push_back(&bucket);
  std::stable_sort(order.begin(), order.end(),
                   [](const Bucket* a, const Bucket* b) { return a->key.size > b->key.size; });
  return order;
}

absl::Status GraphSet::CheckWorkspace(SpanId workspace) const {
  if (buckets_.empty()) {
    return MakeError({.kind = ErrorKind::kNotFound, .object = lane_.name()},
                     "nothing is measured yet");
  }
  return CheckScratchFits(workspace, lane_.name(), scratch_bytes_);
}

absl::Status GraphSet::CheckScratchFits(SpanId workspace, const std::string& who,
                                        std::uint64_t bytes) const {
  if (bytes == 0) return absl::OkStatus();
  if (workspace == SpanId{}) {
    return MakeError({.kind = ErrorKind::kInvalidArgument, .object = who, .need = bytes},
                     "no workspace span for its scratch");
  }
  const SpanInfo span = lane_.arena().span(workspace);
  // Only what has pages counts: a span may reserve more address space than it uses.
  const std::uint64_t committed = lane_.arena().committed_bytes(workspace);
  if (committed >= bytes) return absl::OkStatus();
  return MakeError(
      {.kind = ErrorKind::kOutOfExtent, .object = span.spec.name, .need = bytes, .have = committed},
      "the workspace is smaller than the scratch of " + who);
}

}  // namespace holdfast
