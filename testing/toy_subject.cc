#include "testing/toy_subject.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "device/bytes.h"
#include "device/hash.h"
#include "testing/toy_ops.h"

namespace holdfast::testing {
namespace {

constexpr std::int32_t kMostRows = 4;
constexpr std::uint64_t kRowBytes = kToyWidth * sizeof(float);
constexpr std::uint64_t kHeadBytes = 256;  // before the rows of the input: how many are real
constexpr std::uint64_t kInputBytes = kHeadBytes + kMostRows * kRowBytes;
constexpr std::uint64_t kCacheBytes = 64 * kKiB;
constexpr std::uint64_t kMatrixBytes = kToyWidth * kRowBytes;

// In [-1, 1), a function of seed and place.
float Number(std::uint64_t seed, std::uint64_t i) {
  const std::uint64_t bits = HashMix(seed * 0x9e3779b97f4a7c15ull + i + 1) >> 40;  // 24 of them
  return static_cast<float>(bits) / static_cast<float>(1 << 23) - 1.0f;
}
void FillNumbers(std::byte* to, std::uint64_t count, std::uint64_t seed) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const float number = Number(seed, i);
    std::memcpy(to + i * sizeof(float), &number, sizeof(float));
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Subject>> ToySubject::Create(Device& device,
                                                            const SubjectOptions& options) {
  std::unique_ptr<ToySubject> self(new ToySubject(device, options));
  HOLDFAST_RETURN_IF_ERROR(self->Build());
  return std::unique_ptr<Subject>(std::move(self));
}

ToySubject::~ToySubject() {
  graphs_.reset();
  lane_.reset();
  residency_.reset();
  arena_.reset();
}

absl::Status ToySubject::Build() {
  ledger_ = std::make_unique<Ledger>(device_);
  const std::uint64_t g = device_.info().granularity;
  const auto group = [g](const char* tag, Role role, bool refilled = false) {
    return GroupSpec{
        .tag = tag, .role = role, .extent_bytes = 2 * g, .chunk_bytes = g, .refilled = refilled};
  };
  HOLDFAST_ASSIGN_OR_RETURN(
      arena_,
      Arena::Create(device_, {.name = "toy",
                              .groups = {group("weights", Role::kImmutable),
                                         group("tables", Role::kImmutable, /*refilled=*/true),
                                         group("state", Role::kMutable), group("kv", Role::kCache),
                                         group("workspace", Role::kScratch)},
                              .candidate_bases = {}}));
  HOLDFAST_ASSIGN_OR_RETURN(residency_, Residency::Create(*arena_));
  HOLDFAST_ASSIGN_OR_RETURN(lane_, Lane::Create(*arena_, "toy"));
  HOLDFAST_ASSIGN_OR_RETURN(table_, device_.AllocateHost(kRowBytes));
  FillNumbers(table_.data(), kToyWidth, options_.seed + 1);
  if (options_.plant == Fault::kStalePointer) {
    HOLDFAST_ASSIGN_OR_RETURN(foreign_, ForeignMemory::Create(device_));
  }
  HOLDFAST_RETURN_IF_ERROR(ReserveSpans());
  HOLDFAST_RETURN_IF_ERROR(LoadWeights());
  return Capture();
}

absl::StatusOr<SpanId> ToySubject::Reserve(SpanSpec spec) {
  spec.owner = "toy";
  return arena_->Reserve(std::move(spec));
}

absl::Status ToySubject::ReserveSpans() {
  const std::uint64_t g = device_.info().granularity;
  HOLDFAST_ASSIGN_OR_RETURN(
      weights_,
      Reserve(
          {.name = "weights", .tag = "weights", .role = Role::kImmutable, .bytes = kMatrixBytes}));
  // A chunk of its own with other contents: two pieces that can be exchanged.
  HOLDFAST_ASSIGN_OR_RETURN(spare_weights_, Reserve({.name = "spare_weights",
                                                     .tag = "weights",
                                                     .role = Role::kImmutable,
                                                     .bytes = g,
                                                     .alignment = g}));
  HOLDFAST_ASSIGN_OR_RETURN(tables_,
                            Reserve({.name = "tables",
                                     .tag = "tables",
                                     .role = Role::kImmutable,
                                     .bytes = kRowBytes,
                                     .refill = [this](Device&, Stream& stream, AddressRange span) {
                                       return RefillTable(stream, span);
                                     }}));
  HOLDFAST_ASSIGN_OR_RETURN(counter_, Reserve({.name = "counter",
                                               .tag = "state",
                                               .role = Role::kMutable,
                                               .bytes = sizeof(std::uint64_t)}));
  HOLDFAST_ASSIGN_OR_RETURN(kv_, Reserve({.name = "kv",
                                          .tag = "kv",
                                          .role = Role::kCache,
                                          .bytes = kCacheBytes,
                                          .wake_contents = WakeContents::kPoison}));
  const auto scratch = [this](const char* name, std::uint64_t bytes) {
    return Reserve({.name = name, .tag = "workspace", .role = Role::kScratch, .bytes = bytes});
  };
  HOLDFAST_ASSIGN_OR_RETURN(input_, scratch("input", kInputBytes));
  HOLDFAST_ASSIGN_OR_RETURN(output_, scratch("output", kMostRows * kRowBytes));
  for (const std::string& tag : arena_->tags()) HOLDFAST_RETURN_IF_ERROR(arena_->CommitTag(tag));
  HOLDFAST_ASSIGN_OR_RETURN(host_input_, arena_->AddHostSpan("host_input", kInputBytes));
  HOLDFAST_ASSIGN_OR_RETURN(host_output_,
                            arena_->AddHostSpan("host_output", kMostRows * kRowBytes));
  return absl::OkStatus();
}

absl::Status ToySubject::RefillTable(Stream& stream, AddressRange span) {
  return device_.CopyToDevice(stream, span.base, table_.data(), kRowBytes);
}

absl::Status ToySubject::LoadWeights() {
  Stream& stream = lane_->stream();
  for (const SpanId id : {weights_, spare_weights_}) {
    const AddressRange range = arena_->range(id);
    HOLDFAST_ASSIGN_OR_RETURN(const HostBuffer room, device_.AllocateHost(range.bytes));
    FillNumbers(room.data(), range.bytes / sizeof(float), options_.seed + 2 + id.index);
    HOLDFAST_RETURN_IF_ERROR(device_.CopyToDevice(stream, range.base, room.data(), range.bytes));
    HOLDFAST_RETURN_IF_ERROR(lane_->Synchronize());
  }
  HOLDFAST_RETURN_IF_ERROR(RefillTable(stream, arena_->range(tables_)));
  HOLDFAST_RETURN_IF_ERROR(lane_->Synchronize());
  HOLDFAST_RETURN_IF_ERROR(arena_->Seal("weights"));
  return arena_->Seal("tables");
}

absl::Status ToySubject::Capture() {
  graphs_ =
      std::make_unique<GraphSet>(*lane_, [this](const GraphKey& key) { return MakeStep(key); });
  HOLDFAST_ASSIGN_OR_RETURN(BucketList buckets, BucketList::Of({2, kMostRows}, kMostRows));
  HOLDFAST_RETURN_IF_ERROR(graphs_->AddPhase(Phase::kDecode, std::move(buckets)));
  HOLDFAST_RETURN_IF_ERROR(graphs_->Measure());
  HOLDFAST_ASSIGN_OR_RETURN(workspace_, Reserve({.name = "scratch",
                                                 .tag = "workspace",
                                                 .role = Role::kScratch,
                                                 .bytes = graphs_->scratch_bytes()}));
  HOLDFAST_RETURN_IF_ERROR(arena_->CommitTag("workspace"));
  {
    const LedgerEvent event = ledger_->Measure(kModulesOwner);
    HOLDFAST_RETURN_IF_ERROR(graphs_->WarmUp(workspace_, [this](const GraphKey& key) {
      SetInputs({}, static_cast<std::int32_t>(key.size));
    }));
  }
  HOLDFAST_RETURN_IF_ERROR(ledger_->SeparateLocalMemory(kModulesOwner));
  const LedgerEvent event = ledger_->Measure(kExecutablesOwner);
  return graphs_->Capture(workspace_);
}

absl::StatusOr<Step> ToySubject::MakeStep(const GraphKey& key) {
  return Step([this, rows = static_cast<std::int32_t>(key.size)](StepContext& step) {
    return EnqueueStep(step, rows);
  });
}

absl::Status ToySubject::EnqueueStep(StepContext& step, std::int32_t rows) {
  const std::uint64_t bytes = static_cast<std::uint64_t>(rows) * kRowBytes;
  const DeviceAddress input = step.Resolve(input_), output = step.Resolve(output_);
  HOLDFAST_RETURN_IF_ERROR(
      step.CopyToDevice(input, host_input_->buffer.data(), kHeadBytes + bytes));
  HOLDFAST_ASSIGN_OR_RETURN(const ScratchBuffer mixed, step.Scratch("mixed", bytes));
  const ToyMixParams mix{.x = (input + kHeadBytes).As<const float>(),
                         .weights = step.Resolve(weights_).As<const float>(),
                         .mixed = mixed.As<float>(),
                         .real = input.As<const std::int32_t>(),
                         .rows = rows,
                         .stale_scratch = options_.plant == Fault::kStaleScratch,
                         .pads_count = options_.plant == Fault::kPadsCount};
  HOLDFAST_RETURN_IF_ERROR(step.Launch(ToyMixOp(), {}, mix));
  DeviceAddress counter = step.Resolve(counter_);
  if (foreign_ != nullptr) counter = foreign_->range().base;
  DeviceAddress kv = step.Resolve(kv_);
  if (!step.measuring()) ++captures_;
  if (options_.plant == Fault::kUnsteadyStep) kv = kv + static_cast<std::uint64_t>(captures_) * 256;
  const ToyFinishParams finish{.mixed = mixed.As<const float>(),
                               .table = step.Resolve(tables_).As<const float>(),
                               .kv = kv.As<float>(),
                               .out = output.As<float>(),
                               .counter = counter.As<std::uint64_t>(),
                               .real = input.As<const std::int32_t>(),
                               .rows = rows};
  HOLDFAST_RETURN_IF_ERROR(step.Launch(ToyFinishOp(), {}, finish));
  return step.CopyToHost(host_output_->buffer.data(), output, bytes);
}

// One row fewer than the bucket holds, so that there is always a pad.
void ToySubject::SetInputs(const RunRequest& request, std::int32_t rows) {
  std::byte* const to = host_input_->buffer.data();
  const std::int32_t real = rows - 1;
  std::memcpy(to, &real, sizeof(real));
  FillNumbers(to + kHeadBytes, static_cast<std::uint64_t>(real) * kToyWidth, request.seed);
  std::memset(to + kHeadBytes + real * kRowBytes, request.poison_pads ? 0xFF : 0,
              static_cast<std::size_t>(rows - real) * kRowBytes);
}

absl::StatusOr<Outputs> ToySubject::Run(const RunRequest& request) {
  Outputs outputs;
  for (Graph* const graph : graphs_->graphs()) {
    const auto rows = static_cast<std::int32_t>(graph->key().size);
    SetInputs(request, rows);
    if (request.eager) {
      HOLDFAST_ASSIGN_OR_RETURN(const Step step, MakeStep(graph->key()));
      HOLDFAST_ASSIGN_OR_RETURN(const ScratchPlan plan,
                                MeasureStep(*arena_, lane_->stream(), graph->name(), step));
      HOLDFAST_RETURN_IF_ERROR(RunEager(*lane_, graph->name(), step,
                                        {.plan = &plan, .scratch = workspace_, .externals = {}}));
    } else {
      HOLDFAST_RETURN_IF_ERROR(graph->Replay());
    }
    HOLDFAST_RETURN_IF_ERROR(lane_->Synchronize());
    const std::byte* from = host_output_->buffer.data();
    outputs[graph->name()].assign(from, from + static_cast<std::size_t>(rows) * kRowBytes);
  }
  return outputs;
}

absl::Status ToySubject::Enqueue() { return graphs_->graphs().back()->Replay(); }

std::vector<PathUse> ToySubject::Paths() {
  return {{.name = "rows", .selected = true, .reserved_bytes = graphs_->scratch_bytes()},
          {.name = "sampled", .selected = false, .reserved_bytes = 0}};
}

}  // namespace holdfast::testing
