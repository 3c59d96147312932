/* One shared mapping made before any fork, one cache-line-aligned slot per worker. The worker writes its own slot
 * with release stores; supervisor, siblings and status commands read it. */
#ifndef ORIBI_WORKER_PLACEMENT_SCOREBOARD_H
#define ORIBI_WORKER_PLACEMENT_SCOREBOARD_H

#include "oribi/base/buf.h"
#include "oribi/base/histogram.h"
#include "oribi/config/options.h"
#include "oribi/event/timeouts.h"
#include "oribi/http/status.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum oribi_slot_state {
    ORIBI_SLOT_EMPTY,
    ORIBI_SLOT_STARTING,
    ORIBI_SLOT_IDLE, /* waiting for events */
    ORIBI_SLOT_BUSY, /* inside a call; with several threads: all of them are */
    ORIBI_SLOT_DRAINING,
};

enum oribi_stop_word {
    ORIBI_STOP_NONE,
    ORIBI_STOP_SOON,      /* a stop is announced (drain_delay); readiness is over, service is not */
    ORIBI_STOP_FRONTENDS, /* the server ends, frontends first: this worker serves on, whatever signal comes */
    ORIBI_STOP_TOLD,      /* the supervisor stops this worker; the server goes on, and others accept */
    ORIBI_STOP_LAST,      /* the server ends, and no later worker accepts at the sockets that are its own */
};

enum { ORIBI_EXIT_CALL_DEADLINE = 124 }; /* a worker's exit code after a call's deadline (the one timeout(1) has) */

enum {
    ORIBI_EXPECT_US = 5000,                 /* other requests should not wait for a call of this length */
    ORIBI_EXPECT_FOR_US = 60 * 1000 * 1000, /* after such a call more of them are expected for this time */
};

enum {
    ORIBI_SLOT_LINE_CAP = 160,
    ORIBI_SLOT_CALL_TEXT_CAP = ORIBI_SLOT_LINE_CAP + 48,
    ORIBI_SLOTS_MAX = 2 * ORIBI_WORKERS_MAX, /* while workers are replaced, the old and the new ones */
    ORIBI_CHANNEL_LENT = 0x8000,             /* beside a channel's owner */
};

/* Methods that are counted apart. */
enum oribi_slot_method {
    ORIBI_SLOT_GET,
    ORIBI_SLOT_HEAD,
    ORIBI_SLOT_POST,
    ORIBI_SLOT_PUT,
    ORIBI_SLOT_PATCH,
    ORIBI_SLOT_DELETE,
    ORIBI_SLOT_OPTIONS,
    ORIBI_SLOT_METHOD_OTHER,
    ORIBI_SLOT_METHODS,
};

/* States of a worker's open connections. Each connection is in one of them. */
enum oribi_slot_connections {
    ORIBI_SLOT_CONN_IDLE,    /* nothing of a request has come: kept alive, or silent since it was accepted */
    ORIBI_SLOT_CONN_READING, /* a head or a body has begun */
    ORIBI_SLOT_CONN_WAITING, /* the whole request waits for its call */
    ORIBI_SLOT_CONN_CALLING, /* its call is under way */
    ORIBI_SLOT_CONN_WRITING, /* the call has ended, and the client has yet to take the answer */
    ORIBI_SLOT_CONN_CLOSING, /* the answer is sent; what the client still sends is dropped */
    ORIBI_SLOT_CONN_STATES,
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
    _Atomic int64_t call_deadline_us; /* 0: none */
    _Atomic int64_t queue_oldest_us;  /* when the request that has waited longest was complete; 0: none waits */
    _Atomic uint32_t connections_open;
    _Atomic uint32_t temp_file_open; /* bodies and answers that have a file */
    _Atomic int64_t temp_file_bytes; /* bytes in these files */
    _Atomic uint32_t queue_len;
    _Atomic uint32_t threads;                      /* calls the worker can make at a time; 0: one */
    _Atomic uint32_t threads_busy;                 /* of several; the state tells of one */
    _Atomic uint32_t armed[ORIBI_TIMEOUT_CLASSES]; /* connections by their deadline: oribi_slot_add_connections() */
    _Atomic uint32_t computes; /* its calls are short and wait for nothing; told where workers share a processor */
    /* another number with each turn, 0 while it sleeps: one that stays is a worker that hangs outside any call */
    _Atomic uint32_t awake;
    _Atomic uint32_t starved; /* takes no connections from siblings: it has no descriptors to spare */
    _Atomic uint32_t asleep;  /* odd while it sleeps and is to be woken for what frontends write (channel_ring.h) */

