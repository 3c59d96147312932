/* The error log (log.c), and files of logs, opened as root without writing into a file of another user (log_file.c). */
#ifndef ORIBI_BASE_LOG_H
#define ORIBI_BASE_LOG_H

#include "oribi/base/buf.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- log_file ---- */

/* Opens log files as root without writing into a file of another user. A server that begins as root and serves as
 * another user opens its logs in folders which that user may write: the log's name there may be a link to any file, or
 * another name of one.
 *
 *   /dev/stdout, /dev/stderr, /dev/fd/N, /proc/self/fd/N   the open descriptor itself, whatever it is: how
 *                                                          containers name their logs
 *   a symbolic link                                        followed only if it is root's (and to root only in a folder
 *                                                          that root alone may write), or our own
 *   a regular file                                         as root: with one name, of root or of the workers' user
 *   a named pipe, a terminal, a device                     taken; a named pipe needs its reader to be there
 *
 * Root opens as the workers' user would. Only where that user may not (a folder of root's, /var/log) does it open as
 * root, if that user can change nothing on the way there, and gives the file to that user through the descriptor. */

/* The user that the workers run as, who owns the log files. */
struct oribi_log_owner {
    const char *user; /* borrowed; its name, for the supplementary groups; NULL: it has none */
    uid_t uid;        /* -1: as it is */
    gid_t gid;        /* -1: as it is */
};

/* Gives `path` opened for appending (blocking, CLOEXEC, above 2), made with mode 0644 if it is not there. `owner`
 * may be NULL; it counts for root only. *stream: it is the copy of a descriptor by name, and opening it again would
 * give nothing new. 0 or a code of os.h with words. */
int oribi_log_file_open(const char *path, const struct oribi_log_owner *owner, int *fd, bool *stream);

/* ---- log ---- */

/* Error log lines. One line is one write(2): `2026-01-31T12:00:00.123Z oribi[4711] warn: text`, or an object of
 * JSON. */

enum oribi_log_level { ORIBI_LOG_DEBUG, ORIBI_LOG_INFO, ORIBI_LOG_WARN, ORIBI_LOG_ERROR };

/* The process has one error log, standard error until this is called. Makes a private copy of fd (CLOEXEC, above 2)
 * and leaves fd itself alone; lines below `level` are dropped. */
void oribi_log_init(int fd, enum oribi_log_level level);

/* From now on lines below `level` are dropped. */
void oribi_log_set_level(enum oribi_log_level level);

/* From now on lines are objects of JSON, one a line, or text again. */
void oribi_log_set_json(bool json);
bool oribi_log_is_json(void);

/* Which worker the lines of this process concern (-1: none) and which generation (0: not known): the process itself in
 * a worker, in a supervisor what it logs of. Lines of JSON have both. */
void oribi_log_identify(int worker, uint32_t generation);

/* Lines that this thread logs from now on name the request with this id; an empty id ends that. trace_id (n 0: none) is
 * shown beside it. Borrows both until then. */
void oribi_log_about(struct oribi_slice request_id, struct oribi_slice trace_id);

/* Logs to the file `path`, opened for appending (log.h, also for `owner`), and points standard error there, so
 * that what the application and its libraries print lands in the same file. Standard error stays as it is where it
 * leads elsewhere than the log did. Borrows path; a relative path starts at the working directory of this moment. 0 or
 * a code of os.h, and then nothing has changed. */
int oribi_log_open(const char *path, const struct oribi_log_owner *owner);

/* Opens that path anew after a rotation; lines keep going to the old file until the new one is there. Without a path
 * it does nothing. */
int oribi_log_reopen(const struct oribi_log_owner *owner);

/* Logging never waits for the log's reader: lines that the descriptor has no room for are kept, ORIBI_LOG_KEPT_MAX
 * bytes of them; further lines are dropped, and their number is logged when there is room again.
 * waits: are lines kept, or is a number of dropped lines still to be logged?
 * flush: tries to write them; call it about every ORIBI_LOG_RETRY_MS while lines wait.
 * drain: the same for ms at most, before the process ends.
 * dropped: how many lines this process has dropped since it logged its first line. */
enum { ORIBI_LOG_KEPT_MAX = 64 * 1024, ORIBI_LOG_RETRY_MS = 100, ORIBI_LOG_DRAIN_MS = 200 };
bool oribi_log_waits(void);
uint64_t oribi_log_dropped(void);
void oribi_log_flush(void);
void oribi_log_drain(int64_t ms);

/* The descriptor that lines are written to; -1: none. */
int oribi_log_fd(void);

/* Is the private copy still there, or has the application closed it? */
bool oribi_log_intact(void);

/* Controls, and bytes that are no UTF-8, are written as \xNN so that a peer cannot forge a line or speak to a
 * terminal; cut at 8 KiB. */
void oribi_log(enum oribi_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Logs as oribi_log() does, with `members` for lines of JSON, which lines of text leave out: "\"workers\":4". Borrows
 * them; they are left out as a whole where there is no room for them. */
void oribi_log_with(enum oribi_log_level level, struct oribi_slice members, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* As oribi_log, but newlines in [text, text+n) are kept and indented, and tabs stay tabs: backtraces. */
void oribi_log_block(enum oribi_log_level level, const char *head, const char *text, uint32_t n);

/* A rate limit: at most `burst` lines per 10 s; the number of dropped lines is logged with the next line that
 * passes. */
struct oribi_log_limit {
    uint32_t burst;
    uint32_t passed;
    uint32_t dropped;
    int64_t window_ms;
};
int oribi_log_limit_allows(struct oribi_log_limit *limit, int64_t now_ms);

/* The ending of a word's plural in a line: "" for 1, else "s". */
const char *oribi_log_plural(uint64_t count);

#endif
