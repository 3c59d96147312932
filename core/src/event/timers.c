/* A binary heap of timers by deadline; see the header. Each timer knows its place, so that it can be moved and taken
 * out without a search. */
#include "oribi/event/timers.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"

#include <assert.h>
#include <stddef.h>

enum { CAP_FIRST = 64 };

void oribi_timers_init(struct oribi_timers *timers)
{
    *timers = (struct oribi_timers){0};
}

void oribi_timers_deinit(struct oribi_timers *timers)
{
    oribi_mem_free(timers->heap);
    *timers = (struct oribi_timers){0};
}

int oribi_timers_try_reserve(struct oribi_timers *timers, uint32_t count)
{
    if (count <= timers->cap)
        return 0;
    uint32_t cap = timers->cap ? timers->cap : CAP_FIRST;
    while (cap < count)
        cap = cap > UINT32_MAX / 2 ? count : 2 * cap;
    struct oribi_timer **heap = oribi_mem_try_resize(timers->heap, cap, sizeof(*heap));
    if (!heap)
        return ORIBI_ENOMEM;
    timers->heap = heap;
    timers->cap = cap;
    return 0;
}

/* Ends the process when memory is out. */
static void grow(struct oribi_timers *timers)
{
    uint32_t cap = timers->cap ? 2 * timers->cap : CAP_FIRST;
    struct oribi_timer **heap = oribi_mem_alloc(cap, sizeof(*heap));
    for (uint32_t i = 0; i < timers->len; i++)
        heap[i] = timers->heap[i];
    oribi_mem_free(timers->heap);
    timers->heap = heap;
    timers->cap = cap;
}

static void put(struct oribi_timers *timers, uint32_t i, struct oribi_timer *timer)
{
    timers->heap[i] = timer;
    timer->place = i + 1;
}

/* Puts `timer` at the place i, which is free, or above it. */
static void sift_up(struct oribi_timers *timers, uint32_t i, struct oribi_timer *timer)
{
    while (i > 0 && timers->heap[(i - 1) / 2]->at_ms > timer->at_ms) {
        put(timers, i, timers->heap[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    put(timers, i, timer);
}

/* Puts `timer` at the place i, which is free, or below it. */
static void sift_down(struct oribi_timers *timers, uint32_t i, struct oribi_timer *timer)
{
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child + 1 < timers->len && timers->heap[child + 1]->at_ms < timers->heap[child]->at_ms)
            child++;
        if (child >= timers->len || timers->heap[child]->at_ms >= timer->at_ms)
            break;
        put(timers, i, timers->heap[child]);
        i = child;
    }
    put(timers, i, timer);
}

void oribi_timers_stop(struct oribi_timers *timers, struct oribi_timer *timer)
{
    if (!timer->place)
        return;
    uint32_t i = timer->place - 1;
    assert(i < timers->len && timers->heap[i] == timer);
    timer->place = 0;
    struct oribi_timer *last = timers->heap[--timers->len];
    if (last == timer)
        return;
    if (i > 0 && timers->heap[(i - 1) / 2]->at_ms > last->at_ms)
        sift_up(timers, i, last);
    else
        sift_down(timers, i, last);
}

void oribi_timers_arm(struct oribi_timers *timers, struct oribi_timer *timer, int64_t at_ms)
{
    if (timer->place && timer->at_ms == at_ms)
        return;
    oribi_timers_stop(timers, timer);
    if (at_ms == INT64_MAX)
        return;
    if (timers->len == timers->cap)
        grow(timers);
    timer->at_ms = at_ms;
    sift_up(timers, timers->len++, timer);
}

int64_t oribi_timer_at(const struct oribi_timer *timer)
{
    return timer->place ? timer->at_ms : INT64_MAX;
}

struct oribi_timer *oribi_timers_expired(struct oribi_timers *timers, int64_t now_ms)
{
    if (!timers->len || timers->heap[0]->at_ms > now_ms)
        return NULL;
    struct oribi_timer *timer = timers->heap[0];
    oribi_timers_stop(timers, timer);
    return timer;
}

int64_t oribi_timers_next_at(const struct oribi_timers *timers)
{
    return timers->len ? timers->heap[0]->at_ms : INT64_MAX;
}
