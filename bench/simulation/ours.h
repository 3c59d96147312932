/* ours - how Oribi's workers get their requests, as a model of core/src/worker/{placement,helper,accept,worker}.c.
 * Names are theirs. Reading order: ours_arrive, ours_call_ends, ours_worker_wakes, ours_helper_looks.
 *
 * Left out: calls shorter than a millisecond and the rules for them, bodies, deadlines, limits, a site, threads,
 * the processors, and what they are busy with besides: a wake-up takes the same time always. */
#ifndef SIMULATION_OURS_H
#define SIMULATION_OURS_H

#include "cluster.h"

#define OURS_LONG_MS    1.0 /* ORIBI_LONG_US */
#define OURS_EXPECT_MS  5.0 /* ORIBI_EXPECT_US */
#define OURS_BUSY_MS    10.0
#define OURS_EARLY_MS   4.0
#define OURS_TICK_MS    1.0
#define OURS_LOOK_MS    50.0
#define OURS_PASS_MS    0.3       /* ORIBI_PASS_US */
#define OURS_ACCEPT_MS  0.032     /* ACCEPT_US */
#define OURS_CROWDED_MS 50.0      /* CROWDED_US */
#define OURS_LATE       (7.0 / 8) /* LATE_EIGHTHS */

enum {
    OURS_QUIET_SLOWER = 8,
    OURS_QUIET_PARK = 24,
    OURS_QUIET_IDLE = 4,
    OURS_ACCEPT_BATCH = 16,      /* ACCEPT_BATCH */
    OURS_ACCEPT_BATCH_MAX = 256, /* ACCEPT_BATCH_MAX */
    OURS_AVERAGE_OVER = 8
};

static struct machine *ours__machine(struct cluster *c, uint32_t worker)
{
    return &c->machines[c->workers[worker].machine];
}

/* oribi__idle_siblings: reads the slots of idle workers, since all others are skipped, and no more than are wanted. */
static uint32_t ours__idle_siblings(struct cluster *c, uint32_t worker, uint32_t wanted)
{
    uint32_t idle = ours__machine(c, worker)->idle_count - (c->workers[worker].running == NONE);
    uint32_t found = idle < wanted ? idle : wanted;
    c->slots += found;
    return found;
}

static void ours__look_at(struct cluster *c, uint32_t worker, enum helper_state state, double after_ms)
{
    c->workers[worker].helper = state;
    events_add(&c->events, c->now + after_ms, EVENT_HELPER_LOOKS, worker, ++c->workers[worker].version);
}

static void ours__wake_helper(struct cluster *c, uint32_t worker)
{
    c->wakeups++;
    line_leave(&ours__machine(c, worker)->waiters, c->waiting, worker);
    ours__look_at(c, worker, HELPER_NAP, c->wake_ms);
}

/* oribi__idle_waiter_wake: the one that waits longest. */
static void ours__wake_waiter(struct cluster *c, struct machine *m)
{
    if (m->waiters.first != NONE)
        ours__wake_helper(c, m->waiters.first);
}

/* Something waits in the hand-off queue or at the listener: the kernel wakes the sleeper that is first in its line. */
static void ours__wake_sleeper(struct cluster *c, struct machine *m, double after_ms)
{
    uint32_t worker = m->sleepers.first;
    if (worker == NONE)
        return;
    line_leave(&m->sleepers, c->sleeping, worker);
    c->workers[worker].waking = true;
    m->waking_count++;
    c->wakeups++;
    events_add(&c->events, c->now + after_ms + c->wake_ms, EVENT_WORKER_WAKES, worker, 0);
}

/* oribi__waits_for_any */
static bool ours__waits_for_any(const struct cluster *c, uint32_t worker)
{
    const struct worker *w = &c->workers[worker];
    return w->expects_ms >= OURS_EXPECT_MS || c->now - w->call_at >= OURS_EXPECT_MS;
}

static bool ours__is_crowded(const struct cluster *c, const struct machine *m)
{
    return c->now - m->full_at < OURS_CROWDED_MS;
}

/* youngest_us */
static double ours__youngest(struct cluster *c, uint32_t worker, uint32_t first)
{
    struct machine *m = ours__machine(c, worker);
    if (!ours__is_crowded(c, m) || ours__idle_siblings(c, worker, 1) > 0)
        return INFINITY;
    double oldest = c->trace->at[first];
    c->slots += c->worker_count;
    for (uint32_t i = m->first; i < m->first + c->worker_count; i++)
        if (i != worker && c->workers[i].queue.count > 0 && c->trace->at[c->workers[i].queue.first] < oldest)
            oldest = c->trace->at[c->workers[i].queue.first];
    return c->now - (c->now - oldest) * OURS_LATE;
}

