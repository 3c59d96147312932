/* What a worker keeps beside a connection's exchange, and the worker itself; private to the sources of this folder
 * that work on a worker: worker.c, accept.c, placement.c, helper.c, deadline.c, reply.c, stream.c. */
#ifndef ORIBI_WORKER_EXCHANGE_H
#define ORIBI_WORKER_EXCHANGE_H

#include "oribi/base/log.h"
#include "oribi/base/os.h"
#include "oribi/event/reactor.h"
#include "oribi/worker/threads.h"
#include "oribi/worker/handoff.h"
#include "oribi/worker/req.h"
#include "oribi/config/trust.h"
#include "oribi/worker/worker.h"
#include "worker/own.h"

#include <pthread.h>
#include <stdatomic.h>

enum oribi__phase {
    ORIBI_PHASE_OPEN,    /* nothing answered */
    ORIBI_PHASE_BEGUN,   /* head written to `held`, not sent */
    ORIBI_PHASE_STARTED, /* head sent or queued */
};

struct oribi__exchange {
    struct oribi_exchange base;
    struct oribi_req req;
    struct oribi_worker *worker;
    struct oribi_thread *thread; /* whose call this is */
    int64_t started_us;
    int64_t body_sent;       /* body bytes given to the connection, framing not counted */
    int64_t sent_before;     /* bytes of the connection that stand in front of this answer */
    int64_t overhead;        /* of this answer: its head and what frames its body */
    int64_t left;            /* of a known length; -1 when not known */
    int64_t waited_pending;  /* what was queued when oribi_reply_wait() last saw it change … */
    int64_t waited_since_ms; /* … and when that was */
    struct oribi_buf held;
    struct oribi__framed *framed; /* of a stream that the application frames itself, else NULL */
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

struct oribi__listener_watch {
    struct oribi_watch watch;
    const struct oribi_listener *listener;
    bool ready;  /* connections wait */
    bool over;   /* nobody can connect any more; see oribi__last_call() */
    bool closed; /* our copy; see oribi__listener_watches_quit() */
};

/* One thread that makes calls. A worker of one thread has one thread, whose times and line are those of its slot on
 * the scoreboard. */
struct oribi_thread {
    struct oribi_worker *worker;
    _Atomic pthread_t pthread;        /* written by itself before each call, read by the helper at any time */
    struct oribi__exchange *exchange; /* being made; of the reactor's owner */
    _Atomic int64_t *started_us;      /* of the call, 0: none; partners: the helper's look and the deadline's signal */
    _Atomic int64_t *deadline_us;
    char *line; /* "GET /path" of the call */
    /* until when the application has asked for, 0: it has not; written by any of its threads */
    _Atomic int64_t extended_us;
    atomic_bool waits;             /* the call waits for its client: no deadline; written by its own thread */
    bool after;                    /* its request is answered, and the application runs on; of the reactor's owner */
    int64_t told_us;               /* the deadline that the runtime was told of; of its own thread */
    int64_t signalled_us;          /* when the helper sent the last signal; of the helper */
    atomic_bool called;            /* by oribi_thread_wake(), taken back by the thread */
    const struct oribi_wake *wake; /* ends its sleep; of a worker of one thread: the worker's */
    struct oribi_thread *next_follower;
    bool away;                      /* in a call, or not back from its end yet */
    _Atomic int64_t own_started_us; /* what the pointers point to when there are several */
    _Atomic int64_t own_deadline_us;
    char own_line[ORIBI_SLOT_LINE_CAP];
    struct oribi_wake own_wake;
};

/* Who may touch the reactor and everything that hangs on it; drawn in doc/internals/placement.md. */
enum oribi__owner {
    ORIBI_OWNER_MAIN,    /* the worker's own thread, in the core */
    ORIBI_OWNER_CALL,    /* nobody: the own thread is inside the application */
    ORIBI_OWNER_HELPER,  /* the helper, for one bounded step */
    ORIBI_OWNER_LEAVING, /* the same, and the own thread waits for it */
};

enum {
    ORIBI_DRAIN_GRACE_MS = 1000, /* a request already on its way to a kept-alive connection is still answered */
    ORIBI_ASLEEP_US = 50,        /* a wait that takes longer has slept */
    ORIBI_LONG_US = 1000,        /* a call longer than this is worth a helper */
    ORIBI_PASS_US = 300,         /* calls longer than this on average are worth a hand-off, which costs about 15 */
};

enum { ORIBI_HANDOFF_BUF_BYTES = ORIBI_HANDOFF_BYTES_MAX + 2048 };

struct oribi_helper;

struct oribi_worker {
    struct oribi_reactor reactor;
    struct oribi_worker_setup setup;
    const struct oribi_options *options;
    struct oribi_trust trust;          /* options->trusted_proxies */
    struct oribi_slot *slot;           /* the caller's, or own_board's */
    struct oribi_scoreboard own_board; /* one slot, when the caller gave none */
    struct oribi__listener_watch *listener_watches;
    uint32_t listener_watch_count;
    struct oribi_wake wake;
    struct oribi_watch wake_watch;
    struct oribi_watch life_watch;
    _Atomic uint32_t stop_asked;     /* set by oribi_worker_stop() in a handler or thread, read by the owner */
    _Atomic uint32_t stop_signalled; /* the same for oribi_worker_stop_signalled() */
    bool stopping;
    /* oribi_worker_retire(): nothing is begun any more. Set by the own thread, read by the helper */
    _Atomic bool retiring;
    bool pool_full;      /* connections are left that go into the hand-off queue as soon as there is room */
    bool listeners_open; /* listeners are watched */
    bool woken;          /* this turn follows a sleep: a wake-up of the kernel's may have been meant for us alone */
    int64_t listeners_ready_us; /* since when connections wait there that we leave to others; 0: none */
    int64_t handoff_ready_us;   /* the same for the hand-off queue */
    int64_t balanced_us;    /* when our connections were last compared with the others' for the sake of short calls */
    int64_t turned_us;      /* time of the last turn */
    int64_t stop_ms;        /* when stopping began */
    bool orphaned;          /* the supervisor is gone */
    bool last_call;         /* somebody may still come out of a listener that ends */
    int64_t pause_until_ms; /* accepting is paused: descriptors are out */
    uint64_t request_count;
    uint64_t request_limit; /* 0: none */
    uint64_t bytes_in;
    uint64_t bytes_out;
    uint32_t registered_seen;
    bool rotate_due;
    int owner_pid;
    bool own_due;            /* a call was made since the last oribi__own_check() … */
    int64_t own_checked_us;  /* … which was then */
    atomic_bool own_doubted; /* the helper met a descriptor of ours that is closed; partner: look_after_own() */
    struct oribi__own own;
    int64_t blocks_before; /* of memory, when it was created: what a worker of a supervisor has to itself */
    bool abandoned;        /* this is a child that the application forked */
    /* placement */
    _Atomic uint32_t
        owner; /* enum oribi__owner; partners: oribi__enter() and oribi__leave() here, the helper's steps */
    struct oribi_helper *helper; /* NULL until a call was long; written by the own thread */
    bool helper_failed;          /* no thread could be had: do not try again */
    bool forking;                /* the fork handler took the reactor */
    /* threads: without the threads of oribi_threads_open() there is one, `single` */
    struct oribi_thread single;
    struct oribi_thread *threads;
    uint32_t thread_count;
    uint32_t busy_count;            /* threads that are away; like all that follows of the reactor's owner */
    struct oribi_thread *leader;    /* sleeps in the loop, without the reactor; NULL: nobody does */
    struct oribi_thread *followers; /* sleep until they are to lead, the last to come first */
    int64_t leader_until_ms;        /* when the leader looks again by itself */
    bool notified;                  /* oribi_worker_wake() was called: the host has something to do */
    bool ending;                    /* a call's hard deadline has passed: nothing is begun any more */
    _Atomic int64_t all_busy_us;    /* since when every thread is in a call, 0: one is free; partner: the helper */
    pthread_mutex_t lock;           /* the reactor's, between threads; taken before `owner` */
    /* deadlines */
    int64_t seen_us;        /* when the helper looked last; of the helper */
    atomic_bool dying;      /* one thread has begun to end the worker */
    oribi_frames_fn frames; /* NULL: the language shows none */
    void *frames_self;
    struct oribi_watch handoff_watch;
    struct oribi_handoff handoff; /* -1, -1: none */
    bool handoff_ready;           /* somebody put something in */
    bool handoff_watched;
    bool starved;               /* no descriptors to spare: the hand-off queue is left alone */
    char *handoff_buf;          /* ORIBI_HANDOFF_BUF_BYTES, NULL without a pool */
    bool accept_sources_closed; /* the helper took listeners, pool and wake descriptor out of the loop */
    int64_t call_us_average;    /* of the last ten calls or so */
    int64_t long_until_us;      /* until when a call may turn out long, as far as this worker and its siblings know */
    int64_t long_looked_us;     /* when the siblings were last asked */
    struct oribi_log_limit refuse_log_limit;
    struct oribi_log_limit app_log_limit;
    struct oribi_log_limit mended_gate; /* what was put right in answers */
};

/* True in a child that the application forked inside this call. Nothing may be done for the request there: its
 * descriptors are closed, their numbers may be the child's own files by now, and what is logged and counted is the
 * parent's. */
static inline bool oribi__call_is_abandoned(const struct oribi__exchange *exchange)
{
    return __builtin_expect(exchange->worker->abandoned, 0);
}

/* A thread that makes calls takes the reactor, in functions that the application calls. Whoever entered while the
 * request stays open leaves, whoever ends the request calls oribi__end(): the only thread goes on with the reactor
 * in its hands, one of several gives it back. Without a helper and other threads nobody else can have it; the fence
 * is for the deadline's signal handler. Lock order: the VM's lock, `lock`, `owner`; nobody waits for the first while
 * holding the others. */
void oribi__enter_slow(struct oribi_worker *worker);

static inline bool oribi__shared(const struct oribi_worker *w)
{
    return w->thread_count > 1;
}

/* Takes it from the helper; among threads the lock is held already. */
static inline void oribi__enter_owner(struct oribi_worker *w)
{
    uint32_t expected = ORIBI_OWNER_CALL;
    if (!w->helper)
        atomic_store_explicit(&w->owner, ORIBI_OWNER_MAIN, memory_order_relaxed);
    else if (!atomic_compare_exchange_strong_explicit(&w->owner, &expected, ORIBI_OWNER_MAIN, memory_order_acquire,
                                                      memory_order_relaxed) &&
             expected != ORIBI_OWNER_MAIN)
        oribi__enter_slow(w);
    atomic_signal_fence(memory_order_seq_cst);
}

void oribi__leave_shared(struct oribi_worker *worker);

static inline void oribi__enter(struct oribi_worker *w)
{
    if (__builtin_expect(oribi__shared(w), 0))
        (void)pthread_mutex_lock(&w->lock); /* not held by this thread: cannot fail */
    oribi__enter_owner(w);
}

static inline void oribi__leave(struct oribi_worker *w)
{
    if (__builtin_expect(oribi__shared(w), 0)) {
        oribi__leave_shared(w);
        return;
    }
    atomic_signal_fence(memory_order_seq_cst);
    atomic_store_explicit(&w->owner, ORIBI_OWNER_CALL, memory_order_release);
}

static inline void oribi__end(struct oribi_worker *w)
{
    if (__builtin_expect(oribi__shared(w), 0))
        oribi__leave_shared(w);
}

/* worker.c: a turn of the reactor with everything that belongs to it: stopping, accepting, the hand-off queue. */
void oribi__turn(struct oribi_worker *worker);

/* … of the connections alone, by the helper. */
void oribi__turn_connections(struct oribi_worker *worker);

/* worker.c: the oldest request that is to be answered, as this thread's call, the reactor left; NULL when there is
 * none, the reactor kept. */
struct oribi_req *oribi__take_queued(struct oribi_worker *worker, struct oribi_thread *thread, int64_t now_us);

/* worker.c: a call was long. What follows from it outlives the worker. Async-signal-safe. */
void oribi__note_long(struct oribi_worker *worker, int64_t now_us);

/* oribi_worker_retire() was called: what waits goes elsewhere. */
static inline bool oribi__retiring(const struct oribi_worker *w)
{
    return atomic_load_explicit(&w->retiring, memory_order_relaxed);
}

/* worker.c: the application begins to run, and has run for so long: the helper is there where that is long. */
void oribi__call_begins(struct oribi_worker *worker, int64_t now_us);
void oribi__call_took(struct oribi_worker *worker, int64_t us, int64_t now_us);

/* call_clock.c. The call's deadline is call_timeout from now; with the reactor. */
void oribi__clock_anew(struct oribi_thread *thread);

/* The call waits for its client, and has done so; without the reactor. */
void oribi__clock_stop(struct oribi_thread *thread);
void oribi__clock_go_on(struct oribi_thread *thread);

static inline void oribi__clock_begin(struct oribi_thread *thread, int64_t now_us)
{
    int64_t timeout_us = thread->worker->options->call_timeout_ms * 1000;
    if (timeout_us > 0) {
        atomic_store_explicit(&thread->extended_us, 0, memory_order_relaxed);
        atomic_store_explicit(thread->deadline_us, now_us + timeout_us, memory_order_relaxed);
    }
    atomic_store_explicit(thread->started_us, now_us, memory_order_release);
}

static inline void oribi__clock_end(struct oribi_thread *thread)
{
    atomic_store_explicit(thread->started_us, 0, memory_order_relaxed);
    atomic_store_explicit(thread->deadline_us, 0, memory_order_relaxed);
}

/* worker.c: for how long a sleep may last, -1: no bound. */
int64_t oribi__wait_bound_ms(const struct oribi_worker *worker);

/* helper.c: the end of its step. */
void oribi__helper_give_back(struct oribi_worker *worker);

/* threads.c */
void oribi__threads_init(struct oribi_worker *worker);
void oribi__threads_forget(struct oribi_worker *worker); /* in a forked child: closes their descriptors */

/* A thread of several begins a call and ends it: what the helper, siblings and supervisor are to see of it. */
void oribi__thread_begin(struct oribi_thread *thread);
void oribi__thread_end(struct oribi_thread *thread);

/* What the supervisor sees of several calls: the one whose deadline comes first, else the oldest. */
void oribi__threads_publish(struct oribi_worker *worker);

/* Counters of the slot have one writer: a plain load and a release store are enough, and need no locked instruction. */
static inline void oribi__count(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n, memory_order_release);
}

