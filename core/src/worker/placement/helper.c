/* The helper thread. Reading order: run, step, nap; then the functions that the own thread calls; then how long
 * calls are, which says whether the helper has to be awake: oribi__call_begins, wants_helper, expects_long.
 *
 * It sleeps without the reactor, in poll(2) on the epoll descriptor (which reports what is new without taking it),
 * so that the own thread can have the reactor at any moment but those of a step. Nothing here is exact: a look that
 * comes late delays others' requests by a millisecond, and nothing else. */
#include "worker/placement/helper.h"
#include "worker/call.h"
#include "worker/logs/exchange_log.h"
#include "worker/placement/accept.h"
#include "worker/placement/ownership.h"

#include "oribi/base/clock.h"
#include "oribi/base/mem.h"
#include "oribi/base/signals.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>

enum {
    TICK_MS = 1,
    LOOK_MS_MAX = 50,       /* in a long call, when nothing else is due */
    QUIET_SLOWER = 8,       /* looks without a long call before they come half as often, twice that: a quarter */
    QUIET_PARK = 24,        /* looks without a long call before parking */
    QUIET_IDLE = 4,         /* a look at an idle worker counts as so many */
    WATCH_MIN = 2,          /* answers since the last look, with several threads: it does not count */
    LOOK_BUSY_MS = 2,       /* with several threads, when some are in long calls and one may join them any time */
    BUSY_US = 10000,        /* age of a call that is taken over though no sibling is idle: not only to pass on */
    BUSY_MS = 10,           /* between two looks while no sibling is idle, unless one wakes us */
    BUSY_LOCAL_MS = 2,      /* the same where some requests need no call, and wait for nobody but us */
    NAP_LISTENERS_MAX = 16, /* watched in a nap; where there are more, newcomers wait for the next look */
    EARLY_MS = 4,           /* the same before the call is long */
    ALONE_MS = 2,           /* the same where there are no siblings */
    PARKED_MS = 1000,       /* a wake-up lost between parking and a call's begin costs at most this */
    PARKED_MS_MIN = 10,
    PARKED_BUSY_MS = 20,     /* while calls are made: one of them may turn out long, and others wait behind it */
    PARKED_BUSY_CALLS = 2,   /* between two looks: it does not count as busy with fewer */
    PARKED_LIMITED_MS = 100, /* with queue_max, which is not to be passed for long, local content or cancel_gone */
    PARKED_SHARE = 4,        /* with queue_time_max: so many looks before it has passed */
    STACK_BYTES = 512 * 1024,
    MEND_US = 20 * 1000, /* between two looks at the handlers of signals that ask us to stop */
};

struct oribi_helper {
    struct oribi_worker *worker;
    pthread_t thread;
    struct oribi_wake wake; /* ends a nap */
    struct oribi_fd_mark wake_mark;
    struct oribi_fd_mark worker_wake_mark; /* of the worker's own */
    sem_t left;                            /* posted once for each LEAVING */
    sigset_t wait_mask; /* of its waits: all but the signal with which the supervisor asks (stacks.c) */
    int64_t mended_us;
    bool had_room;      /* the last nap has ended because there was room in the hand-off queue */
    atomic_bool quit;   /* set by the own thread */
    atomic_bool parked; /* set by the helper, cleared by either */
};

/* --- the thread --- */

/* A descriptor of ours was closed: the thread that has the reactor looks what is left, because it can pass connections
 * on. That is this thread itself if a call is long. */
static void doubt(const struct oribi_helper *h, int timeout_ms)
{
    struct oribi_worker *w = h->worker;
    atomic_store_explicit(&w->own_doubted, true, memory_order_release);
    if (oribi_os_is_marked(w->wake.write_fd, &h->worker_wake_mark)) /* else a file of the application's would grow */
        oribi_wake_notify(&w->wake);
    (void)poll(NULL, 0, timeout_ms < TICK_MS ? timeout_ms : TICK_MS);
}

/* Adds the listeners, where a newcomer is to end the nap. Gives the number of descriptors. */
static nfds_t add_listeners(const struct oribi_worker *w, struct pollfd *fds, nfds_t count)
{
    if (w->acceptor.watch_count > NAP_LISTENERS_MAX)
        return count;
    for (uint32_t i = 0; i < w->acceptor.watch_count; i++)
        if (!w->acceptor.watches[i].over && !w->acceptor.watches[i].closed)
            fds[count++] = (struct pollfd){.fd = w->acceptor.watches[i].listener->fd, .events = POLLIN};
    return count;
}

