/* Deadlines of calls; see the header. The signal also tells of clients that have gone (client_abort.c). Reading order:
 * on_signal, tell, give_up and what it calls, oribi_deadline_look.
 *
 * give_up() runs in a signal handler, in the middle of whatever the application was doing: it may hold any lock of
 * the C library's. What matters to clients comes first and takes no lock and no memory; the log lines come last, and
 * should they hang, the supervisor kills. */
#include "worker/call.h"
#include "worker/logs/exchange_log.h"
#include "worker/placement/ownership.h"

#include "oribi/base/clock.h"
#include "oribi/base/os/os.h"
#include "oribi/http/date.h"
#include "oribi/http/response.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* --- the post-mortem ---
 *
 * Where a call stands that nothing could end: the frames of its language, which a binding reads from the runtime's
 * memory, then the innermost native ones. The process ends right after; whatever else goes wrong here ends it a moment
 * sooner, when its clients have been answered. */

enum {
    TRIES = 3, /* to read the call: the helper may be taking a sample, for a moment */
    TRY_MS = 5 /* between two tries */
};

static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};

static void on_fault(int number)
{
    _exit(ORIBI_EXIT_CALL_DEADLINE);
}

/* The runtime may have been stopped in the middle of anything, and what is read here be half done. */
static void guard(void)
{
    struct sigaction action = {.sa_handler = on_fault};
    sigset_t mask;
    (void)sigemptyset(&mask);
    (void)sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        (void)sigaction(faults[i], &action, NULL); /* valid numbers */
        (void)sigaddset(&mask, faults[i]);
    }
    (void)pthread_sigmask(SIG_UNBLOCK, &mask, NULL);
}

void oribi_worker_show_frames(struct oribi_worker *w, oribi_frames_fn fn, void *self)
{
    w->deadline.frames = fn;
    w->deadline.frames_self = self;
}

/* Logs where the thread's call stands; `interrupted` when this is the call's own thread, else NULL. */
static void post_mortem(const struct oribi_thread *thread, bool own_thread, const void *interrupted)
{
    struct oribi__stand stand = {.thread = thread, .own_thread = own_thread, .interrupted = interrupted};
    guard();
    for (int i = 0; i < TRIES && stand.len == 0; i++) {
        if (i > 0)
            (void)poll(NULL, 0, TRY_MS);
        oribi__stand_read(&stand, true);
    }
    oribi__stand_name(&stand);
    if (stand.len > 0)
        oribi_log_block(ORIBI_LOG_ERROR, "call deadline: where the call stands, innermost first", stand.text,
                        (uint32_t)stand.len);
    else
        oribi_log(ORIBI_LOG_ERROR, "call deadline: cannot show where the call stands: its thread blocks the signal");
}

enum {
    QUEUE_WAIT_MS = 500, /* for room in a full hand-off queue, all in all */
    OTHERS_LOOK_MS = 10,
};

/* --- the end --- */

struct outcome {
    const char *phase; /* that the call was in */
    bool answered;
    uint32_t ended; /* other calls of the same worker that end with it */
    uint32_t passed;
    uint32_t cut;
};

/* 504 if nothing was sent yet; else the missing rest tells the client. */
static bool answer(struct oribi_worker *w, struct oribi__exchange *exchange)
{
    char date[ORIBI_DATE_LEN];
    char text[ORIBI__OWN_HEAD_CAP];
    struct oribi_conn *c = exchange->base.conn;
    struct oribi_server_answer own = {.status = 504,
                                      .is_head = exchange->base.head.is_head,
                                      .date = date,
                                      .server = w->reactor.config.server,
                                      .added = w->reactor.config.added};
    exchange->aborted = true;
    if (exchange->phase == ORIBI_PHASE_STARTED)
        return false;
    exchange->sent_before = 0;
    exchange->overhead = INT64_MAX; /* of an answer that is not sent */
    exchange->status = 504;
    if (c->out)
        return false; /* earlier answers stand before it, and are not taken yet */
    exchange->phase = ORIBI_PHASE_STARTED;
    oribi_date_format(oribi_clock_wall_s(), date);
    own.page = oribi__server_page(w, 504, &own.type);
    size_t n = oribi_response_own(&own, text, sizeof(text));
    struct iovec vec[2] = {{text, n}, {(void *)own.page.p, own.is_head ? 0 : own.page.n}};
    size_t total = n + vec[1].iov_len;
    bool sent = oribi_transport_send(c->transport, c->watch.fd, vec, 2, false) == (ssize_t)total;
    const char *end = sent ? oribi_os_memmem(text, n, "\r\n\r\n", 4) : NULL;
    exchange->body_sent = end ? text + total - end - 4 : 0;
    exchange->aborted = !sent;
    (void)shutdown(c->watch.fd, SHUT_WR); /* a child of the application's may have a copy that would keep it open */
    return sent;
}

