/* Deadlines of calls; see the header. Reading order: on_signal, tell, give_up and what it calls, oribi_deadline_look.
 *
 * give_up() runs in a signal handler, in the middle of whatever the application was doing: it may hold any lock of the C library's. What matters to clients comes first and
 * takes no lock and no memory; the log lines come last, and should they hang, the supervisor kills. */
#include "oribi/server/deadline.h"

#include "oribi/base/clock.h"
#include "oribi/http/date.h"
#include "oribi/http/response.h"
#include "server/call.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { POOL_WAIT_MS = 500 }; /* for room in a full pool, all in all */

/* --- the end --- */

struct outcome {
    bool answered;
    uint32_t passed;
    uint32_t cut;
};

/* 504 if nothing was sent yet; else the missing rest tells the client. */
static bool answer(struct oribi_worker *w, struct oribi__call *call)
{
    char date[ORIBI_DATE_LEN];
    char text[512];
    struct oribi_conn *c = call->base.conn;
    if (call->phase == ORIBI_PHASE_STARTED || c->out)
        return false;
    oribi_date_format(oribi_clock_wall_s(), date);
    size_t n = oribi_response_error(504, date, w->reactor.config.server, call->base.head.is_head, text, sizeof(text));
    struct iovec vec = {text, n};
    bool sent = oribi_os_send_vec(c->watch.fd, &vec, 1) == (ssize_t)n;
    (void)shutdown(c->watch.fd, SHUT_WR); /* a child of the application's may have a copy that would keep it open */
    return sent;
}

/* A full pool is emptied by the siblings in a moment. */
static bool pass_patiently(struct oribi_worker *w, struct oribi_conn *c, int64_t until_ms)
{
    while (!oribi__pass_conn(w, c)) {
        struct pollfd room = {.fd = w->pool.give_fd, .events = POLLOUT};
        int64_t left_ms = until_ms - oribi_clock_ms();
        if (w->pool.give_fd < 0 || !oribi_conn_movable(c) || left_ms <= 0 ||
            (poll(&room, 1, (int)left_ms) < 0 && errno != EINTR))
            return false;
    }
    return true;
}

static void pass_all(struct oribi_worker *w, struct outcome *outcome)
{
    int64_t until_ms = oribi_clock_ms() + POOL_WAIT_MS;
    for (struct oribi_conn *c = w->reactor.conns; c; c = c->next) {
        if (c == w->current->base.conn || c->state == ORIBI_CONN_CLOSED)
            continue;
        if (pass_patiently(w, c, until_ms))
            outcome->passed++;
        else
            outcome->cut++;
    }
}

static const char *phase_text(const struct oribi__call *call)
{
    return call->phase == ORIBI_PHASE_STARTED ? "answer begun"
           : call->phase == ORIBI_PHASE_BEGUN ? "head given"
                                              : "nothing answered";
}

static void log_post_mortem(struct oribi_worker *w, const struct outcome *outcome, bool own_thread)
{
    int64_t ms = (oribi_clock_us() - w->current->started_us) / 1000;
    oribi_log(ORIBI_LOG_ERROR,
              "call deadline: %s has run for %lld ms (call_timeout %lld ms), %s%s; %u connections passed on, %u cut; "
              "the worker ends",
              w->slot->line, (long long)ms, (long long)w->options->call_timeout_ms, phase_text(w->current),
              outcome->answered ? ", 504 sent" : "", outcome->passed, outcome->cut);
    if (own_thread)
        oribi_os_backtrace(STDERR_FILENO);
    else
        oribi_log(ORIBI_LOG_ERROR, "call deadline: its thread takes no signals, so there is no backtrace");
}

/* Holding the reactor. Does not return. */
static _Noreturn void give_up(struct oribi_worker *w, bool own_thread)
{
    struct outcome outcome = {0};
    outcome.answered = answer(w, w->current);
    pass_all(w, &outcome);
    atomic_store_explicit(&w->slot->status_class[5],
                          atomic_load_explicit(&w->slot->status_class[5], memory_order_relaxed) + 1,
                          memory_order_release);
    log_post_mortem(w, &outcome, own_thread);
    if (w->setup.access_log) {
        oribi__log_access(w->current, 504, oribi_clock_us());
        oribi_access_log_flush(w->setup.access_log);
    }
    _exit(ORIBI_EXIT_CALL_DEADLINE);
}

/* --- the signal --- */

