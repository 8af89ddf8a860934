// The functions a program gets in place of the driver's, under the driver's names.
#include "preload/bypass.h"
#include "preload/handlers.h"
#include "preload/lookup.h"

namespace holdfast::preload {
namespace {

template <typename... Arguments>
int Enter(CallId id, int (*handler)(int (*)(Arguments...), Arguments...), Arguments... arguments) {
  const auto real = reinterpret_cast<int (*)(Arguments...)>(RealFunction(id));
  if (real == nullptr) return kNotInitialized;
  if (BypassScope::active()) return real(arguments...);
  return handler(real, arguments...);
}

}  // namespace
}  // namespace holdfast::preload

#define HOLDFAST_PRELOAD_UNPACK(...) __VA_ARGS__
#define HOLDFAST_PRELOAD_EXPORT(symbol, name, version, flavour, handler, parameters, arguments) \
  extern "C" __attribute__((visibility("default"))) int symbol parameters {                     \
    using namespace holdfast::preload;                                                          \
    return Enter(CallId::k_##symbol, handler, HOLDFAST_PRELOAD_UNPACK arguments);               \
  }

using holdfast::preload::Word;
HOLDFAST_WATCHED_CALLS(HOLDFAST_PRELOAD_EXPORT)

namespace holdfast::preload {
namespace {

WatchedCall calls[] = {
#define HOLDFAST_PRELOAD_ROW(symbol, name, version, flavour, handler, parameters, arguments) \
  {#symbol, #name, version, Flavour::flavour, reinterpret_cast<void*>(&symbol)},
    HOLDFAST_WATCHED_CALLS(HOLDFAST_PRELOAD_ROW)
#undef HOLDFAST_PRELOAD_ROW
};

}  // namespace

WatchedCall* Calls() { return calls; }
std::size_t CallCount() { return sizeof(calls) / sizeof(calls[0]); }

}  // namespace holdfast::preload