/* oribi__pass_on, keep: 0 or 1. Returns how many went. */
static uint32_t ours__pass_on(struct cluster *c, uint32_t worker, uint32_t keep)
{
    struct fifo *queue = &c->workers[worker].queue;
    struct machine *m = ours__machine(c, worker);
    uint32_t passed = 0;
    if (queue->count <= keep)
        return 0;
    uint32_t idle = ours__idle_siblings(c, worker, queue->count - keep);
    struct fifo kept = fifo_empty;
    bool waits = ours__waits_for_any(c, worker);
    if (keep > 0)
        fifo_push(&kept, c->next, fifo_pop(queue, c->next));
    double youngest = queue->count > 0 ? ours__youngest(c, worker, queue->first) : 0;
    c->workers[worker].wants_room = false;
    for (; queue->count > 0 && (passed < idle || waits) && c->trace->at[queue->first] <= youngest; passed++) {
        if (m->queue.count >= c->room) {
            c->workers[worker].wants_room = true;
            m->full_at = c->now;
            break;
        }
        fifo_push(&m->queue, c->next, fifo_pop(queue, c->next));
        c->handoffs++;
        ours__wake_sleeper(c, m, c->handoff_ms * (passed + 1));
    }
    if (keep > 0) {
        while (queue->count > 0)
            fifo_push(&kept, c->next, fifo_pop(queue, c->next));
        *queue = kept;
    }
    return passed;
}

/* oribi__take_queued and oribi__exchange_begin; the worker was idle before or was not. */
static void ours__begin_next(struct cluster *c, uint32_t worker, bool was_idle)
{
    struct worker *w = &c->workers[worker];
    if (w->queue.count > 1)
        (void)ours__pass_on(c, worker, 1);
    if (was_idle) {
        ours__machine(c, worker)->idle_count--;
        line_leave(&ours__machine(c, worker)->sleepers, c->sleeping, worker);
    }
    w->expects_ms = w->average_ms;
    begin_call(c, worker, fifo_pop(&w->queue, c->next));
    if (w->helper == HELPER_PARKED) {
        w->quiet = 0;
        ours__wake_helper(c, worker);
    }
}

/* accept_budget, saturated_budget: calls are longer than a millisecond. */
static uint32_t ours__budget(const struct worker *w, bool idle_elsewhere)
{
    if (idle_elsewhere)
        return 1;
    double budget = w->queue.count > 0 ? w->average_ms / OURS_ACCEPT_MS : OURS_ACCEPT_BATCH;
    return budget < OURS_ACCEPT_BATCH       ? OURS_ACCEPT_BATCH
           : budget > OURS_ACCEPT_BATCH_MAX ? OURS_ACCEPT_BATCH_MAX
                                            : (uint32_t)budget;
}

/* accept_next, and oribi__share where a request is queued before this one. */
static void ours__accept_one(struct cluster *c, uint32_t worker)
{
    struct machine *m = ours__machine(c, worker);
    struct worker *w = &c->workers[worker];
    uint32_t request = fifo_pop(&m->backlog, c->next);
    if (w->queue.count == 0 || w->average_ms <= OURS_PASS_MS || ours__is_crowded(c, m) || m->queue.count >= c->room) {
        fifo_push(&w->queue, c->next, request);
        return;
    }
    fifo_push(&m->queue, c->next, request);
    c->handoffs++;
    ours__wake_sleeper(c, m, c->handoff_ms);
}

/* oribi__accept_turn of a worker that was awake, or was just woken. */
static void ours__accept(struct cluster *c, uint32_t worker, bool woken)
{
    struct machine *m = ours__machine(c, worker);
    if (m->backlog.count == 0)
        return;
    bool idle_elsewhere = ours__idle_siblings(c, worker, 1) > 0;
    if (idle_elsewhere && !woken && m->waking_count > 0)
        return; /* it is left to the sleeper that was woken for it */
    for (uint32_t budget = ours__budget(&c->workers[worker], idle_elsewhere); budget > 0 && m->backlog.count > 0;
         budget--)
        ours__accept_one(c, worker);
}

/* oribi__accept_in_call; the batches follow one another at once. */
static void ours__accept_in_call(struct cluster *c, uint32_t worker)
{
    struct machine *m = ours__machine(c, worker);
    struct worker *w = &c->workers[worker];
    if (!ours__waits_for_any(c, worker) || ours__idle_siblings(c, worker, 1) > 0)
        return;
    while (m->backlog.count > 0)
        fifo_push(&w->queue, c->next, fifo_pop(&m->backlog, c->next));
}

