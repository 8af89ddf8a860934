/* Bad plug-ins, one a value of BAD: a counter, and something that is wrong with it. */
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

#include "testing/holdfast_plugin.h"

#define CRASH_LOADING 1  /* dies before its table was read */
#define CRASH_CREATING 2 /* dies while the subject is made */
#define CRASH_ON_PADS 3  /* dies in the one proof that poisons pads */
#define HANG_CREATING 4
#define HANG_ON_PADS 5
#define LIE_SMALL 6  /* its kernel writes behind a span's declared end */
#define LIE_OUTPUT 7 /* an output lies outside its span */
#define LIE_HUGE 8   /* more than the device has */
#define LIE_STRUCT 9 /* compiled with another header */
#define NO_SYMBOL 10
#define OTHER_VERSION 11
#define FOREIGN_STEP 12    /* keeps a pointer of its own: another address each time */
#define FAILING_STEP 13    /* enqueue says no */
#define EXITS 14           /* ends the process */
#define UNSTEADY_OUTPUT 15 /* its output counts how often it ran */
#define NULL_TABLE 16

enum { SPAN_BYTES = 4096, WORDS = SPAN_BYTES / 4 };

struct params {
  uint32_t* out;
  const uint32_t* table;
  uint64_t words;
};

static void work(const void* params) {
  const struct params* const p = params;
  for (uint64_t i = 0; i < p->words; ++i) {
    p->out[i] = BAD == UNSTEADY_OUTPUT ? p->out[i] + 1 : p->table[i % WORDS] + (uint32_t)i;
  }
}

static const holdfast_plugin_op op = {
    .name = "work", .params_bytes = sizeof(struct params), .host = work};

static const holdfast_plugin_span spans[] = {
    {.name = "out",
     .tag = "state",
     .role = HOLDFAST_PLUGIN_MUTABLE,
     .bytes = BAD == LIE_HUGE ? (uint64_t)1 << 41 : SPAN_BYTES},
    {.name = "table",
     .tag = "tables",
     .role = HOLDFAST_PLUGIN_IMMUTABLE,
     .wake = HOLDFAST_PLUGIN_REFILL,
     .bytes = SPAN_BYTES},
    {.name = "input",
     .tag = "state",
     .role = HOLDFAST_PLUGIN_SCRATCH,
     .bytes = 64,
     .flags = HOLDFAST_PLUGIN_INPUT}};
static const holdfast_plugin_step steps[] = {{.name = "only", .size = 1}};
static const holdfast_plugin_output outputs[] = {
    {.name = "out", .offset = BAD == LIE_OUTPUT ? 8 : 0, .bytes = SPAN_BYTES}};

static void crash(void) {
  static int* volatile nowhere = NULL; /* the compiler cannot know */
  *nowhere = 1;
}
static void hang(void) {
  for (;;) pause();
}

static int32_t create(void** self) {
  *self = NULL;
  if (BAD == CRASH_CREATING) crash();
  if (BAD == HANG_CREATING) hang();
  if (BAD == EXITS) _exit(0);
  return 0;
}

static int32_t contents(void* self, const holdfast_plugin_request* request, void* buffer) {
  (void)self;
  uint32_t* const to = buffer;
  for (uint64_t i = 0; i < request->bytes / 4; ++i) to[i] = (uint32_t)i * 2654435761u;
  if (BAD == CRASH_ON_PADS && request->poison_pads) crash();
  if (BAD == HANG_ON_PADS && request->poison_pads) hang();
  return 0;
}

static int32_t enqueue(void* self, uint32_t step, holdfast_plugin_context* c) {
  (void)self;
  (void)step;
  static uint64_t first = 0;
  if (first == 0) first = c->span_address[0];
  if (BAD == FAILING_STEP) return 77;
  const uint64_t out = BAD == FOREIGN_STEP ? first : c->span_address[0];
  const struct params params = {.out = (uint32_t*)out,
                                .table = (const uint32_t*)c->span_address[1],
                                .words = BAD == LIE_SMALL ? WORDS + 3 : WORDS};
  const holdfast_plugin_shape shape = {.grid = {1, 1, 1}, .block = {1, 1, 1}};
  return c->launch(c, &op, &shape, &params);
}

#if BAD == NO_SYMBOL
const holdfast_plugin* holdfast_plugin_v0(void);
const holdfast_plugin* holdfast_plugin_v0(void) {
#else
const holdfast_plugin* holdfast_plugin_v1(void) {
#endif
  static const holdfast_plugin plugin = {
      .version = BAD == OTHER_VERSION ? 2 : HOLDFAST_PLUGIN_VERSION,
      .struct_bytes = BAD == LIE_STRUCT ? 48 : sizeof(holdfast_plugin),
      .span_bytes = sizeof(holdfast_plugin_span),
      .step_bytes = sizeof(holdfast_plugin_step),
      .output_bytes = sizeof(holdfast_plugin_output),
      .context_bytes = sizeof(holdfast_plugin_context),
      .name = "bad",
      .spans = spans,
      .steps = steps,
      .outputs = outputs,
      .span_count = 3,
      .step_count = 1,
      .output_count = 1,
      .create = create,
      .contents = contents,
      .enqueue = enqueue};
  if (BAD == CRASH_LOADING) crash();
  return BAD == NULL_TABLE ? NULL : &plugin;
}