/* A listener that is broken would end every nap at once. */
static bool has_failed(const struct pollfd *fds, nfds_t count)
{
    for (nfds_t i = 0; i < count; i++)
        if (fds[i].revents & ~POLLIN)
            return true;
    return false;
}

/* The supervisor's signal ends the wait, and is held back at all other times. */
static int wait_for(struct oribi_helper *h, struct pollfd *fds, nfds_t count, int timeout_ms)
{
    int64_t us = oribi__bursts_look(h->worker, (int64_t)timeout_ms * 1000, false);
    return oribi__stacks_asked(h->worker->stacks) ? 0 : oribi_os_poll_masked(fds, count, us, &h->wait_mask);
}

static void nap_until(struct oribi_helper *h, bool events, bool newcomers, int timeout_ms)
{
    int epoll_fd = oribi_loop_fd(h->worker->reactor.loop);
    struct pollfd fds[2 + NAP_LISTENERS_MAX] = {{.fd = h->wake.read_fd, .events = POLLIN},
                                                {.fd = epoll_fd, .events = POLLIN}};
    bool on_epoll = events && epoll_fd >= 0;
    nfds_t count = on_epoll ? 2 : 1;
    if (events && !on_epoll && timeout_ms > TICK_MS)
        timeout_ms = TICK_MS; /* poll(2) as a source: readiness is found by looking */
    else if (newcomers)
        count = add_listeners(h->worker, fds, count);
    if (wait_for(h, fds, count, timeout_ms) <= 0)
        return;
    bool robbed =
        (fds[1].revents & POLLNVAL) || (fds[0].revents && !oribi_os_is_marked(h->wake.read_fd, &h->wake_mark));
    if (robbed || (count > 2 && has_failed(fds + 2, count - 2)) || (fds[0].revents && !oribi_wake_clear(&h->wake)))
        doubt(h, timeout_ms);
}

static void nap(struct oribi_helper *h, bool events, int timeout_ms)
{
    nap_until(h, events, false, timeout_ms);
}

/* The hand-off queue is full, and what is the oldest of all waits here: a nap until there is room, which is when three
 * quarters of it have been taken. */
static void nap_for_room(struct oribi_helper *h, int timeout_ms)
{
    struct pollfd fds[] = {{.fd = h->wake.read_fd, .events = POLLIN},
                           {.fd = h->worker->placement.queue.give_fd, .events = POLLOUT}};
    if (wait_for(h, fds, 2, timeout_ms) <= 0)
        return;
    h->had_room = fds[1].revents != 0;
    if (fds[0].revents && (!oribi_os_is_marked(h->wake.read_fd, &h->wake_mark) || !oribi_wake_clear(&h->wake)))
        doubt(h, timeout_ms);
}

void oribi__helper_give_back(struct oribi_worker *w)
{
    uint32_t expected = ORIBI_OWNER_HELPER;
    if (atomic_compare_exchange_strong_explicit(&w->owner, &expected, ORIBI_OWNER_CALL, memory_order_release,
                                                memory_order_relaxed))
        return;
    atomic_store_explicit(&w->owner, ORIBI_OWNER_MAIN,
                          memory_order_release); /* LEAVING: the own thread waits in oribi__enter_slow() */
    (void)sem_post(&w->helper->left);            /* fails only beyond SEM_VALUE_MAX */
}

/* With the reactor: what is ready, what has timed out, what can go to an idle sibling. Returns for how many ms
 * nothing is due. */