/* Threads of this worker that are not in a call, the caller's included. */
static inline uint32_t oribi__free_threads(const struct oribi_worker *w)
{
    return w->thread_count - w->busy_count;
}

/* worker.c: what the reactor is to call; `worker` is borrowed by it. */
struct oribi_reactor_hooks oribi__worker_hooks(struct oribi_worker *worker);

/* overload.c */

enum { ORIBI__RETRY_AFTER_S = 1 }; /* what 503 for overload says */

/* As many connections as connections_max, or more. */
static inline bool oribi__at_limit(const struct oribi_worker *w)
{
    return w->options->connections_max && w->reactor.conn_count >= w->options->connections_max;
}

/* True with queue_max or queue_time_max: requests are refused that wait too long or are too many. */
static inline bool oribi__limits_waiting(const struct oribi_worker *w)
{
    return w->options->queue_max > 0 || w->options->queue_time_max_ms > 0;
}

/* Answers 503 to what is too much: the newest beyond queue_max, the oldest beyond queue_time_max. */
void oribi__shed(struct oribi_worker *worker);

/* Looks at a request just popped: false when it was refused (it has waited too long) or dropped (its client has
 * gone), and is over. Sets queue_us. */
bool oribi__admit(struct oribi_worker *worker, struct oribi__exchange *exchange, int64_t now_us);

