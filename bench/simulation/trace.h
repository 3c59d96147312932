/* trace - the requests of a run: when each arrives and how long its call takes, drawn from a seed or read from a file.
 * Every rule gets the same ones. Times in ms.
 *
 * A file has one request a line, "ARRIVAL SERVICE" in seconds, in any order of arrival; lines that begin with # are
 * comments. bench/load/load -o FILE writes such a file of a real run. */
#ifndef SIMULATION_TRACE_H
#define SIMULATION_TRACE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEAN_MS      20.0   /* of a call, but for "mix" */
#define MIX_SHORT_MS 2.0    /* 99 of 100 calls */
#define MIX_LONG_MS  500.0  /* the hundredth */
#define PARETO_SHAPE 1.3    /* of the bounded Pareto distribution */
#define PARETO_RANGE 1000.0 /* its longest call is so many times its shortest */
#define PHASE_MS     200.0  /* mean length of a phase of bursty arrivals */
#define PHASE_SHARE  0.5    /* share of the average rate by which a phase has more, or fewer, arrivals */

struct trace {
    double *at;
    double *service;
    size_t count;
};

static inline uint64_t draw_bits(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed * 2685821657736338717u;
}

/* Above 0, below 1. */
static inline double draw(uint64_t *seed)
{
    return ((double)(draw_bits(seed) >> 11) + 0.5) / 9007199254740992.0;
}

static inline uint32_t draw_below(uint64_t *seed, uint32_t n)
{
    return (uint32_t)(((draw_bits(seed) >> 32) * n) >> 32);
}

static inline double draw_exponential(uint64_t *seed, double mean)
{
    return -log(draw(seed)) * mean;
}

/* Two seeds that follow one another give sequences that have nothing in common. */
static inline uint64_t seed_of(uint64_t number)
{
    uint64_t z = number * 0x9e3779b97f4a7c15u + 0x632be59bd9b4e019u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) | 1;
}

static double pareto_least(void)
{
    double mean_of_1 = PARETO_SHAPE / (PARETO_SHAPE - 1) * (1 - pow(PARETO_RANGE, 1 - PARETO_SHAPE)) /
                       (1 - pow(PARETO_RANGE, -PARETO_SHAPE));
    return MEAN_MS / mean_of_1;
}

static double draw_pareto(uint64_t *seed)
{
    return pareto_least() * pow(1 - draw(seed) * (1 - pow(PARETO_RANGE, -PARETO_SHAPE)), -1 / PARETO_SHAPE);
}

/* The mean of calls of this name; 0: there is none. */
static double service_mean(const char *name)
{
    if (strcmp(name, "mix") == 0)
        return 0.99 * MIX_SHORT_MS + 0.01 * MIX_LONG_MS;
    bool known = strcmp(name, "constant") == 0 || strcmp(name, "exponential") == 0 || strcmp(name, "pareto") == 0;
    return known ? MEAN_MS : 0;
}

static double draw_service(uint64_t *seed, const char *name)
{
    switch (name[0]) {
    case 'e':
        return draw_exponential(seed, MEAN_MS);
    case 'p':
        return draw_pareto(seed);
    case 'm':
        return draw(seed) < 0.01 ? MIX_LONG_MS : MIX_SHORT_MS;
    default:
        return MEAN_MS;
    }
}

static void trace_room(struct trace *trace, size_t cap)
{
    trace->at = realloc(trace->at, cap * sizeof(double));
    trace->service = realloc(trace->service, cap * sizeof(double));
    if (!trace->at || !trace->service) {
        fprintf(stderr, "simulation: out of memory\n");
        exit(1);
    }
}

/* `gap_ms`: between two arrivals on average. Bursty arrivals come in phases, by turns half as many again and half as
 * many as on average, of a length that is drawn. */
static void trace_draw(struct trace *trace, size_t count, double gap_ms, bool bursty, const char *service,
                       uint64_t seed)
{
    uint64_t arrivals = seed_of(2 * seed);
    uint64_t services = seed_of(2 * seed + 1);
    double now = 0;
    double phase_end = bursty ? draw_exponential(&arrivals, PHASE_MS) : INFINITY;
    double pace = bursty ? 1 + PHASE_SHARE : 1;
    trace_room(trace, count);
    for (trace->count = 0; trace->count < count;) {
        double next = now + draw_exponential(&arrivals, gap_ms / pace);
        if (next > phase_end) { /* what is left of an exponential gap is drawn again */
            now = phase_end;
            phase_end += draw_exponential(&arrivals, PHASE_MS);
            pace = 2 - pace;
            continue;
        }
        now = next;
        trace->at[trace->count] = now;
        trace->service[trace->count++] = draw_service(&services, service);
    }
}

struct trace__line {
    double at;
    double service;
};

static int trace__by_arrival(const void *a, const void *b)
{
    double x = ((const struct trace__line *)a)->at, y = ((const struct trace__line *)b)->at;
    return x < y ? -1 : x > y;
}

/* False, and a line on standard error, when the file cannot be read or holds something else. */
static bool trace_read(struct trace *trace, const char *path)
{
    FILE *file = fopen(path, "r");
    struct trace__line *lines = NULL;
    size_t count = 0, cap = 0, number = 0;
    char text[256];
    if (!file) {
        perror(path);
        return false;
    }
    while (fgets(text, sizeof(text), file)) {
        struct trace__line line;
        char end;
        number++;
        if (text[0] == '#' || text[0] == '\n')
            continue;
        if (sscanf(text, "%lf %lf %c", &line.at, &line.service, &end) != 2 || !(line.service > 0) ||
            !isfinite(line.at) || !isfinite(line.service)) {
            fprintf(stderr, "%s:%zu: not \"ARRIVAL SERVICE\" in seconds\n", path, number);
            (void)fclose(file);
            free(lines);
            return false;
        }
        if (count == cap)
            lines = realloc(lines, (cap = cap ? cap * 2 : 4096) * sizeof(*lines));
        lines[count++] = line;
    }
    (void)fclose(file);
    if (count > 0)
        qsort(lines, count, sizeof(*lines), trace__by_arrival);
    trace_room(trace, count + 1);
    for (size_t i = 0; i < count; i++) {
        trace->at[i] = (lines[i].at - lines[0].at) * 1e3;
        trace->service[i] = lines[i].service * 1e3;
    }
    trace->count = count;
    free(lines);
    if (count == 0)
        fprintf(stderr, "%s: no requests\n", path);
    return count > 0;
}

#endif
