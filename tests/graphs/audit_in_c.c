/* A C program audits a graph it was handed: first with no range named, then with one. Returns 0 or
 * the line that failed. */
#include <stdlib.h>
#include <string.h>

#include "graphs/holdfast_audit.h"

#define CHECK(condition) \
  if (!(condition)) return __LINE__

/* `graph` reads a range nobody names and, in `known`, reads, writes and fills. */
int AuditInC(const char* device, void* graph, uint64_t known, uint64_t bytes, int sees_undeclared) {
  holdfast_audit audit = {0};
  holdfast_error error;
  memset(&error, 0, sizeof error);
  CHECK(holdfast_audit_create(device, NULL, &error) == HOLDFAST_INVALID_ARGUMENT);
  CHECK(strstr(error.message, "holdfast_audit_create") != NULL);
  CHECK(holdfast_audit_create("tpu", &audit, &error) == HOLDFAST_INVALID_ARGUMENT);
  CHECK(audit.id == 0);
  CHECK(holdfast_audit_create(device, &audit, &error) == HOLDFAST_OK);
  CHECK(audit.id != 0);

  uint64_t problems = 0;
  CHECK(holdfast_audit_graph(audit, "step", graph, &problems, &error) == HOLDFAST_OK);
  CHECK(problems == (sees_undeclared ? 4u : 1u));
  char text[16];
  size_t length = 0;
  CHECK(holdfast_audit_problem(audit, 0, NULL, 0, &length, &error) == HOLDFAST_OK);
  CHECK(length > sizeof text);
  CHECK(holdfast_audit_problem(audit, 0, text, sizeof text, NULL, &error) == HOLDFAST_OK);
  CHECK(strlen(text) == sizeof text - 1 && strncmp(text, "node ", 5) == 0);
  char* const whole = malloc(length + 1);
  CHECK(whole != NULL);
  CHECK(holdfast_audit_problem(audit, 0, whole, length + 1, NULL, &error) == HOLDFAST_OK);
  CHECK(strlen(whole) == length && strstr(whole, "node ") != NULL);
  free(whole);
  CHECK(holdfast_audit_problem(audit, problems, text, sizeof text, NULL, &error) ==
        HOLDFAST_NOT_FOUND);
  CHECK(holdfast_audit_problem(audit, 0, NULL, 8, NULL, &error) == HOLDFAST_INVALID_ARGUMENT);

  CHECK(holdfast_audit_add_range(audit, "mine", known, bytes, 0, &error) == HOLDFAST_OK);
  CHECK(holdfast_audit_add_range(audit, "mine", known, bytes, 0, &error) ==
        HOLDFAST_ALREADY_EXISTS);
  CHECK(strcmp(error.object, "mine") == 0);
  CHECK(holdfast_audit_add_range(audit, "odd", known, bytes, 64, &error) ==
        HOLDFAST_INVALID_ARGUMENT);
  CHECK(holdfast_audit_graph(audit, "step", graph, &problems, &error) == HOLDFAST_OK);
  CHECK(problems == (sees_undeclared ? 1u : 0u));
  CHECK(holdfast_audit_manifest(audit, NULL, 0, &length, &error) == HOLDFAST_OK && length > 0);
  CHECK(holdfast_audit_dot(audit, "step", NULL, 0, &length, &error) == HOLDFAST_OK && length > 0);
  CHECK(holdfast_audit_dot(audit, "none", NULL, 0, &length, &error) == HOLDFAST_NOT_FOUND);
  CHECK(holdfast_audit_scan(audit, &problems, &error) == HOLDFAST_OK && problems == 0);
  CHECK(holdfast_audit_allow_node(audit, "host", &error) == HOLDFAST_OK);
  CHECK(holdfast_audit_destroy(audit, &error) == HOLDFAST_OK);
  CHECK(holdfast_audit_destroy(audit, &error) == HOLDFAST_INVALID_ARGUMENT);
  return 0;
}
