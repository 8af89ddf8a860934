// For allocators that cut blocks from larger allocations, and for names. A program looks these up
// with dlsym(RTLD_DEFAULT, ...): they are there if the library is. All may be called from any
// thread; bad arguments are ignored.
#ifndef HOLDFAST_PRELOAD_NOTES_H_
#define HOLDFAST_PRELOAD_NOTES_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// `bytes` at `address` are in use from now on, as `name` (copied; null: no name).
void holdfast_preload_note_range(const char* name, uint64_t address, uint64_t bytes);
// The range noted at `address` is not in use any more.
void holdfast_preload_forget(uint64_t address);
// `refresh` is called at the begin of each capture and before each audit, on the thread that asks
// for it, so that notes can be brought up to date. Null: nobody is called.
void holdfast_preload_on_audit(void (*refresh)(void));
// How many findings there are so far.
uint64_t holdfast_preload_findings(void);

#ifdef __cplusplus
}
#endif

#endif  // HOLDFAST_PRELOAD_NOTES_H_
