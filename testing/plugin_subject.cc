#include "testing/plugin_subject.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "device/bytes.h"
#include "testing/plugin_call.h"

namespace holdfast::testing {
namespace {

constexpr std::uint32_t kNoStep = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t kShiftOfUnsteadyStep = 256;

absl::Status Refused(const std::string& object, const char* function, std::int32_t code) {
  return MakeError({.kind = ErrorKind::kDriver, .object = object, .call = function, .code = code},
                   absl::StrCat("the plug-in's ", function, " failed"));
}

}  // namespace

SubjectFactory PluginSubject::Factory(std::shared_ptr<const Plugin> plugin) {
  return [plugin](Device& device,
                  const SubjectOptions& options) -> absl::StatusOr<std::unique_ptr<Subject>> {
    std::unique_ptr<PluginSubject> self(new PluginSubject(device, options, plugin));
    HOLDFAST_RETURN_IF_ERROR(self->Build());
    return std::unique_ptr<Subject>(std::move(self));
  };
}

PluginSubject::~PluginSubject() {
  graphs_.reset();
  lane_.reset();
  residency_.reset();
  io_.reset();
  arena_.reset();
  if (created_ && plugin_->table().destroy != nullptr) plugin_->table().destroy(self_);
}

absl::Status PluginSubject::Build() {
  ledger_ = std::make_unique<Ledger>(device_);
  HOLDFAST_RETURN_IF_ERROR(MakeInstance());
  HOLDFAST_RETURN_IF_ERROR(MakeArena());
  HOLDFAST_RETURN_IF_ERROR(ReserveSpans());
  HOLDFAST_RETURN_IF_ERROR(FillGuards());
  HOLDFAST_RETURN_IF_ERROR(WriteContents());
  HOLDFAST_RETURN_IF_ERROR(PlantBefore());
  return Capture();
}

absl::Status PluginSubject::MakeInstance() {
  const holdfast_plugin& table = plugin_->table();
  if (table.create != nullptr) {
    const std::int32_t code = table.create(&self_);
    if (code != 0) return Refused(name(), "create", code);
  }
  created_ = true;
  const Fault plant = options_.plant;
  if (plant != Fault::kStaleScratch && plant != Fault::kPadsCount) return absl::OkStatus();
  if (table.plant == nullptr || table.plant(self_, FaultName(plant)) != 0) {
    return MakeError({.kind = ErrorKind::kUnsupported, .object = name()},
                     absl::StrCat("the plug-in cannot plant ", FaultName(plant)));
  }
  return absl::OkStatus();
}

absl::Status PluginSubject::PlantBefore() {
  if (options_.plant != Fault::kStalePointer) return absl::OkStatus();
  const std::size_t span = plugin_->steps().front().outputs.front().span;
  HOLDFAST_ASSIGN_OR_RETURN(foreign_,
                            ForeignMemory::Create(device_, plugin_->spans()[span].spec.bytes));
  return absl::OkStatus();
}

absl::Status PluginSubject::Ask(std::size_t span, std::uint32_t step, std::uint64_t seed,
                                bool poison_pads, void* buffer, std::uint64_t bytes) {
  if (plugin_->table().contents == nullptr) return absl::OkStatus();
  const holdfast_plugin_request request = {.struct_bytes = sizeof(request),
                                           .span = static_cast<std::uint32_t>(span),
                                           .step = step,
                                           .poison_pads = poison_pads ? 1u : 0u,
                                           .seed = seed,
                                           .bytes = bytes};
  const std::int32_t code = plugin_->table().contents(self_, &request, buffer);
  if (code != 0) return Refused(plugin_->spans()[span].spec.name, "contents", code);
  return absl::OkStatus();
}

absl::Status PluginSubject::WriteSpan(std::size_t span, std::uint32_t step, std::uint64_t seed,
                                      bool poison_pads) {
  // An asleep span is refused before anything is made for it.
  const std::uint64_t bytes = plugin_->spans()[span].spec.bytes;
  HOLDFAST_RETURN_IF_ERROR(arena_->CheckAccessible(spans_[span], 0, bytes, /*read=*/false));
  std::vector<std::byte> buffer(bytes);
  HOLDFAST_RETURN_IF_ERROR(Ask(span, step, seed, poison_pads, buffer.data(), bytes));
  return io_->Write(spans_[span], 0, buffer.data(), bytes);
}

absl::Status PluginSubject::RefillSpan(std::size_t span, Stream& stream, AddressRange range) {
  const HostBuffer& room = rooms_.at(span);
  std::fill(room.data(), room.data() + room.size(), std::byte{0});
  HOLDFAST_RETURN_IF_ERROR(Ask(span, kNoStep, options_.seed, false, room.data(), room.size()));
  return device_.CopyToDevice(stream, range.base, room.data(), room.size());
}

absl::Status PluginSubject::WriteInputs(std::size_t step, const RunRequest& request) {
  for (std::size_t i = 0; i < spans_.size(); ++i) {
    if (!plugin_->spans()[i].input) continue;
    HOLDFAST_RETURN_IF_ERROR(
        WriteSpan(i, static_cast<std::uint32_t>(step), request.seed, request.poison_pads));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::size_t> PluginSubject::StepOf(const GraphKey& key) const {
  const std::vector<PluginStep>& steps = plugin_->steps();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].size == key.size) return i;
  }
  return MakeError({.kind = ErrorKind::kInternal, .object = key.Name()}, "no step of this size");
}