static int work(struct oribi_worker *w)
{
    if (!oribi__shared(w))
        oribi__skip(w, true); /* of several threads one may be free */
    if (!w->accept_sources_closed)
        oribi__accept_sources_close(w);
    if (oribi_worker_stopping(w))
        w->acceptor.last_call = oribi__last_call(w);
    bool more = oribi__turn_connections(w);
    if (w->orphaned)
        oribi__listener_watches_quit(w);
    if (oribi__retiring(w))
        (void)oribi__pass_all(w);
    else if (w->reactor.queue_len > 0)
        (void)oribi__pass_on(w, 0);
    w->placement.kept = w->reactor.queue_len > 0;
    if (oribi_reactor_goes_on(&w->reactor))
        return 0;
    if (more)
        return oribi__holds_newcomers_back(w) ? TICK_MS : 0;
    if (w->acceptor.last_call)
        return ORIBI__LAST_CALL_MS;
    if (w->reactor.queue_len > 0 && w->placement.queue.give_fd >= 0)
        return TICK_MS; /* a sibling may become idle */
    int64_t next_ms = oribi_timeouts_next_ms(&w->reactor.timeouts, w->reactor.now_ms);
    return next_ms >= 0 && next_ms < LOOK_MS_MAX ? (int)next_ms : LOOK_MS_MAX;
}

/* No sibling is idle: until one is, all else can wait some milliseconds. Where every processor is taken, calls last
 * longer by the clock than they work, and a helper that looks again and again is only one more who wants a
 * processor. */
static void wait_for_idle(struct oribi_helper *h, bool room, int64_t due_ms)
{
    if (h->worker->local && due_ms > BUSY_LOCAL_MS)
        due_ms = BUSY_LOCAL_MS;
    int ms = due_ms < BUSY_MS ? (int)due_ms : BUSY_MS;
    if (!oribi__has_siblings(h->worker) || oribi__bursts_look(h->worker, ms * 1000, true) < ms * 1000)
        nap(h, false, due_ms < ALONE_MS ? (int)due_ms : ALONE_MS);
    else if (room)
        nap_for_room(h, ms);
    else
        oribi__idle_waiter_sleep(h->worker, ms);
}

/* A handler that the call has put in the place of ours is called beside ours from here on, and the default, which
 * would end the call, goes. */
static void mend_signals(struct oribi_helper *h, int64_t now_us)
{
    if (now_us - h->mended_us < MEND_US)
        return;
    h->mended_us = now_us;
    oribi_signals_mend(SIGTERM, false);
    oribi_signals_mend(SIGQUIT, false);
}

/* Without the reactor. Returns for how many ms nothing is due for a call. */
static int64_t look_at_calls(struct oribi_worker *w, int64_t now_us)
{
    int64_t due_ms = oribi_earlier(oribi_deadline_look(w, now_us), oribi__client_abort_look(w, now_us));
    return oribi_earlier(due_ms, oribi__slow_look(w, now_us));
}

/* The call is long. */
static void step(struct oribi_helper *h)
{
    struct oribi_worker *w = h->worker;
    uint32_t expected = ORIBI_OWNER_CALL;
    if (!atomic_compare_exchange_strong_explicit(&w->owner, &expected, ORIBI_OWNER_HELPER, memory_order_acquire,
                                                 memory_order_relaxed)) {
        oribi_deadline_seen(w, oribi_clock_us());
        nap(h, false, TICK_MS); /* the own thread is in the core, which is short */
        return;
    }
    uint64_t passed = atomic_load_explicit(&w->slot->passed_count, memory_order_relaxed);
    int due_ms = work(w);
    bool in_vain = h->had_room && passed == atomic_load_explicit(&w->slot->passed_count, memory_order_relaxed);
    bool room = w->placement.wants_room;
    h->had_room = false;
    if (due_ms > 0 && !oribi_reactor_fall_asleep(&w->reactor))
        due_ms = 0;
    bool waits = w->reactor.queue_len > 0 && w->placement.queue.give_fd >= 0 && !w->acceptor.last_call && due_ms > 0;
    /* Otherwise the next look will do: each newcomer would wake the helpers of all workers. */
    bool newcomers =
        oribi__takes_newcomers_in_call(w) && oribi__wants_newcomers_in_call(w) && !oribi__holds_newcomers_back(w);
    oribi__helper_give_back(w);
    uint32_t idle = oribi__idle_siblings(w, 1);
    bool is_idle_waiter = waits && idle == 0;
    if (!waits && idle > 0)
        oribi__idle_waiter_wake(w); /* we need no sibling, the next may */
    int64_t now_us = oribi_clock_us();
    int64_t deadline_ms = look_at_calls(w, now_us);
    mend_signals(h, now_us);
    if (deadline_ms < due_ms)
        due_ms = (int)deadline_ms;
    if (is_idle_waiter && room && in_vain)
        nap(h, false, TICK_MS); /* a sibling was faster */
    else if (is_idle_waiter)
        wait_for_idle(h, room, deadline_ms);
    else
        nap_until(h, true, newcomers, due_ms);
}

