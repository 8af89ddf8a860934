#include "heat/rods.h"

#include <chrono>
#include <cstring>

#include "heat/holdfast_ops.h"

namespace heat {
namespace {

using holdfast::DeviceAddress;
using holdfast::Role;
using holdfast::ScratchBuffer;
using holdfast::StepContext;
using holdfast::WakeContents;

constexpr std::int32_t kMostRods = 4;
constexpr std::uint64_t kRodBytes = kCells * sizeof(float);
constexpr std::uint64_t kHeadBytes = 256;  // before the warmth: how many rods are real
constexpr std::uint64_t kWarmthBytes = kHeadBytes + kMostRods * kRodBytes;

float Conductivity(std::int32_t i) { return 0.125f + 0.25f * static_cast<float>(i % 4) / 4; }
float Source(std::int32_t i) { return i == 3 ? 0.5f : 0.0f; }
// Warmth of cell i before the step, in [0, 16).
float Initial(std::uint64_t seed, std::int32_t i) {
  return static_cast<float>((seed * 7 + static_cast<std::uint64_t>(i) * 5) % 16);
}
// All but the last rod are real, so that there is always a pad; one rod alone has none.
std::int32_t RealOf(std::int32_t rods) { return rods == 1 ? 1 : rods - 1; }

}  // namespace

absl::StatusOr<std::unique_ptr<Rods>> Rods::Create(holdfast::Device& device, Mistake mistake) {
  std::unique_ptr<Rods> rods(new Rods(device, mistake));
  {  // streams and pinned buffers are the context's
    const holdfast::LedgerEvent event = rods->ledger_.Measure(holdfast::kContextOwner);
    HOLDFAST_RETURN_IF_ERROR(rods->MakeArena());
    HOLDFAST_RETURN_IF_ERROR(rods->ReserveSpans());
  }
  HOLDFAST_RETURN_IF_ERROR(rods->LoadTables());
  HOLDFAST_RETURN_IF_ERROR(rods->Capture());
  return rods;
}

Rods::~Rods() = default;

absl::Status Rods::MakeArena() {
  const std::uint64_t piece = device_.info().granularity;
  const auto group = [piece](const char* tag, Role role) {
    return holdfast::GroupSpec{
        .tag = tag, .role = role, .extent_bytes = 2 * piece, .chunk_bytes = piece};
  };
  holdfast::ArenaOptions options{.name = "heat"};
  options.groups = {group("tables", Role::kImmutable), group("sources", Role::kImmutable),
                    group("state", Role::kMutable), group("log", Role::kCache),
                    group("workspace", Role::kScratch)};
  options.groups[1].refilled = true;
  HOLDFAST_ASSIGN_OR_RETURN(arena_, holdfast::Arena::Create(device_, std::move(options)));
  HOLDFAST_ASSIGN_OR_RETURN(residency_, holdfast::Residency::Create(*arena_));
  HOLDFAST_ASSIGN_OR_RETURN(lane_, holdfast::Lane::Create(*arena_, "heat"));
  return absl::OkStatus();
}

absl::Status Rods::ReserveSpans() {
  HOLDFAST_ASSIGN_OR_RETURN(table_, device_.AllocateHost(2 * kRodBytes));
  auto* const table = reinterpret_cast<float*>(table_.data());
  for (std::int32_t i = 0; i < kCells; ++i) {
    table[i] = Conductivity(i);
    table[kCells + i] = Source(i);
  }
  const auto reserve = [this](holdfast::SpanId& id, holdfast::SpanSpec spec) -> absl::Status {
    spec.owner = "heat";
    HOLDFAST_ASSIGN_OR_RETURN(id, arena_->Reserve(std::move(spec)));
    return absl::OkStatus();
  };
  HOLDFAST_RETURN_IF_ERROR(reserve(
      conductivity_,
      {.name = "conductivity", .tag = "tables", .role = Role::kImmutable, .bytes = kRodBytes}));
  // Cheap to make again, so sleep drops it and wake asks for it.
  holdfast::SpanSpec sources{
      .name = "sources", .tag = "sources", .role = Role::kImmutable, .bytes = kRodBytes};
  sources.refill = [this](holdfast::Device& device, holdfast::Stream& stream,
                          holdfast::AddressRange span) {
    return device.CopyToDevice(stream, span.base, table_.data() + kRodBytes, kRodBytes);
  };
  HOLDFAST_RETURN_IF_ERROR(reserve(sources_, std::move(sources)));
  HOLDFAST_RETURN_IF_ERROR(
      reserve(warmth_, {.name = "warmth", .tag = "state", .bytes = kWarmthBytes}));
  HOLDFAST_RETURN_IF_ERROR(reserve(steps_, {.name = "steps", .tag = "state", .bytes = 8}));
  // A few rods longer than it is used, for the step that wanders.
  HOLDFAST_RETURN_IF_ERROR(reserve(log_, {.name = "log",
                                          .tag = "log",
                                          .role = Role::kCache,
                                          .bytes = device_.info().granularity,
                                          .wake_contents = WakeContents::kPoison}));
  HOLDFAST_ASSIGN_OR_RETURN(in_, arena_->AddHostSpan("in", kWarmthBytes));
  HOLDFAST_ASSIGN_OR_RETURN(out_, arena_->AddHostSpan("out", kMostRods * kRodBytes));
  for (const char* tag : {"tables", "sources", "state", "log"}) {
    HOLDFAST_RETURN_IF_ERROR(arena_->CommitTag(tag));
  }
  return absl::OkStatus();
}

absl::Status Rods::LoadTables() {
  // Sealing takes hashes: the driver loads their kernel now.
  const holdfast::LedgerEvent event = ledger_.Measure(holdfast::kModulesOwner);
  holdfast::Stream& stream = lane_->stream();
  HOLDFAST_RETURN_IF_ERROR(
      device_.CopyToDevice(stream, arena_->range(conductivity_).base, table_.data(), kRodBytes));
  HOLDFAST_RETURN_IF_ERROR(device_.CopyToDevice(stream, arena_->range(sources_).base,
                                                table_.data() + kRodBytes, kRodBytes));
  HOLDFAST_RETURN_IF_ERROR(lane_->Synchronize());
  HOLDFAST_RETURN_IF_ERROR(arena_->Seal("tables"));
  return arena_->Seal("sources");
}

absl::Status Rods::Capture() {
  graphs_ = std::make_unique<holdfast::GraphSet>(
      *lane_, [this](const holdfast::GraphKey& key) -> absl::StatusOr<holdfast::Step> {
        return holdfast::Step(
            [this, rods = key.size](StepContext& s) { return EnqueueStep(s, rods); });
      });
  HOLDFAST_ASSIGN_OR_RETURN(auto buckets, holdfast::BucketList::Of({1, 2, kMostRods}, kMostRods));
  HOLDFAST_RETURN_IF_ERROR(graphs_->AddPhase(holdfast::Phase::kDecode, std::move(buckets)));
  HOLDFAST_RETURN_IF_ERROR(graphs_->Measure());
  HOLDFAST_ASSIGN_OR_RETURN(workspace_, arena_->Reserve({.name = "scratch",
                                                         .tag = "workspace",
                                                         .role = Role::kScratch,
                                                         .bytes = graphs_->scratch_bytes(),
                                                         .owner = "heat"}));
  HOLDFAST_RETURN_IF_ERROR(arena_->CommitTag("workspace"));
  {
    const holdfast::LedgerEvent event = ledger_.Measure(holdfast::kModulesOwner);
    HOLDFAST_RETURN_IF_ERROR(graphs_->WarmUp(
        workspace_, [this](const holdfast::GraphKey& key) { SetInputs(key.size, {}); }));
  }
  HOLDFAST_RETURN_IF_ERROR(ledger_.SeparateLocalMemory(holdfast::kModulesOwner));
  const holdfast::LedgerEvent event = ledger_.Measure(holdfast::kExecutablesOwner);
  return graphs_->Capture(workspace_);
}

absl::Status Rods::EnqueueStep(StepContext& step, std::int32_t rods) {
  const std::uint64_t bytes = static_cast<std::uint64_t>(rods) * kRodBytes;
  const holdfast::LaunchShape shape{.grid = {static_cast<std::uint32_t>(rods)},
                                    .block = {static_cast<std::uint32_t>(kCells)}};
  const DeviceAddress head = step.Resolve(warmth_), warmth = head + kHeadBytes;
  HOLDFAST_RETURN_IF_ERROR(step.CopyToDevice(head, in_->buffer.data(), kHeadBytes + bytes));
  HOLDFAST_ASSIGN_OR_RETURN(const ScratchBuffer flow, step.Scratch("flow", bytes));
  FlowParams flows{.warmth = warmth.As<const float>(),
                   .conductivity = step.Resolve(conductivity_).As<const float>(),
                   .flow = flow.As<float>(),
                   .real = head.As<const std::int32_t>(),
                   .rods = rods,
                   .adds_to_scratch = mistake_ == Mistake::kAddsToScratch,
                   .pads_count = mistake_ == Mistake::kPadsCount};
  if (mistake_ == Mistake::kStalePointer) {
    flows.conductivity = reinterpret_cast<const float*>(table_.data());
  }
  HOLDFAST_RETURN_IF_ERROR(step.Launch(FlowOp(), shape, flows));
  DeviceAddress log = step.Resolve(log_);
  if (mistake_ == Mistake::kUnsteadyStep) log = log + 256 * (++enqueued_ % 8);
  HOLDFAST_RETURN_IF_ERROR(
      step.Launch(SettleOp(), shape,
                  SettleParams{.flow = flow.As<const float>(),
                               .sources = step.Resolve(sources_).As<const float>(),
                               .warmth = warmth.As<float>(),
                               .log = log.As<float>(),
                               .steps = step.Resolve(steps_).As<std::uint64_t>(),
                               .real = head.As<const std::int32_t>(),
                               .rods = rods}));
  return step.CopyToHost(out_->buffer.data(), warmth, bytes);
}

void Rods::SetInputs(std::int32_t rods, const StepInputs& inputs) {
  std::byte* const to = in_->buffer.data();
  const std::int32_t real = RealOf(rods);
  std::memcpy(to, &real, sizeof(real));
  auto* const warmth = reinterpret_cast<float*>(to + kHeadBytes);
  for (std::int32_t i = 0; i < real * kCells; ++i) warmth[i] = Initial(inputs.seed, i);
  std::memset(warmth + real * kCells, inputs.poison_pads ? 0xFF : 0,
              static_cast<std::size_t>(rods - real) * kRodBytes);
}

absl::Status Rods::Run(holdfast::Graph& graph, bool eager) {
  if (!eager) {
    HOLDFAST_RETURN_IF_ERROR(graph.Replay());
    return lane_->Synchronize();
  }
  const holdfast::Step step = [this, rods = graph.key().size](StepContext& context) {
    return EnqueueStep(context, rods);
  };
  HOLDFAST_ASSIGN_OR_RETURN(const holdfast::ScratchPlan plan,
                            MeasureStep(*arena_, lane_->stream(), graph.name(), step));
  holdfast::CaptureOptions options;
  options.plan = &plan;
  options.scratch = workspace_;
  HOLDFAST_RETURN_IF_ERROR(RunEager(*lane_, graph.name(), step, options));
  return lane_->Synchronize();
}

absl::StatusOr<std::map<std::string, std::vector<float>>> Rods::Step(const StepInputs& inputs) {
  std::map<std::string, std::vector<float>> outputs;
  for (holdfast::Graph* const graph : graphs_->graphs()) {
    const std::int32_t rods = graph->key().size;
    SetInputs(rods, inputs);
    HOLDFAST_RETURN_IF_ERROR(Run(*graph, inputs.eager));
    const auto* const warmth = reinterpret_cast<const float*>(out_->buffer.data());
    outputs[graph->name()].assign(warmth, warmth + RealOf(rods) * kCells);
  }
  return outputs;
}

std::vector<float> Rods::Expected(std::uint64_t seed, std::int32_t bucket) {
  std::vector<float> expected;
  for (std::int32_t at = 0; at < RealOf(bucket) * kCells; ++at) {
    const std::int32_t i = at % kCells, rod = at - i;
    const auto warmth = [&](std::int32_t cell) {
      return Initial(seed, rod + (cell + kCells) % kCells);
    };
    const auto flow = [&](std::int32_t cell) {
      return Conductivity((cell + kCells) % kCells) * (warmth(cell) - warmth(cell + 1));
    };
    expected.push_back(warmth(i) + flow(i - 1) - flow(i) + Source(i));
  }
  return expected;
}

}  // namespace heat
