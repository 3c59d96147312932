/* exchange - one request and its answer, from the first byte to the end of its call: the worker's part, beside the
 * connection's (struct oribi_conn_request). */
#ifndef ORIBI_WORKER_EXCHANGE_H
#define ORIBI_WORKER_EXCHANGE_H

#include "oribi/event/conn.h"
#include "oribi/worker/logs/request_log.h"
#include "oribi/worker/req.h"

#include "worker/worker_private.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct oribi__framed;
struct oribi__coder;
struct oribi__socket_call;

enum oribi__phase {
    ORIBI_PHASE_OPEN,    /* nothing answered */
    ORIBI_PHASE_BEGUN,   /* head written to `held`, not sent */
    ORIBI_PHASE_STARTED, /* head sent or queued */
};

struct oribi__exchange {
    struct oribi_conn_request base;
    struct oribi_req req;
    struct oribi_worker *worker;
    struct oribi_thread *thread; /* whose call this is; NULL: answered without one */
    int64_t started_us;
    int64_t body_sent;                    /* body bytes given to the connection, framing not counted */
    int64_t sent_before;                  /* bytes of the connection that stand in front of this answer */
    int64_t overhead;                     /* of this answer: its head and what frames its body */
    int64_t left;                         /* of a known length; -1 when not known */
    int64_t waited_pending;               /* bytes that were queued when oribi_reply_wait() last saw that change */
    int64_t waited_since_ms;              /* when oribi_reply_wait() saw that change */
    struct oribi_buf held;                /* of a stream: its head until that is sent, then what burst.h gathers */
    int64_t now_us;                       /* of a stream: when the application began the write that goes on */
    int64_t piece_us;                     /* of a stream: when the piece before was written */
    struct oribi__framed *framed;         /* of a stream that the application frames itself, else NULL */
    struct oribi__coder *coder;           /* of an answer that is compressed, else NULL */
    struct oribi__socket_call *websocket; /* of a handshake that was accepted, or of a call; else NULL */
    struct oribi__event_wish *events;     /* of an event stream; else NULL */
    struct oribi_slice none_match; /* If-None-Match as it came, where the application sees it expanded; else NULL */
    enum oribi__phase phase;
    enum oribi_framing framing;
    int status;
    bool closes;
    bool aborted;     /* ended before all of the answer was given to the connection */
    int64_t ended_us; /* the call, where base.unlogged: whether the answer breaks off is not known yet */
    bool cut;         /* the application's body ran past its Content-Length */
    /* after oribi__reply_head(): the application has framed the body itself, and its framing is to be taken off */
    bool app_frames;
    bool unframed; /* the application's framing was taken off before oribi__reply_head() */
    bool by_piece; /* of a stream: nothing is gathered */
    bool lends_fd; /* the application has a handle of its own for the connection's socket */
    bool streams;  /* the head being made is that of a streamed answer, whose call goes on */
    char length_text[24];
    char client_text[ORIBI_TRUST_CLIENT_CAP]; /* req.remote_addr, where X-Forwarded-For has it as ::ffff:a.b.c.d */
    struct oribi_slice id;   /* name of the request; n 0: it was not asked for yet: oribi__request_id() */
    struct oribi_slice sent; /* a copy of the head that was sent, on the heap, where the access log wants it */
    char id_text[ORIBI__ID_LEN];
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

/* Books the end of a call while output is on its way to a file: the answer is counted and logged by
 * oribi__exchange_stored(), when it is there or has broken off. */
void oribi__exchange_end_unstored(struct oribi__exchange *exchange, int status);
void oribi__exchange_unstored(struct oribi__exchange *exchange, int status); /* of an answer without a call */
void oribi__exchange_stored(struct oribi__exchange *exchange);

/* True if the connection may be kept after the answer of its current request, as far as request, worker and
 * keepalive_requests_max say; for answers with a call and without. */
bool oribi__conn_keeps(const struct oribi_worker *worker, const struct oribi_conn *conn);

/* True if the connection may be kept after the answer of a call, as oribi__conn_keeps() says, and neither the
 * application nor requests_max has made that answer the last one. */
bool oribi__exchange_keeps(const struct oribi__exchange *exchange);

/* Body bytes of an answer that the socket has taken, when the answer broke off. At most so many: what framed those
 * that are lost counts as lost. */
int64_t oribi__body_taken(const struct oribi__exchange *exchange);

/* True when a part of the answer did not reach the client. */
static inline bool oribi__exchange_is_cut(const struct oribi__exchange *exchange)
{
    return exchange->aborted || exchange->base.conn->broken;
}

/* forwarded.c: sets remote_addr, remote_port and scheme. */
void oribi__peer_of(struct oribi__exchange *exchange);

#endif
