/* Access log: Common, Combined, JSON lines or those of a format of the operator's own (config/log_format.h), formatted
 * into a buffer and written once a turn. */
#ifndef ORIBI_WORKER_LOGS_ACCESS_LOG_H
#define ORIBI_WORKER_LOGS_ACCESS_LOG_H

#include "oribi/base/log.h"
#include "oribi/base/buf.h"
#include "oribi/config/options.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    /* Longer ones are cut in the log. */
    ORIBI_LOGGED_TARGET_MAX = 4096,
    ORIBI_LOGGED_FIELD_MAX = 1024,
    ORIBI_LOGGED_SENT_MAX = 16 * 1024,   /* bytes of an answer's head that fields to be logged are looked for in */
    ORIBI_TRACE_ID_LEN = 32,             /* of a traceparent field (W3C Trace Context 3.2.2.3) */
    ORIBI_ACCESS_BUFFER_MAX = 64 * 1024, /* written at once when more has gathered */
    ORIBI_ACCESS_KEPT_MAX = 256 * 1024,  /* bytes kept while the reader does not read; then lines are dropped */
};

struct oribi_access_log;
struct oribi_channel_head;
struct oribi_head;

/* Parts of an entry that its writer fills in only where the log wants them. Bits. */
enum oribi_access_wants {
    ORIBI_ACCESS_WANTS_ID = 1,   /* the request's id */
    ORIBI_ACCESS_WANTS_SENT = 2, /* the head that was sent */
};

struct oribi_access_entry {
    /* borrowed; without a method when the request line was malformed or is not whole */
    const struct oribi_head *head;
    struct oribi_slice raw_line; /* bytes of such a request line; may be empty */
    struct oribi_slice remote_addr;
    int status;
    const char *refused;          /* the word for the reason (http/status.h); NULL: it was not refused */
    bool cut;                     /* the answer broke off */
    bool closes;                  /* the connection closes behind it */
    int64_t body_bytes;           /* that were sent */
    int64_t bytes_in;             /* of the request: its head, and its body without framing */
    int64_t bytes_out;            /* of the answer: head, framing and body */
    int64_t queue_us;             /* from the last byte of the request to its call */
    int64_t upstream_us;          /* from the proxy in front, X-Request-Start, to the last byte; < 0: not known */
    int64_t call_us;              /* time inside the application */
    int64_t total_us;             /* from the last byte of the request to the answer's hand-over to the socket */
    int64_t wall_ms;              /* when the answer was handed over */
    uint32_t worker;              /* its number */
    uint32_t connection_requests; /* on its connection, this one counted */
    uint16_t close_code;          /* of a WebSocket that has ended, whose status it is; else 0 */
    bool is_socket;               /* a WebSocket or an event stream has ended */
    int64_t messages_in;          /* of these: from the client, as bytes_in; and to it */
    int64_t messages_out;
    struct oribi_slice remote_port;
    struct oribi_slice scheme;
    const struct oribi_channel_head *client; /* what a frontend says of it; NULL: it is the worker's own */
    struct oribi_slice port;                 /* the listener's */
    struct oribi_slice listener;             /* "tcp://127.0.0.1:9292" */
    struct oribi_slice request_id;           /* where the log wants it */
    struct oribi_slice sent_head;            /* where the log wants it */
};

/* Opens `path` for appending (log.h, also for `owner`; "-" is standard output as it is now, of which this keeps
 * a copy of its own; "off" gives NULL, which every function here takes for a log that drops its lines).
 * format: a name of access_log_format, or one that config/log_format.h reads. 0, or ORIBI_EINVAL or a code of os.h
 * with one line in `error` (ORIBI_ERROR_TEXT_CAP). */
int oribi_access_log_open(const char *path, const char *format, const struct oribi_log_owner *owner,
                          struct oribi_access_log **out, char *error);

/* From now on requests for these paths have no line (a star at the end of one: all that begin so), and of `sample`
 * answers below 400 one has. Borrows the list for the log's life. Nothing for NULL. */
void oribi_access_log_choose(struct oribi_access_log *log, const struct oribi_text_list *skip, uint32_t sample);

/* Bits of enum oribi_access_wants; 0 for NULL. */
uint32_t oribi_access_log_wants(const struct oribi_access_log *log);

/* Adds a line, in local time (json: UTC); bytes a peer chose are escaped so that no line can be forged. */
void oribi_access_log_add(struct oribi_access_log *log, const struct oribi_access_entry *entry);

/* Writes what was added, in whole lines, as far as there is room, and never waits for a reader: the rest is kept,
 * and then lines are dropped. Dropped lines are counted and reported in the error log when writing goes on; those
 * that a full disk loses, once a minute. */
void oribi_access_log_flush(struct oribi_access_log *log);

/* Is something kept, or to be reported? Then flush should be called about every ORIBI_LOG_RETRY_MS. */
bool oribi_access_log_waits(const struct oribi_access_log *log);

/* Lines that were dropped since the log was opened or oribi_access_log_discard(). */
uint64_t oribi_access_log_dropped(const struct oribi_access_log *log);

/* Flushes for ms at most, because the process ends. */
void oribi_access_log_drain(struct oribi_access_log *log, int64_t ms);

/* Forgets what is kept: in a process that has a copy of the lines of another and goes on with the log. */
void oribi_access_log_discard(struct oribi_access_log *log);

/* Opens the path anew (rotation). Keeps the old file if that fails. Does nothing for standard output. */
int oribi_access_log_reopen(struct oribi_access_log *log, const struct oribi_log_owner *owner, char *error);

/* A log on standard output goes where that leads now. */
int oribi_access_log_follow_stdout(struct oribi_access_log *log, char *error);

/* Is its descriptor still what was opened, or has the application closed it? And which one it is. */
bool oribi_access_log_intact(const struct oribi_access_log *log);
int oribi_access_log_fd(const struct oribi_access_log *log);

void oribi_access_log_close(struct oribi_access_log *log);

/* Closes the log without writing what is buffered: for a process that has a copy of the lines of another. */
void oribi_access_log_forget(struct oribi_access_log *log);

#endif