    /* Counters: all of 64 bits, from here to the end of total_time. oribi_slot_fold() adds them up as they stand. */
    _Atomic uint64_t request_count;    /* requests answered by a call */
    _Atomic uint64_t uncalled_count;   /* requests answered without a call: files of mounts, for one */
    _Atomic uint64_t connection_count; /* accepted since start */
    _Atomic uint64_t bytes_in;
    _Atomic uint64_t bytes_out;
    _Atomic uint64_t status_class[6]; /* [1] 1xx … [5] 5xx, [0] cut: without an answer, or before its end */
    _Atomic uint64_t method_count[ORIBI_SLOT_METHODS]; /* answers, but those of requests that were refused */
    _Atomic uint64_t refusals[ORIBI_REFUSALS];         /* answers of the core's own, by enum oribi_refusal */
    _Atomic uint64_t bad_requests;
    _Atomic uint64_t timeouts[ORIBI_TIMEOUT_CLASSES];
    _Atomic uint64_t shed_count;      /* answered 503 for overload */
    _Atomic uint64_t gone_count;      /* dropped before their call because the client had gone (499) */
    _Atomic uint64_t cancelled_count; /* calls that were told to end because the client had gone */
    _Atomic uint64_t passed_count;    /* connections given to siblings */
    _Atomic uint64_t taken_count;     /* connections taken from siblings */
    _Atomic uint64_t evicted_count;   /* connections closed for new ones: connections_max */
    _Atomic uint64_t lost_count;      /* of taken_count: came without their descriptors, and were cut or answered 503 */
    _Atomic uint64_t overdue_count;   /* calls that passed call_timeout */
    _Atomic uint64_t temp_file_count; /* bodies and answers that went to a file */
    _Atomic uint64_t temp_file_written_bytes; /* bytes written to these files */
    _Atomic uint64_t unlogged_count;          /* lines that the logs had no room for */
    _Atomic uint64_t gc_count;                /* runs of the language's garbage collector (oribi_worker_note_gc()) */
    _Atomic uint64_t gc_us;                   /* time that these runs took */
    struct oribi_histogram queue_wait; /* of each call: from the whole request to the call, or from X-Request-Start */
    struct oribi_histogram call_time;  /* inside the application */
    struct oribi_histogram total_time; /* of each call: from the whole request to the call's end */

    /* when a call ended here that was long enough to expect more (ORIBI_EXPECT_US); 0: none. Outlives the worker */
    _Atomic int64_t long_call_us;
    char line[ORIBI_SLOT_LINE_CAP]; /* "GET /path" of the current or last call, NUL-terminated; may be torn */
    /* its request's id, likewise; "" where requests are not named (request_id) */
    char id[ORIBI_REQUEST_ID_MAX + 1];
    _Atomic uint64_t live_objects;   /* of the language, when the worker last told; 0: not known */
    _Atomic uint64_t heap_pages;     /* likewise those of its heap */
    _Atomic uint32_t is_idle_waiter; /* its helper sleeps until a sibling is idle, and is counted below */
    /* Of the first slot, for all workers; on a line of their own, since each worker that becomes idle looks at them. */
    _Atomic uint32_t idle_waiters __attribute__((aligned(128))); /* helpers that sleep so */
    /* where they sleep (futex(2)); another number with each wake-up */
    _Atomic uint32_t idle_waiters_wake;
    /* messages in the hand-off queue; a worker that is killed right behind sendmsg(2) or recvmsg(2) leaves it wrong by
     * one, so oribi_handoff_waiting() asks the queue itself whether it is empty */
    _Atomic int32_t handed_off;
    _Atomic int64_t handoff_full_us; /* when a worker last found no room there */
} __attribute__((aligned(128)));

enum {
    ORIBI_SLOT_COUNTERS =
        (offsetof(struct oribi_slot, long_call_us) - offsetof(struct oribi_slot, request_count)) / sizeof(uint64_t),
};

/* A frontend's word, which workers read: odd while it sleeps (channel_ring.h). */
struct oribi_frontend_word {
    _Alignas(64) _Atomic uint32_t asleep;
};

struct oribi_scoreboard {
    struct oribi_slot *slots;
    struct oribi_stacks *stacks; /* of the same worker as the slot with this index */
    /* One for each slot, side by side: not 0 where no idle worker is, so that whoever looks for one need not read that
     * slot. 0 says nothing: the slot does. See oribi_scoreboard_skip(). */
    _Atomic uint8_t *skips;
    /* One for each number of a channel (handoff.h): index + 1 of the slot whose worker has it; 0: nobody, it is on its
     * way, or that worker has closed it. With ORIBI_CHANNEL_LENT once an application has had its descriptor. Written by
     * that worker, read by the channel's frontend. */
    _Atomic uint16_t *channels;
    struct oribi_frontend_word *frontends; /* ORIBI_FRONTENDS_MAX */
    uint32_t count;
    int fd; /* by which a program started by exec finds the mapping; -1: none, children by fork only */
};

/* Maps `count` zeroed slots shared with every later child. 0 or ORIBI_ENOMEM. */
int oribi_scoreboard_create(struct oribi_scoreboard *board, uint32_t count);

/* Maps such slots with a descriptor, by which another process can attach them. 0, ORIBI_ENOMEM or a code of os.h. */
int oribi_scoreboard_create_named(struct oribi_scoreboard *board, uint32_t count);