/* Helpers in nap_for_room(): when three quarters of the hand-off queue are taken. */
static void ours__wake_for_room(struct cluster *c, struct machine *m)
{
    if (m->queue.count > c->room / 4)
        return;
    for (uint32_t i = m->first; i < m->first + c->worker_count; i++)
        if (c->workers[i].helper == HELPER_WAITER && c->workers[i].wants_room)
            ours__wake_helper(c, i);
}

/* own_comes_first */
static bool ours__own_comes_first(struct cluster *c, uint32_t worker)
{
    const struct fifo *own = &c->workers[worker].queue;
    const struct fifo *shared = &ours__machine(c, worker)->queue;
    return own->count > 0 && shared->count > 0 && c->trace->at[shared->first] > c->trace->at[own->first] &&
           ours__idle_siblings(c, worker, 1) == 0;
}

/* oribi__handoff_turn: one request, into the queue by age. */
static void ours__take(struct cluster *c, uint32_t worker, bool woken)
{
    struct machine *m = ours__machine(c, worker);
    struct fifo *queue = &c->workers[worker].queue;
    bool left =
        !woken && m->queue.count > 0 && ours__idle_siblings(c, worker, 1) > 0 && m->waking_count >= m->queue.count;
    if (m->queue.count == 0 || left || (!woken && ours__own_comes_first(c, worker)))
        return;
    struct fifo by_age = fifo_empty;
    uint32_t taken = fifo_pop(&m->queue, c->next);
    ours__wake_for_room(c, m);
    while (queue->count > 0 && c->trace->at[queue->first] <= c->trace->at[taken])
        fifo_push(&by_age, c->next, fifo_pop(queue, c->next));
    fifo_push(&by_age, c->next, taken);
    while (queue->count > 0)
        fifo_push(&by_age, c->next, fifo_pop(queue, c->next));
    *queue = by_age;
}

static void ours__sleep(struct cluster *c, uint32_t worker)
{
    struct machine *m = ours__machine(c, worker);
    line_enter(&m->sleepers, c->sleeping, worker);
    ours__wake_waiter(c, m);
}

static void ours_call_ends(struct cluster *c, uint32_t worker)
{
    struct machine *m = ours__machine(c, worker);
    struct worker *w = &c->workers[worker];
    w->average_ms += (c->now - w->call_at - w->average_ms) / OURS_AVERAGE_OVER;
    uint32_t request = end_call(c, worker);
    if (c->rule == RULE_OURS && !is_newcomer(c, request)) {
        struct connections *connections = &m->connections;
        connections->owner[c->conn[request]] = worker;
        connections->free[connections->free_count++] = c->conn[request];
    }
    c->workers[worker].running = worker; /* not idle yet */
    ours__take(c, worker, false);
    ours__accept(c, worker, false);
    c->workers[worker].running = NONE;
    if (c->workers[worker].queue.count > 0) {
        m->idle_count++;
        ours__begin_next(c, worker, true);
    } else {
        m->idle_count++;
        ours__sleep(c, worker);
    }
}

static void ours_worker_wakes(struct cluster *c, uint32_t worker)
{
    c->workers[worker].waking = false;
    ours__machine(c, worker)->waking_count--;
    ours__take(c, worker, true);
    ours__accept(c, worker, true);
    if (c->workers[worker].queue.count > 0)
        ours__begin_next(c, worker, true);
    else
        ours__sleep(c, worker);
}

/* --- the helper --- */

static void ours__wait_for_idle(struct cluster *c, uint32_t worker)
{
    if (ours__idle_siblings(c, worker, 1) > 0) {
        ours__look_at(c, worker, HELPER_NAP, c->handoff_ms);
        return;
    }
    line_enter(&ours__machine(c, worker)->waiters, c->waiting, worker);
    ours__look_at(c, worker, HELPER_WAITER, OURS_BUSY_MS);
}

static void ours__step(struct cluster *c, uint32_t worker)
{
    const struct worker *w = &c->workers[worker];
    ours__accept_in_call(c, worker);
    (void)ours__pass_on(c, worker, 0);
    bool waits = w->queue.count > 0;
    uint32_t idle = ours__idle_siblings(c, worker, 1);
    if (!waits && idle > 0)
        ours__wake_waiter(c, ours__machine(c, worker));
    if (waits && idle == 0)
        ours__wait_for_idle(c, worker);
    else
        ours__look_at(c, worker, HELPER_ON_EVENTS, waits ? OURS_TICK_MS : OURS_LOOK_MS);
}

