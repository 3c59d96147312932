/* Log files of a process of ours, as its options say. */
#ifndef ORIBI_SUPERVISOR_LOGS_H
#define ORIBI_SUPERVISOR_LOGS_H

#include "oribi/base/log.h"

#include <stddef.h>

struct oribi__context;
struct oribi__process_context;
struct oribi_options;
struct oribi_policy_action;

enum oribi_log_level oribi__log_level(const struct oribi_options *options);

/* Sets the level, opens error log and access log. 0 or a code with `error`. */
int oribi__open_logs(struct oribi__process_context *process, char *error);
void oribi__reopen_logs(struct oribi__process_context *process);

/* The process has other standard streams: the logs that lead there follow. */
void oribi__logs_follow_streams(struct oribi__process_context *process);

/* --- boot_log.c ---
 *
 * boot_log - what the log says of a start and of a reload: version, language, environment, options that differ from
 * their defaults, addresses. As JSON these are fields. */

/* Version and language, where the program tells them; borrowed during the call. */
void oribi__boot_log_name(struct oribi__context *context, const char *version, const char *language);

/* The version, "" when the program has not told it. */
const char *oribi__boot_log_version(const struct oribi__context *context);

/* The server begins, in the process that will be the supervisor. */
void oribi__boot_log_begin(struct oribi__context *context);

/* Says once what server this is. With the first line that is no error, so that a start that fails at once has one line:
 * why. */
void oribi__boot_log_say(struct oribi__context *context);

/* The server is up: its addresses (borrows `line`), workers and pid. */
void oribi__boot_log_up(struct oribi__context *context, const char *line);

/* A part of what the next generation's mold tells of its options; they come to nothing; they are in force. */
void oribi__boot_log_hear(struct oribi__context *context, const char *text, size_t n);
void oribi__boot_log_drop(struct oribi__context *context);
void oribi__boot_log_commit(struct oribi__context *context);

/* Members of JSON for a line that the policy has said; "" for none. NUL-terminated, cut at cap. */
void oribi__boot_log_members(const struct oribi_policy_action *action, char *dst, size_t cap);

#endif
