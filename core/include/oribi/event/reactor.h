/* The connections of one worker: readiness, deadlines, the FIFO run queue of complete requests. Knows HTTP framing,
 * neither listeners nor applications. One thread at a time owns a reactor and calls it. */
#ifndef ORIBI_EVENT_REACTOR_H
#define ORIBI_EVENT_REACTOR_H

#include "oribi/base/limits.h"
#include "oribi/base/mem.h"
#include "oribi/base/yield.h"
#include "oribi/event/conn.h"
#include "oribi/event/loop.h"
#include "oribi/event/timeouts.h"
#include "oribi/http/date.h"
#include "oribi/http/response.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    ORIBI_READ_BUF_BYTES = 4096,     /* lent to a connection with its first byte; grows up to head_bytes_max */
    ORIBI_SCRATCH_BYTES = 64 * 1024, /* one a reactor: bodies on their way to a file, heads of answers */
    ORIBI_READS_PER_TURN = 8,        /* then the next connection has its turn */
    ORIBI_POOL_KEEP = 256,
};

struct oribi_reactor_config {
    struct oribi_limits limits;
    int64_t head_timeout_ms; /* 0 switches a timeout off */
    int64_t body_timeout_ms;
    int64_t idle_timeout_ms;
    int64_t write_timeout_ms;
    uint32_t body_rate_min; /* bytes per second once body_timeout has passed; 0: none */
    bool multipart_stream;
    int64_t response_memory_max;
    int64_t buffers_memory_max; /* out.h */
    int64_t buffers_file_max;
    struct oribi_slice server;       /* Server field of the server's answers; may be empty */
    const struct oribi_added *added; /* headers of all answers; NULL: none. Borrowed */
    /* size of the layer above's exchange, at least sizeof(struct oribi_conn_request) */
    size_t exchange_bytes;
};

/* Events that the layer above is told of; each may be NULL. */
struct oribi_reactor_hooks {
    void *self;
    /* A request is refused; the answer has `head_bytes` and `body_bytes`. `text` says more than the reason's word.
     * conn->exchange may be NULL. */
    void (*refused)(void *self, struct oribi_conn *conn, enum oribi_refusal refusal, size_t head_bytes,
                    size_t body_bytes, const char *text);
    /* The page of an answer of our own, and its media type; p is NULL for none. */
    struct oribi_slice (*page)(void *self, int status, struct oribi_slice *type);
    void (*timed_out)(void *self, struct oribi_conn *conn, enum oribi_timeout_class timeout_class);
    void (*closed)(void *self, struct oribi_conn *conn);
    void (*read)(void *self, int64_t bytes);
    void (*sent)(void *self, int64_t bytes);
    /* More output of a call waits for the writer than oribi_reactor_unstored_max(): to give the reactor to others until
     * there is less, or the connection breaks. `conn` is in state CALL; the scratch buffer is not in use. */
    void (*await)(void *self, struct oribi_conn *conn);
    /* All output of an answer that is finished is stored: its exchange, which has stayed, goes now. */
    void (*stored)(void *self, struct oribi_conn *conn);
    /* Output of an answer cannot be kept: ORIBI_EFULL, _ESTORE (oribi_os_error_text() has the reason), _ENOMEM, or
     * _ELIMIT for buffers_file_max. No more bytes are sent on the connection. */
    void (*unkept)(void *self, struct oribi_conn *conn, int error);
    void (*lost)(void *self,
                 struct oribi_conn *conn); /* the connection ends because the application has closed its descriptor */
    /* The client of a request that is called has closed its side, or the connection broke; only where
     * oribi_conn_tells_leaving() was asked for. */
    void (*leaving)(void *self, struct oribi_conn *conn);
    /* A request is complete. True: it may need no call, so `answer` is called for it before it is queued, in this turn
     * or the next. Looks at the request only. */
    bool (*claims)(void *self, struct oribi_conn *conn);
    /* Answers such a request, which is in state CALL: oribi_conn_send(), oribi_conn_send_file(), and at the end
     * oribi_conn_finish() or oribi_conn_abort(). False: it has done nothing, the request needs its call. One of each
     * connection a turn. */
    bool (*answer)(void *self, struct oribi_conn *conn);
    /* The writer's thread has been started, with what it wakes the reactor with. NULL: the system has given none, with
     * the reason in oribi_os_error_text(); files are written in the reactor's thread then. Once. */
    void (*writer)(void *self, const struct oribi_wake *wake);
    /* How much waits that the loop does not tell of, beside what channels have. Asked behind a yield, and right before
     * a sleep, with reactor->asleep set: there is no sleep but with 0. */
    int (*waits)(void *self);
};

