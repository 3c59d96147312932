/* Times of what was asked, kept one by one, so that a percentile is a value that was measured. */
#ifndef DRIVER_STATS_H
#define DRIVER_STATS_H

#include <stddef.h>

struct series {
    float *ms;
    size_t count;
    size_t cap;
};

void series_add(struct series *series, double seconds);

/* Prints {"count": ..., "mean": ..., "p50": ..., ... "max": ...}, milliseconds. */
void series_print(struct series *series);

/* The percentiles 0 to 100 in whole steps and 99.1 to 99.9, as one array: a curve. */
void series_print_curve(struct series *series);

#endif