Step PluginSubject::MakeStep(std::size_t step) {
  return [this, step](StepContext& context) { return EnqueueStep(step, context); };
}

// With a fault planted, one of them is wrong.
std::vector<std::uint64_t> PluginSubject::Addresses(const StepContext& context) {
  std::vector<std::uint64_t> addresses;
  for (const SpanId span : spans_) addresses.push_back(context.Resolve(span).value);
  std::uint64_t& output = addresses[plugin_->steps().front().outputs.front().span];
  if (foreign_ != nullptr) output = foreign_->range().base.value;
  // Only captures that nobody runs: what they would write stays in their span for all that is
  // known.
  if (options_.plant == Fault::kUnsteadyStep && captured_ && !eager_) {
    output += static_cast<std::uint64_t>(++later_captures_) * kShiftOfUnsteadyStep;
  }
  return addresses;
}

absl::Status PluginSubject::EnqueueStep(std::size_t step, StepContext& context) {
  // It asks the kit for no scratch, and its own library calls cannot be measured.
  if (context.measuring()) return absl::OkStatus();
  const std::vector<std::uint64_t> addresses = Addresses(context);
  PluginCall call(context, addresses);
  const std::int32_t returned =
      plugin_->table().enqueue(self_, static_cast<std::uint32_t>(step), call.context());
  return call.Result(plugin_->steps()[step].name, returned);
}

absl::StatusOr<Outputs> PluginSubject::Run(const RunRequest& request) {
  const std::vector<PluginSpan>& spans = plugin_->spans();
  if (request.poison_pads &&
      std::none_of(spans.begin(), spans.end(), [](const PluginSpan& s) { return s.input; })) {
    return MakeError({.kind = ErrorKind::kUnsupported, .object = name()}, "it has no inputs");
  }
  Outputs outputs;
  for (Graph* const graph : graphs_->graphs()) {
    HOLDFAST_ASSIGN_OR_RETURN(const std::size_t step, StepOf(graph->key()));
    HOLDFAST_RETURN_IF_ERROR(WriteInputs(step, request));
    if (request.eager) {
      eager_ = true;
      const absl::Status ran = RunEager(*lane_, graph->name(), MakeStep(step), {});
      eager_ = false;
      HOLDFAST_RETURN_IF_ERROR(ran);
    } else {
      HOLDFAST_RETURN_IF_ERROR(graph->Replay());
    }
    HOLDFAST_RETURN_IF_ERROR(lane_->Synchronize());
    for (const PluginOutput& output : plugin_->steps()[step].outputs) {
      std::vector<std::byte>& bytes = outputs[output.name];
      bytes.resize(output.bytes);
      HOLDFAST_RETURN_IF_ERROR(
          io_->Read(spans_[output.span], output.offset, bytes.data(), output.bytes));
    }
  }
  return outputs;
}

absl::Status PluginSubject::Enqueue() { return graphs_->graphs().back()->Replay(); }

absl::Status PluginSubject::Refill() {
  for (std::size_t i = 0; i < spans_.size(); ++i) {
    const PluginSpan& span = plugin_->spans()[i];
    if (!span.undefined || arena_->asleep(span.spec.tag)) continue;
    HOLDFAST_RETURN_IF_ERROR(WriteSpan(i, kNoStep, options_.seed, false));
  }
  return absl::OkStatus();
}

absl::Status PluginSubject::Capture() {
  graphs_ = std::make_unique<GraphSet>(*lane_, [this](const GraphKey& key) -> absl::StatusOr<Step> {
    HOLDFAST_ASSIGN_OR_RETURN(const std::size_t step, StepOf(key));
    return MakeStep(step);
  });
  std::vector<int> sizes;
  for (const PluginStep& step : plugin_->steps()) sizes.push_back(step.size);
  std::sort(sizes.begin(), sizes.end());
  const int largest = sizes.back();
  HOLDFAST_ASSIGN_OR_RETURN(BucketList buckets, BucketList::Of(std::move(sizes), largest));
  HOLDFAST_RETURN_IF_ERROR(graphs_->AddPhase(Phase::kDecode, std::move(buckets)));
  HOLDFAST_RETURN_IF_ERROR(graphs_->Measure());
  {
    const LedgerEvent event = ledger_->Measure(kModulesOwner);
    absl::Status inputs;
    HOLDFAST_RETURN_IF_ERROR(graphs_->WarmUp({}, [this, &inputs](const GraphKey& key) {
      const absl::StatusOr<std::size_t> step = StepOf(key);
      const absl::Status written = step.ok() ? WriteInputs(*step, {}) : step.status();
      if (inputs.ok()) inputs = written;
    }));
    HOLDFAST_RETURN_IF_ERROR(inputs);
    HOLDFAST_RETURN_IF_ERROR(CheckGuards());
  }
  HOLDFAST_RETURN_IF_ERROR(ledger_->SeparateLocalMemory(kModulesOwner));
  const LedgerEvent event = ledger_->Measure(kExecutablesOwner);
  HOLDFAST_RETURN_IF_ERROR(graphs_->Capture({}));
  captured_ = true;
  return absl::OkStatus();
}

}  // namespace holdfast::testing