static int quiet_ms(int quiet)
{
    return quiet < QUIET_SLOWER ? TICK_MS : quiet < 2 * QUIET_SLOWER ? 2 * TICK_MS : 4 * TICK_MS;
}

/* A call that is not expected to be long does not wake a parked helper; limits on waiting hold for such calls too. */
static int parked_ms(const struct oribi_worker *w, bool busy)
{
    const struct oribi_options *options = w->options;
    bool limited = options->queue_max > 0 || w->local || w->cancels_gone;
    int64_t ms = busy ? PARKED_BUSY_MS : limited ? PARKED_LIMITED_MS : PARKED_MS;
    int64_t share_ms = options->queue_time_max_ms / PARKED_SHARE;
    if (options->queue_time_max_ms > 0 && share_ms < ms)
        ms = share_ms > PARKED_MS_MIN ? share_ms : PARKED_MS_MIN;
    return (int)ms;
}

/* Since when no thread of the worker's own has turned the reactor: its only thread is in a call, or none of several
 * leads. */
static int64_t away_since_us(const struct oribi_worker *w)
{
    return atomic_load(oribi__shared(w) ? &w->threads.unled_us : &w->slot->call_started_us);
}

/* True when the own thread has ended it: a call has begun that may be long. */
static bool park(struct oribi_helper *h, bool busy)
{
    atomic_store(&h->parked, true);
    if (!oribi__shared(h->worker) || !away_since_us(h->worker)) /* else leave_unled() counts on us */
        nap(h, false, parked_ms(h->worker, busy));
    return !atomic_exchange(&h->parked, false);
}

/* One of several threads is free and turns the reactor; the others' calls have deadlines all the same. */
static void look(struct oribi_helper *h)
{
    int64_t now_us = oribi_clock_us();
    int64_t due_ms = look_at_calls(h->worker, now_us);
    mend_signals(h, now_us);
    oribi__threads_pass_on(h->worker, now_us);
    nap(h, false, due_ms < LOOK_BUSY_MS ? (int)due_ms : LOOK_BUSY_MS);
}

/* Where workers share one processor, and calls compute, one of a millisecond or two has waited for the processor. */
static bool long_since(const struct oribi_worker *w, int64_t since_us)
{
    bool computes = atomic_load_explicit(&w->slot->computes, memory_order_relaxed);
    return since_us && oribi_clock_us() - since_us >= (computes ? (int)ORIBI_EXPECT_US : (int)ORIBI_LONG_US);
}

static bool worth_taking_over(const struct oribi_worker *w, int64_t since_us)
{
    int64_t age_us = oribi_clock_us() - since_us;
    return w->local || age_us >= BUSY_US || oribi__waits_for_any(w, age_us) || oribi__idle_siblings(w, 1) > 0;
}

static void *run(void *self)
{
    struct oribi_helper *h = self;
    struct oribi_worker *w = h->worker;
    int quiet = 0;
    uint64_t seen = 0;
    oribi__stacks_helper(w->stacks, true);
    while (!atomic_load_explicit(&h->quit, memory_order_acquire)) {
        if (oribi__stacks_asked(w->stacks))
            oribi__stacks_answer(w);
        int64_t started_us = atomic_load_explicit(&w->slot->call_started_us, memory_order_acquire);
        int64_t away_us = away_since_us(w);
        if (long_since(w, away_us)) {
            quiet = 0;
            if (oribi__threads_relieve(w))
                nap(h, false, TICK_MS);
            else if (worth_taking_over(w, away_us))
                step(h);
            else
                wait_for_idle(h, false, BUSY_MS);
            continue;
        }
        if (oribi__shared(w) && long_since(w, started_us)) {
            quiet = 0;
            look(h);
            continue;
        }
        if (!started_us)
            oribi__idle_waiter_wake(w); /* whom the end of our own call woke may have been ourselves */
        uint64_t before = seen;
        seen = atomic_load_explicit(&w->slot->request_count, memory_order_relaxed);
        bool watches = oribi__shared(w) && seen - before >= WATCH_MIN; /* leave_unled() wants us awake */
        quiet = watches ? 0 : quiet + (started_us ? 1 : QUIET_IDLE);
        if (quiet >= QUIET_PARK) {
            quiet =
                park(h, seen - before >= PARKED_BUSY_CALLS) ? 0 : QUIET_PARK; /* after a time-out one look is enough */
        } else {
            bool is_idle_waiter = started_us && oribi__has_siblings(w) && oribi__idle_siblings(w, 1) == 0;
            nap(h, false, is_idle_waiter ? EARLY_MS : quiet_ms(quiet));
        }
    }
    oribi__stacks_helper(w->stacks, false);
    return NULL;
}

