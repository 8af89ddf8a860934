/* A sound plug-in: one kernel over spans of every role, two buckets. What it shows holds, and every
 * fault that a plug-in can plant is planted here. */
#include "tests/testing/plugins/good.h"

#include <stdlib.h>
#include <string.h>

#include "testing/holdfast_plugin.h"

enum { INPUT, WEIGHTS, TABLE, MIXED, CACHE, OUT, COUNTER, SPARE, SPANS };
enum { ROW_BYTES = GOOD_WIDTH * sizeof(float), ALL_BYTES = GOOD_MOST_ROWS * ROW_BYTES };

static const holdfast_plugin_span spans[SPANS] = {
    [INPUT] = {.name = "input",
               .tag = "workspace",
               .role = HOLDFAST_PLUGIN_SCRATCH,
               .bytes = sizeof(struct good_input),
               .flags = HOLDFAST_PLUGIN_INPUT},
    [WEIGHTS] = {.name = "weights",
                 .tag = "weights",
                 .role = HOLDFAST_PLUGIN_IMMUTABLE,
                 .bytes = ROW_BYTES},
    [TABLE] = {.name = "table",
               .tag = "tables",
               .role = HOLDFAST_PLUGIN_IMMUTABLE,
               .wake = HOLDFAST_PLUGIN_REFILL,
               .bytes = ROW_BYTES},
    [MIXED] = {.name = "mixed",
               .tag = "workspace",
               .role = HOLDFAST_PLUGIN_SCRATCH,
               .wake = HOLDFAST_PLUGIN_POISON,
               .bytes = ALL_BYTES},
    [CACHE] = {.name = "cache",
               .tag = "kv",
               .role = HOLDFAST_PLUGIN_CACHE,
               .wake = HOLDFAST_PLUGIN_UNDEFINED,
               .bytes = ALL_BYTES},
    [OUT] = {.name = "out",
             .tag = "workspace",
             .role = HOLDFAST_PLUGIN_SCRATCH,
             .bytes = ALL_BYTES},
    [COUNTER] = {.name = "counter",
                 .tag = "state",
                 .role = HOLDFAST_PLUGIN_MUTABLE,
                 .bytes = sizeof(uint64_t)},
    /* In no kernel: other kept contents, so that there are two pieces to exchange. */
    [SPARE] = {.name = "spare",
               .tag = "weights",
               .role = HOLDFAST_PLUGIN_IMMUTABLE,
               .bytes = 3u << 20,
               .alignment = 4096}};

static const holdfast_plugin_step steps[] = {{.name = "two", .size = 2},
                                             {.name = "four", .size = 4}};
static const holdfast_plugin_output outputs[] = {
    {.name = "out", .step = 0, .span = OUT, .offset = 0, .bytes = 2 * ROW_BYTES},
    {.name = "out", .step = 1, .span = OUT, .offset = 0, .bytes = 4 * ROW_BYTES}};

struct self {
  int32_t plant;
};

static void good_host(const void* params) {
  const struct good_params* const p = params;
  for (int32_t row = 0; row < p->rows; ++row) {
    for (int32_t column = 0; column < GOOD_WIDTH; ++column) good_cell(p, row, column);
  }
  ++*p->counter;
}

static const holdfast_plugin_op good_op = {.name = "good",
                                           .params_bytes = sizeof(struct good_params),
                                           .host = good_host,
#ifdef GOOD_WITH_CUDA
                                           .cuda = good_launch
#endif
};

static int32_t create(void** self) {
  *self = calloc(1, sizeof(struct self));
  return *self == NULL ? 1 : 0;
}
static void destroy(void* self) { free(self); }

static float number(uint64_t seed, uint64_t i) {
  uint64_t x = (seed + 1) * 0x9E3779B97F4A7C15u + i * 0xBF58476D1CE4E5B9u;
  x ^= x >> 31;
  x *= 0x94D049BB133111EBu;
  return (float)((double)(x >> 40) / (double)(1u << 24)) - 0.5f;
}

static void fill_numbers(void* buffer, uint64_t count, uint64_t seed) {
  float* const to = buffer;
  for (uint64_t i = 0; i < count; ++i) to[i] = number(seed, i);
}

/* One row fewer than the bucket holds, so that there is always a pad. */
static void fill_input(struct good_input* input, const holdfast_plugin_request* r) {
  const int32_t rows = r->step == 0 ? 2 : 4;
  memset(input, r->poison_pads ? 0x3F : 0, sizeof(*input));
  input->real = rows - 1;
  fill_numbers(input->rows, (uint64_t)input->real * GOOD_WIDTH, r->seed);
}

static int32_t contents(void* self, const holdfast_plugin_request* r, void* buffer) {
  (void)self;
  if (r->span == INPUT) {
    fill_input(buffer, r);
  } else if (r->span == WEIGHTS || r->span == TABLE || r->span == SPARE) {
    fill_numbers(buffer, r->bytes / sizeof(float), r->seed + r->span);
  }
  return 0;
}

static int32_t enqueue(void* self, uint32_t step, holdfast_plugin_context* c) {
  const uint64_t* const at = c->span_address;
  const int32_t rows = steps[step].size;
  const struct good_params params = {.input = (const struct good_input*)at[INPUT],
                                     .weights = (const float*)at[WEIGHTS],
                                     .table = (const float*)at[TABLE],
                                     .mixed = (float*)at[MIXED],
                                     .cache = (float*)at[CACHE],
                                     .out = (float*)at[OUT],
                                     .counter = (uint64_t*)at[COUNTER],
                                     .rows = rows,
                                     .plant = ((struct self*)self)->plant};
  const holdfast_plugin_shape shape = {.grid = {(uint32_t)rows, 1, 1}, .block = {GOOD_WIDTH, 1, 1}};
  return c->launch(c, &good_op, &shape, &params);
}

static int32_t plant(void* self, const char* fault) {
  struct self* const s = self;
  if (strcmp(fault, "stale-scratch") == 0) s->plant = GOOD_STALE_SCRATCH;
  if (strcmp(fault, "pads-count") == 0) s->plant = GOOD_PADS_COUNT;
  return s->plant == 0;
}

const holdfast_plugin* holdfast_plugin_v1(void) {
  static const holdfast_plugin plugin = {.version = HOLDFAST_PLUGIN_VERSION,
                                         .struct_bytes = sizeof(holdfast_plugin),
                                         .span_bytes = sizeof(holdfast_plugin_span),
                                         .step_bytes = sizeof(holdfast_plugin_step),
                                         .output_bytes = sizeof(holdfast_plugin_output),
                                         .context_bytes = sizeof(holdfast_plugin_context),
                                         .name = "good",
                                         .spans = spans,
                                         .steps = steps,
                                         .outputs = outputs,
                                         .span_count = SPANS,
                                         .step_count = 2,
                                         .output_count = 2,
                                         .create = create,
                                         .destroy = destroy,
                                         .contents = contents,
                                         .enqueue = enqueue,
                                         .plant = plant};
  return &plugin;
}
