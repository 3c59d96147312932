/* rules - which of n places a request goes to, at once and for good: workers of a machine, or machines behind a
 * balancer. A chooser counts what is at each place; it may be told of it only now and then. */
#ifndef SIMULATION_RULES_H
#define SIMULATION_RULES_H

#include "../../core/include/oribi/policy/agent_weight.h"
#include "trace.h"

enum rule {
    RULE_IDEAL,
    RULE_RANDOM,
    RULE_ROUND_ROBIN,
    RULE_LEAST,
    RULE_TWO,
    RULE_IDLE,
    RULE_WEIGHTS,
    RULE_AGENT,
    RULE_AGENT_LEAST,
    RULE_OURS,
    RULE_OURS_NEW
};

static const char *const rule_names[] = {"ideal",   "random", "round-robin", "least", "two-choices", "idle",
                                         "weights", "agent",  "agent-least", "ours",  "ours-new"};

enum { RULES = sizeof(rule_names) / sizeof(*rule_names), AGENT_SAMPLES = 5 };

/* Times that a machine's agent measures: in calls and in the queue, of the sample under way and of the last ones
 * (core/src/observe/agent.h). */
struct agent {
    double at;
    double ran, waited;
    double rans[AGENT_SAMPLES], waiteds[AGENT_SAMPLES];
    uint32_t samples;
    double weight; /* per cent, as the balancer was told */
};

struct chooser {
    enum rule rule;
    uint32_t n;
    int32_t width;  /* calls at a time of one place */
    int32_t *count; /* requests at each place, waiting and in calls */
    int32_t *told;  /* the same as the chooser knows it: `count` itself, or what it was last told */
    uint32_t *idle; /* places with room, in no order, when told is count; RULE_IDEAL and RULE_IDLE have it */
    uint32_t *idle_at;
    uint32_t idle_count;
    double *sums;         /* of weights up to each place */
    struct agent *agents; /* RULE_AGENT, RULE_AGENT_LEAST */
    double told_at;
    uint32_t cursor;
    uint64_t seed;
    uint64_t looks; /* at what is told of a place */
};

static bool chooser__has_room(const struct chooser *c, uint32_t place)
{
    return c->told[place] < c->width;
}

static void chooser__set_idle(struct chooser *c, uint32_t place, bool idle)
{
    bool was = c->idle_at[place] != UINT32_MAX;
    if (idle && !was) {
        c->idle_at[place] = c->idle_count;
        c->idle[c->idle_count++] = place;
    } else if (!idle && was) {
        uint32_t last = c->idle[--c->idle_count];
        c->idle[c->idle_at[place]] = last;
        c->idle_at[last] = c->idle_at[place];
        c->idle_at[place] = UINT32_MAX;
    }
}

/* The weight of a machine is what its agent says: how many of its workers are free, and a little, so that a machine
 * which said "none" gets something until it says more. */
static void chooser__weigh(struct chooser *c)
{
    double sum = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        int32_t room = c->width - c->told[i];
        sum += room > 0 ? room : 0.05 * c->width;
        c->sums[i] = sum;
    }
}

/* To be called before what is at a place changes. */
static void chooser_pass(struct chooser *c, uint32_t place, double now)
{
    if (!c->agents)
        return;
    struct agent *a = &c->agents[place];
    int32_t running = c->count[place] < c->width ? c->count[place] : c->width;
    a->ran += running * (now - a->at);
    a->waited += (c->count[place] - running) * (now - a->at);
    a->at = now;
}

/* The agents close a sample, and tell. */
static void chooser__agents_tell(struct chooser *c, double now)
{
    double sum = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        struct agent *a = &c->agents[i];
        chooser_pass(c, i, now);
        if (now > c->told_at) {
            a->rans[a->samples % AGENT_SAMPLES] = a->ran;
            a->waiteds[a->samples++ % AGENT_SAMPLES] = a->waited;
            a->ran = a->waited = 0;
        }
        uint32_t count = a->samples < AGENT_SAMPLES ? a->samples : AGENT_SAMPLES;
        double ran = 0, waited = 0;
        for (uint32_t k = 0; k < count; k++) {
            ran += a->rans[k];
            waited += a->waiteds[k];
        }
        double time = (now - c->told_at) * count * c->width;
        a->weight = time > 0 ? oribi__agent_weight(ran / time, waited > 0 ? waited / (waited + ran) : 0) : 100;
        sum += a->weight;
        c->sums[i] = sum;
    }
    c->told_at = now;
}

