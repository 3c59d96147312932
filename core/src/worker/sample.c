/* Samples; see the header. Reading order: oribi__sample_take, from_outside, by_signal, on_signal.
 *
 *   the thread waits in the kernel ─► its frames are read from here, as long as it has not run meanwhile
 *   it runs, or the runtime can only be read from its own thread ─► a signal, whose handler reads them there
 *
 * The signal's handler has SA_RESTART, but some system calls end at any signal (signal(7)): a thread that waits in one
 * of those gets none. A thread that runs may come to such a call between our look and the signal. */
#include "worker/call.h"
#include "worker/exchange.h"
#include "worker/placement/ownership.h"

#include "oribi/base/clock.h"
#include "oribi/base/fault.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    LOOKS = 3,       /* at a thread that waits, each time for a moment only */
    FINE_US = 50,    /* between two looks whether the handler has ended */
    FINE_LOOKS = 20, /* looks that are FINE_US apart; a millisecond after that */
    OWNER_LOOKS = 5, /* for the reactor, a millisecond apart */
};

/* Of the sampler. The helper asks; whichever thread changes ASKED has it. */
enum { IDLE, ASKED, TAKING, DONE };

/* --- reading --- */

static void read_language(void *self)
{
    struct oribi__stand *stand = self;
    const struct oribi_worker *w = stand->thread->worker;
    if (w->deadline.frames)
        stand->len = w->deadline.frames(w->deadline.frames_self, (uint32_t)(stand->thread - w->threads.list),
                                        stand->own_thread, stand->text, sizeof(stand->text));
}

static void read_native(void *self)
{
    struct oribi__stand *stand = self;
    stand->native_count = oribi_os_native_addresses(stand->interrupted, stand->native, ORIBI__STAND_NATIVE_MAX);
}

static void name_native(void *self)
{
    struct oribi__stand *stand = self;
    for (int i = 0; i < stand->native_count; i++)
        stand->len +=
            oribi_os_native_name(stand->native[i], stand->text + stand->len, sizeof(stand->text) - stand->len);
}

void oribi__stand_read(struct oribi__stand *stand, bool native)
{
    stand->len = 0;
    stand->native_count = 0;
    if (!oribi_fault_guard(read_language, stand))
        stand->len = 0;
    if (native && stand->own_thread && !oribi_fault_guard(read_native, stand))
        stand->native_count = 0;
}

void oribi__stand_name(struct oribi__stand *stand)
{
    (void)oribi_fault_guard(name_native, stand); /* else the rest is missing */
}

/* --- on the call's thread --- */

static void on_signal(int signal_number, siginfo_t *info, void *context)
{
    int saved = errno;
    struct oribi_worker *w = oribi__own_worker;
    if (!w || w->owner_pid != getpid())
        return;
    struct oribi__sampler *sampler = &w->sampler;
    uint32_t expected = ASKED;
    if (atomic_load_explicit(&sampler->state, memory_order_acquire) == ASKED &&
        pthread_equal(sampler->target, pthread_self()) &&
        atomic_compare_exchange_strong(&sampler->state, &expected, TAKING)) {
        sampler->stand.interrupted = oribi_os_interrupted(context);
        oribi__stand_read(&sampler->stand, oribi_os_backtrace_is_lockless());
        atomic_store_explicit(&sampler->state, DONE, memory_order_release);
    }
    errno = saved;
}

void oribi__sample_install(void)
{
    int number = oribi_os_sample_signal();
    if (number <= 0)
        return;
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigemptyset(&action.sa_mask);
    (void)sigaction(number, &action, NULL); /* a valid number */
    oribi_os_backtrace_prepare();
}

/* --- by the helper --- */

static bool is_done(const struct oribi__sampler *sampler)
{
    return atomic_load_explicit(&sampler->state, memory_order_acquire) == DONE;
}

static bool wait_for_handler(const struct oribi__sampler *sampler, int ms)
{
    const struct timespec fine = {.tv_nsec = FINE_US * 1000};
    int64_t until_us = oribi_clock_us() + ms * 1000;
    for (int i = 0; !is_done(sampler) && oribi_clock_us() < until_us; i++)
        (void)(i < FINE_LOOKS ? nanosleep(&fine, NULL) : poll(NULL, 0, 1));
    return is_done(sampler);
}

