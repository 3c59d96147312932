/* call - a call while it runs: until when it may (call_clock.c), its end when that has passed (deadline.c)
 * or its client has left (client_abort.c), and where it stands (sample.c, stacks.c). */
#ifndef ORIBI_WORKER_CALL_H
#define ORIBI_WORKER_CALL_H

#include "oribi/base/os/os_process.h"
#include "oribi/worker/logs/access_log.h"
#include "oribi/worker/placement/scoreboard.h"
#include "oribi/worker/worker.h"

#include "worker/placement/threads_private.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct oribi_thread;
struct oribi_worker;
struct oribi__exchange;

/* --- call_clock.c, which has the drawing --- */

/* The call begins, with call_timeout (0: it has no deadline), and ends. With the reactor. */
static inline void oribi__clock_begin(struct oribi_thread *thread, int64_t timeout_ms, int64_t now_us)
{
    if (timeout_ms > 0) {
        atomic_store_explicit(&thread->extended_us, 0, memory_order_relaxed);
        atomic_store_explicit(thread->deadline_us, now_us + timeout_ms * 1000, memory_order_relaxed);
    }
    atomic_store_explicit(thread->started_us, now_us, memory_order_release);
}

static inline void oribi__clock_end(struct oribi_thread *thread)
{
    atomic_store_explicit(thread->started_us, 0, memory_order_relaxed);
    atomic_store_explicit(thread->deadline_us, 0, memory_order_relaxed);
}

/* The call's deadline is call_timeout from now, or from a moment just gone that the caller knows. With the reactor. */
void oribi__clock_anew(struct oribi_thread *thread);
void oribi__clock_anew_at(struct oribi_thread *thread, int64_t now_us);

/* The call waits for its client, and has done so. With the reactor. */
void oribi__clock_stop(struct oribi_thread *thread);
void oribi__clock_go_on(struct oribi_thread *thread);

/* --- deadline.c ---
 *
 * Calls that take too long. The handler of a private signal ends them, on the thread of the call; the helper sends the
 * signal, or the supervisor when there is no helper. So the client of a call that hangs in code which never returns is
 * answered as well. doc/internals/placement.md has the times. */

/* A member of struct oribi_worker. */
struct oribi__deadlines {
    int64_t seen_us;        /* when the helper looked last; of the helper */
    atomic_bool dying;      /* one thread has begun to end the worker */
    oribi_frames_fn frames; /* NULL: the language shows none */
    void *frames_self;
};

enum {
    ORIBI_DEADLINE_HARD_MS = 2000,    /* after the deadline: the worker answers, passes its connections on and ends */
    ORIBI_DEADLINE_REPEAT_MS = 100,   /* between two signals */
    ORIBI_DEADLINE_TAKEOVER_MS = 300, /* after that: the helper does it for a thread that takes no signals */
    /* with several threads: for so long the worker's other calls may go on */
    ORIBI_DEADLINE_OTHERS_MS = 1000,
    ORIBI_DEADLINE_JUMP_MS = 3000, /* if two looks are further apart, the machine or this process stood still */
};

/* Installs the handler of the private signal for this process's worker. Without effect where the system has no
 * signal to spare. */
void oribi_deadline_install(struct oribi_worker *worker);

/* By the helper, as long as a call is long: notes the time. If the helper could not do so for ORIBI_DEADLINE_JUMP_MS,
 * deadlines are put off by the time that it missed. */
void oribi_deadline_seen(struct oribi_worker *worker, int64_t now_us);

/* By the helper: the same, and sends the signals that are due. Returns in how many ms the next may be. */
int64_t oribi_deadline_look(struct oribi_worker *worker, int64_t now_us);

/* --- client_abort.c ---
 *
 * Clients that leave while their call runs: oribi_req_gone() tells the application, and with cancel_gone the helper has
 * the runtime raise in the call, by the deadline's signal. */

enum {
    ORIBI__CLIENT_ABORT_LOOK_MS = 5,     /* between two looks at a socket that the event loop does not tell of */
    ORIBI__CLIENT_ABORT_REPEAT_MS = 100, /* between two signals, until the runtime has acted on one */
};

/* By the helper, as long as a call is long and without the reactor: signals the threads whose client has gone. Returns
 * in how many ms the next look is due, INT64_MAX where the event loop tells. */
