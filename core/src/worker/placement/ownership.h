/* ownership - a thread that makes calls takes the reactor, in functions that the application calls, and gives it back.
 *
 * A function that leaves the request open ends with oribi__leave(); one that ends the request ends with oribi__end(),
 * where the only thread keeps the reactor and one of several gives it back. Without a helper and other threads no
 * thread else can have it, and the fence is for the deadline's signal handler. Lock order: the VM's lock,
 * `threads.lock`, `owner`; no thread waits for the first while it holds one of the others. doc/internals/placement.md
 * has the drawing. The slow parts are in helper.c and threads.c.
 *
 * A thread that enters twice waits for itself for ever, and all others behind it. The builds of the tests (CHECKED in
 * core/Makefile) notice that at once, with one thread too, which would not have waited. */
#ifndef ORIBI_WORKER_PLACEMENT_OWNERSHIP_H
#define ORIBI_WORKER_PLACEMENT_OWNERSHIP_H

#include "worker/worker_private.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

void oribi__enter_slow(struct oribi_worker *worker);   /* the helper may have the reactor */
void oribi__leave_shared(struct oribi_worker *worker); /* one of several threads; wakes another where that is due */

/* Of a thread that has entered; of one that has not. A worker's only thread has the reactor without it too. */
#ifdef ORIBI_CHECKED
extern _Thread_local const struct oribi_worker *oribi__entered; /* where this thread has entered; NULL: nowhere */
#define oribi__check_entered(w)     assert(!oribi__shared(w) || oribi__entered == (w))
#define oribi__check_not_entered(w) assert(oribi__entered != (w))
#define oribi__note_entered(w)      ((void)(oribi__entered = (w)))
#else
#define oribi__check_entered(w)     ((void)0)
#define oribi__check_not_entered(w) ((void)0)
#define oribi__note_entered(w)      ((void)0)
#endif

/* Takes the reactor from the helper; among threads the lock is held already. */
static inline void oribi__enter_owner(struct oribi_worker *w)
{
    uint32_t expected = ORIBI_OWNER_CALL;
    if (!w->helper)
        atomic_store_explicit(&w->owner, ORIBI_OWNER_MAIN, memory_order_relaxed);
    else if (!atomic_compare_exchange_strong_explicit(&w->owner, &expected, ORIBI_OWNER_MAIN, memory_order_acquire,
                                                      memory_order_relaxed) &&
             expected != ORIBI_OWNER_MAIN)
        oribi__enter_slow(w);
    oribi__note_entered(w);
    atomic_signal_fence(memory_order_seq_cst);
}

static inline void oribi__enter(struct oribi_worker *w)
{
    oribi__check_not_entered(w);
    if (__builtin_expect(oribi__shared(w), 0))
        (void)pthread_mutex_lock(&w->threads.lock); /* not held by this thread: cannot fail */
    oribi__enter_owner(w);
}

static inline void oribi__leave(struct oribi_worker *w)
{
    if (__builtin_expect(oribi__shared(w), 0)) {
        oribi__leave_shared(w);
        return;
    }
    oribi__note_entered(NULL);
    atomic_signal_fence(memory_order_seq_cst);
    atomic_store_explicit(&w->owner, ORIBI_OWNER_CALL, memory_order_release);
}

static inline void oribi__end(struct oribi_worker *w)
{
    if (__builtin_expect(oribi__shared(w), 0))
        oribi__leave_shared(w);
    oribi__note_entered(NULL);
}

#endif
