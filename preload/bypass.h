// While alive, driver calls of this thread go past the hooks: they are ours, or the driver's own.
#ifndef HOLDFAST_PRELOAD_BYPASS_H_
#define HOLDFAST_PRELOAD_BYPASS_H_

namespace holdfast::preload {

class BypassScope {
 public:
  BypassScope() { ++depth_; }
  ~BypassScope() { --depth_; }
  BypassScope(const BypassScope&) = delete;
  BypassScope& operator=(const BypassScope&) = delete;

  static bool active() { return depth_ > 0; }

 private:
  static inline thread_local int depth_ __attribute__((tls_model("initial-exec"))) = 0;
};

}  // namespace holdfast::preload

#endif  // HOLDFAST_PRELOAD_BYPASS_H_
