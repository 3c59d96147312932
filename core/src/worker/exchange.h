/* exchange - one request and its answer, from the first byte to the end of its call: what a worker keeps beside the
 * connection's part of it (struct oribi_exchange). */
#ifndef ORIBI_WORKER_EXCHANGE_H
#define ORIBI_WORKER_EXCHANGE_H

#include "oribi/event/conn.h"
#include "oribi/worker/req.h"
#include "worker/worker_private.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct oribi__framed;
struct oribi__coder;

enum oribi__phase {
    ORIBI_PHASE_OPEN,    /* nothing answered */
    ORIBI_PHASE_BEGUN,   /* head written to `held`, not sent */
    ORIBI_PHASE_STARTED, /* head sent or queued */
};

struct oribi__exchange {
    struct oribi_exchange base;
    struct oribi_req req;
    struct oribi_worker *worker;
    struct oribi_thread *thread; /* whose call this is; NULL: answered without one */
    int64_t started_us;
    int64_t body_sent;       /* body bytes given to the connection, framing not counted */
    int64_t sent_before;     /* bytes of the connection that stand in front of this answer */
    int64_t overhead;        /* of this answer: its head and what frames its body */
    int64_t left;            /* of a known length; -1 when not known */
    int64_t waited_pending;  /* what was queued when oribi_reply_wait() last saw it change … */
    int64_t waited_since_ms; /* … and when that was */
    struct oribi_buf held;
    struct oribi__framed *framed;  /* of a stream that the application frames itself, else NULL */
    struct oribi__coder *coder;    /* of an answer that is compressed, else NULL */
    struct oribi_slice none_match; /* If-None-Match as it came, where the application sees it expanded; else NULL */
    enum oribi__phase phase;
    enum oribi_framing framing;
    int status;
    bool closes;
    bool aborted; /* ended before all of the answer was given to the connection */
    bool cut;     /* the application's body ran past its Content-Length */
    /* after oribi__reply_head(): the application has framed the body itself, and that is to be taken off … */
    bool app_frames;
    bool unframed; /* … or has been, before it */
    char length_text[24];
};

static inline struct oribi__exchange *oribi__exchange_of(const struct oribi_req *req)
{
    return (struct oribi__exchange *)((char *)req - offsetof(struct oribi__exchange, req));
}

/* True in a child that the application forked inside this call. Nothing may be done for the request there: its
 * descriptors are closed, their numbers may be the child's own files by now, and what is logged and counted is the
 * parent's. */
static inline bool oribi__call_is_abandoned(const struct oribi__exchange *exchange)
{
    return __builtin_expect(exchange->worker->abandoned, 0);
}

/* Makes a request just popped this thread's call and leaves the reactor: its environment, times and counters. */
struct oribi_req *oribi__exchange_begin(struct oribi__exchange *exchange, struct oribi_worker *worker,
                                        struct oribi_thread *thread, int64_t now_us);

/* Books the end of a call; the connection is finished or aborted by the caller. */
void oribi__exchange_end(struct oribi__exchange *exchange, int status);

/* True if the connection may be kept after this answer. */
bool oribi__exchange_keeps(const struct oribi__exchange *exchange);

/* Body bytes of an answer that the socket has taken, when the answer broke off. At most so many: what framed those
 * that are lost counts as lost. */
int64_t oribi__body_taken(const struct oribi__exchange *exchange);

/* Writes "GET /path" of a request as far as there is room. */
void oribi__note_line(char line[ORIBI_SLOT_LINE_CAP], const struct oribi_head *head);

/* One line of the access log. */
void oribi__log_access(struct oribi__exchange *exchange, int status, int64_t now_us);

/* forwarded.c: sets remote_addr, remote_port and scheme. */
void oribi__peer_of(struct oribi__exchange *exchange);

#endif