/* placement.c */

/* Siblings that sleep in their event loop; of those with several threads, how many are free there beyond our own
 * free ones. */
uint32_t oribi__idle_siblings(const struct oribi_worker *worker);

/* True while another worker serves and will go on to. */
bool oribi__has_siblings(const struct oribi_worker *worker);

/* By a helper that has nobody to give to: sleeps until a sibling may be idle, for timeout_ms at most. By whoever
 * becomes idle: wakes one of those who sleep so; it wakes the next when it needs nobody. Nothing here is exact: a
 * wake-up that is lost costs the time-out. */
void oribi__idle_waiter_sleep(struct oribi_worker *worker, int timeout_ms);
void oribi__idle_waiter_wake(const struct oribi_worker *worker);

/* Puts complete requests into the hand-off queue, the oldest first but for the first `keep`, one for each idle
 * sibling. Returns how many went. */
uint32_t oribi__pass_on(struct oribi_worker *worker, uint32_t keep);

/* True if what is queued behind the next request is better passed on: calls are long on average, or too many
 * connections are here for short ones too. */
bool oribi__should_pass(struct oribi_worker *worker);

/* Puts one connection into the hand-off queue. False: it stays. Takes no memory. */
bool oribi__pass_conn(struct oribi_worker *worker, struct oribi_conn *conn);

