// One call of a plug-in's enqueue(): the context it is given, and what it does to it.
#ifndef HOLDFAST_TESTING_PLUGIN_CALL_H_
#define HOLDFAST_TESTING_PLUGIN_CALL_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "allocator/step_context.h"
#include "testing/holdfast_plugin.h"

namespace holdfast::testing {

class PluginCall : private holdfast_plugin_context {
 public:
  // `step` and `addresses` must outlive it.
  PluginCall(StepContext& step, const std::vector<std::uint64_t>& addresses);
  PluginCall(const PluginCall&) = delete;
  PluginCall& operator=(const PluginCall&) = delete;

  holdfast_plugin_context* context() { return this; }
  // The first of its launches, copies and fills that went wrong; else what `returned` says, the
  // value of enqueue(), as kDriver with that code.
  absl::Status Result(const std::string& step_name, std::int32_t returned) const;

 private:
  static PluginCall& Of(holdfast_plugin_context* context) {
    return *static_cast<PluginCall*>(context);
  }
  std::int32_t Remember(const absl::Status& status);
  absl::Status Launch(const holdfast_plugin_op* op, const holdfast_plugin_shape* shape,
                      const void* params);

  StepContext& step_;
  absl::Status status_;
};

}  // namespace holdfast::testing

#endif  // HOLDFAST_TESTING_PLUGIN_CALL_H_