/* The siblings empty a full hand-off queue in a moment. */
static bool pass_patiently(struct oribi_worker *w, struct oribi_conn *c, int64_t until_ms)
{
    while (!oribi__pass_conn(w, c)) {
        struct pollfd room = {.fd = w->placement.queue.give_fd, .events = POLLOUT};
        int64_t left_ms = until_ms - oribi_clock_ms();
        if (w->placement.queue.give_fd < 0 || !oribi_conn_movable(c) || left_ms <= 0 ||
            (poll(&room, 1, (int)left_ms) < 0 && errno != EINTR))
            return false;
    }
    return true;
}

static void pass_all(struct oribi_worker *w, struct outcome *outcome)
{
    int64_t until_ms = oribi_clock_ms() + QUEUE_WAIT_MS;
    for (struct oribi_conn *c = w->reactor.conns; c; c = c->next) {
        if (c->state == ORIBI_CONN_CALL || c->state == ORIBI_CONN_CLOSED)
            continue;
        if (pass_patiently(w, c, until_ms))
            outcome->passed++;
        else
            outcome->cut++;
    }
}

static const char *phase_text(const struct oribi__exchange *exchange)
{
    return !exchange                                ? "answer complete"
           : exchange->phase == ORIBI_PHASE_STARTED ? "answer begun"
           : exchange->phase == ORIBI_PHASE_BEGUN   ? "head given"
                                                    : "nothing answered";
}

static void log_end(const struct oribi_thread *thread, const struct outcome *outcome)
{
    struct oribi_worker *w = thread->worker;
    int64_t ms = (oribi_clock_us() - atomic_load(thread->started_us)) / 1000;
    char others[48] = "";
    if (outcome->ended > 0)
        (void)snprintf(others, sizeof(others), "%u other calls ended, ", outcome->ended); /* fits */
    oribi_log(ORIBI_LOG_ERROR,
              "call deadline: %s has run for %lld ms (call_timeout %lld ms), %s%s; %s%u connections passed on, %u cut; "
              "the worker ends",
              thread->line, (long long)ms, (long long)w->options->call_timeout_ms, outcome->phase,
              outcome->answered ? ", 504 sent" : "", others, outcome->passed, outcome->cut);
}

static void begin_end(struct oribi_thread *thread, struct outcome *outcome)
{
    outcome->phase = phase_text(thread->exchange);
    outcome->answered = thread->exchange && answer(thread->worker, thread->exchange);
}

static void note_end(const struct oribi__exchange *exchange)
{
    if (exchange)
        oribi_slot_count_answer(exchange->worker->slot, exchange->base.head.method,
                                exchange->aborted ? 0 : exchange->status);
}

/* Calls of other threads that have not ended: theirs is no better an end, but an answer. */
static void end_others(struct oribi_thread *thread, struct outcome *outcome)
{
    struct oribi_worker *w = thread->worker;
    for (uint32_t i = 0; i < w->threads.count; i++) {
        struct oribi_thread *other = &w->threads.list[i];
        if (other == thread || !other->exchange)
            continue;
        (void)answer(w, other->exchange); /* else the missing rest tells */
        note_end(other->exchange);
        outcome->ended++;
    }
}

/* Holding the reactor; `interrupted`: where, NULL on another thread than the call's. Does not return. */
static _Noreturn void give_up(struct oribi_thread *thread, struct outcome *outcome, const void *interrupted)
{
    struct oribi_worker *w = thread->worker;
    oribi__note_long(w, oribi_clock_us());
    end_others(thread, outcome);
    pass_all(w, outcome);
    note_end(thread->exchange);
    oribi_thread_log_about(thread); /* to the end of the process */
    log_end(thread, outcome);
    if (w->setup.access_log) {
        for (uint32_t i = 0; i < w->threads.count; i++)
            if (w->threads.list[i].exchange)
                oribi__log_access(w->threads.list[i].exchange, w->threads.list[i].exchange->status, oribi_clock_us());
        oribi_access_log_flush(w->setup.access_log);
    }
    post_mortem(thread, interrupted != NULL, interrupted);
    _exit(ORIBI_EXIT_CALL_DEADLINE);
}

/* --- the signal --- */

