/* Several threads that make calls; see the header. Reading order: oribi_thread_wait, lead, follow, then leave_unled
 * and oribi__leave_shared, which say which thread is woken when.
 *
 * Everything here happens with the reactor but two sleeps: the leader's in the loop, and the followers', each at its
 * own wake. So at any moment every free thread sees the same queue, and one rule is enough: a thread that leaves
 * the reactor with something to do for others wakes one of them, or leaves that to a helper that is awake. */
#include "oribi/worker/placement/threads.h"
#include "worker/exchange.h"
#include "worker/placement/helper.h"
#include "worker/placement/ownership.h"
#include "worker/placement/threads_private.h"
#include "worker/socket.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/mem.h"

#include <assert.h>
#include <poll.h>
#include <string.h>

enum {
    LEADER_MS_MAX = 1000, /* deadlines further off need not wake it: nearly all are */
    FOLLOWER_MS_MAX = 1000 * 1000,
    END_LOOK_MS = 20,
    FREER = 2, /* free threads of siblings, beyond ours but one: else a request would come back as it went */
    OFTEN = 8, /* so many wake-ups of followers within OFTEN_US are worth a helper that looks each millisecond */
    OFTEN_US = 4000,
};

#ifdef ORIBI_CHECKED
_Thread_local const struct oribi_worker *oribi__entered;
#endif

/* --- what others see --- */

static void publish_state(struct oribi_worker *w)
{
    atomic_store_explicit(&w->slot->threads_busy, w->threads.busy_count, memory_order_release);
    if (w->stopping)
        return;
    bool idle = oribi__threads_free(&w->threads) > 0;
    atomic_store_explicit(&w->slot->state, idle ? ORIBI_SLOT_IDLE : ORIBI_SLOT_BUSY, memory_order_release);
    oribi__skip(w, !idle);
    if (idle)
        oribi__idle_waiter_wake(w);
}

static int64_t deadline_of(const struct oribi_thread *thread)
{
    int64_t deadline_us = atomic_load_explicit(thread->deadline_us, memory_order_relaxed);
    return deadline_us ? deadline_us : INT64_MAX; /* none, as while the client is waited for */
}

/* True if the supervisor should rather see a than b. */
static bool comes_first(const struct oribi_thread *a, const struct oribi_thread *b)
{
    int64_t a_us = deadline_of(a);
    int64_t b_us = deadline_of(b);
    if (a_us != b_us)
        return a_us < b_us;
    return atomic_load_explicit(a->started_us, memory_order_relaxed) <
           atomic_load_explicit(b->started_us, memory_order_relaxed);
}

void oribi__threads_publish(struct oribi_worker *w)
{
    const struct oribi_thread *first = NULL;
    oribi__check_entered(w);
    for (uint32_t i = 0; i < w->threads.count; i++)
        if ((w->threads.list[i].exchange || w->threads.list[i].after) &&
            (!first || comes_first(&w->threads.list[i], first)))
            first = &w->threads.list[i];
    if (first)
        memcpy(w->slot->line, first->line, ORIBI_SLOT_LINE_CAP);
    if (first && w->names_requests)
        memcpy(w->slot->id, first->id, first->id_len + 1U);
    atomic_store_explicit(&w->slot->call_deadline_us, first ? atomic_load(first->deadline_us) : 0,
                          memory_order_relaxed);
    atomic_store_explicit(&w->slot->call_started_us, first ? atomic_load(first->started_us) : 0, memory_order_release);
}

const char *oribi_thread_line(const struct oribi_thread *thread)
{
    return thread->line;
}

uint32_t oribi_threads_busy(const struct oribi_worker *w)
{
    return atomic_load_explicit(&w->slot->threads_busy, memory_order_acquire);
}

/* --- waking --- */