/* True while what waits at an entrance, for us since ready_us (0: just now), is better left to the sibling whom the
 * kernel has woken for it. */
bool oribi__leave_to_sleepers(const struct oribi_worker *worker, int64_t ready_us);

/* Passes a connection just accepted on to a sibling that sleeps, when we hold more than our share of them. */
void oribi__share(struct oribi_worker *worker, struct oribi_conn *conn);

/* Passes a connection just accepted on to a sibling that sleeps and has room for it, when we have none left. True
 * when it has gone. */
bool oribi__share_beyond(struct oribi_worker *worker, struct oribi_conn *conn);

/* Takes one request (and connections without one) out of the hand-off queue. Without two descriptors to spare it
 * leaves the hand-off queue to the others, until a later turn's look finds that there are some again. */
void oribi__handoff_turn(struct oribi_worker *worker);
void oribi__look_for_descriptors(struct oribi_worker *worker);

enum { ORIBI__STARVED_LOOK_MS = 1000 };

/* While retiring: all connections on which no answer is under way go into the hand-off queue, queued requests in
 * their order. What cannot travel is answered 503. False: the hand-off queue is full, and some are left. */
bool oribi__pass_all(struct oribi_worker *worker);

/* Waits a moment for room in the hand-off queue, `ms` at most. */
void oribi__await_room(const struct oribi_worker *worker, int64_t ms);