int64_t oribi__client_abort_look(struct oribi_worker *worker, int64_t now_us);

/* Is the call of this thread to end, and its runtime has not acted on that yet? Async-signal-safe, as the next. */
bool oribi__client_abort_is_due(const struct oribi_thread *thread);

/* Raises the runtime's signal on the calling thread. */
void oribi__client_abort_tell(const struct oribi_thread *thread);

/* The status that counts and is logged of a call that ends: 499 in the place of an error that is nothing but what the
 * application made of being cancelled. With the reactor. */
int oribi__client_abort_status(struct oribi__exchange *exchange, int status);

/* --- sample.c ---
 *
 * Where a call stands, found out while it runs and goes on: frames of its language, then native ones. By the helper,
 * for whoever asks (stacks.c) and for the log of slow calls (slow_log.c); the post-mortem of a call that nothing could
 * end reads its frames here, too. */

enum {
    ORIBI__STAND_TEXT_CAP = 6 * 1024, /* two thirds of what a block of the log holds */
    ORIBI__STAND_NATIVE_MAX = 8,
    ORIBI__SAMPLE_SIGNAL_MS = 30,   /* how long the helper waits for a thread to take the signal */
    ORIBI__SAMPLE_HANDLER_MS = 100, /* how long the helper waits for the thread's handler to end */
};

/* The frames of a call, as they are read. */
struct oribi__stand {
    const struct oribi_thread *thread;
    bool own_thread;         /* the reader is the call's own thread, in a signal handler */
    const void *interrupted; /* where that handler has interrupted the thread */
    size_t len;
    char text[ORIBI__STAND_TEXT_CAP]; /* lines, innermost first */
    int native_count;
    void *native[ORIBI__STAND_NATIVE_MAX];
};

/* Reads frames into `stand`, whose thread, own_thread and interrupted are given; `native` too. Async-signal-safe. */
void oribi__stand_read(struct oribi__stand *stand, bool native);

/* Appends the names of the native frames to the text. */
void oribi__stand_name(struct oribi__stand *stand);

/* Facts of a call that are known without asking it. */
struct oribi__call_facts {
    int64_t started_us;
    bool begun; /* its answer has begun */
    bool after; /* its request is answered, and the application runs on */
    uint8_t id_len;
    uint8_t trace_len;
    char id[ORIBI_REQUEST_ID_MAX];
    char trace[ORIBI_TRACE_ID_LEN];
    char line[ORIBI_SLOT_LINE_CAP];
};

/* By the helper, without the reactor. False: the thread makes no call. */
bool oribi__call_facts(struct oribi_thread *thread, struct oribi__call_facts *out);

struct oribi__sample {
    struct oribi_os_thread_state state; /* when it was looked at first */
    struct oribi__stand stand;
};

/* A member of struct oribi_worker: what the helper and the signal's handler share. */
struct oribi__sampler {
    _Atomic uint32_t state; /* see sample.c */
    pthread_t target;
    struct oribi__stand stand;
    struct oribi__sample sample; /* the helper's alone */
};

/* Installs the signal's handler for this process's worker. */
void oribi__sample_install(void);

/* Looks where the thread's call stands; the call goes on. Gives the worker's one sample, good until the next call of
 * this; its text is empty where the thread takes no signals. By the helper, without the reactor. */
const struct oribi__sample *oribi__sample_take(struct oribi_thread *thread);

/* --- stacks.c: the worker's side of struct oribi_stacks (scoreboard.h) --- */

/* This worker's part of the scoreboard's mapping, emptied; NULL for one without a supervisor. */
struct oribi_stacks *oribi__stacks_open(const struct oribi_worker *worker);

/* By the helper, without the reactor: answers a question that is not answered yet. */
void oribi__stacks_answer(struct oribi_worker *worker);

/* The helper begins, and ends (false). */
void oribi__stacks_helper(struct oribi_stacks *stacks, bool is_there);

static inline bool oribi__stacks_asked(const struct oribi_stacks *stacks)
{
    return stacks && atomic_load_explicit(&stacks->asked, memory_order_acquire) !=
                         atomic_load_explicit(&stacks->answered, memory_order_relaxed);
}

#endif