struct oribi_reactor {
    /* public, read-only */
    struct oribi_loop *loop;
    int64_t now_ms; /* of the current turn, or of the end of the last call */
    int64_t now_us;
    uint32_t conn_count;    /* channels included */
    uint32_t channel_count; /* of these */
    uint32_t queue_len;
    uint32_t registered_count; /* connections ever added to the loop: those that were not answered and closed at once */
    uint32_t lost_count;       /* connections whose descriptor the application has closed; each keeps its memory */
    struct oribi_reactor_config config;
    struct oribi_reactor_hooks hooks;
    struct oribi_timeouts timeouts;
    struct oribi_date_cache date;
    struct oribi_budget budget;
    int64_t unstored; /* bytes of output, of all connections, that wait for the writer; of the budget's memory */
    char *scratch;    /* ORIBI_SCRATCH_BYTES, for any function of this layer until it returns */
    /* true: the next wait may yield; so says a frontend with calls out, and whoever reads a channel */
    bool neighbour;
    /* odd while it sleeps, for who writes to what the loop does not tell of (worker/channel_ring.h); NULL: nobody does.
     * Borrowed, set after oribi_reactor_init() */
    _Atomic uint32_t *asleep;

    /* private */
    struct oribi_conn *polled;          /* channels whose transport has `waits` */
    struct oribi_limits channel_limits; /* heads that a frontend has written anew are a little longer than they were */
    struct oribi_limits call_limits;    /* the same of calls of WebSockets, whose messages the frontend has bounded */
    struct oribi_conn *conns;
    struct oribi_conn *run_first;
    struct oribi_conn *run_last;
    struct oribi_conn *claimed_first; /* linked as the run queue is */
    struct oribi_conn *claimed_last;
    uint32_t claimed_count;
    struct oribi_conn *posted;
    struct oribi_conn *deferred_free;
    struct oribi_conn *adrift; /* connections whose descriptor is lost: events may name them for ever */
    struct oribi_conn **by_fd; /* index: the connection's descriptor */
    uint32_t by_fd_cap;
    struct oribi_pool conn_pool;
    struct oribi_pool buf_pool;
    struct oribi_pool exchange_pool;
    struct oribi_event events[ORIBI_LOOP_EVENTS_MAX];
    int event_count;
    uint32_t full_turns; /* turns in a row without deadlines */
    struct oribi_yield yield;
    bool sleeping; /* between sleep_begin and sleep_end */
    bool writer_failed;
    struct oribi_writer *writer; /* NULL until the first file */
    struct oribi_watch writer_watch;
};

/* Gives a reactor in caller's memory. 0, or a code of base/os/os.h: the loop cannot be made. */
int oribi_reactor_init(struct oribi_reactor *reactor, const struct oribi_reactor_config *config,
                       const struct oribi_reactor_hooks *hooks, enum oribi_loop_source source);

/* Closes every connection. */
void oribi_reactor_deinit(struct oribi_reactor *reactor);

/* Only closes descriptors: for a child forked by the application, which shares epoll and sockets with us but must
 * leave both alone. */
void oribi_reactor_abandon(struct oribi_reactor *reactor);

/* Waits for events up to timeout_ms or the next deadline, whichever is first (-1: no bound of the caller's). Changes
 * nothing but the event list. */
void oribi_reactor_wait(struct oribi_reactor *reactor, int64_t timeout_ms);

/* Says in reactor->asleep that the owner sleeps from here on, in a wait of its own, until the next turn. False: bytes
 * wait that the loop does not tell of, and there is to be a turn instead. True where nobody asks (asleep is NULL). */
