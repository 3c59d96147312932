/* FIFO lists of equal timeouts; see the header. */
#include "oribi/event/timeouts.h"

#include <assert.h>
#include <string.h>

void oribi_timeouts_init(struct oribi_timeouts *timeouts)
{
    memset(timeouts, 0, sizeof(*timeouts));
}

void oribi_timeouts_count_in(struct oribi_timeouts *timeouts, _Atomic uint32_t *counts)
{
    for (int c = 0; c < ORIBI_TIMEOUT_CLASSES; c++) {
        assert(!timeouts->classes[c].first);
        atomic_store_explicit(&counts[c], 0, memory_order_relaxed);
    }
    timeouts->armed = counts;
}

/* One writer: a load and a store, no locked instruction. */
static void count(const struct oribi_timeouts *timeouts, uint8_t timeout_class, uint32_t change)
{
    if (!timeouts->armed)
        return;
    _Atomic uint32_t *armed = &timeouts->armed[timeout_class];
    atomic_store_explicit(armed, atomic_load_explicit(armed, memory_order_relaxed) + change, memory_order_relaxed);
}

void oribi_timeouts_set(struct oribi_timeouts *timeouts, enum oribi_timeout_class timeout_class, int64_t length_ms)
{
    assert(!timeouts->classes[timeout_class].first);
    timeouts->classes[timeout_class].length_ms = length_ms;
}

static void unlink_timer(struct oribi_timeouts *timeouts, struct oribi_timeout *timer)
{
    if (timer->timeout_class == ORIBI_TIMEOUT_NONE)
        return;
    if (timer->prev)
        timer->prev->next = timer->next;
    else
        timeouts->classes[timer->timeout_class].first = timer->next;
    if (timer->next)
        timer->next->prev = timer->prev;
    else
        timeouts->classes[timer->timeout_class].last = timer->prev;
    count(timeouts, timer->timeout_class, UINT32_MAX);
    timer->prev = timer->next = NULL;
    timer->timeout_class = ORIBI_TIMEOUT_NONE;
}

void oribi_timeouts_arm(struct oribi_timeouts *timeouts, struct oribi_timeout *timer,
                        enum oribi_timeout_class timeout_class, int64_t now_ms)
{
    unlink_timer(timeouts, timer);
    timer->armed_ms = now_ms;
    if (timeout_class == ORIBI_TIMEOUT_NONE)
        return;
    timer->timeout_class = (uint8_t)timeout_class;
    count(timeouts, timer->timeout_class, 1);
    timer->prev = timeouts->classes[timeout_class].last;
    if (timer->prev)
        timer->prev->next = timer;
    else
        timeouts->classes[timeout_class].first = timer;
    timeouts->classes[timeout_class].last = timer;
}

struct oribi_timeout *oribi_timeouts_expired(struct oribi_timeouts *timeouts, int64_t now_ms,
                                             enum oribi_timeout_class *timeout_class)
{
    for (int c = ORIBI_TIMEOUT_NONE + 1; c < ORIBI_TIMEOUT_CLASSES; c++) {
        struct oribi_timeout *timer = timeouts->classes[c].first;
        if (!timer || timeouts->classes[c].length_ms == 0)
            continue;
        if (now_ms - timer->armed_ms < timeouts->classes[c].length_ms)
            continue;
        unlink_timer(timeouts, timer);
        *timeout_class = (enum oribi_timeout_class)c;
        return timer;
    }
    return NULL;
}

int64_t oribi_timeouts_next_ms(const struct oribi_timeouts *timeouts, int64_t now_ms)
{
    int64_t next = -1;
    for (int c = ORIBI_TIMEOUT_NONE + 1; c < ORIBI_TIMEOUT_CLASSES; c++) {
        const struct oribi_timeout *timer = timeouts->classes[c].first;
        if (!timer || timeouts->classes[c].length_ms == 0)
            continue;
        int64_t left = timer->armed_ms + timeouts->classes[c].length_ms - now_ms;
        if (left < 0)
            left = 0;
        if (next < 0 || left < next)
            next = left;
    }
    return next;
}

struct oribi_timeout *oribi_timeouts_oldest(const struct oribi_timeouts *timeouts,
                                            enum oribi_timeout_class timeout_class)
{
    return timeouts->classes[timeout_class].first;
}
