#include "testing/plugin_call.h"

#include <cstring>

#include "device/error.h"

namespace holdfast::testing {
namespace {

constexpr std::uint32_t kMostParamsBytes = 4096;
constexpr std::size_t kLongestName = 255;

Dim3 ToDim3(const std::uint32_t v[3]) { return {.x = v[0], .y = v[1], .z = v[2]}; }

}  // namespace

PluginCall::PluginCall(StepContext& step, const std::vector<std::uint64_t>& addresses)
    : holdfast_plugin_context{}, step_(step) {
  struct_bytes = sizeof(holdfast_plugin_context);
  span_count = static_cast<std::uint32_t>(addresses.size());
  span_address = addresses.data();
  cu_stream = step.stream().native();
  launch = [](holdfast_plugin_context* c, const holdfast_plugin_op* op,
              const holdfast_plugin_shape* shape,
              const void* params) { return Of(c).Remember(Of(c).Launch(op, shape, params)); };
  copy = [](holdfast_plugin_context* c, std::uint64_t to, std::uint64_t from, std::uint64_t bytes) {
    return Of(c).Remember(Of(c).step_.CopyOnDevice({to}, {from}, bytes));
  };
  fill = [](holdfast_plugin_context* c, std::uint64_t to, std::uint8_t value, std::uint64_t bytes) {
    return Of(c).Remember(Of(c).step_.Fill({to}, value, bytes));
  };
}

absl::Status PluginCall::Launch(const holdfast_plugin_op* op, const holdfast_plugin_shape* shape,
                                const void* params) {
  if (op == nullptr || shape == nullptr || op->name == nullptr ||
      (params == nullptr && op->params_bytes > 0)) {
    return MakeError({.kind = ErrorKind::kInvalidArgument, .object = "launch"},
                     "op, its name, shape or parameters are null");
  }
  const std::string name(op->name, strnlen(op->name, kLongestName));
  if (op->params_bytes == 0 || op->params_bytes > kMostParamsBytes) {
    return MakeError({.kind = ErrorKind::kInvalidArgument,
                      .object = name,
                      .need = op->params_bytes,
                      .have = kMostParamsBytes},
                     "its parameters have no bytes, or too many");
  }
  const bool cuda = step_.device().info().is_cuda;
  if (cuda ? op->cuda == nullptr : op->host == nullptr) {
    return MakeError({.kind = ErrorKind::kUnsupported, .object = name},
                     cuda ? "it has no CUDA function" : "it has no host function");
  }
  return step_.Enqueue(name, [&]() -> absl::Status {
    if (!cuda) {
      return step_.device().Launch(
          step_.stream(), Op{.name = name, .host = op->host, .params_bytes = op->params_bytes},
          {.grid = ToDim3(shape->grid), .block = ToDim3(shape->block)}, params);
    }
    const std::int32_t code =
        op->cuda(params, shape->grid, shape->block, shape->shared_bytes, cu_stream);
    if (code == 0) return absl::OkStatus();
    return MakeError(
        {.kind = ErrorKind::kDriver, .object = name, .call = "plug-in launch", .code = code},
        "its CUDA function failed");
  });
}

std::int32_t PluginCall::Remember(const absl::Status& status) {
  if (status.ok()) return 0;
  if (status_.ok()) status_ = status;
  return 1;
}

absl::Status PluginCall::Result(const std::string& step_name, std::int32_t returned) const {
  if (!status_.ok()) return Annotate(status_, "step " + step_name);
  if (returned == 0) return absl::OkStatus();
  return MakeError(
      {.kind = ErrorKind::kDriver, .object = step_name, .call = "enqueue", .code = returned},
      "the plug-in's enqueue failed");
}

}  // namespace holdfast::testing