/* --- the own thread --- */

void oribi__enter_slow(struct oribi_worker *w)
{
    for (;;) {
        uint32_t expected = ORIBI_OWNER_HELPER;
        if (atomic_compare_exchange_strong_explicit(&w->owner, &expected, ORIBI_OWNER_LEAVING, memory_order_acquire,
                                                    memory_order_relaxed)) {
            while (sem_wait(&w->helper->left) < 0 && errno == EINTR)
                continue;
            (void)atomic_load_explicit(&w->owner, memory_order_acquire); /* partner: oribi__helper_give_back() */
            return;
        }
        expected = ORIBI_OWNER_CALL;
        if (atomic_compare_exchange_strong_explicit(&w->owner, &expected, ORIBI_OWNER_MAIN, memory_order_acquire,
                                                    memory_order_relaxed) ||
            expected == ORIBI_OWNER_MAIN)
            return;
    }
}

/* The thread takes no signal: handlers of the application belong to its own thread. */
static bool start_thread(struct oribi_helper *h)
{
    sigset_t all;
    sigset_t before;
    pthread_attr_t attributes;
    sigfillset(&all);
    h->wait_mask = all;
    if (oribi_os_sample_signal() > 0)
        (void)sigdelset(&h->wait_mask, oribi_os_sample_signal());
    if (pthread_attr_init(&attributes) != 0)
        return false;
    (void)pthread_attr_setstacksize(&attributes, STACK_BYTES); /* a valid size */
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int result = pthread_create(&h->thread, &attributes, run, h);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attributes);
    return result == 0;
}

/* A worker can do without: it may be in the middle of others' requests. */
static void no_helper(struct oribi_worker *w, struct oribi_helper *h, const char *why)
{
    oribi_mem_free(h);
    w->helper = NULL;
    w->helper_failed = true;
    oribi_log(ORIBI_LOG_WARN, "cannot start the helper thread: %s; requests behind a long call wait for it", why);
}

static void start(struct oribi_worker *w)
{
    struct oribi_helper *h = oribi_mem_try_alloc(1, sizeof(*h));
    if (!h) {
        no_helper(w, NULL, "out of memory");
        return;
    }
    h->worker = w;
    (void)sem_init(&h->left, 0, 0); /* arguments are right */
    if (oribi_wake_create(&h->wake) < 0) {
        no_helper(w, h, oribi_os_error_text());
        return;
    }
    oribi_os_mark(h->wake.read_fd, &h->wake_mark);
    oribi_os_mark(w->wake.write_fd, &h->worker_wake_mark);
    oribi__fd_guard_add_wake(&w->fd_guard, &h->wake, "helper's wake");
    w->helper = h;
    if (start_thread(h))
        return;
    oribi__fd_guard_drop_wake(&w->fd_guard, &h->wake);
    oribi_wake_destroy(&h->wake);
    no_helper(w, h, "the system gives none");
}

void oribi_helper_need(struct oribi_worker *w)
{
    if (!w->helper) {
        if (w->options->helper && !w->helper_failed)
            start(w);
    } else if (atomic_exchange(&w->helper->parked, false)) {
        oribi_wake_notify(&w->helper->wake);
    }
}

void oribi__helper_wake(struct oribi_worker *w)
{
    oribi_wake_notify(&w->helper->wake);
}

bool oribi_helper_parked(const struct oribi_worker *w)
{
    return w->helper && atomic_load(&w->helper->parked);
}