static void ours__look_at_short_call(struct cluster *c, uint32_t worker)
{
    struct worker *w = &c->workers[worker];
    bool busy = w->running != NONE;
    if (!busy)
        ours__wake_waiter(c, ours__machine(c, worker));
    w->quiet += busy ? 1 : OURS_QUIET_IDLE;
    if (w->quiet >= OURS_QUIET_PARK) {
        w->helper = HELPER_PARKED;
        return;
    }
    double nap_ms = w->quiet < OURS_QUIET_SLOWER ? 1 : w->quiet < 2 * OURS_QUIET_SLOWER ? 2 : 4;
    bool is_idle_waiter = busy && ours__idle_siblings(c, worker, 1) == 0;
    ours__look_at(c, worker, HELPER_NAP, is_idle_waiter ? OURS_EARLY_MS : nap_ms * OURS_TICK_MS);
}

static void ours_helper_looks(struct cluster *c, uint32_t worker, uint32_t version)
{
    struct worker *w = &c->workers[worker];
    if (version != w->version)
        return;
    line_leave(&ours__machine(c, worker)->waiters, c->waiting, worker);
    c->looks++;
    double age_ms = w->running == NONE ? 0 : c->now - w->call_at;
    if (age_ms < OURS_LONG_MS) {
        ours__look_at_short_call(c, worker);
        return;
    }
    w->quiet = 0;
    if (age_ms >= OURS_BUSY_MS || ours__waits_for_any(c, worker) || ours__idle_siblings(c, worker, 1) > 0)
        ours__step(c, worker);
    else
        ours__wait_for_idle(c, worker);
}

/* --- clients --- */

static void ours__newcomer(struct cluster *c, struct machine *m, uint32_t request)
{
    uint32_t worker = m->sleepers.first;
    if (worker == NONE) {
        fifo_push(&m->backlog, c->next, request);
        return;
    }
    fifo_push(&c->workers[worker].queue, c->next, request);
    ours__begin_next(c, worker, true);
}

/* Any connection without a request; NONE: the client opens another one. */
static uint32_t ours__connection(struct cluster *c, struct machine *m)
{
    struct connections *connections = &m->connections;
    if (connections->free_count == 0)
        return NONE;
    uint32_t at = draw_below(&c->seed, connections->free_count);
    uint32_t conn = connections->free[at];
    connections->free[at] = connections->free[--connections->free_count];
    return conn;
}

static void ours_arrive(struct cluster *c, struct machine *m, uint32_t request)
{
    struct connections *connections = &m->connections;
    uint32_t conn = c->rule == RULE_OURS && !is_newcomer(c, request) ? ours__connection(c, m) : NONE;
    if (conn == NONE) {
        if (c->rule == RULE_OURS) {
            if (connections->count == connections->cap) {
                connections->cap = connections->cap ? connections->cap * 2 : 16;
                connections->owner = realloc(connections->owner, connections->cap * sizeof(uint32_t));
                connections->free = realloc(connections->free, connections->cap * sizeof(uint32_t));
            }
            c->conn[request] = connections->count++;
        }
        ours__newcomer(c, m, request);
        return;
    }
    uint32_t worker = connections->owner[conn];
    struct worker *w = &c->workers[worker];
    c->conn[request] = conn;
    fifo_push(&w->queue, c->next, request);
    if (w->helper == HELPER_ON_EVENTS)
        ours__wake_helper(c, worker);
    if (w->running == NONE && !w->waking)
        ours__begin_next(c, worker, true);
}

static void ours_init(struct cluster *c, struct machine *m)
{
    struct connections *connections = &m->connections;
    m->queue = m->backlog = fifo_empty;
    m->full_at = -INFINITY;
    m->sleepers = m->waiters = line_empty;
    m->idle_count = c->worker_count;
    for (uint32_t i = 0; i < c->worker_count; i++)
        line_enter(&m->sleepers, c->sleeping, m->first + i);
    if (c->rule != RULE_OURS)
        return;
    connections->cap = connections->count = connections->free_count = c->connections * c->worker_count;
    connections->owner = chooser__memory(connections->cap + 1, sizeof(uint32_t));
    connections->free = chooser__memory(connections->cap + 1, sizeof(uint32_t));
    for (uint32_t i = 0; i < connections->count; i++) {
        connections->owner[i] = m->first + i % c->worker_count;
        connections->free[i] = i;
    }
}

#endif