/* Maps the slots of another process by its descriptor, which is taken on success. 0 or ORIBI_ENOMEM. */
int oribi_scoreboard_attach(struct oribi_scoreboard *board, uint32_t count, int fd);

/* Says whether whoever looks for an idle worker may pass by this slot, which is the board's. For the slot's worker,
 * with its reactor, and while there is none for the supervisor: a worker that is killed leaves what it said last, which
 * costs others at most the look at a slot that says it all. */
void oribi_scoreboard_skip(const struct oribi_scoreboard *board, const struct oribi_slot *slot, bool skip);

/* Counts out the helper of this slot's worker, which sleeps no longer or has died in its sleep. For the helper itself
 * and for the supervisor that has reaped the worker; called twice it counts once. */
void oribi_scoreboard_forget_idle_waiter(const struct oribi_scoreboard *board, struct oribi_slot *slot);

/* Counts an answer: its method, and its status (0: it was cut). For the worker. Borrows method. */
void oribi_slot_count_answer(struct oribi_slot *slot, struct oribi_slice method, int status);

/* Counts a request that the core itself has refused. For the worker. */
void oribi_slot_count_refusal(struct oribi_slot *slot, enum oribi_refusal refusal);

/* Which of method_count[] a method has. Borrows it. */
enum oribi_slot_method oribi_slot_method_of(struct oribi_slice method);

/* The word for method_count[i]: "GET", "other". */
const char *oribi_slot_method_name(uint32_t i);

/* The calls that the worker is in, or was in when it died, for a log line: " during GET /path"; "" when it is in none.
 * May be torn: it is only shown. */
void oribi_slot_call_text(const struct oribi_slot *slot, char dst[ORIBI_SLOT_CALL_TEXT_CAP]);

/* Adds the open connections of a slot to `sums`, by what they do. For every reader, also while the worker writes: then
 * a connection on its way between two states may be missing or counted in both. */
void oribi_slot_add_connections(uint64_t sums[ORIBI_SLOT_CONN_STATES], const struct oribi_slot *slot);

/* Adds connections that no slot tells of: how many are open, how many of these wait for a call, and how many timers are
 * armed in each class. */
void oribi_slot_add_counted(uint64_t sums[ORIBI_SLOT_CONN_STATES], uint32_t open, uint32_t waiting,
                            const _Atomic uint32_t armed[ORIBI_TIMEOUT_CLASSES]);

/* The word for sums[i]: "idle", "reading". */
const char *oribi_slot_connections_name(uint32_t i);

/* Adds the counters of a slot, histograms included, to `sums`. For every reader, also while the worker writes. */
void oribi_slot_fold(uint64_t sums[ORIBI_SLOT_COUNTERS], const struct oribi_slot *slot);

/* Gives the sums their names: writes them to the counters of `slot`, which is no worker's, and clears its rest. */
void oribi_slot_unfold(const uint64_t sums[ORIBI_SLOT_COUNTERS], struct oribi_slot *slot);

void oribi_scoreboard_destroy(struct oribi_scoreboard *board);

/* --- worker/stacks.c, observe/stacks.c ---
 *
 * Where the calls of a worker stand: the supervisor asks through shared memory, the worker's helper answers there. Each
 * question has a number, and neither side waits for the other.
 *
 *   supervisor                         worker's helper
 *   asked = n; signal to the helper ─► writes bytes and len, then answered = n
 *   answered == n: reads  ◄──────────┘
 *
 * A worker whose application writes into this memory can answer nonsense; the reader believes nothing of it. */

enum {
    ORIBI_STACKS_BYTES = 32 * 1024, /* of one worker */
    ORIBI_STACKS_FRAMES_BYTES_MAX = 6 * 1024,
    ORIBI_STACKS_MS = 60, /* after that a worker answers without the frames that it has not read yet */
};

/* One for each slot, in the same mapping. */
struct oribi_stacks {
    _Atomic uint32_t asked;     /* by the supervisor; 0: never */
    _Atomic uint32_t answered;  /* by the worker */
    _Atomic int32_t helper_tid; /* the thread that the signal goes to; 0: the worker has none */
    _Atomic uint32_t len;       /* of bytes: struct oribi_stack one after the other, each with its frames behind it */
    _Atomic uint32_t left_out;  /* calls that there was no room for */
    _Alignas(8) char bytes[ORIBI_STACKS_BYTES - 6 * 4];
};

/* One call under way. */
struct oribi_stack {
    uint32_t size; /* with its frames, a multiple of 8 */
    uint32_t thread;
    int32_t tid; /* 0: not known */
    uint32_t frames_len;
    int64_t age_us;
    char state;    /* as in os_process.h */
    char call[32]; /* the system call that it waits in, NUL-terminated; "": none, or not known */
    uint8_t begun; /* its answer has begun */
    uint8_t after; /* its request is answered, and the application runs on */
    uint8_t id_len;
    char id[128];
    char line[164]; /* "GET /path", NUL-terminated */
};

#endif
