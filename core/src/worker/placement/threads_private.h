/* The threads of a worker as its own sources see them; the interface for bindings is
 * oribi/worker/placement/threads.h. */
#ifndef ORIBI_WORKER_PLACEMENT_THREADS_PRIVATE_H
#define ORIBI_WORKER_PLACEMENT_THREADS_PRIVATE_H

#include "oribi/base/os/os.h"
#include "oribi/http/compress.h"
#include "oribi/worker/logs/access_log.h"
#include "oribi/worker/placement/scoreboard.h"
#include "oribi/worker/placement/threads.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct oribi__exchange;
struct oribi__socket_call;

/* Calls that take longer than the option slow_log. Of a thread; the helper's, but for `said`. */
struct oribi__slow {
    int64_t started_us; /* of the call that the rest is about */
    int64_t next_us;    /* when it is looked at again; INT64_MAX: not */
    uint32_t looks;
    _Atomic int64_t said_us; /* started_us of a call that was logged, whose end is to be logged; read at that end */
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
    atomic_bool waits;       /* the call waits for its client: no deadline; written by its own thread */
    bool after;              /* its request is answered, and the application runs on; of the reactor's owner */
    _Atomic int64_t told_us; /* the deadline that the runtime was told of, unless that has put it off */
    int64_t signalled_us;    /* when the helper sent the last signal; of the helper */
    /* the start of the call that is to end because its client has gone, until the runtime takes it; else 0. Written by
     * the helper, taken by any thread of the runtime */
    _Atomic int64_t gone_us;
    _Atomic int64_t never_gone_us; /* the start of a call that is not cancelled; written by its own thread */
    int64_t gone_seen_us; /* the start of the last such call; read at its end; this and the next are of the helper */
    int64_t gone_signalled_us;     /* when it was signalled last */
    atomic_bool called;            /* by oribi_thread_wake(), taken back by the thread */
    const struct oribi_wake *wake; /* ends its sleep; of a worker of one thread: the worker's */
    /* when the first of the pieces was written that lie in `held` of its exchange, 0: none do; written by the reactor's
     * owner, read by the helper */
    _Atomic int64_t burst_us;
    struct oribi_thread *next_follower;
    bool away;                      /* in a call, or not back from its end yet */
    bool coming;                    /* on its way to take a request; of the reactor's owner */
    _Atomic int64_t own_started_us; /* what the pointers point to when there are several */
    _Atomic int64_t own_deadline_us;
    char own_line[ORIBI_SLOT_LINE_CAP];
    char own_id[ORIBI_REQUEST_ID_MAX + 1];
    char none_match[ORIBI_COMPRESS_EXPANDED_BYTES_MAX]; /* of its call, see compress.h */
    struct oribi_wake own_wake;
    struct oribi__slow slow;
    char *id;          /* of the call's request, or the last one's, NUL-terminated */
    uint8_t id_len;    /* length of `id`; 0: requests are not named */
    uint8_t trace_len; /* length of `trace`, which is of the traceparent; 0: none */
    char trace[ORIBI_TRACE_ID_LEN];
    struct oribi__socket_call *socket_call; /* of its last call of a WebSocket, for the next; NULL: none. Of its call */
};

/* A member of struct oribi_worker. Without the threads of oribi_threads_open() there is one, `single`. */
struct oribi__thread_set {
    struct oribi_thread single;
    struct oribi_thread *list;
    uint32_t count;
    uint32_t busy_count;            /* threads that are away; like all that follows of the reactor's owner */
    struct oribi_thread *leader;    /* sleeps in the loop, without the reactor; NULL: no thread does */
    struct oribi_thread *followers; /* sleep until they are to lead, the last to come first */
    int64_t leader_until_ms;        /* when the leader looks again by itself */
    bool notified;                  /* oribi_worker_wake() was called: the binding has something to do */
    bool ending;                    /* a call's hard deadline has passed: nothing is begun any more */
    uint32_t coming_count;          /* threads that are coming: no other is woken for as many requests */
    uint32_t promoted_count;        /* followers woken to lead since promoted_us */
    int64_t promoted_us;
    /* since when no thread leads and some are in calls or coming, 0: one leads, or looks itself; partner: the helper,
     * which does not park meanwhile */
    _Atomic int64_t unled_us;
    pthread_mutex_t lock; /* the reactor's, between threads; taken before the owner's word */
};

void oribi__threads_init(struct oribi_worker *worker);
void oribi__threads_forget(struct oribi_worker *worker); /* in a forked child: closes their descriptors */

/* One thread of several begins a call: what the helper, siblings and supervisor are to see of it. */
void oribi__thread_begin(struct oribi_thread *thread);

/* By the helper, when no thread has led for a while: wakes one to do so. False: it need not, or none is free, or one
 * looks after the connections now. */
bool oribi__threads_relieve(struct oribi_worker *worker);

/* By the helper, while one of several threads leads: what has waited for a millisecond waits for the VM's lock, which a
 * call keeps, and goes to siblings that have more threads free. */
void oribi__threads_pass_on(struct oribi_worker *worker, int64_t now_us);

/* Shows the supervisor one of several calls: the one whose deadline comes first, else the oldest. */
void oribi__threads_publish(struct oribi_worker *worker);

/* Threads that are not in a call, the caller's included. */
static inline uint32_t oribi__threads_free(const struct oribi__thread_set *threads)
{
    return threads->count - threads->busy_count;
}

#endif
