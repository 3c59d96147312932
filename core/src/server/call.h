/* What the server layer keeps beside a connection's call, and the worker itself; private to worker.c, accept.c, reply.c and stream.c. */
#ifndef ORIBI_SERVER_CALL_H
#define ORIBI_SERVER_CALL_H

#include "oribi/base/log.h"
#include "oribi/base/os.h"
#include "oribi/event/reactor.h"
#include "oribi/server/req.h"
#include "oribi/server/trust.h"
#include "oribi/server/worker.h"

#include <stdatomic.h>

enum oribi__phase {
    ORIBI_PHASE_OPEN,    /* nothing answered */
    ORIBI_PHASE_BEGUN,   /* head written to `held`, not sent */
    ORIBI_PHASE_STARTED, /* head sent or queued */
};

struct oribi__call {
    struct oribi_call base;
    struct oribi_req req;
    struct oribi_worker *worker;
    int64_t started_us;
    int64_t body_sent;       /* body bytes given to the connection, framing not counted */
    int64_t left;            /* of a known length; -1 when not known */
    int64_t waited_pending;  /* what was queued when oribi_reply_wait() last saw it change … */
    int64_t waited_since_ms; /* … and when that was */
    struct oribi_buf held;
    enum oribi__phase phase;
    enum oribi_framing framing;
    int status;
    bool closes;
    bool cut; /* the application's body ran past its Content-Length */
    char length_text[24];
};

static inline struct oribi__call *oribi__call_of(const struct oribi_req *req)
{
    return (struct oribi__call *)((char *)req - offsetof(struct oribi__call, req));
}

struct oribi__gate {
    struct oribi_watch watch;
    const struct oribi_listener *listener;
    bool ready; /* connections wait */
};

struct oribi_worker {
    struct oribi_reactor reactor;
    struct oribi_worker_setup setup;
    const struct oribi_options *options;
    struct oribi_trust trust; /* options->trusted_proxies */
    struct oribi_slot *slot;           /* the caller's, or own_board's */
    struct oribi_scoreboard own_board; /* one slot, when the caller gave none */
    struct oribi__gate *gates;
    uint32_t gate_count;
    struct oribi_wake wake;
    struct oribi_watch wake_watch;
    struct oribi_watch life_watch;
    atomic_bool stop_asked; /* set by oribi_worker_stop() in a handler or thread, read by the owner */
    bool stopping;
    bool gates_open;        /* listeners are watched */
    int64_t turned_us;      /* time of the last turn */
    int64_t stop_ms;        /* when stopping began */
    int64_t pause_until_ms; /* accepting is paused: descriptors are out */
    uint64_t request_count;
    uint64_t request_limit; /* 0: none */
    uint64_t bytes_in;
    uint64_t bytes_out;
    uint32_t registered_seen;
    int owner_pid;
    bool abandoned; /* this is a child that the application forked */
    struct oribi_log_gate refuse_gate;
    struct oribi_log_gate app_gate;
};

/* forwarded.c: sets remote_addr, remote_port and scheme. */
void oribi__peer_of(struct oribi__call *call);

/* accept.c */
void oribi__gates_open(struct oribi_worker *worker);
void oribi__gates_close(struct oribi_worker *worker);
void oribi__accept_turn(struct oribi_worker *worker);

/* worker.c: books the end of a call; the connection is finished or aborted by the caller. */
void oribi__call_end(struct oribi__call *call, int status);

/* True if the connection may be kept after this answer. */
bool oribi__call_keeps(const struct oribi__call *call);

/* reply.c: a serialised head, in the reactor's scratch buffer or, when that is too small, on the heap. */
struct oribi__head_text {
    char *p;
    size_t n;
    bool on_heap;
};

/* Serialises the head and notes framing and persistence in `call`. *content_length is what the head promises (-1: nothing). 0, or ORIBI_EAPP
 * after logging what is wrong. Free with oribi__head_text_free(). */
int oribi__reply_head(struct oribi__call *call, int status, const struct oribi_header *headers, uint32_t header_count,
                      int64_t body_len, struct oribi__head_text *head, int64_t *content_length);
void oribi__head_text_free(struct oribi__head_text *head);

/* Logs a mistake of the application, with the request it concerns, at a limited rate. */
void oribi__log_app(struct oribi__call *call, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Ends the call and its connection so that the peer sees that the answer is not complete. */
void oribi__cut(struct oribi__call *call);

/* Vectors given to the connection at once when something of ours stands before or behind the application's. */
enum { ORIBI__VEC_MAX = 256 };

#endif