/* Wakes a thread to lead: the follower that came last, whose caches are the warmest. */
static void promote(struct oribi_worker *w)
{
    struct oribi_thread *thread = w->threads.followers;
    if (w->threads.leader || !thread)
        return;
    w->threads.followers = thread->next_follower;
    oribi_wake_notify(thread->wake);
}

/* From here on no thread looks after the connections. A wake-up for each call would cost more than short calls do, so
 * a helper that is awake sees whether the call lasts. Where calls are long on average, or the helper is not awake, a
 * follower leads at once. */
static void leave_unled(struct oribi_worker *w, int64_t now_us)
{
    struct oribi__thread_set *threads = &w->threads;
    if (threads->leader)
        return;
    atomic_store(&threads->unled_us, now_us); /* before the look at the helper, which looks at it before it parks */
    bool watched = w->helper && !oribi_helper_parked(w);
    if ((watched && !oribi__are_calls_long(w)) || !threads->followers)
        return;
    promote(w);
    if (now_us - threads->promoted_us > OFTEN_US) {
        threads->promoted_us = now_us;
        threads->promoted_count = 0;
    }
    if (++threads->promoted_count == OFTEN)
        oribi_helper_need(w);
}

static bool is_unled(const struct oribi_worker *w)
{
    return atomic_load_explicit(&w->threads.unled_us, memory_order_relaxed) != 0;
}

static void unfollow(struct oribi_thread *thread)
{
    struct oribi_thread **at = &thread->worker->threads.followers;
    while (*at && *at != thread)
        at = &(*at)->next_follower;
    if (*at)
        *at = thread->next_follower;
}

/* True while a request waits that no thread is on its way to. */
static bool is_one_unclaimed(const struct oribi_worker *w)
{
    return w->reactor.queue_len > w->threads.coming_count && !oribi__retiring(w);
}

static bool much_to_do(const struct oribi_worker *w)
{
    return is_one_unclaimed(w) || oribi_reactor_goes_on(&w->reactor);
}

/* A deadline armed while the leader sleeps may be due before it looks again. */
static bool leader_would_oversleep(const struct oribi_worker *w)
{
    int64_t next_ms = oribi_timeouts_next_ms(&w->reactor.timeouts, w->reactor.now_ms);
    return next_ms >= 0 && w->reactor.now_ms + next_ms < w->threads.leader_until_ms;
}

void oribi__leave_shared(struct oribi_worker *w)
{
    oribi__check_entered(w);
    oribi__note_entered(NULL);
    if (!w->threads.leader && !is_unled(w) && much_to_do(w))
        leave_unled(w, w->reactor.now_us);
    else if (w->threads.leader && (much_to_do(w) || leader_would_oversleep(w)))
        oribi_wake_notify(&w->wake);
    atomic_signal_fence(memory_order_seq_cst);
    atomic_store_explicit(&w->owner, ORIBI_OWNER_CALL, memory_order_release);
    (void)pthread_mutex_unlock(&w->threads.lock); /* held by this thread: cannot fail */
}

void oribi_thread_wake(struct oribi_thread *thread)
{
    atomic_store(&thread->called, true);
    oribi_wake_notify(thread->wake);
    oribi_wake_notify(&thread->worker->wake); /* it may be the one that leads */
}

bool oribi__threads_relieve(struct oribi_worker *w)
{
    uint32_t expected = ORIBI_OWNER_CALL;
    if (!oribi__shared(w) || !atomic_compare_exchange_strong_explicit(&w->owner, &expected, ORIBI_OWNER_HELPER,
                                                                      memory_order_acquire, memory_order_relaxed))
        return false;
    bool others_take = w->reactor.queue_len > 0 && oribi__idle_siblings(w, 1) > 0; /* the helper's step passes it on */
    bool relieved = !others_take && !w->threads.leader && w->threads.followers && is_unled(w);
    if (relieved) {
        promote(w);
        atomic_store(&w->threads.unled_us, oribi_clock_us()); /* the same time for that one to come */
    }
    oribi__helper_give_back(w);
    return relieved;
}

