/* The log of slow calls; see the header. */
#include "worker/call.h"
#include "worker/logs/exchange_log.h"

#include "oribi/base/clock.h"

#include <stdio.h>
#include <string.h>

enum {
    HEAD_CAP = 768,
    FRAMES_SHOWN = 12,
};

static int64_t slow_us(const struct oribi_worker *w)
{
    return w->options->slow_log_ms * 1000;
}

/* "1.5 s", "80 ms" */
static const char *time_text(int64_t us, char text[32])
{
    if (us < 1000 * 1000)
        (void)snprintf(text, 32, "%lld ms", (long long)us / 1000); /* fits */
    else
        (void)snprintf(text, 32, "%.1f s", (double)us / 1e6); /* fits */
    return text;
}

/* --- while it runs --- */

static size_t first_lines(const struct oribi__stand *stand)
{
    size_t n = 0;
    for (int i = 0; i < FRAMES_SHOWN && n < stand->len; i++) {
        const char *newline = memchr(stand->text + n, '\n', stand->len - n);
        n = newline ? (size_t)(newline + 1 - stand->text) : stand->len;
    }
    return n;
}

static void log_sample(const struct oribi_worker *w, const struct oribi__call_facts *facts, int64_t now_us,
                       const struct oribi__sample *sample)
{
    char head[HEAD_CAP];
    char age[32];
    char limit[32];
    const struct oribi__stand *stand = &sample->stand;
    const char *newline = memchr(stand->text, '\n', stand->len);
    int place_n = newline && newline - stand->text < HEAD_CAP / 2 ? (int)(newline - stand->text) : 0;
    const char *doing = sample->state.call[0] && strcmp(sample->state.call, "futex") != 0 ? sample->state.call : "";
    const char *waits = doing[0] ? ", waits in " : "";
    const char *place = place_n == 0                          ? "where its thread does not tell"
                        : strncmp(stand->text, "C: ", 3) == 0 ? "in "
                                                              : "at ";
    (void)snprintf(head, sizeof(head), "slow call: %s has run for %s (slow_log %s)%s%s; it stands %s%.*s", facts->line,
                   time_text(now_us - facts->started_us, age), time_text(slow_us(w), limit), waits, doing, place,
                   place_n, stand->text); /* cut when longer: what follows has the place */
    oribi_log_about(oribi_slice(facts->id, facts->id_len), oribi_slice(facts->trace, facts->trace_len));
    oribi_log_block(ORIBI_LOG_WARN, head, stand->text, (uint32_t)first_lines(stand));
    oribi_log_about(oribi_slice(NULL, 0), oribi_slice(NULL, 0));
}

static void look_at(struct oribi_thread *thread, int64_t now_us)
{
    struct oribi_worker *w = thread->worker;
    struct oribi__slow *slow = &thread->slow;
    struct oribi__call_facts facts;
    bool known = oribi__call_facts(thread, &facts);
    if (!known || facts.started_us != slow->started_us)
        return; /* another call, whose time has just begun */
    if (facts.begun || facts.after) {
        slow->next_us = INT64_MAX;
        return;
    }
    slow->looks++;
    slow->next_us = slow->looks < ORIBI__SLOW_LOOKS_MAX ? slow->started_us + (slow_us(w) << slow->looks) : INT64_MAX;
    if (!oribi_log_limit_allows(&w->slow_log_limit, now_us / 1000))
        return;
    const struct oribi__sample *sample = oribi__sample_take(thread);
    if (atomic_load(thread->started_us) != facts.started_us)
        return; /* it has ended, and what was seen is another call's */
    atomic_store(&slow->said_us, facts.started_us);
    log_sample(w, &facts, oribi_clock_us(), sample);
}

int64_t oribi__slow_look(struct oribi_worker *w, int64_t now_us)
{
    int64_t soonest_us = INT64_MAX;
    for (uint32_t i = 0; w->options->slow_log_ms && i < w->threads.count; i++) {
        struct oribi_thread *thread = &w->threads.list[i];
        int64_t started_us = atomic_load_explicit(thread->started_us, memory_order_acquire);
        if (!started_us)
            continue;
        if (thread->slow.started_us != started_us) {
            thread->slow.started_us = started_us;
            thread->slow.next_us = started_us + slow_us(w);
            thread->slow.looks = 0;
        }
        if (now_us >= thread->slow.next_us)
            look_at(thread, now_us);
        soonest_us = thread->slow.next_us < soonest_us ? thread->slow.next_us : soonest_us;
    }
    if (soonest_us == INT64_MAX)
        return INT64_MAX;
    return soonest_us > now_us ? (soonest_us - now_us) / 1000 + 1 : 1;
}

/* --- its end --- */

/* It was begun piece by piece, or has no answer of ours: its socket was taken. */
static bool is_stream(const struct oribi__exchange *exchange)
{
    return exchange->held.p || exchange->phase != ORIBI_PHASE_STARTED;
}

/* The runtime was told of call_timeout, and the application answered all the same: it caught the exception, or looked
 * too late. Nobody else logs such a call. */
static void say_overdue(const struct oribi__exchange *exchange, int status, int64_t call_us)
{
    char call[32];
    int64_t told_us = atomic_load_explicit(&exchange->thread->told_us, memory_order_relaxed);
    if (told_us <= exchange->started_us || exchange->aborted || status == 504)
        return;
    oribi_thread_log_about(exchange->thread);
    oribi_log(ORIBI_LOG_WARN, "call deadline: %s ran for %s, over call_timeout; the application answered %d",
              exchange->thread->line, time_text(call_us, call), status);
    oribi_thread_log_about(NULL);
}

/* A stream is long by nature, and its end is logged if it was slow to begin. */
void oribi__slow_end(const struct oribi__exchange *exchange, int status, int64_t now_us)
{
    struct oribi_worker *w = exchange->worker;
    const struct oribi_thread *thread = exchange->thread;
    int64_t call_us = now_us - exchange->started_us;
    char call[32];
    char queue[32];
    char total[32];
    char outcome[32];
    say_overdue(exchange, status, call_us);
    if (!w->options->slow_log_ms || call_us < slow_us(w))
        return;
    bool said = atomic_load(&thread->slow.said_us) == exchange->started_us;
    if (!said && (is_stream(exchange) || !oribi_log_limit_allows(&w->slow_end_limit, now_us / 1000)))
        return;
    (void)snprintf(outcome, sizeof(outcome), exchange->aborted ? "cut" : "status %d", status); /* fits */
    oribi_thread_log_about(thread);
    oribi_log(ORIBI_LOG_WARN, "slow call: %s took %s, after %s in the queue, %s in all; %s", thread->line,
              time_text(call_us, call), time_text(exchange->req.queue_us, queue),
              time_text(now_us - exchange->base.complete_us, total), outcome);
    oribi_thread_log_about(NULL);
}