/* While stopping: idle connections go to the siblings. False when there is nobody to take them. */
bool oribi__pass_idle(struct oribi_worker *worker);

/* Takes listeners, pool and wake descriptor out of the loop while the own thread is in a long call; and puts them
 * back. */
void oribi__accept_sources_close(struct oribi_worker *worker);
void oribi__accept_sources_open(struct oribi_worker *worker);
void oribi__handoff_watch(struct oribi_worker *worker, bool on);
/* own.c: notes the worker's descriptors; looks whether all of them are still there, and ends the process when one is
 * not. By the reactor's owner. */
void oribi__own_begin(struct oribi_worker *worker);
void oribi__own_check(struct oribi_worker *worker);

/* refused.c: the reactor's hook; says that an answer is cut because its rest cannot be kept. */
void oribi__on_unkept(void *worker, struct oribi_conn *conn, int error);

/* refused.c: body bytes of an answer that the socket has taken, when it broke off. At most so many: what framed
 * those that are lost counts as lost. */
int64_t oribi__body_taken(const struct oribi__exchange *exchange);

/* refused.c: the reactor's hook; counts and logs a request that the application does not see. */
void oribi__on_refused(void *worker, struct oribi_conn *conn, int status, size_t body_bytes, const char *reason);

/* forwarded.c: sets remote_addr, remote_port and scheme. */
void oribi__peer_of(struct oribi__exchange *exchange);

