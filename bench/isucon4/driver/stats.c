/* See stats.h. */
#include "stats.h"
#include <stdio.h>
#include <stdlib.h>

void series_add(struct series *series, double seconds)
{
    if (series->count == series->cap) {
        series->cap = series->cap ? series->cap * 2 : 4096;
        series->ms = realloc(series->ms, series->cap * sizeof(*series->ms));
        if (!series->ms)
            abort();
    }
    series->ms[series->count++] = (float)(seconds * 1e3);
}

static int by_size(const void *a, const void *b)
{
    float x = *(const float *)a;
    float y = *(const float *)b;
    return (x > y) - (x < y);
}

static double at(const struct series *series, double percent)
{
    size_t rank = (size_t)(percent / 100 * (double)series->count);
    return (double)series->ms[rank < series->count ? rank : series->count - 1];
}

static void sort(struct series *series)
{
    qsort(series->ms, series->count, sizeof(*series->ms), by_size);
}

void series_print(struct series *series)
{
    static const double PERCENTS[] = {50, 90, 95, 99, 99.9};
    static const char *const NAMES[] = {"p50", "p90", "p95", "p99", "p99.9"};
    printf("{\"count\":%zu", series->count);
    if (series->count) {
        double sum = 0;
        sort(series);
        for (size_t i = 0; i < series->count; i++)
            sum += (double)series->ms[i];
        printf(",\"mean\":%.3f", sum / (double)series->count);
        for (size_t i = 0; i < sizeof(PERCENTS) / sizeof(PERCENTS[0]); i++)
            printf(",\"%s\":%.3f", NAMES[i], at(series, PERCENTS[i]));
        printf(",\"max\":%.3f", (double)series->ms[series->count - 1]);
    }
    printf("}");
}

void series_print_curve(struct series *series)
{
    sort(series);
    printf("[");
    for (int i = 0; series->count && i <= 109; i++) {
        double percent = i <= 99 ? i : i < 109 ? 99 + (i - 99) / 10.0 : 100;
        printf("%s[%.1f,%.3f]", i ? "," : "", percent, at(series, percent));
    }
    printf("]");
}