bool oribi_helper_asleep(const struct oribi_worker *w)
{
    return w->helper ? oribi_helper_parked(w) : w->options->helper && !w->helper_failed;
}

void oribi_helper_stop(struct oribi_worker *w)
{
    struct oribi_helper *h = w->helper;
    if (!h)
        return;
    atomic_store_explicit(&h->quit, true, memory_order_release);
    oribi_wake_notify(&h->wake);
    (void)pthread_join(h->thread, NULL); /* joinable, and not us */
    w->helper = NULL;
    oribi__fd_guard_drop_wake(&w->fd_guard, &h->wake);
    oribi_wake_destroy(&h->wake);
    (void)sem_destroy(&h->left);
    oribi_mem_free(h);
}

void oribi_helper_forget(struct oribi_worker *w)
{
    if (w->helper)
        oribi_wake_destroy(&w->helper->wake);
    w->helper = NULL; /* its memory goes with the process */
}

/* --- how long calls are --- */

enum { EXPECT_LOOK_US = 10 * 1000 }; /* between two looks at what siblings have seen */

bool oribi__are_calls_long(const struct oribi_worker *w)
{
    return w->call_lengths.average_us > ORIBI_LONG_US / 2;
}

/* When the worker of this slot last had a long call: now, if it is in one; 0: never. */
static int64_t last_long_us(const struct oribi_slot *slot, int64_t now_us)
{
    int64_t started_us = atomic_load_explicit(&slot->call_started_us, memory_order_relaxed);
    if (started_us && now_us - started_us >= ORIBI_EXPECT_US)
        return now_us;
    return atomic_load_explicit(&slot->long_call_us, memory_order_relaxed);
}

/* One call in a hundred may be long, and cannot be told from the others when it begins: where there are such, here
 * or at a sibling, the helper is awake for all. */
static bool expects_long(struct oribi_worker *w, int64_t now_us)
{
    if (now_us - w->call_lengths.looked_us >= EXPECT_LOOK_US) {
        const struct oribi_scoreboard *board = w->setup.board;
        w->call_lengths.looked_us = now_us;
        for (uint32_t i = 0; board && i < board->count; i++) {
            int64_t seen_us = last_long_us(&board->slots[i], now_us);
            if (seen_us && seen_us + ORIBI_EXPECT_FOR_US > w->call_lengths.long_until_us)
                w->call_lengths.long_until_us = seen_us + ORIBI_EXPECT_FOR_US;
        }
    }
    return now_us < w->call_lengths.long_until_us;
}

/* A limit on waiting holds from the first call on, as does a question of the supervisor's: then the helper is there,
 * and parked it comes by often enough (helper.c). */
static bool wants_helper(struct oribi_worker *w, int64_t now_us)
{
    bool is_asked = w->stacks || w->options->slow_log_ms;
    bool is_missed = !w->helper && (is_asked || oribi__takes_newcomers_in_call(w) || w->cancels_gone);
    return oribi__threads_free(&w->threads) == 0 || is_missed || oribi__are_calls_long(w) || expects_long(w, now_us);
}

void oribi__note_long(struct oribi_worker *w, int64_t now_us)
{
    w->call_lengths.long_until_us = now_us + ORIBI_EXPECT_FOR_US;
    atomic_store_explicit(&w->slot->long_call_us, now_us, memory_order_relaxed); /* a hint: no partner */
}

void oribi__call_begins(struct oribi_worker *w, int64_t now_us)
{
    bool is_long = w->call_lengths.average_us >= ORIBI_EXPECT_US;
    if (w->call_lengths.average_us > ORIBI_PASS_US && !oribi__shared(w))
        oribi__skip(w, true);
    if (atomic_load_explicit(&w->placement.expects_long, memory_order_relaxed) != is_long)
        atomic_store_explicit(&w->placement.expects_long, is_long, memory_order_relaxed);
    if (oribi_helper_asleep(w) && wants_helper(w, now_us))
        oribi_helper_need(w);
}

void oribi__call_took(struct oribi_worker *w, int64_t us, int64_t now_us)
{
    if (us > ORIBI_LONG_US)
        oribi_helper_need(w);
    if (us > ORIBI_EXPECT_US)
        oribi__note_long(w, now_us);
}
