// The kernels of the heat program as a plug-in for `holdfast check`: no library of holdfast is
// linked, and the arena is the kit's.
#include <cstddef>
#include <cstring>

#include "heat/ops.h"
#include "holdfast/testing/holdfast_plugin.h"

namespace heat {
namespace {

constexpr std::int32_t kMostRods = 4;
constexpr std::uint64_t kRodBytes = kCells * sizeof(float);
constexpr std::uint64_t kHeadBytes = 256;  // before the warmth: how many rods are real

enum Span : std::uint32_t { kConductivity, kSources, kWarmth, kSteps, kLog, kFlow, kSpanCount };
const holdfast_plugin_span kSpans[kSpanCount] = {
    {.name = "conductivity",
     .tag = "tables",
     .role = HOLDFAST_PLUGIN_IMMUTABLE,
     .wake = HOLDFAST_PLUGIN_ZERO,
     .bytes = kRodBytes},
    {.name = "sources",
     .tag = "tables",
     .role = HOLDFAST_PLUGIN_IMMUTABLE,
     .wake = HOLDFAST_PLUGIN_REFILL,
     .bytes = kRodBytes},
    {.name = "warmth",
     .tag = "state",
     .role = HOLDFAST_PLUGIN_MUTABLE,
     .wake = HOLDFAST_PLUGIN_ZERO,
     .bytes = kHeadBytes + kMostRods * kRodBytes,
     .flags = HOLDFAST_PLUGIN_INPUT},
    {.name = "steps",
     .tag = "state",
     .role = HOLDFAST_PLUGIN_MUTABLE,
     .wake = HOLDFAST_PLUGIN_ZERO,
     .bytes = 8},
    {.name = "log",
     .tag = "log",
     .role = HOLDFAST_PLUGIN_CACHE,
     .wake = HOLDFAST_PLUGIN_POISON,
     .bytes = kMostRods * kRodBytes},
    {.name = "flow",
     .tag = "workspace",
     .role = HOLDFAST_PLUGIN_SCRATCH,
     .wake = HOLDFAST_PLUGIN_ZERO,
     .bytes = kMostRods * kRodBytes},
};
// All but the last rod are real, so that there is always a pad.
const holdfast_plugin_step kBuckets[] = {{.name = "rods/2", .size = 2},
                                         {.name = "rods/4", .size = 4}};
const holdfast_plugin_output kOutputs[] = {
    {.name = "warmth", .step = 0, .span = kWarmth, .offset = kHeadBytes, .bytes = kRodBytes},
    {.name = "warmth", .step = 1, .span = kWarmth, .offset = kHeadBytes, .bytes = 3 * kRodBytes},
};

struct Rods {
  bool adds_to_scratch = false;
  bool pads_count = false;
};

std::int32_t Create(void** self) {
  *self = new Rods;
  return 0;
}
void Destroy(void* self) { delete static_cast<Rods*>(self); }

void WriteInputs(const holdfast_plugin_request& request, std::byte* to) {
  const std::int32_t rods = request.step < 2 ? kBuckets[request.step].size : kMostRods;
  const std::int32_t real = rods - 1;
  std::memcpy(to, &real, sizeof(real));
  for (std::int32_t i = 0; i < real * kCells; ++i) {
    const std::uint64_t number = (request.seed * 7 + static_cast<std::uint64_t>(i) * 5) % 16;
    const float warmth = static_cast<float>(number);
    std::memcpy(to + kHeadBytes + static_cast<std::uint64_t>(i) * sizeof(float), &warmth,
                sizeof(warmth));
  }
  std::memset(to + kHeadBytes + static_cast<std::uint64_t>(real) * kRodBytes,
              request.poison_pads != 0 ? 0xFF : 0, kRodBytes);
}

std::int32_t Contents(void*, const holdfast_plugin_request* request, void* buffer) {
  auto* const numbers = static_cast<float*>(buffer);
  if (request->span == kWarmth) {
    WriteInputs(*request, static_cast<std::byte*>(buffer));
  } else if (request->span == kConductivity) {
    for (std::int32_t i = 0; i < kCells; ++i) numbers[i] = 0.125f + static_cast<float>(i % 4) / 16;
  } else if (request->span == kSources) {
    numbers[3] = 0.5f;
  }
  return 0;
}

#if HEAT_WITH_CUDA
constexpr auto kFlowLaunch = &FlowLaunch;
constexpr auto kSettleLaunch = &SettleLaunch;
#else
constexpr decltype(&FlowLaunch) kFlowLaunch = nullptr;
constexpr decltype(&SettleLaunch) kSettleLaunch = nullptr;
#endif
const holdfast_plugin_op kFlowOp = {
    .name = "heat_flow",
    .params_bytes = sizeof(FlowParams),
    .host = [](const void* params) { FlowHost(*static_cast<const FlowParams*>(params)); },
    .cuda = kFlowLaunch};
const holdfast_plugin_op kSettleOp = {
    .name = "heat_settle",
    .params_bytes = sizeof(SettleParams),
    .host = [](const void* params) { SettleHost(*static_cast<const SettleParams*>(params)); },
    .cuda = kSettleLaunch};

std::int32_t Enqueue(void* self, std::uint32_t step, holdfast_plugin_context* context) {
  const Rods& rods = *static_cast<const Rods*>(self);
  const std::int32_t count = kBuckets[step].size;
  const auto at = [context](Span span, std::uint64_t offset = 0) {
    return context->span_address[span] + offset;
  };
  const holdfast_plugin_shape shape = {.grid = {static_cast<std::uint32_t>(count), 1, 1},
                                       .block = {static_cast<std::uint32_t>(kCells), 1, 1}};
  const FlowParams flow = {.warmth = reinterpret_cast<const float*>(at(kWarmth, kHeadBytes)),
                           .conductivity = reinterpret_cast<const float*>(at(kConductivity)),
                           .flow = reinterpret_cast<float*>(at(kFlow)),
                           .real = reinterpret_cast<const std::int32_t*>(at(kWarmth)),
                           .rods = count,
                           .adds_to_scratch = rods.adds_to_scratch,
                           .pads_count = rods.pads_count};
  if (const std::int32_t error = context->launch(context, &kFlowOp, &shape, &flow)) return error;
  const SettleParams settle = {.flow = reinterpret_cast<const float*>(at(kFlow)),
                               .sources = reinterpret_cast<const float*>(at(kSources)),
                               .warmth = reinterpret_cast<float*>(at(kWarmth, kHeadBytes)),
                               .log = reinterpret_cast<float*>(at(kLog)),
                               .steps = reinterpret_cast<std::uint64_t*>(at(kSteps)),
                               .real = reinterpret_cast<const std::int32_t*>(at(kWarmth)),
                               .rods = count};
  return context->launch(context, &kSettleOp, &shape, &settle);
}

std::int32_t Plant(void* self, const char* fault) {
  Rods& rods = *static_cast<Rods*>(self);
  rods.adds_to_scratch = std::strcmp(fault, "stale-scratch") == 0;
  rods.pads_count = std::strcmp(fault, "pads-count") == 0;
  return rods.adds_to_scratch || rods.pads_count ? 0 : 1;
}

const holdfast_plugin kPlugin = {.version = HOLDFAST_PLUGIN_VERSION,
                                 .struct_bytes = sizeof(holdfast_plugin),
                                 .span_bytes = sizeof(holdfast_plugin_span),
                                 .step_bytes = sizeof(holdfast_plugin_step),
                                 .output_bytes = sizeof(holdfast_plugin_output),
                                 .context_bytes = sizeof(holdfast_plugin_context),
                                 .name = "heat",
                                 .spans = kSpans,
                                 .steps = kBuckets,
                                 .outputs = kOutputs,
                                 .span_count = kSpanCount,
                                 .step_count = 2,
                                 .output_count = 2,
                                 .create = &Create,
                                 .destroy = &Destroy,
                                 .contents = &Contents,
                                 .enqueue = &Enqueue,
                                 .plant = &Plant};

}  // namespace
}  // namespace heat

// All else is hidden.
__attribute__((visibility("default"))) const holdfast_plugin* holdfast_plugin_v1() {
  return &heat::kPlugin;
}
