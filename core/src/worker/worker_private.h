/* The worker as the sources of this folder see it. It keeps what its loop uses; the other modules keep theirs in member
 * structs, which their own headers define. ownership.h says who may touch it when. */
#ifndef ORIBI_WORKER_WORKER_PRIVATE_H
#define ORIBI_WORKER_WORKER_PRIVATE_H

#include "oribi/base/log.h"
#include "oribi/base/os/os.h"
#include "oribi/config/trust.h"
#include "oribi/event/reactor.h"
#include "oribi/worker/fd_guard.h"
#include "oribi/worker/logs/request_log.h"
#include "oribi/worker/server_answers.h"
#include "oribi/worker/worker.h"

#include "worker/burst.h"
#include "worker/call.h"
#include "worker/local/local.h"
#include "worker/placement/accept.h"
#include "worker/placement/helper.h"
#include "worker/placement/placement.h"
#include "worker/placement/threads_private.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct oribi__compression;
struct oribi__sendfile;

/* The owner of the reactor, which alone may touch it and everything that hangs on it; drawn in
 * doc/internals/placement.md. */
enum oribi__owner {
    ORIBI_OWNER_MAIN,    /* the worker's own thread, in the core */
    ORIBI_OWNER_CALL,    /* no thread: the own thread is inside the application */
    ORIBI_OWNER_HELPER,  /* the helper, for one bounded step */
    ORIBI_OWNER_LEAVING, /* the same, and the own thread waits for it */
};

enum {
    ORIBI__MENDED_TOLD_MAX = 64, /* headers of answers that were put right, of which the log tells */
    ORIBI_DRAIN_GRACE_MS = 1000, /* a request already on its way to a kept-alive connection is still answered */
    ORIBI_ASLEEP_US = 50,        /* a wait that takes longer has slept */
    ORIBI__TURN_EVERY_US = 1000, /* with requests queued, how long other events may wait */
    ORIBI__LAST_CALL_MS = 10,    /* between two looks at listeners that end */
};

struct oribi_worker {
    struct oribi_reactor reactor;
    struct oribi_worker_setup setup;
    const struct oribi_options *options;
    struct oribi_trust trust;               /* options->trusted_proxies */
    struct oribi__local *local;             /* options->mounts; NULL: none */
    struct oribi__compression *compression; /* NULL: answers go as they are */
    struct oribi__server_answers server_answers;
    struct oribi_stacks *stacks;       /* beside the slot; NULL: nobody asks */
    struct oribi_slot *slot;           /* the caller's, or own_board's */
    struct oribi_scoreboard own_board; /* one slot, when the caller gave none */
    struct oribi__sendfile *sendfile;  /* options->sendfile_root, sendfile_map; NULL: none */
    int owner_pid;
    bool abandoned;        /* this is a child that the application forked */
    int64_t blocks_before; /* of memory, when it was created: what a worker of a supervisor has to itself */

    /* what ends a sleep */
    struct oribi_wake wake;
    struct oribi_watch wake_watch;
    struct oribi_watch life_watch;
    bool woken; /* this turn follows a sleep: a wake-up of the kernel's may have been meant for us alone */
    bool accept_sources_closed; /* the helper took listeners, hand-off queue and wake descriptor out of the loop */

    /* the end */
    _Atomic uint32_t stop_asked;       /* set by oribi_worker_stop() in a handler or thread, read by the owner */
    _Atomic uint32_t stop_signalled;   /* the same for oribi_worker_stop_signalled() */
    _Atomic int64_t stop_signalled_ms; /* when oribi_worker_stop_signalled() was called */
    bool has_frontends; /* the server has: they need workers for longer than a signal to the whole group says */
    /* oribi_worker_retire(): nothing is begun any more. Set by the own thread, read by the helper */
    _Atomic bool retiring;
    bool stopping;
    bool orphaned;   /* the supervisor is gone */
    int64_t stop_ms; /* when stopping began */
    int64_t cut_ms;  /* when what is left then is cut; INT64_MAX: never */

    /* what is counted and said */
    int64_t turned_us;   /* time of the last turn */
    uint32_t turn_count; /* of the own threads; 0 is skipped */
    uint64_t request_count;
    uint64_t request_limit; /* 0: none */
    uint64_t begun_count;   /* calls of a worker with several threads that has a limit */
    uint64_t bytes_in;
    uint64_t bytes_out;
    struct oribi__id_source ids;
    bool names_requests; /* each request has its id from the begin of its call on */
    uint32_t log_wants;  /* bits of enum oribi_access_wants */
    struct oribi_log_limit refuse_log_limit;
    struct oribi_log_limit app_log_limit;
    struct oribi_log_limit mended_log_limit;      /* what was put right in answers */
    uint64_t mended_told[ORIBI__MENDED_TOLD_MAX]; /* hashes of the headers that lines were written about, and how */
    uint32_t mended_told_count;
    struct oribi_log_limit slow_log_limit; /* of the helper */
    struct oribi_log_limit slow_end_limit;

