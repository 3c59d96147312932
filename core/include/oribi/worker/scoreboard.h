/* One shared mapping made before any fork, one cache-line-aligned slot per worker. The worker writes its own slot
 * with release stores; supervisor, siblings and status commands read it. */
#ifndef ORIBI_WORKER_SCOREBOARD_H
#define ORIBI_WORKER_SCOREBOARD_H

#include "oribi/base/histogram.h"
#include "oribi/config/options.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stddef.h>

enum oribi_slot_state {
    ORIBI_SLOT_EMPTY,
    ORIBI_SLOT_STARTING,
    ORIBI_SLOT_IDLE, /* waiting for events */
    ORIBI_SLOT_BUSY, /* inside a call; with several threads: all of them are */
    ORIBI_SLOT_DRAINING,
};

enum oribi_stop_word {
    ORIBI_STOP_NONE,
    ORIBI_STOP_SOON, /* a stop is announced (drain_delay); readiness is over, service is not */
    ORIBI_STOP_TOLD, /* the supervisor stops this worker; the server goes on, and others accept */
    ORIBI_STOP_LAST, /* the server ends, and no later worker accepts at the sockets that are its own */
};

enum {
    ORIBI_EXPECT_US =
        5000, /* other requests should not wait for a call of this length; after one, more are expected … */
    ORIBI_EXPECT_FOR_US = 60 * 1000 * 1000, /* … for so long */
};

enum {
    ORIBI_SLOT_LINE_CAP = 160,
    ORIBI_SLOTS_MAX = 2 * ORIBI_WORKERS_MAX, /* while workers are replaced, the old and the new ones */
};

struct oribi_slot {
    /* identity; written by the process that forks the worker, before it runs */
    _Atomic uint32_t generation;
    _Atomic int32_t pid;
    _Atomic uint32_t stop_soon; /* enum oribi_stop_word, written by the supervisor */
    /* written by the worker */
    _Atomic uint32_t state; /* enum oribi_slot_state */
    /* oribi_clock_us(); 0 outside a call. Of several calls that whose deadline comes first */
    _Atomic int64_t call_started_us;
    _Atomic int64_t call_deadline_us;  /* 0: none */
    _Atomic uint64_t request_count;    /* answered by a call */
    _Atomic uint64_t uncalled_count;   /* … and without one: files of mounts, for one */
    _Atomic uint64_t connection_count; /* accepted since start */
    _Atomic uint32_t connections_open;
    _Atomic uint32_t queue_len;
    _Atomic uint32_t threads;      /* calls the worker can make at a time; 0: one */
    _Atomic uint32_t threads_busy; /* of several; the state tells of one */
    _Atomic uint64_t bytes_in;
    _Atomic uint64_t bytes_out;
    _Atomic uint64_t status_class[6]; /* [1] 1xx … [5] 5xx, [0] cut: without an answer, or before its end */
    _Atomic uint64_t bad_requests;
    _Atomic uint64_t timeouts;
    _Atomic uint64_t shed_count;       /* answered 503 for overload */
    _Atomic uint64_t gone_count;       /* dropped before their call because the client had gone (499) */
    _Atomic uint64_t passed_count;     /* connections given to siblings */
    _Atomic uint64_t taken_count;      /* … and taken from them */
    _Atomic uint64_t evicted_count;    /* connections closed for new ones: connections_max */
    _Atomic uint64_t lost_count;       /* … that came without their descriptors, and were cut or answered 503 */
    _Atomic uint32_t starved;          /* takes none of them: it has no descriptors to spare */
    struct oribi_histogram queue_wait; /* of each call: from the whole request to the call, or from X-Request-Start */
    struct oribi_histogram call_time;  /* inside the application */
    struct oribi_histogram total_time; /* of each call: from the whole request to the call's end */
    /* when a call ended here that was long enough to expect more (ORIBI_EXPECT_US); 0: none. Outlives the worker */
    _Atomic int64_t long_call_us;
    char line[ORIBI_SLOT_LINE_CAP];  /* "GET /path" of the current or last call, NUL-terminated; may be torn */
    _Atomic uint32_t is_idle_waiter; /* its helper sleeps until a sibling is idle, and is counted below */
    /* Of the first slot, for all workers; on a line of their own, since each worker that becomes idle looks at them. */
    _Atomic uint32_t idle_waiters __attribute__((aligned(128))); /* helpers that sleep so */
    /* where they sleep (futex(2)); another number with each wake-up */
    _Atomic uint32_t idle_waiters_wake;
} __attribute__((aligned(128)));

struct oribi_scoreboard {
    struct oribi_slot *slots;
    uint32_t count;
    int fd; /* by which a program started by exec finds the mapping; -1: none, children by fork only */
};

/* Maps `count` zeroed slots shared with every later child. 0 or ORIBI_ENOMEM. */
int oribi_scoreboard_create(struct oribi_scoreboard *board, uint32_t count);

/* The same with a descriptor. 0, ORIBI_ENOMEM or a code of os.h. */
int oribi_scoreboard_create_named(struct oribi_scoreboard *board, uint32_t count);

/* Maps the slots of another process by its descriptor, which is taken on success. 0 or ORIBI_ENOMEM. */
int oribi_scoreboard_attach(struct oribi_scoreboard *board, uint32_t count, int fd);

/* Counts out the helper of this slot's worker, which sleeps no longer or has died in its sleep. For the helper itself
 * and for the supervisor that has reaped the worker; called twice it counts once. */
void oribi_scoreboard_forget_idle_waiter(const struct oribi_scoreboard *board, struct oribi_slot *slot);

void oribi_scoreboard_destroy(struct oribi_scoreboard *board);

#endif