/* False: the thread takes no signals, or a handler has not ended that an earlier sample has asked. */
static bool by_signal(struct oribi_thread *thread, struct oribi__stand *out)
{
    struct oribi__sampler *sampler = &thread->worker->sampler;
    uint32_t expected = ASKED;
    if (atomic_load_explicit(&sampler->state, memory_order_acquire) == TAKING)
        return false;
    sampler->target = atomic_load_explicit(&thread->pthread, memory_order_relaxed);
    sampler->stand.thread = thread;
    sampler->stand.own_thread = true;
    atomic_store_explicit(&sampler->state, ASKED, memory_order_release);
    (void)pthread_kill(sampler->target, oribi_os_sample_signal()); /* the thread is there as long as its call is */
    if (!wait_for_handler(sampler, ORIBI__SAMPLE_SIGNAL_MS) &&
        (atomic_compare_exchange_strong(&sampler->state, &expected, IDLE) ||
         !wait_for_handler(sampler, ORIBI__SAMPLE_HANDLER_MS)))
        return false;
    memcpy(out, &sampler->stand, sizeof(*out));
    atomic_store_explicit(&sampler->state, IDLE, memory_order_release);
    return true;
}

/* False: the thread runs, or the runtime shows nothing from here. */
static bool from_outside(struct oribi_thread *thread, pid_t tid, const struct oribi_os_thread_state *first,
                         struct oribi__stand *out)
{
    struct oribi_os_thread_state before = *first;
    struct oribi_os_thread_state after;
    out->thread = thread;
    out->own_thread = false;
    out->interrupted = NULL;
    for (int i = 0; i < LOOKS; i++) {
        oribi__stand_read(out, false);
        if (!oribi_os_thread_look(getpid(), tid, &after))
            return false;
        if (oribi_os_thread_waited(&before, &after))
            return out->len > 0;
        before = after;
    }
    out->len = 0;
    return false;
}

static void take(struct oribi_thread *thread, struct oribi__sample *sample)
{
    pid_t tid = oribi_os_thread_id(atomic_load_explicit(&thread->pthread, memory_order_relaxed));
    bool known = oribi_os_thread_look(getpid(), tid, &sample->state);
    struct oribi__stand *stand = &sample->stand;
    if (!known)
        sample->state.interruption = ORIBI_OS_UNHARMED; /* no /proc: as a thread that runs */
    enum oribi_os_interruption interruption = sample->state.interruption;
    if (interruption == ORIBI_OS_UNHARMED && by_signal(thread, stand)) {
        oribi__stand_name(stand);
        return;
    }
    if (from_outside(thread, tid, &sample->state, stand) || interruption != ORIBI_OS_REPEATED)
        return;
    if (by_signal(thread, stand))
        oribi__stand_name(stand);
}

const struct oribi__sample *oribi__sample_take(struct oribi_thread *thread)
{
    struct oribi_worker *w = thread->worker;
    struct oribi__sample *sample = &w->sampler.sample;
    sample->stand.len = 0;
    sample->state = (struct oribi_os_thread_state){0};
    if (!atomic_load(&w->deadline.dying))
        take(thread, sample);
    return sample;
}

/* --- what is known anyway --- */

static void copy_facts(const struct oribi_thread *thread, bool owned, struct oribi__call_facts *out)
{
    *out = (struct oribi__call_facts){.started_us = atomic_load_explicit(thread->started_us, memory_order_acquire)};
    memcpy(out->line, thread->line, sizeof(out->line));
    out->line[sizeof(out->line) - 1] = '\0';
    out->id_len = thread->id_len;
    memcpy(out->id, thread->id, sizeof(out->id));
    out->trace_len = thread->trace_len;
    memcpy(out->trace, thread->trace, sizeof(out->trace));
    out->after = thread->after;
    out->begun = owned && thread->exchange && thread->exchange->phase == ORIBI_PHASE_STARTED;
}

/* With the reactor if it can be had, so that the call does not end meanwhile. */
bool oribi__call_facts(struct oribi_thread *thread, struct oribi__call_facts *out)
{
    struct oribi_worker *w = thread->worker;
    for (int i = 0; i < OWNER_LOOKS; i++) {
        uint32_t expected = ORIBI_OWNER_CALL;
        if (!atomic_load_explicit(thread->started_us, memory_order_acquire))
            return false;
        if (atomic_compare_exchange_strong_explicit(&w->owner, &expected, ORIBI_OWNER_HELPER, memory_order_acquire,
                                                    memory_order_relaxed)) {
            copy_facts(thread, true, out);
            oribi__helper_give_back(w);
            return out->started_us != 0;
        }
        (void)poll(NULL, 0, 1); /* a thread of the worker's is in the core, for a moment */
    }
    copy_facts(thread, false, out);
    return out->started_us != 0;
}