    /* descriptors that the application may close (fd_guard.c) */
    bool own_due;            /* a call was made since the last oribi__fd_guard_check() */
    int64_t own_checked_us;  /* when the last oribi__fd_guard_check() was */
    atomic_bool own_doubted; /* the helper met a descriptor of ours that is closed; partner: look_after_own() */
    struct oribi__fd_guard fd_guard;

    /* what the language's garbage collector has told (oribi_worker_note_gc()) */
    atomic_bool gc_due; /* set with each look at our descriptors, also by the helper; cleared by the binding */
    bool gc_noted;      /* once at least: the numbers of then are these */
    uint64_t gc_count;
    uint64_t gc_us;

    /* who has the reactor */
    _Atomic uint32_t owner; /* enum oribi__owner; partners: oribi__enter() and oribi__leave(), the helper's steps */
    struct oribi_helper *helper; /* NULL until a call was long; written by the own thread */
    struct oribi__bursts bursts; /* what it does for streams */
    bool helper_failed;          /* no thread could be had: do not try again */
    bool forking;                /* the fork handler took the reactor */

    struct oribi__acceptor acceptor;
    struct oribi__placement placement;
    struct oribi__thread_set threads;
    struct oribi__call_lengths call_lengths;
    struct oribi__deadlines deadline;
    bool cancels_gone; /* cancel_gone is not off */
    struct oribi__sampler sampler;
};

/* This process's worker (worker_life.c), for handlers, which have no argument. */
extern struct oribi_worker *oribi__own_worker;

/* The worker's hooks for its reactor, which borrows `worker`. */
struct oribi_reactor_hooks oribi__worker_hooks(struct oribi_worker *worker);

/* Sets the handlers of the wake descriptor's and the supervisor's watch. */
void oribi__worker_handlers(struct oribi_worker *worker);

/* A turn of the reactor with everything that belongs to it: stopping, accepting, the hand-off queue. */
void oribi__turn(struct oribi_worker *worker);

/* At the end of a worker: a line about the clients that are cut because its time to finish has passed, if any. */
void oribi__say_who_is_cut(const struct oribi_worker *worker);

/* A turn of the connections alone, by the helper. True when more newcomers may wait than it has accepted. */
bool oribi__turn_connections(struct oribi_worker *worker);

/* The oldest request that is to be answered, as this thread's call, the reactor left; NULL when there is none, the
 * reactor kept. */
struct oribi_req *oribi__take_queued(struct oribi_worker *worker, struct oribi_thread *thread, int64_t now_us);

/* Tells the supervisor that a thread of the language goes on now, or sleeps where nothing is to be done. */
static inline void oribi__tell_awake(struct oribi_worker *w)
{
    w->turn_count += w->turn_count == UINT32_MAX ? 2 : 1;
    atomic_store_explicit(&w->slot->awake, w->turn_count, memory_order_relaxed);
}

static inline void oribi__tell_asleep(struct oribi_worker *w)
{
    atomic_store_explicit(&w->slot->awake, 0, memory_order_relaxed);
}

/* For how long a sleep may last, -1: no bound. */
int64_t oribi__wait_bound_ms(const struct oribi_worker *worker);

/* True while a signal's stop waits for the supervisor's word, which a signal to the whole group may have overtaken: as
 * long as frontends need this worker, or nothing is known of that. */
bool oribi__stop_waits(const struct oribi_worker *w);

/* True if the worker was told to stop: by oribi_worker_stop(), or by the supervisor's word on the scoreboard, which
 * stands there before its signal (an application that handles the signal itself keeps it from us). */
static inline bool oribi__stop_asked(const struct oribi_worker *w)
{
    return atomic_load_explicit(&w->slot->stop_soon, memory_order_relaxed) >= ORIBI_STOP_TOLD ||
           (atomic_load_explicit(&w->stop_asked, memory_order_acquire) && !oribi__stop_waits(w));
}

/* True when newcomers are let in at once while every worker is in a call, however short: requests that wait are
 * limited, or some need no call. */
static inline bool oribi__takes_newcomers_in_call(const struct oribi_worker *w)
{
    return w->local || oribi__limits_waiting(w->options);
}

/* True once oribi_worker_retire() was called: what waits goes elsewhere. */
static inline bool oribi__retiring(const struct oribi_worker *w)
{
    return atomic_load_explicit(&w->retiring, memory_order_relaxed);
}

/* True with several threads. */
static inline bool oribi__shared(const struct oribi_worker *w)
{
    return w->threads.count > 1;
}

/* Connections that clients have made: channels of frontends are neither counted nor limited. */
static inline uint32_t oribi__client_count(const struct oribi_worker *w)
{
    return w->reactor.conn_count - w->reactor.channel_count;
}

/* How many requests wait, and since when the oldest of them. */
static inline void oribi__publish_queue(const struct oribi_worker *w)
{
    const struct oribi_conn *first = w->reactor.run_first;
    atomic_store_explicit(&w->slot->queue_oldest_us, first ? first->exchange->complete_us : 0, memory_order_relaxed);
    atomic_store_explicit(&w->slot->queue_len, w->reactor.queue_len, memory_order_release);
}

/* Counters of the slot have one writer: a plain load and a release store are enough, and need no locked instruction. */
static inline void oribi__count(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n, memory_order_release);
}

#endif