/* Once a deadline; further signals only break off system calls, so that a runtime that has noted the first one comes
 * to act on it. */
static void tell(struct oribi_thread *thread, int64_t deadline_us)
{
    if (atomic_exchange_explicit(&thread->told_us, deadline_us, memory_order_relaxed) == deadline_us)
        return;
    atomic_fetch_add(&thread->worker->slot->overdue_count, 1); /* other threads' calls may be late just now */
    if (thread->worker->setup.deadline_signal > 0)
        (void)pthread_kill(pthread_self(), thread->worker->setup.deadline_signal);
}

static pthread_t thread_of(const struct oribi_thread *thread)
{
    return atomic_load_explicit(&thread->pthread, memory_order_relaxed);
}

static bool overdue(const struct oribi_thread *thread, int64_t now_us)
{
    int64_t started_us = atomic_load_explicit(thread->started_us, memory_order_acquire);
    int64_t deadline_us = atomic_load_explicit(thread->deadline_us, memory_order_relaxed);
    return started_us && deadline_us && now_us >= deadline_us;
}

/* From the handler, where waiting for a lock is not allowed: false when another thread is in the core, or this one.
 * The next signal comes soon. */
static bool try_enter(struct oribi_worker *w)
{
    if (!oribi__shared(w)) {
        if (atomic_load_explicit(&w->owner, memory_order_relaxed) == ORIBI_OWNER_MAIN)
            return false;
    } else if (pthread_mutex_trylock(&w->threads.lock) != 0) {
        return false;
    }
    oribi__enter_owner(w);
    return true;
}

static bool others_call(const struct oribi_thread *thread)
{
    const struct oribi_worker *w = thread->worker;
    for (uint32_t i = 0; i < w->threads.count; i++)
        if (&w->threads.list[i] != thread && atomic_load_explicit(w->threads.list[i].started_us, memory_order_acquire))
            return true;
    return false;
}

/* The client of this call has its answer. Those of others have a moment to get theirs, while the worker begins
 * nothing new. */
static void let_others_finish(struct oribi_thread *thread)
{
    struct oribi_worker *w = thread->worker;
    int64_t until_ms = oribi_clock_ms() + ORIBI_DEADLINE_OTHERS_MS;
    w->threads.ending = true;
    w->acceptor.pause_until_ms = INT64_MAX;
    oribi__listener_watches_unwatch(w);
    oribi__handoff_watch(w, false);
    oribi__leave(w);
    while (others_call(thread) && oribi_clock_ms() < until_ms)
        (void)poll(NULL, 0, OTHERS_LOOK_MS);
    while (!try_enter(w))
        (void)poll(NULL, 0, 1); /* the others are in the core for moments only */
}

/* With the reactor, without which the call may have ended, or its clock have begun anew. */
static bool still_overdue(const struct oribi_thread *thread)
{
    return (thread->exchange || thread->after) && oribi_thread_overdue(thread);
}

static void end_worker(struct oribi_thread *thread, const void *interrupted)
{
    struct oribi_worker *w = thread->worker;
    struct outcome outcome = {0};
    if (!try_enter(w))
        return;
    if (!still_overdue(thread) || atomic_exchange(&w->deadline.dying, true)) {
        oribi__leave(w);
        return;
    }
    begin_end(thread, &outcome);
    if (others_call(thread))
        let_others_finish(thread);
    give_up(thread, &outcome, interrupted);
}

/* The call of this thread is over its deadline. */
static void act(struct oribi_thread *thread, int64_t now_us, const void *interrupted)
{
    struct oribi_worker *w = thread->worker;
    int64_t deadline_us = atomic_load_explicit(thread->deadline_us, memory_order_relaxed);
    if (!oribi__shared(w) && atomic_load_explicit(&w->owner, memory_order_relaxed) == ORIBI_OWNER_MAIN)
        return; /* in the core: the next signal finds the application again, or the call is over */
    if (now_us < deadline_us + ORIBI_DEADLINE_HARD_MS * 1000)
        tell(thread, deadline_us);
    else if (!atomic_load(&w->deadline.dying))
        end_worker(thread, interrupted);
}

static struct oribi_thread *own_thread(struct oribi_worker *w)
{
    for (uint32_t i = 0; i < w->threads.count; i++)
        if (atomic_load_explicit(w->threads.list[i].started_us, memory_order_acquire) &&
            pthread_equal(thread_of(&w->threads.list[i]), pthread_self()))
            return &w->threads.list[i];
    return NULL;
}

/* A process-directed signal may reach any thread; forward it to the threads whose call is overdue. These do not forward
 * it, so it goes round once. */
