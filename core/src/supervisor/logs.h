/* Log files of a process of ours, as its options say. */
#ifndef ORIBI_SUPERVISOR_LOGS_H
#define ORIBI_SUPERVISOR_LOGS_H

#include "oribi/base/log.h"

struct oribi__process_context;
struct oribi_options;

enum oribi_log_level oribi__log_level(const struct oribi_options *options);

/* Sets the level, opens error log and access log. 0 or a code with `error`. */
int oribi__open_logs(struct oribi__process_context *process, char *error);
void oribi__reopen_logs(struct oribi__process_context *process);

/* The process has other standard streams: the logs that lead there follow. */
void oribi__logs_follow_streams(struct oribi__process_context *process);

#endif
