/* A supervisor's beginning and end. struct oribi_supervisor is known to start.c and supervisor.c alone. */
#ifndef ORIBI_SUPERVISOR_START_H
#define ORIBI_SUPERVISOR_START_H

#include "oribi/base/log.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

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

/* --- daemon.c ---
 *
 * --daemonize: the process that was started waits, as the starter, for the daemon, which serves. The daemon tells it
 * its first lines, a NUL and its exit code; nothing more when it died. */

/* Is the fork of the daemon still to be made? Made: not any more, or it is not wanted. */
bool oribi__daemon_wanted(const struct oribi__context *context);
void oribi__daemon_made(struct oribi__context *context);

/* In the daemon: a new session; the standard streams are let go of, so that molds and workers never hold the terminal.
 * */
void oribi__daemon_enter(struct oribi__context *context);

/* In the starter. pid < 0: the fork has failed, with errno. INT and TERM end it as any command. */
void oribi__daemon_starter(struct oribi__context *context, pid_t pid);
void oribi__daemon_await(const struct oribi__context *context, int64_t ms);

/* Prints what the daemon has said. The code to end with; -1: the daemon has not said all. */
int oribi__daemon_said(struct oribi__context *context);

/* In the daemon: a line for the starter, while it waits; and the end of its wait. */
void oribi__daemon_tell(struct oribi__context *context, const char *text);
void oribi__daemon_release(struct oribi__context *context, int code);

#endif
