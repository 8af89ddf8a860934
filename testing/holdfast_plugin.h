// A plug-in for `holdfast check`: a shared object that shows its kernels to the testing kit. Plain
// C.
//
// It exports one function, holdfast_plugin_v1, which returns a table that lives as long as the
// library: which spans it needs, which steps it runs over them, and which bytes are its outputs.
// The kit makes an arena of these spans, writes their contents, runs each step eagerly, captures it
// as a graph, and has every proof and every negative control run on it.
//
//   static const holdfast_plugin_span spans[] = {
//       {.name = "in", .tag = "io", .role = HOLDFAST_PLUGIN_SCRATCH, .bytes = 4096,
//        .flags = HOLDFAST_PLUGIN_INPUT},
//       {.name = "out", .tag = "io", .role = HOLDFAST_PLUGIN_SCRATCH, .bytes = 4096}};
//   static int32_t enqueue(void* self, uint32_t step, holdfast_plugin_context* c) {
//     const struct add p = {c->span_address[0], c->span_address[1], 1024};
//     return c->launch(c, &add_op, &shape, &p);
//   }
//
// Rules:
// - A step is enqueued many times: eagerly, to be captured, and to be captured at other addresses.
//   It does the same each time, takes every address from the context of that call, and stores none.
//   It allocates nothing on the device and waits for nothing.
// - Parameters without padding: its bytes differ from call to call, and so would the captured words.
// - Outputs depend on the inputs and on contents alone, not on how often a step ran.
// - Functions return 0, or a number of your own for an error. None is called from two threads.
// - The declared sizes are held to: memory behind each span is watched while the steps run.
// - Every call may be made in a child process of the kit: a crash or a hang ends one proof.
#ifndef HOLDFAST_TESTING_HOLDFAST_PLUGIN_H_
#define HOLDFAST_TESTING_HOLDFAST_PLUGIN_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HOLDFAST_PLUGIN_VERSION 1u
#define HOLDFAST_PLUGIN_SYMBOL "holdfast_plugin_v1"

/* What contents are worth. Values are fixed. */
typedef enum holdfast_plugin_role {
  HOLDFAST_PLUGIN_IMMUTABLE = 0, /* written once, then mapped read-only; kept */
  HOLDFAST_PLUGIN_MUTABLE = 1,   /* kept */
  HOLDFAST_PLUGIN_CACHE = 2,     /* dropped at sleep */
  HOLDFAST_PLUGIN_SCRATCH = 3    /* dropped at sleep; steps read nothing they have not written */
} holdfast_plugin_role;

/* How a span comes back at wake, if it is dropped. */
typedef enum holdfast_plugin_wake {
  HOLDFAST_PLUGIN_ZERO = 0,
  HOLDFAST_PLUGIN_POISON = 1,    /* every byte 0xFF */
  HOLDFAST_PLUGIN_UNDEFINED = 2, /* no graph runs until contents() was asked again; not immutable,
                                    not mutable */
  HOLDFAST_PLUGIN_REFILL = 3     /* immutable and mutable spans: dropped although they are what they
                                    are, and written anew by contents() within the wake */
} holdfast_plugin_wake;

enum {
  HOLDFAST_PLUGIN_INPUT = 1u,            /* contents() writes it before each run of each step; not
                                            immutable */
  HOLDFAST_PLUGIN_CONTAINS_POINTERS = 2u /* kernels follow addresses that lie in it */
};

typedef struct holdfast_plugin_span {
  const char* name;   /* unique; at most 255 printable characters, as every name */
  const char* tag;    /* spans of one tag sleep together */
  uint32_t role;      /* a holdfast_plugin_role */
  uint32_t wake;      /* a holdfast_plugin_wake */
  uint64_t bytes;     /* at least 1 */
  uint64_t alignment; /* a power of two, at most 64 KiB; 0: 256 */
  uint32_t flags;
  uint32_t reserved; /* 0 */
} holdfast_plugin_span;

/* One captured shape: a bucket. */
typedef struct holdfast_plugin_step {
  const char* name;  /* unique */
  int32_t size;      /* rows or tokens, at least 1, unique: larger ones are captured first */
  uint32_t reserved; /* 0 */
} holdfast_plugin_step;

/* Bytes that a step puts out, to be compared bit for bit. */
typedef struct holdfast_plugin_output {
  const char* name; /* unique within its step */
  uint32_t step;    /* index of the step that writes it */
  uint32_t span;    /* index of the span it lies in */
  uint64_t offset;
  uint64_t bytes; /* at least 1 */
} holdfast_plugin_output;

