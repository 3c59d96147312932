/* rows - a series of times as a line of a table, or as a line of JSON. Both sort the values. */
#ifndef LOAD_ROWS_H
#define LOAD_ROWS_H

#include <stdio.h>
#include <stdlib.h>

#define ROWS_FN __attribute__((unused)) static

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

ROWS_FN void sort_times(double *values, size_t n)
{
    qsort(values, n, sizeof(*values), by_size);
}

/* Of sorted values; 0 of none. */
ROWS_FN double time_at(const double *values, size_t n, double percent)
{
    size_t at = (size_t)((double)n * percent / 100);
    return n ? values[at < n ? at : n - 1] : 0;
}

ROWS_FN void print_row(const char *name, const char *what, double *values, size_t n, size_t errors)
{
    double sum = 0;
    sort_times(values, n);
    for (size_t i = 0; i < n; i++)
        sum += values[i];
    if (n == 0) {
        printf("%-16s %-8s %8zu %6zu\n", name, what, n, errors);
        return;
    }
    printf("%-16s %-8s %8zu %6zu %9.3f %9.3f %9.3f %9.3f %9.3f %9.3f\n", name, what, n, errors, sum / (double)n,
           time_at(values, n, 50), time_at(values, n, 90), time_at(values, n, 99), time_at(values, n, 99.9),
           values[n - 1]);
}

static const double percentiles[] = {1, 10, 25, 50, 75, 90, 95, 99, 99.5, 99.9, 99.95, 99.99, 100};

/* Prints the row as a line of JSON: "curve" is pairs of percentile and ms. */
ROWS_FN void print_json(const char *name, const char *what, double *values, size_t n, size_t errors)
{
    double sum = 0;
    sort_times(values, n);
    for (size_t i = 0; i < n; i++)
        sum += values[i];
    printf("{\"path\":\"%s\",\"what\":\"%s\",\"count\":%zu,\"errors\":%zu,", name, what, n, errors);
    printf("\"mean\":%.4f,\"curve\":[", n ? sum / (double)n : 0);
    for (size_t i = 0; n > 0 && i < sizeof(percentiles) / sizeof(*percentiles); i++)
        printf("%s[%g,%.4f]", i ? "," : "", percentiles[i], time_at(values, n, percentiles[i]));
    printf("]}\n");
}

#endif
