#include "preload/notes.h"

#include "preload/session.h"

using holdfast::preload::Session;

#define HOLDFAST_PRELOAD_API extern "C" __attribute__((visibility("default")))

HOLDFAST_PRELOAD_API void holdfast_preload_note_range(const char* name, uint64_t address,
                                                      uint64_t bytes) {
  Session::Get().NoteRange(name, address, bytes);
}

HOLDFAST_PRELOAD_API void holdfast_preload_forget(uint64_t address) {
  Session::Get().ForgetRange(address);
}

HOLDFAST_PRELOAD_API void holdfast_preload_on_audit(void (*refresh)(void)) {
  Session::Get().OnAudit(refresh);
}

HOLDFAST_PRELOAD_API uint64_t holdfast_preload_findings(void) { return Session::Get().findings(); }