/* Tells the chooser how things stand; at equal intervals. */
static void chooser_tell(struct chooser *c, double now)
{
    if (c->told != c->count)
        memcpy(c->told, c->count, c->n * sizeof(*c->told));
    for (uint32_t i = 0; i < c->n; i++)
        chooser__set_idle(c, i, chooser__has_room(c, i));
    if (c->rule == RULE_WEIGHTS)
        chooser__weigh(c);
    if (c->agents)
        chooser__agents_tell(c, now);
    c->looks += c->n;
}

static void *chooser__memory(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (!memory) {
        fprintf(stderr, "simulation: out of memory\n");
        exit(1);
    }
    return memory;
}

/* informed: it knows at every moment what is where. */
static void chooser_init(struct chooser *c, enum rule rule, uint32_t n, int32_t width, bool informed, uint64_t seed)
{
    *c = (struct chooser){.rule = rule, .n = n, .width = width, .seed = seed};
    if (rule == RULE_AGENT || rule == RULE_AGENT_LEAST) {
        c->agents = chooser__memory(n, sizeof(*c->agents));
        informed = true; /* of its own requests; the weights are what it is told */
    }
    c->count = chooser__memory(n, sizeof(*c->count));
    c->told = informed ? c->count : chooser__memory(n, sizeof(*c->told));
    c->idle = chooser__memory(n, sizeof(*c->idle));
    c->idle_at = chooser__memory(n, sizeof(*c->idle_at));
    c->sums = chooser__memory(n, sizeof(*c->sums));
    memset(c->idle_at, 0xff, n * sizeof(*c->idle_at));
    chooser_tell(c, 0);
    c->looks = 0;
}

static void chooser_deinit(struct chooser *c)
{
    if (c->told != c->count)
        free(c->told);
    free(c->count);
    free(c->idle);
    free(c->idle_at);
    free(c->sums);
    free(c->agents);
}

static void chooser_add(struct chooser *c, uint32_t place, int32_t change)
{
    c->count[place] += change;
    if (c->told == c->count)
        chooser__set_idle(c, place, chooser__has_room(c, place));
}

/* The first with the least from a place on that moves, so that equals take turns. */
static uint32_t chooser__least(struct chooser *c)
{
    uint32_t best = c->cursor;
    for (uint32_t i = 1; i < c->n; i++) {
        uint32_t place = c->cursor + i < c->n ? c->cursor + i : c->cursor + i - c->n;
        if (c->told[place] < c->told[best])
            best = place;
    }
    c->cursor = best + 1 < c->n ? best + 1 : 0;
    c->looks += c->n;
    return best;
}

/* HAProxy's leastconn: the fewest requests for its weight. */
static uint32_t chooser__least_weighed(struct chooser *c)
{
    uint32_t best = c->cursor;
    for (uint32_t i = 1; i < c->n; i++) {
        uint32_t place = c->cursor + i < c->n ? c->cursor + i : c->cursor + i - c->n;
        if (c->count[place] * c->agents[best].weight < c->count[best] * c->agents[place].weight)
            best = place;
    }
    c->cursor = best + 1 < c->n ? best + 1 : 0;
    c->looks += c->n;
    return best;
}

static uint32_t chooser__two(struct chooser *c)
{
    uint32_t a = draw_below(&c->seed, c->n);
    uint32_t b = c->n > 1 ? draw_below(&c->seed, c->n - 1) : a;
    b += c->n > 1 && b >= a;
    c->looks += 2;
    return c->told[b] < c->told[a] ? b : a;
}

static uint32_t chooser__weighted(struct chooser *c)
{
    double at = draw(&c->seed) * c->sums[c->n - 1];
    uint32_t low = 0, high = c->n - 1;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (c->sums[middle] > at)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static uint32_t chooser_choose(struct chooser *c)
{
    switch (c->rule) {
    case RULE_ROUND_ROBIN:
        return c->cursor++ % c->n;
    case RULE_LEAST:
        return chooser__least(c);
    case RULE_TWO:
        return chooser__two(c);
    case RULE_AGENT_LEAST:
        return chooser__least_weighed(c);
    case RULE_WEIGHTS:
    case RULE_AGENT:
        return chooser__weighted(c);
    case RULE_IDLE:
        c->looks++;
        return c->idle_count > 0 ? c->idle[draw_below(&c->seed, c->idle_count)] : draw_below(&c->seed, c->n);
    default:
        return draw_below(&c->seed, c->n);
    }
}

/* RULE_IDEAL: some place with room, or UINT32_MAX. */
static uint32_t chooser_any_idle(const struct chooser *c)
{
    return c->idle_count > 0 ? c->idle[c->idle_count - 1] : UINT32_MAX;
}

#endif