/* Once a call; further signals only break off system calls, so that a runtime that has noted the first one comes to act on it. */
static void tell(struct oribi_worker *w, int64_t started_us)
{
    if (w->told_us == started_us)
        return;
    w->told_us = started_us;
    if (w->setup.deadline_signal > 0)
        (void)pthread_kill(pthread_self(), w->setup.deadline_signal);
}

static void on_signal(int signal_number)
{
    int saved = errno;
    struct oribi_worker *w = oribi__own_worker;
    if (!w || w->owner_pid != getpid())
        return;
    if (!pthread_equal(atomic_load_explicit(&w->thread, memory_order_relaxed), pthread_self())) { /* sent to the process, and another thread got it */
        (void)pthread_kill(atomic_load_explicit(&w->thread, memory_order_relaxed), signal_number);
        return;
    }
    int64_t now_us = oribi_clock_us();
    int64_t started_us = atomic_load_explicit(&w->slot->call_started_us, memory_order_relaxed);
    int64_t deadline_us = atomic_load_explicit(&w->slot->call_deadline_us, memory_order_relaxed);
    uint32_t owner = atomic_load_explicit(&w->owner, memory_order_relaxed);
    bool overdue = started_us && deadline_us && now_us >= deadline_us;
    if (overdue &&
        owner != ORIBI_OWNER_MAIN) { /* in the core: the next signal finds the application again, or the call is over */
        if (now_us < deadline_us + ORIBI_DEADLINE_HARD_MS * 1000) {
            tell(w, started_us);
        } else if (!atomic_exchange(&w->dying, true)) {
            oribi__enter(w);
            give_up(w, true);
        }
    }
    errno = saved;
}

void oribi_deadline_install(struct oribi_worker *w)
{
    int number = oribi_os_private_signal();
    if (number <= 0)
        return;
    /* No SA_RESTART: the signal is to end waits of the application's, and it is never sent to a call in time. */
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    (void)sigaction(number, &action, NULL); /* a valid number */
    oribi_os_backtrace_prepare();
    atomic_store_explicit(&w->thread, pthread_self(), memory_order_relaxed);
}

/* --- the helper's part --- */

/* The own thread had its chance. */
static void take_over(struct oribi_worker *w)
{
    uint32_t expected = ORIBI_OWNER_CALL;
    if (atomic_load(&w->dying) || !atomic_compare_exchange_strong_explicit(&w->owner, &expected, ORIBI_OWNER_HELPER,
                                                                           memory_order_acquire, memory_order_relaxed))
        return;
    if (!atomic_exchange(&w->dying, true))
        give_up(w, false);
}

/* Suspended, frozen (cgroups) or stopped (SIGSTOP): CLOCK_MONOTONIC may have gone on, the call has not. */
void oribi_deadline_seen(struct oribi_worker *w, int64_t now_us)
{
    int64_t deadline_us = atomic_load_explicit(&w->slot->call_deadline_us, memory_order_acquire);
    int64_t started_us = atomic_load_explicit(&w->slot->call_started_us, memory_order_acquire);
    int64_t before_us = w->seen_us > started_us ? w->seen_us : started_us;
    w->seen_us = now_us;
    if (!started_us || !deadline_us || now_us - before_us < ORIBI_DEADLINE_JUMP_MS * 1000)
        return;
    /* Fails when the call has ended or has asked for more time meanwhile: then nothing is overdue. */
    (void)atomic_compare_exchange_strong(&w->slot->call_deadline_us, &deadline_us, deadline_us + now_us - before_us);
}

int64_t oribi_deadline_look(struct oribi_worker *w, int64_t now_us)
{
    oribi_deadline_seen(w, now_us);
    int64_t deadline_us = atomic_load_explicit(&w->slot->call_deadline_us, memory_order_acquire);
    if (!deadline_us || !atomic_load_explicit(&w->slot->call_started_us, memory_order_acquire))
        return INT64_MAX;
    if (now_us < deadline_us)
        return (deadline_us - now_us) / 1000 + 1;
    if (now_us - w->signalled_us >= ORIBI_DEADLINE_REPEAT_MS * 1000) {
        w->signalled_us = now_us;
        (void)pthread_kill(atomic_load_explicit(&w->thread, memory_order_relaxed),
                           oribi_os_private_signal()); /* the thread is there as long as the worker is */
    }
    if (now_us >= deadline_us + (ORIBI_DEADLINE_HARD_MS + ORIBI_DEADLINE_TAKEOVER_MS) * 1000)
        take_over(w);
    return ORIBI_DEADLINE_REPEAT_MS;
}
