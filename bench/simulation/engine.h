/* engine - the clock of the simulation: what happens next; and lists of requests and workers, by number. */
#ifndef SIMULATION_ENGINE_H
#define SIMULATION_ENGINE_H

#include "rules.h"

#define NONE UINT32_MAX

enum event_kind {
    EVENT_CALL_ENDS, /* of a worker */
    EVENT_WORKER_WAKES,
    EVENT_HELPER_LOOKS,
    EVENT_TELL, /* the balancer is told how machines stand */
};

struct event {
    double at;
    uint64_t number; /* of two at one time the older comes first */
    enum event_kind kind;
    uint32_t id;
    uint32_t version; /* of a helper's look: one that was put off is not the one that counts */
};

struct events {
    struct event *heap;
    size_t count;
    size_t cap;
    uint64_t number;
};

static bool event__before(const struct event *a, const struct event *b)
{
    return a->at < b->at || (a->at == b->at && a->number < b->number);
}

static void events_add(struct events *e, double at, enum event_kind kind, uint32_t id, uint32_t version)
{
    if (e->count == e->cap) {
        e->cap = e->cap ? e->cap * 2 : 1024;
        e->heap = realloc(e->heap, e->cap * sizeof(*e->heap));
        if (!e->heap)
            exit(1);
    }
    struct event event = {at, e->number++, kind, id, version};
    size_t i = e->count++;
    while (i > 0 && event__before(&event, &e->heap[(i - 1) / 2])) {
        e->heap[i] = e->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    e->heap[i] = event;
}

static struct event events_pop(struct events *e)
{
    struct event first = e->heap[0];
    struct event last = e->heap[--e->count];
    size_t i = 0;
    for (size_t child = 1; child < e->count; child = 2 * i + 1) {
        if (child + 1 < e->count && event__before(&e->heap[child + 1], &e->heap[child]))
            child++;
        if (!event__before(&e->heap[child], &last))
            break;
        e->heap[i] = e->heap[child];
        i = child;
    }
    if (e->count > 0)
        e->heap[i] = last;
    return first;
}

/* Requests in their order; each is in one of them at most. */
struct fifo {
    uint32_t first;
    uint32_t last;
    uint32_t count;
};

static const struct fifo fifo_empty = {NONE, NONE, 0};

static void fifo_push(struct fifo *fifo, uint32_t *next, uint32_t id)
{
    next[id] = NONE;
    if (fifo->count++ == 0)
        fifo->first = id;
    else
        next[fifo->last] = id;
    fifo->last = id;
}

static uint32_t fifo_pop(struct fifo *fifo, const uint32_t *next)
{
    uint32_t id = fifo->first;
    fifo->first = next[id];
    if (--fifo->count == 0)
        fifo->last = NONE;
    return id;
}

/* Workers in the order in which they began to sleep or to wait; any of them may leave. */
struct link {
    uint32_t before;
    uint32_t after;
    bool in;
};

struct line {
    uint32_t first;
    uint32_t last;
    uint32_t count;
};

static const struct line line_empty = {NONE, NONE, 0};

static void line_enter(struct line *line, struct link *links, uint32_t id)
{
    if (links[id].in)
        return;
    links[id] = (struct link){line->last, NONE, true};
    if (line->last == NONE)
        line->first = id;
    else
        links[line->last].after = id;
    line->last = id;
    line->count++;
}

static void line_leave(struct line *line, struct link *links, uint32_t id)
{
    struct link link = links[id];
    if (!link.in)
        return;
    if (link.before == NONE)
        line->first = link.after;
    else
        links[link.before].after = link.after;
    if (link.after == NONE)
        line->last = link.before;
    else
        links[link.after].before = link.before;
    links[id].in = false;
    line->count--;
}

#endif