void oribi__threads_pass_on(struct oribi_worker *w, int64_t now_us)
{
    uint32_t expected = ORIBI_OWNER_CALL;
    int64_t oldest_us = atomic_load_explicit(&w->slot->queue_oldest_us, memory_order_relaxed);
    if (atomic_load_explicit(&w->slot->queue_len, memory_order_acquire) == 0 || now_us - oldest_us < ORIBI_LONG_US ||
        oribi__idle_siblings(w, FREER) < FREER ||
        !atomic_compare_exchange_strong_explicit(&w->owner, &expected, ORIBI_OWNER_HELPER, memory_order_acquire,
                                                 memory_order_relaxed))
        return;
    (void)oribi__pass_on(w, 0);
    oribi__helper_give_back(w);
}

/* Nothing will come any more: all threads are to see it. */
static void wake_all(struct oribi_worker *w)
{
    for (; w->threads.followers; w->threads.followers = w->threads.followers->next_follower)
        oribi_wake_notify(w->threads.followers->wake);
    if (w->threads.leader)
        oribi_wake_notify(&w->wake);
}

/* A thread that waits returns to the binding, which may not look before the calls of the others have ended. */
void oribi__threads_notify(struct oribi_worker *w)
{
    w->threads.notified = true;
    wake_all(w);
}

/* --- calls --- */

void oribi__thread_begin(struct oribi_thread *thread)
{
    struct oribi_worker *w = thread->worker;
    thread->away = true;
    w->threads.busy_count++;
    oribi__threads_publish(w);
    publish_state(w);
    leave_unled(w, thread->exchange->started_us);
}

/* Back from a call, which ended when it was answered: what the application did after that kept the thread as busy. */
static void come_back(struct oribi_thread *thread)
{
    struct oribi_worker *w = thread->worker;
    if (!thread->away)
        return;
    thread->away = false;
    w->threads.busy_count--;
    atomic_store_explicit(&w->threads.unled_us, 0, memory_order_release); /* this thread looks */
    publish_state(w);
}

/* On its way to a request, for which it needs the VM's lock first, and there. */
static void come(struct oribi_thread *thread)
{
    thread->worker->threads.coming_count++;
    thread->coming = true;
    leave_unled(thread->worker, oribi_clock_us());
}

static void arrive(struct oribi_thread *thread)
{
    if (thread->coming)
        thread->worker->threads.coming_count--;
    thread->coming = false;
}

/* --- waiting --- */

static int ms_until(int64_t until_ms, int64_t now_ms, int max)
{
    if (until_ms <= now_ms)
        return 0;
    return until_ms - now_ms < max ? (int)(until_ms - now_ms) : max;
}

static void lead(struct oribi_thread *thread, int64_t until_ms)
{
    struct oribi_worker *w = thread->worker;
    int64_t now_ms = oribi_clock_ms();
    int64_t bound_ms = oribi__wait_bound_ms(w);
    int max = bound_ms >= 0 && bound_ms < LEADER_MS_MAX ? (int)bound_ms : LEADER_MS_MAX;
    int sleep_ms = oribi_reactor_sleep_begin(&w->reactor, ms_until(until_ms, now_ms, max));
    bool left = w->acceptor.ready_us || w->placement.ready_us; /* as in oribi_worker_wait_for() */
    bool yields = oribi_reactor_yields(&w->reactor);
    w->threads.leader = thread;
    atomic_store_explicit(&w->threads.unled_us, 0, memory_order_release);
    w->threads.leader_until_ms = now_ms + sleep_ms;
    oribi__tell_asleep(w);
    oribi__leave(w);
    int64_t took_us = left || yields ? oribi_yield() : 0;
    int64_t before_us = oribi_clock_us();
    oribi_loop_sleep(w->reactor.loop, sleep_ms);
    bool slept = oribi_clock_us() - before_us > ORIBI_ASLEEP_US;
    oribi__enter(w);
    w->threads.leader = NULL;
    oribi_reactor_sleep_end(&w->reactor);
    if (yields)
        oribi_yield_note(&w->reactor.yield, took_us, before_us, w->reactor.event_count);
    w->woken = !left || slept;
    oribi__turn(w);
}

