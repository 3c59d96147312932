/* call_clock - until when a call may run. The drawing is in call_clock.c. */
#ifndef ORIBI_WORKER_CALL_CLOCK_H
#define ORIBI_WORKER_CALL_CLOCK_H

#include "worker/placement/threads_private.h"

#include <stdatomic.h>
#include <stdint.h>

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

#endif
