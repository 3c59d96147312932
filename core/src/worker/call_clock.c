/* The clock of a call: when the call is over its deadline (call_timeout), and what puts that off.
 *
 *   take ─► the application runs ─► waits for its client ─► runs on ─► answered ─► the application runs on ─► back
 *           now + call_timeout      no deadline             anew                    anew, oribi_thread_after()
 *
 * Every byte that the application writes begins the clock anew, so that a stream may last. An extension holds for as
 * long as the application has asked for, whatever happens meanwhile. The clock is written by the thread of the call,
 * and an extension by any thread of the application; the helper, the supervisor and the handler of the deadline's
 * signal read it at any time (deadline.c). */
#include "worker/call.h"
#include "worker/placement/ownership.h"
#include "worker/worker_private.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/worker/req.h"

static bool has_clock(const struct oribi_thread *thread)
{
    return thread->worker->options->call_timeout_ms > 0;
}

/* The supervisor's view of several calls follows their clocks. With the reactor. */
static void publish(const struct oribi_thread *thread)
{
    if (oribi__shared(thread->worker))
        oribi__threads_publish(thread->worker);
}

/* For the application, which does not have the reactor. */
static void enter_and_publish(const struct oribi_thread *thread)
{
    struct oribi_worker *w = thread->worker;
    if (!oribi__shared(w))
        return;
    oribi__enter(w);
    oribi__threads_publish(w);
    oribi__leave(w);
}

/* Another thread may extend the deadline at the same moment: the thread that comes last sees the extension. */
static void wind(struct oribi_thread *thread, int64_t now_us)
{
    int64_t extended_us;
    do {
        extended_us = atomic_load(&thread->extended_us);
        int64_t until_us = now_us + thread->worker->options->call_timeout_ms * 1000;
        atomic_store(thread->deadline_us, until_us > extended_us ? until_us : extended_us);
    } while (atomic_load(&thread->extended_us) != extended_us);
}

void oribi__clock_anew_at(struct oribi_thread *thread, int64_t now_us)
{
    if (!has_clock(thread))
        return;
    wind(thread, now_us);
    publish(thread);
}

void oribi__clock_anew(struct oribi_thread *thread)
{
    if (has_clock(thread))
        oribi__clock_anew_at(thread, oribi_clock_us());
}

void oribi_thread_begin_anew(struct oribi_thread *thread)
{
    if (!has_clock(thread) || !atomic_load(thread->started_us))
        return;
    atomic_store_explicit(&thread->told_us, 0, memory_order_relaxed);
    wind(thread, oribi_clock_us());
    enter_and_publish(thread);
}

/* --- waiting for the client --- */

void oribi__clock_stop(struct oribi_thread *thread)
{
    if (!has_clock(thread))
        return;
    atomic_store(&thread->waits, true);
    atomic_store(thread->deadline_us, 0);
    publish(thread);
}

void oribi__clock_go_on(struct oribi_thread *thread)
{
    if (!has_clock(thread))
        return;
    atomic_store(&thread->waits, false);
    wind(thread, oribi_clock_us());
    publish(thread);
}

/* --- more time --- */

int64_t oribi_extension_ms(double seconds)
{
    if (!(seconds > 0 && seconds <= ORIBI_EXTENSION_S_MAX)) /* not a number is neither */
        return ORIBI_EBAD;
    int64_t ms = (int64_t)(seconds * 1000);
    return (double)ms < seconds * 1000 ? ms + 1 : ms;
}

/* While the call waits for its client the extension is only noted: oribi__clock_go_on() finds it. */
void oribi_thread_extend_deadline(struct oribi_thread *thread, int64_t ms)
{
    if (!has_clock(thread) || ms <= 0 || !atomic_load(thread->started_us) || thread->worker->abandoned)
        return;
    int64_t until_us = oribi_clock_us() + ms * 1000;
    atomic_store(&thread->extended_us, until_us);
    if (atomic_load(&thread->waits))
        return;
    atomic_store(thread->deadline_us, until_us);
    if (atomic_load(&thread->waits)) /* it has begun just now */
        atomic_store(thread->deadline_us, 0);
    enter_and_publish(thread);
}

int64_t oribi_thread_overdue(const struct oribi_thread *thread)
{
    int64_t deadline_us = atomic_load_explicit(thread->deadline_us, memory_order_acquire);
    bool runs = atomic_load_explicit(thread->started_us, memory_order_acquire) != 0;
    return runs && deadline_us && oribi_clock_us() >= deadline_us ? deadline_us : 0;
}

/* --- after the answer --- */

/* The request has ended, and of one thread the reactor is still ours: from here on it is the helper's as in a call. */
void oribi_thread_after(struct oribi_thread *thread)
{
    struct oribi_worker *w = thread->worker;
    int64_t now_us = oribi_clock_us();
    if (w->abandoned)
        return;
    if (oribi__shared(w))
        oribi__enter(w);
    thread->after = true;
    oribi__clock_begin(thread, w->options->call_timeout_ms, now_us);
    publish(thread);
    oribi__call_begins(w, now_us);
    oribi__leave(w);
}

void oribi_thread_back(struct oribi_thread *thread)
{
    struct oribi_worker *w = thread->worker;
    if (w->abandoned)
        return;
    oribi__enter(w);
    thread->after = false;
    int64_t now_us = oribi_clock_us();
    int64_t us = now_us - atomic_load_explicit(thread->started_us, memory_order_relaxed);
    oribi__clock_end(thread);
    oribi__call_took(w, us, now_us);
    publish(thread);
    oribi__end(w);
}