static void follow(struct oribi_thread *thread, int64_t until_ms)
{
    struct oribi_worker *w = thread->worker;
    struct pollfd wake = {.fd = thread->wake->read_fd, .events = POLLIN};
    int ms = ms_until(until_ms, oribi_clock_ms(), FOLLOWER_MS_MAX);
    thread->next_follower = w->threads.followers;
    w->threads.followers = thread;
    oribi__leave(w);
    bool notified = poll(&wake, 1, ms) > 0 && oribi_wake_clear(thread->wake); /* the waker has said why before */
    oribi__enter(w);
    if (wake.revents && !notified)
        oribi__fd_guard_check(w);
    unfollow(thread);
}

struct oribi_req *oribi_thread_take(struct oribi_thread *thread)
{
    struct oribi_worker *w = thread->worker;
    if (__builtin_expect(w->abandoned, 0))
        return NULL;
    oribi__enter(w);
    come_back(thread);
    arrive(thread);
    int64_t now_us = oribi_clock_us();
    bool nobody_looks = !w->reactor.queue_len && (!w->threads.leader || oribi_reactor_goes_on(&w->reactor));
    if (nobody_looks || now_us - w->turned_us > ORIBI__TURN_EVERY_US) {
        oribi__turn(w);
        now_us = w->reactor.now_us;
    }
    struct oribi_req *req = w->threads.ending ? NULL : oribi__take_queued(w, thread, now_us);
    if (!req)
        oribi__leave(w);
    return req;
}

/* The process ends in a moment, and what is not in a call goes to others. */
static void end(struct oribi_thread *thread)
{
    struct oribi_worker *w = thread->worker;
    struct pollfd wake = {.fd = thread->wake->read_fd, .events = POLLIN};
    oribi__turn(w);
    (void)oribi__pass_on(w, 0);
    oribi__leave(w);
    (void)poll(&wake, 1, END_LOOK_MS);
    oribi__enter(w);
}

bool oribi_thread_wait(struct oribi_thread *thread, int64_t ms)
{
    struct oribi_worker *w = thread->worker;
    if (__builtin_expect(w->abandoned, 0))
        return false;
    int64_t until_ms = ms < 0 ? INT64_MAX : oribi_clock_ms() + ms;
    bool coming = false;
    oribi__enter(w);
    come_back(thread);
    arrive(thread);
    while (!atomic_exchange(&thread->called, false) && !oribi_worker_done(w)) {
        coming = !w->threads.ending && is_one_unclaimed(w);
        if (coming || w->threads.notified || (ms >= 0 && oribi_clock_ms() >= until_ms))
            break;
        if (w->threads.ending)
            end(thread);
        else if (oribi_reactor_goes_on(&w->reactor) || w->accept_sources_closed) /* the helper has led until now */
            oribi__turn(w);
        else if (!w->threads.leader)
            lead(thread, until_ms);
        else
            follow(thread, until_ms);
    }
    w->threads.notified = false;
    if (coming)
        come(thread);
    else if (oribi_worker_done(w))
        wake_all(w);
    else
        promote(w); /* this thread may have been the one to lead */
    oribi__leave(w);
    return coming;
}

bool oribi_thread_done(struct oribi_thread *thread)
{
    struct oribi_worker *w = thread->worker;
    oribi__enter(w);
    bool done = oribi_worker_done(w);
    oribi__leave(w);
    return done;
}

/* --- life --- */