bool oribi_reactor_fall_asleep(struct oribi_reactor *reactor);

/* Takes the events that have come; the next turn handles them, and no wait is before it. Returns how many. Between two
 * turns. */
int oribi_reactor_look(struct oribi_reactor *reactor);

/* Does this wait begin with a yield? For whoever waits without oribi_reactor_wait(), once a wait, as the owner; tells
 * reactor->yield afterwards what it has brought. */
bool oribi_reactor_yields(struct oribi_reactor *reactor);

/* oribi_reactor_wait() in two steps, for a thread that gives the reactor to another thread while it sleeps.
 * sleep_begin: called while the thread still owns the reactor; returns for how many ms, timeout_ms at most, it may
 * sleep in oribi_loop_sleep() without owning it. From then on closed connections stay in memory. sleep_end: called when
 * the thread owns the reactor again; the events of the sleep are the next turn's. */
int oribi_reactor_sleep_begin(struct oribi_reactor *reactor, int timeout_ms);
void oribi_reactor_sleep_end(struct oribi_reactor *reactor);

/* One turn: polls (unless a wait left events), moves every ready connection on, calls the handlers of other watches
 * with hooks.self, runs deadlines, frees closed connections. Returns the number of events seen. */
int oribi_reactor_turn(struct oribi_reactor *reactor);

/* Sets the time (oribi_clock_us()) after a call, which may have been long: deadlines armed from here on count from
 * it and not from the turn. */
void oribi_reactor_clock(struct oribi_reactor *reactor, int64_t now_us);

/* True while the next turn has something to do whatever the system reports. */
static inline bool oribi_reactor_goes_on(const struct oribi_reactor *reactor)
{
    return reactor->posted || reactor->claimed_first;
}

/* The oldest complete request, now in state CALL; NULL when the queue is empty. */
struct oribi_conn_request *oribi_reactor_pop(struct oribi_reactor *reactor);

/* The connection that was closed to make room. */
struct oribi_room {
    bool head;      /* it had begun a request head; else it was idle */
    int64_t age_ms; /* since the head's first byte, or since it was idle */
};

/* How much output, of all connections, may wait for the writer: 8 MiB, or a quarter of buffers_memory_max if that is
 * more. */
int64_t oribi_reactor_unstored_max(const struct oribi_reactor *reactor);

/* Handles the writes that the writer has ended, before the next turn would: for a thread that waits for room
 * (unstored). */
void oribi_reactor_stored(struct oribi_reactor *reactor);

/* Closes one connection for a new one: the connection that has been idle longest, kept alive or silent since it was
 * accepted; else the connection whose unfinished head was begun first, which is answered 503. Never a connection with a
 * request under way or bytes to be sent, nor one that has rested for less than ORIBI_ROOM_IDLE_MS_MIN; a request that
 * waits unread is read and its connection kept. False: there is no such connection. O(1). */
bool oribi_reactor_make_room(struct oribi_reactor *reactor, struct oribi_room *room);

/* How long the connection has rested that oribi_reactor_make_room() would close; -1: there is none. */
int64_t oribi_reactor_rested_ms(const struct oribi_reactor *reactor);

/* In how many ms oribi_reactor_make_room() can succeed. 0: now; -1: not before a connection becomes idle or begins a
 * head. */
int64_t oribi_reactor_room_ms(const struct oribi_reactor *reactor);

/* Closes up to `count` connections on which no request has begun, those idle longest first; returns how many. Reads
 * each before closing it: a request that has come since the last turn goes to the run queue. */
uint32_t oribi_reactor_close_idle(struct oribi_reactor *reactor, uint32_t count);

/* Frees what it keeps for the next connections. */
void oribi_reactor_trim(struct oribi_reactor *reactor);

/* Closes the channels on which no request has begun. */
void oribi_reactor_close_channels(struct oribi_reactor *reactor);

/* The text of Date for this turn, 29 bytes. */
const char *oribi_reactor_date(struct oribi_reactor *reactor);

#endif
