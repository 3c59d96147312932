/* The worker's state for oribi/worker/deadline.h, and the post-mortem of a call that nothing could end
 * (post_mortem.c). */
#ifndef ORIBI_WORKER_DEADLINE_PRIVATE_H
#define ORIBI_WORKER_DEADLINE_PRIVATE_H

#include "oribi/worker/deadline.h"
#include "oribi/worker/worker.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct oribi_thread;

/* A member of struct oribi_worker. */
struct oribi__deadlines {
    int64_t seen_us;        /* when the helper looked last; of the helper */
    atomic_bool dying;      /* one thread has begun to end the worker */
    oribi_frames_fn frames; /* NULL: the language shows none */
    void *frames_self;
};

/* Logs where the thread's call stands; `interrupted` when this is the call's own thread, else NULL. */
void oribi__post_mortem(const struct oribi_thread *thread, bool own_thread, const void *interrupted);

#endif
