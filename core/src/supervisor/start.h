/* A supervisor's beginning and end. struct oribi_supervisor is known to start.c and supervisor.c alone. */
#ifndef ORIBI_SUPERVISOR_START_H
#define ORIBI_SUPERVISOR_START_H

#include "oribi/base/log.h"

#include <stdint.h>

struct oribi__context;
struct oribi__process_context;
struct oribi_options;
struct oribi_policy_config;
struct oribi_supervisor;

struct oribi__context *oribi__supervisor_context(struct oribi_supervisor *supervisor);

/* The process context, for a child to copy. */
const struct oribi__process_context *oribi__supervisor_process(const struct oribi_supervisor *supervisor);

/* A policy's configuration, by these options. */
void oribi__policy_config(const struct oribi__context *context, const struct oribi_options *options,
                          uint32_t workers_max, struct oribi_policy_config *config);

/* A line of the log, or a block; an error is told to the starter of a daemon and to a predecessor as well. */
void oribi__log_text(struct oribi__context *context, enum oribi_log_level level, const char *text);

/* The first steps of the process that serves: pid file and boot log. 0, or a code with `error`. */
int oribi__begin_in_place(struct oribi__context *context, char *error);

/* All frontends are ready, or none is wanted: workers are started. */
void oribi__serve(struct oribi__context *context);

/* The server ends before it has served: it was stopped, or, with a line in `error`, cannot begin. */
void oribi__serve_not(struct oribi__context *context, const char *error);

/* In a child that the application has forked: `supervisor` is a struct oribi_supervisor. */
void oribi__supervisor_let_go(void *supervisor);

/* In a child: closes what belongs to the supervisor alone and frees it. */
void oribi__supervisor_forget(struct oribi_supervisor *supervisor);

#endif