static void forward(struct oribi_worker *w, int signal_number, int64_t now_us)
{
    for (uint32_t i = 0; i < w->threads.count; i++)
        if (overdue(&w->threads.list[i], now_us) && !pthread_equal(thread_of(&w->threads.list[i]), pthread_self()))
            (void)pthread_kill(thread_of(&w->threads.list[i]), signal_number);
}

static void on_signal(int signal_number, siginfo_t *info, void *context)
{
    int saved = errno;
    struct oribi_worker *w = oribi__own_worker;
    if (!w || w->owner_pid != getpid())
        return;
    int64_t now_us = oribi_clock_us();
    struct oribi_thread *thread = own_thread(w);
    if (thread && overdue(thread, now_us))
        act(thread, now_us, oribi_os_interrupted(context));
    else if (thread && oribi__client_abort_is_due(thread))
        oribi__client_abort_tell(thread);
    else
        forward(w, signal_number, now_us);
    errno = saved;
}

void oribi_deadline_install(struct oribi_worker *w)
{
    int number = oribi_os_private_signal();
    if (number <= 0)
        return;
    /* No SA_RESTART: the signal is to end waits of the application's, and it is never sent to a call in time. */
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    (void)sigaction(number, &action, NULL); /* a valid number */
}

/* --- the helper's part --- */

/* The thread of the call had its chance. */
static void take_over(struct oribi_thread *thread)
{
    struct oribi_worker *w = thread->worker;
    uint32_t expected = ORIBI_OWNER_CALL;
    struct outcome outcome = {0};
    if (atomic_load(&w->deadline.dying) ||
        !atomic_compare_exchange_strong_explicit(&w->owner, &expected, ORIBI_OWNER_HELPER, memory_order_acquire,
                                                 memory_order_relaxed))
        return;
    if (!still_overdue(thread) || atomic_exchange(&w->deadline.dying, true)) {
        oribi__helper_give_back(w);
        return;
    }
    begin_end(thread, &outcome);
    give_up(thread, &outcome, NULL);
}

/* Suspended, frozen (cgroups) or stopped (SIGSTOP): CLOCK_MONOTONIC may have gone on, the call has not. */
static void forgive(struct oribi_thread *thread, int64_t seen_us, int64_t now_us)
{
    int64_t deadline_us = atomic_load_explicit(thread->deadline_us, memory_order_acquire);
    int64_t started_us = atomic_load_explicit(thread->started_us, memory_order_acquire);
    int64_t before_us = seen_us > started_us ? seen_us : started_us;
    if (!started_us || !deadline_us || now_us - before_us < ORIBI_DEADLINE_JUMP_MS * 1000)
        return;
    /* Fails when the call has ended or has asked for more time meanwhile: then nothing is overdue. */
    (void)atomic_compare_exchange_strong(thread->deadline_us, &deadline_us, deadline_us + now_us - before_us);
}

void oribi_deadline_seen(struct oribi_worker *w, int64_t now_us)
{
    for (uint32_t i = 0; i < w->threads.count; i++)
        forgive(&w->threads.list[i], w->deadline.seen_us, now_us);
    w->deadline.seen_us = now_us;
}

static int64_t look_at(struct oribi_thread *thread, int64_t now_us)
{
    int64_t deadline_us = atomic_load_explicit(thread->deadline_us, memory_order_acquire);
    if (!deadline_us || !atomic_load_explicit(thread->started_us, memory_order_acquire))
        return INT64_MAX;
    if (now_us < deadline_us)
        return (deadline_us - now_us) / 1000 + 1;
    if (now_us - thread->signalled_us >= ORIBI_DEADLINE_REPEAT_MS * 1000) {
        thread->signalled_us = now_us;
        /* the thread is there as long as its call is */
        (void)pthread_kill(thread_of(thread), oribi_os_private_signal());
    }
    if (now_us >= deadline_us + (ORIBI_DEADLINE_HARD_MS + ORIBI_DEADLINE_TAKEOVER_MS) * 1000)
        take_over(thread);
    return ORIBI_DEADLINE_REPEAT_MS;
}

int64_t oribi_deadline_look(struct oribi_worker *w, int64_t now_us)
{
    int64_t soonest_ms = INT64_MAX;
    oribi_deadline_seen(w, now_us);
    for (uint32_t i = 0; i < w->threads.count; i++) {
        int64_t ms = look_at(&w->threads.list[i], now_us);
        soonest_ms = ms < soonest_ms ? ms : soonest_ms;
    }
    return soonest_ms;
}