void oribi__threads_init(struct oribi_worker *w)
{
    struct oribi_thread *thread = &w->threads.single;
    thread->worker = w;
    atomic_store(&thread->pthread, pthread_self());
    thread->started_us = &w->slot->call_started_us;
    thread->deadline_us = &w->slot->call_deadline_us;
    thread->line = w->slot->line;
    thread->id = w->slot->id;
    thread->wake = &w->wake;
    w->threads.list = thread;
    w->threads.count = 1;
}

static void destroy_wakes(struct oribi_worker *w)
{
    for (uint32_t i = 0; oribi__shared(w) && i < w->threads.count; i++) {
        oribi__fd_guard_drop_wake(&w->fd_guard, &w->threads.list[i].own_wake);
        oribi_wake_destroy(&w->threads.list[i].own_wake);
    }
}

void oribi__threads_forget(struct oribi_worker *w)
{
    destroy_wakes(w);
}

struct oribi_thread *oribi_thread(struct oribi_worker *w, uint32_t index)
{
    assert(index < w->threads.count);
    return &w->threads.list[index];
}

static int init_threads(struct oribi_worker *w, struct oribi_thread *threads, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct oribi_thread *thread = &threads[i];
        if (oribi_wake_create(&thread->own_wake) < 0) {
            while (i-- > 0)
                oribi_wake_destroy(&threads[i].own_wake);
            return ORIBI_ESYS;
        }
        thread->worker = w;
        atomic_store(&thread->pthread, pthread_self()); /* a thread that is there, until its own takes a call */
        thread->started_us = &thread->own_started_us;
        thread->deadline_us = &thread->own_deadline_us;
        thread->line = thread->own_line;
        thread->id = thread->own_id;
        thread->wake = &thread->own_wake;
    }
    return 0;
}

int oribi_threads_open(struct oribi_worker *w, uint32_t count)
{
    assert(!oribi__shared(w) && count > 1 && count <= ORIBI_THREADS_MAX);
    struct oribi_thread *threads = oribi_mem_alloc(count, sizeof(*threads));
    if (init_threads(w, threads, count) < 0) {
        oribi_mem_free(threads);
        return ORIBI_ESYS;
    }
    oribi_helper_stop(w);                             /* it looks at the threads without any lock */
    (void)pthread_mutex_init(&w->threads.lock, NULL); /* without attributes it cannot fail */
    (void)pthread_mutex_lock(&w->threads.lock);
    oribi__enter_owner(w);
    w->threads.list = threads;
    w->threads.count = count;
    for (uint32_t i = 0; i < count; i++)
        oribi__fd_guard_add_wake(&w->fd_guard, &threads[i].own_wake, "thread's wake");
    w->threads.busy_count = w->threads.coming_count = 0;
    w->threads.leader = w->threads.followers = NULL;
    atomic_store(&w->threads.unled_us, 0);
    atomic_store_explicit(&w->slot->threads, count, memory_order_release);
    publish_state(w);
    oribi_helper_need(w); /* a worker with several threads has long calls */
    oribi__leave(w);
    return 0;
}

void oribi_threads_close(struct oribi_worker *w)
{
    if (!oribi__shared(w))
        return;
    oribi__enter(w);
    oribi_helper_stop(w);
    destroy_wakes(w);
    struct oribi_thread *threads = w->threads.list;
    uint32_t count = w->threads.count;
    w->threads.list = &w->threads.single;
    w->threads.count = 1;
    w->threads.busy_count = 0;
    atomic_store(&w->threads.unled_us, 0);
    atomic_store_explicit(&w->slot->threads, 0, memory_order_release);
    atomic_store_explicit(&w->slot->threads_busy, 0, memory_order_release);
    oribi__note_entered(NULL);
    (void)pthread_mutex_unlock(&w->threads.lock); /* `owner` stays ours, as it is with one thread */
    (void)pthread_mutex_destroy(&w->threads.lock);
    for (uint32_t i = 0; i < count; i++)
        oribi__socket_forget(&threads[i]);
    oribi_mem_free(threads);
}
