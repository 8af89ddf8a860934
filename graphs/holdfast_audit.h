// The audit for C: reads a captured CUDA graph made by anybody, with no arena, and says of every
// pointer in it whether it leads into a range that was named. Plain C types only.
//
//   holdfast_audit audit;
//   holdfast_error error;
//   holdfast_audit_create("cuda:0", &audit, &error);
//   holdfast_audit_add_range(audit, "weights", base, bytes, HOLDFAST_RANGE_SEALED, &error);
//   uint64_t problems;
//   if (holdfast_audit_graph(audit, "decode", cu_graph, &problems, &error) == HOLDFAST_OK) ...
//   holdfast_audit_destroy(audit, &error);
//
// Every function returns HOLDFAST_OK or a holdfast_code and then fills `error`, which may be null.
// On failure nothing has changed and outputs are untouched. A handle is a number, not a pointer: a
// null one, a made-up one or one used after destroy is HOLDFAST_INVALID_ARGUMENT, never a crash.
// Handles may be used from any thread; calls on one handle are serialised.
#ifndef HOLDFAST_GRAPHS_HOLDFAST_AUDIT_H_
#define HOLDFAST_GRAPHS_HOLDFAST_AUDIT_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Values are fixed: new ones are added at the end. */
typedef enum holdfast_code {
  HOLDFAST_OK = 0,
  HOLDFAST_INVALID_ARGUMENT = 1,
  HOLDFAST_NOT_FOUND = 2,
  HOLDFAST_ALREADY_EXISTS = 3,
  HOLDFAST_UNSUPPORTED = 4,
  HOLDFAST_OUT_OF_MEMORY = 5,
  HOLDFAST_DRIVER_ERROR = 6,
  HOLDFAST_DEVICE_LOST = 7,
  HOLDFAST_FOREIGN_POINTER = 8,
  HOLDFAST_UNAUDITABLE = 9,
  HOLDFAST_OTHER_ERROR = 10
} holdfast_code;

/* Texts end with a zero byte and are cut to fit. */
typedef struct holdfast_error {
  int32_t code;        /* a holdfast_code */
  int32_t driver_code; /* of the device call that failed; 0 if none did */
  uint64_t need;       /* bytes, or units the message names; 0 if not about sizes */
  uint64_t have;
  char object[128]; /* what it is about */
  char call[64];    /* the device call that failed; "" if none did */
  char message[1024];
} holdfast_error;

typedef struct holdfast_audit {
  uint64_t id; /* 0 is no audit */
} holdfast_audit;

enum {
  HOLDFAST_RANGE_SEALED = 1u,  /* nobody may write to it */
  HOLDFAST_RANGE_RETIRED = 2u, /* it was freed: pointers into it are problems, by its name */
  HOLDFAST_RANGE_CONTAINS_POINTERS = 4u /* holdfast_audit_scan reads it */
};

/* An audit on a device: "cuda:0", "host", "auto". */
holdfast_code holdfast_audit_create(const char* device, holdfast_audit* audit,
                                    holdfast_error* error);
/* The handle is dead afterwards, and so is every copy of it. */
holdfast_code holdfast_audit_destroy(holdfast_audit audit, holdfast_error* error);

/* Declares [base, base + bytes), device memory or pinned host memory, under a name of its own. */
holdfast_code holdfast_audit_add_range(holdfast_audit audit, const char* name, uint64_t base,
                                       uint64_t bytes, uint32_t flags, holdfast_error* error);
/* Accepts nodes of this name although they cannot be read, or own memory: "host", "allocation",
 * "free", "semaphore", or the whole name of an unreadable node. */
holdfast_code holdfast_audit_allow_node(holdfast_audit audit, const char* name,
                                        holdfast_error* error);

/* Audits a CUgraph (or cudaGraph_t), which is only read, not kept and not owned. OK if it could be
 * read, whatever was found: `problems` says how much. Replaces what an earlier call found; an
 * audited graph of the same name in the manifest is replaced too. */
holdfast_code holdfast_audit_graph(holdfast_audit audit, const char* name, void* cu_graph,
                                   uint64_t* problems, holdfast_error* error);
/* Reads the ranges that contain pointers, on the device, and waits. No work may be writing to them.
 * Replaces what an earlier call found. */
holdfast_code holdfast_audit_scan(holdfast_audit audit, uint64_t* problems, holdfast_error* error);

/* What the last holdfast_audit_graph or holdfast_audit_scan found: one sentence each. Texts are
 * written with a zero byte, cut to `capacity` bytes; `length`, if not null, gets the whole length
 * without the zero byte. With a capacity of 0 `text` may be null. */
holdfast_code holdfast_audit_problem(holdfast_audit audit, uint64_t index, char* text,
                                     size_t capacity, size_t* length, holdfast_error* error);
/* The manifest of every graph audited so far, as JSON; one of them for Graphviz. */
holdfast_code holdfast_audit_manifest(holdfast_audit audit, char* text, size_t capacity,
                                      size_t* length, holdfast_error* error);
holdfast_code holdfast_audit_dot(holdfast_audit audit, const char* graph, char* text,
                                 size_t capacity, size_t* length, holdfast_error* error);

#ifdef __cplusplus
}
#endif

#endif /* HOLDFAST_GRAPHS_HOLDFAST_AUDIT_H_ */
