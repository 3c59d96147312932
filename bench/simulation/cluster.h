/* cluster - machines with workers, and what happens at them; the state that all rules share. */
#ifndef SIMULATION_CLUSTER_H
#define SIMULATION_CLUSTER_H

#include "engine.h"

enum helper_state { HELPER_PARKED, HELPER_NAP, HELPER_ON_EVENTS, HELPER_WAITER };

struct worker {
    struct fifo queue; /* requests on its connections */
    uint32_t running;  /* the request in its call, or NONE */
    uint32_t machine;
    double call_at;    /* when its call began */
    double average_ms; /* of its calls, as they are remembered */
    double expects_ms; /* average_ms when this call began */
    bool waking;       /* a wake-up is on its way */
    enum helper_state helper;
    uint32_t version; /* of the helper's next look */
    int quiet;
    bool wants_room; /* it found none in the hand-off queue, and has not looked since */
};

/* Client connections of a machine with our rules. */
struct connections {
    uint32_t *owner; /* the worker that holds it */
    uint32_t *free;  /* those without a request, in no order */
    uint32_t count;
    uint32_t free_count;
    uint32_t cap;
};

struct machine {
    uint32_t first; /* of its workers */
    struct chooser chooser;
    struct fifo queue;   /* RULE_IDEAL: the one queue. Ours: the hand-off queue */
    struct fifo backlog; /* ours: newcomers at the listener */
    double full_at;      /* when the hand-off queue had no room last */
    struct line sleepers;
    struct line waiters;
    uint32_t idle_count;
    uint32_t waking_count;
    struct connections connections;
};

struct cluster {
    struct trace *trace;
    enum rule rule;
    uint32_t machine_count;
    uint32_t worker_count; /* of a machine */
    uint32_t connections;  /* for each worker */
    double wake_ms;
    double handoff_ms;
    double inform_ms; /* between two reports to the balancer; 0: it knows */
    struct chooser balancer;
    struct machine *machines;
    struct worker *workers;
    struct link *sleeping;
    struct link *waiting;
    struct events events;
    double now;
    uint32_t *next; /* of each request, where it queues */
    uint32_t *conn;
    double *wait;
    size_t ended;
    uint32_t clients; /* that ask again at once; 0: arrivals are the trace's */
    uint32_t room;    /* for messages in a hand-off queue */
    uint64_t seed;
    double newcomers_p50, newcomers_max;
    uint64_t handoffs, wakeups, looks, slots; /* slots: of scoreboards or counters that somebody read */
};

enum { NEWCOMER_EACH = 50 };

/* With clients that ask again at once: one that connects, asks once, and leaves. */
static bool is_newcomer(const struct cluster *c, uint32_t request)
{
    return c->clients > 0 && request >= c->clients && request % NEWCOMER_EACH == 0;
}

static void begin_call(struct cluster *c, uint32_t worker, uint32_t request)
{
    c->workers[worker].running = request;
    c->workers[worker].call_at = c->now;
    c->wait[request] = c->now - c->trace->at[request];
    events_add(&c->events, c->now + c->trace->service[request], EVENT_CALL_ENDS, worker, 0);
}

static uint32_t end_call(struct cluster *c, uint32_t worker)
{
    uint32_t request = c->workers[worker].running;
    c->workers[worker].running = NONE;
    c->ended++;
    return request;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Takes the newcomers' waits out of all others; gives how many are left. */
static size_t part_newcomers(struct cluster *c)
{
    size_t others = 0, newcomers = 0;
    double *waits = chooser__memory(c->trace->count, sizeof(*waits));
    for (size_t i = 0; i < c->trace->count; i++)
        if (is_newcomer(c, (uint32_t)i))
            waits[newcomers++] = c->wait[i];
        else
            c->wait[others++] = c->wait[i];
    c->newcomers_p50 = c->newcomers_max = 0;
    if (newcomers > 0) {
        qsort(waits, newcomers, sizeof(*waits), by_size);
        c->newcomers_p50 = waits[newcomers / 2];
        c->newcomers_max = waits[newcomers - 1];
    }
    free(waits);
    return others;
}

#endif