/* accept.c */
void oribi__listener_watches_open(struct oribi_worker *worker);
void oribi__listener_watches_close(struct oribi_worker *worker);   /* for good, and takes who waits there now */
void oribi__listener_watches_unwatch(struct oribi_worker *worker); /* for a while, and leaves them to the siblings */
/* closes a connection that rests, when there are more than connections_max */
bool oribi__make_room(struct oribi_worker *worker);
/* when one may be closed that has to go; -1: none has to */
int64_t oribi__room_wait_ms(const struct oribi_worker *worker);
/* to the end of the sleepers' queue, hearing of who waits there now */
void oribi__listener_watches_rotate(struct oribi_worker *worker);
void oribi__accept_turn(struct oribi_worker *worker);
/* while the own thread is in a call: for queue_max and queue_time_max */
void oribi__accept_in_call(struct oribi_worker *worker);

/* Takes who waits at listeners that nobody will serve after us, and closes our copies of all, so that a next server
 * can have the address while our calls go on. For workers whose supervisor is gone. Also called by the helper. */
void oribi__listener_watches_quit(struct oribi_worker *worker);

/* While the server ends: accepts whoever has connected before. True as long as more may come. Also called by the
 * helper. */
bool oribi__last_call(struct oribi_worker *worker);

/* worker.c: books the end of a call; the connection is finished or aborted by the caller. */
void oribi__exchange_end(struct oribi__exchange *exchange, int status);

/* post_mortem.c: logs where the thread's call stands; `interrupted` on the call's own thread. */
void oribi__post_mortem(const struct oribi_thread *thread, bool own_thread, const void *interrupted);

/* worker_life.c: this process's worker, for handlers, which have no argument. */
extern struct oribi_worker *oribi__own_worker;

/* worker.c: one line of the access log. */
void oribi__log_access(struct oribi__exchange *exchange, int status, int64_t now_us);

/* True if the connection may be kept after this answer. */
bool oribi__exchange_keeps(const struct oribi__exchange *exchange);

/* reply.c: a serialised head, in the reactor's scratch buffer or, when that is too small, on the heap. */
struct oribi__head_text {
    char *p;
    size_t n;
    bool on_heap;
};

/* Serialises the head and notes framing and persistence in `call`. *content_length is what the head promises (-1:
 * nothing). 0, or ORIBI_EAPP after logging what is wrong. Free with oribi__head_text_free(). */
int oribi__reply_head(struct oribi__exchange *exchange, int status, const struct oribi_header *headers,
                      uint32_t header_count, int64_t body_len, struct oribi__head_text *head, int64_t *content_length);
void oribi__head_text_free(struct oribi__head_text *head);

/* Logs a mistake of the application, with the request it concerns, at a limited rate. */
void oribi__log_app(struct oribi__exchange *exchange, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Ends the call and its connection so that the peer sees that the answer is not complete. */
void oribi__cut(struct oribi__exchange *exchange);

/* … after an answer that was given to the connection as a whole: books the end of the call and goes on with the
 * connection, unless it broke meanwhile. */
void oribi__finish(struct oribi__exchange *exchange);

#endif
