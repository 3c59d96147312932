/* --daemonize: the process that was started waits, as the starter, for the daemon, which serves. The daemon tells it
 * its first lines, a NUL and its exit code; nothing more when it died. */
#ifndef ORIBI_SUPERVISOR_DAEMON_H
#define ORIBI_SUPERVISOR_DAEMON_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct oribi__context;

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
