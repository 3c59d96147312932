/* Histograms of times, in memory that processes share. Log-linear: every power of two is split into equal buckets, so
 * that a quantile is wrong by at most 3.2 % wherever it lies, and the size is fixed.
 *
 *   us      0 1 2 … 31 | 32 34 … 62 | 64 68 … 124 | … | 2^33 … 2^34 = 4.8 hours, and all that is longer
 *   bucket  one each   | 16         | 16          |   | 16
 *
 * One process writes a histogram; all may read it, also while it is written: a reader may then see a count without its
 * share of the sum, or the other way round. */
#ifndef ORIBI_BASE_HISTOGRAM_H
#define ORIBI_BASE_HISTOGRAM_H

#include <stdatomic.h>
#include <stdint.h>

enum {
    ORIBI_HISTOGRAM_STEP_BITS = 4, /* 16 buckets for each power of two */
    ORIBI_HISTOGRAM_TOP_BITS = 34, /* a time of 2^34 us or more counts in the last bucket */
    ORIBI_HISTOGRAM_STEPS = 1 << ORIBI_HISTOGRAM_STEP_BITS,
    ORIBI_HISTOGRAM_BUCKETS = ORIBI_HISTOGRAM_STEPS * (ORIBI_HISTOGRAM_TOP_BITS - ORIBI_HISTOGRAM_STEP_BITS + 1),
};

/* All-zero: empty. */
struct oribi_histogram {
    _Atomic uint64_t sum_us;
    _Atomic uint64_t counts[ORIBI_HISTOGRAM_BUCKETS];
};

/* Counts read from one histogram, or from several together. All-zero: empty. */
struct oribi_histogram_sum {
    uint64_t count;
    uint64_t sum_us;
    uint64_t counts[ORIBI_HISTOGRAM_BUCKETS];
};

/* The bucket of a time; a negative time counts as 0. */
static inline uint32_t oribi_histogram_bucket(int64_t us)
{
    if (us < ORIBI_HISTOGRAM_STEPS)
        return us > 0 ? (uint32_t)us : 0;
    if (us >= (int64_t)1 << ORIBI_HISTOGRAM_TOP_BITS)
        return ORIBI_HISTOGRAM_BUCKETS - 1;
    uint32_t shift = 63 - (uint32_t)__builtin_clzll((uint64_t)us) - ORIBI_HISTOGRAM_STEP_BITS;
    return shift * ORIBI_HISTOGRAM_STEPS + (uint32_t)(us >> shift);
}

/* Counts a time. For the one writer: plain loads and stores, no locked instruction. */
static inline void oribi_histogram_count(struct oribi_histogram *histogram, int64_t us)
{
    _Atomic uint64_t *count = &histogram->counts[oribi_histogram_bucket(us)];
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + 1, memory_order_relaxed);
    uint64_t sum_us = atomic_load_explicit(&histogram->sum_us, memory_order_relaxed) + (uint64_t)(us > 0 ? us : 0);
    atomic_store_explicit(&histogram->sum_us, sum_us, memory_order_relaxed);
}

/* Adds what the histogram holds now to `sum`; every reader may call it. */
void oribi_histogram_add(struct oribi_histogram_sum *sum, const struct oribi_histogram *histogram);

/* Adds `other` to `sum`. */
void oribi_histogram_merge(struct oribi_histogram_sum *sum, const struct oribi_histogram_sum *other);

/* The time that the share `q` (0 … 1) of all times does not exceed, in us: the middle of its bucket, at most 3.2 % away
 * from the exact one (below 32 us it is exact, from 2^34 us on it is the last bucket's). 0 when nothing was counted. */
int64_t oribi_histogram_quantile(const struct oribi_histogram_sum *sum, double q);

/* How many times are at most `us` long. A time that shares its bucket with `us` counts if the bucket's middle is not
 * above `us`. Grows with `us`. */
uint64_t oribi_histogram_up_to(const struct oribi_histogram_sum *sum, int64_t us);

#endif
