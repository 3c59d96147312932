/* Shared by single.c (one process that serves alone) and single_restart.c (its reload). */
#ifndef ORIBI_SUPERVISOR_SINGLE_PRIVATE_H
#define ORIBI_SUPERVISOR_SINGLE_PRIVATE_H

#include "supervisor/single.h"
#include "supervisor/mold.h"
#include "supervisor/supervisor_private.h"

#include "oribi/base/clock.h"

#include <pthread.h>
#include <stdatomic.h>

/* A reload's new program, started beside this one to see whether it loads. */
struct oribi__trial {
    pid_t pid; /* 0: there is none */
    bool ready;
    bool late;
    int64_t until; /* INT64_MAX: no bound */
    char why[ORIBI_POLICY_WHY_CAP];
};

struct oribi_single {
    struct oribi_supervisor *supervisor;
    struct oribi__context *context; /* of the supervisor */
    struct oribi_link *link;
    struct oribi_listeners listeners; /* the worker's descriptors of them */
    struct oribi_handoff handoff;     /* likewise */
    pthread_t housekeeping;
    pthread_mutex_t lock; /* of is_up, which the housekeeping thread sets and the worker waits for */
    pthread_cond_t came_up;
    bool is_up;
    uint32_t generation;
    char *folder;                /* of the start, before the application has loaded */
    _Atomic bool attended;       /* the housekeeping thread runs */
    _Atomic bool leaving;        /* the housekeeping thread is to end */
    _Atomic bool failed;         /* the worker could not begin */
    _Atomic bool restarts;       /* the program is started anew when the worker has ended */
    _Atomic bool stopped_lately; /* since the housekeeping thread has ended */
    /* the housekeeping thread's */
    struct oribi__trial trial;
    bool posted;         /* another reload was asked for during the trial */
    int64_t boot_until;  /* INT64_MAX: no bound; likewise: */
    int64_t drain_until; /* when what is left is cut */
};

static inline int64_t oribi__single_in_ms(int64_t ms)
{
    return ms > 0 ? oribi_clock_ms() + ms : INT64_MAX;
}

static inline const struct oribi_options *oribi__single_options(const struct oribi_single *single)
{
    return single->context->process.options;
}

static inline struct oribi_slot *oribi__single_slot(const struct oribi_single *single)
{
    return &single->context->process.board.slots[0];
}

/* Has the worker finish its calls. TOLD: for a new program; LAST: the listeners end too. */
void oribi__single_drain(struct oribi_single *single, enum oribi_stop_word word);

/* A reload or an upgrade is asked for. */
void oribi__single_reload(struct oribi_single *single);

/* Looks at the trial, if there is one, and goes on where it has ended; ends it. */
void oribi__single_trial_turn(struct oribi_single *single);
void oribi__single_end_trial(struct oribi_single *single);

/* Starts the program anew under this pid; returns where that cannot be. */
void oribi__single_become(struct oribi_single *single);

/* In the new program: the files that were watched, from the descriptor (-1: none). */
void oribi__single_import_watch(struct oribi_single *single, int fd);

#endif
