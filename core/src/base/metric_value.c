/* The numbers of a series. Each change is one atomic operation, or one that is repeated while others are faster. */
#include "oribi/base/metric_store.h"

#include <math.h>
#include <string.h>

/* A quiet NaN of a pattern of its own: no value. Other NaNs are stored as the one that NAN is. */
static const uint64_t unset = 0x7ff8000000a5e7aa;

static double to_double(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static uint64_t to_bits(double value)
{
    uint64_t bits;
    double plain = isnan(value) ? (double)NAN : value;
    memcpy(&bits, &plain, sizeof(bits));
    return bits;
}

void oribi_metric_count(struct oribi_metric_series *series, uint64_t n)
{
    atomic_fetch_add_explicit(&series->whole, n, memory_order_relaxed);
}

void oribi_metric_add(struct oribi_metric_series *series, double value)
{
    uint64_t before = atomic_load_explicit(&series->rest, memory_order_relaxed);
    uint64_t after;
    do
        after = to_bits((before == unset ? 0 : to_double(before)) + value);
    while (!atomic_compare_exchange_weak_explicit(&series->rest, &before, after, memory_order_relaxed,
                                                  memory_order_relaxed));
}

void oribi_metric_set(struct oribi_metric_series *series, double value)
{
    atomic_store_explicit(&series->rest, to_bits(value), memory_order_relaxed);
}

void oribi_metric_unset(struct oribi_metric_series *series)
{
    atomic_store_explicit(&series->rest, unset, memory_order_relaxed);
}

/* A process that is killed between the two has counted what its sum lacks. */
void oribi_metric_observe(struct oribi_metric_series *series, uint32_t bucket, double value)
{
    atomic_fetch_add_explicit(&series->buckets[bucket], 1, memory_order_relaxed);
    oribi_metric_add(series, value);
}

bool oribi_metric_value(const struct oribi_metric_series *series, double *value)
{
    uint64_t rest = atomic_load_explicit(&series->rest, memory_order_relaxed);
    if (rest == unset)
        return false;
    *value = (double)atomic_load_explicit(&series->whole, memory_order_relaxed) + to_double(rest);
    return true;
}
