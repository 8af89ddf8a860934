// A plug-in from a file: loaded, its table read once, checked and copied, so that what it says
// cannot change afterwards.
#ifndef HOLDFAST_TESTING_PLUGIN_H_
#define HOLDFAST_TESTING_PLUGIN_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/span.h"
#include "testing/holdfast_plugin.h"

namespace holdfast::testing {

struct PluginSpan {
  SpanSpec spec;           // without its refill hook
  bool input = false;      // written before each run
  bool refilled = false;   // written by contents() within the wake
  bool undefined = false;  // written by contents() after the wake
};

struct PluginOutput {
  std::string name;  // "step.output"
  std::size_t span = 0;
  std::uint64_t offset = 0, bytes = 0;
};

struct PluginStep {
  std::string name;
  int size = 0;
  std::vector<PluginOutput> outputs;
};

class Plugin {
 public:
  // Loads the library. Code of it runs: where it is not trusted, in a child process. kNotFound (no
  // such file), kCorrupted (no shared object for this machine, or truncated), kUnsupported (no
  // such symbol, another version), kInvalidArgument naming what the table says that cannot be.
  static absl::StatusOr<std::shared_ptr<const Plugin>> Load(const std::string& path);
  ~Plugin();
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;

  const std::string& name() const { return name_; }
  const std::vector<PluginSpan>& spans() const { return spans_; }
  const std::vector<PluginStep>& steps() const { return steps_; }
  const holdfast_plugin& table() const { return table_; }  // functions; null where it has none

 private:
  Plugin() = default;
  absl::Status Open(const std::string& path);
  absl::Status ReadTable(const std::string& path, const holdfast_plugin* table);
  absl::Status ReadSpans();
  absl::Status ReadSteps();
  absl::Status ReadOutputs();

  void* library_ = nullptr;
  holdfast_plugin table_ = {};
  std::string name_;
  std::vector<PluginSpan> spans_;
  std::vector<PluginStep> steps_;
};

}  // namespace holdfast::testing

#endif  // HOLDFAST_TESTING_PLUGIN_H_