/* A kernel: one parameter struct, whose address `params` is, and what runs it on either device.
 * Addresses lie in the struct as plain 8-byte words at 8-byte aligned places. */
typedef struct holdfast_plugin_op {
  const char* name;
  uint32_t params_bytes; /* at most 4096 */
  uint32_t reserved;     /* 0 */
  /* Runs on a thread of the host device, where addresses of spans can be followed. Null: not for
   * the host device. */
  void (*host)(const void* params);
  /* Launches the kernel, with this struct as its parameter, on a CUstream (or cudaStream_t) through
   * the plug-in's own CUDA runtime, and returns what that said (0: well). Null: not for GPUs. */
  int32_t (*cuda)(const void* params, const uint32_t grid[3], const uint32_t block[3],
                  uint32_t shared_bytes, void* cu_stream);
} holdfast_plugin_op;

typedef struct holdfast_plugin_shape { /* of a launch on a GPU; the host function sees none of it */
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t shared_bytes;
} holdfast_plugin_shape;

/* What a step is given. Good until enqueue() returns. */
typedef struct holdfast_plugin_context holdfast_plugin_context;
struct holdfast_plugin_context {
  uint32_t struct_bytes; /* of this struct: more than you know of in later versions */
  uint32_t span_count;
  const uint64_t* span_address; /* of each span, this time */
  /* On a GPU: the CUstream, for library calls of your own. Null on the host device. */
  void* cu_stream;
  /* These put work on the step's stream. Parameters are copied. 0, or an error, which the step
   * returns: the reason is remembered. Addresses are those of spans, plus an offset. */
  int32_t (*launch)(holdfast_plugin_context* context, const holdfast_plugin_op* op,
                    const holdfast_plugin_shape* shape, const void* params);
  int32_t (*copy)(holdfast_plugin_context* context, uint64_t to, uint64_t from, uint64_t bytes);
  int32_t (*fill)(holdfast_plugin_context* context, uint64_t to, uint8_t value, uint64_t bytes);
};

/* What contents() is asked for: the whole span, `bytes` bytes. */
typedef struct holdfast_plugin_request {
  uint32_t struct_bytes;
  uint32_t span;
  uint32_t step;        /* the step that runs next, for inputs; UINT32_MAX otherwise */
  uint32_t poison_pads; /* inputs: rows that are none hold other bytes than usual, such as 0xFF */
  uint64_t seed;        /* equal seeds, equal bytes */
  uint64_t bytes;
} holdfast_plugin_request;

typedef struct holdfast_plugin {
  uint32_t version;      /* HOLDFAST_PLUGIN_VERSION */
  uint32_t struct_bytes; /* sizeof(holdfast_plugin), and of the others: what it was compiled with */
  uint32_t span_bytes, step_bytes, output_bytes, context_bytes;
  const char* name;
  const holdfast_plugin_span* spans;
  const holdfast_plugin_step* steps;
  const holdfast_plugin_output* outputs;         /* at least one for each step */
  uint32_t span_count, step_count, output_count; /* at least 1, at most 4096 */
  uint32_t reserved;                             /* 0 */

  /* A fresh instance; several may live at once. Both may be null: `self` is null then. */
  int32_t (*create)(void** self);
  void (*destroy)(void* self);
  /* Writes what a span holds to `buffer`, in host memory, which is zero before. Called for every
   * immutable, mutable and cache span at the start, for inputs before each run, and where the
   * span's wake asks for it. Null: everything is zero, and there are no inputs. */
  int32_t (*contents)(void* self, const holdfast_plugin_request* request, void* buffer);
  /* Puts the step's work on the context's stream. */
  int32_t (*enqueue)(void* self, uint32_t step, holdfast_plugin_context* context);
  /* Plants a fault of which only the plug-in knows how: "stale-scratch" (a step reads scratch it
   * has not written) or "pads-count" (real rows depend on what the pads hold). 0 if it is planted
   * in this instance from now on. Null: neither; these controls are then skipped. */
  int32_t (*plant)(void* self, const char* fault);
} holdfast_plugin;

/* What a plug-in exports. */
typedef const holdfast_plugin* (*holdfast_plugin_entry)(void);
const holdfast_plugin* holdfast_plugin_v1(void);

#ifdef __cplusplus
}
#endif

#endif /* HOLDFAST_TESTING_HOLDFAST_PLUGIN_H_ */
