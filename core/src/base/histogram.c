/* Reading histograms. The counting is in the header, since it happens with every request. */
#include "oribi/base/histogram.h"

/* The middle of a bucket, rounded down. */
static int64_t middle_of(uint32_t bucket)
{
    if (bucket < 2 * ORIBI_HISTOGRAM_STEPS)
        return bucket; /* buckets of one microsecond */
    uint32_t shift = bucket / ORIBI_HISTOGRAM_STEPS - 1;
    int64_t first = (int64_t)(ORIBI_HISTOGRAM_STEPS + bucket % ORIBI_HISTOGRAM_STEPS) << shift;
    return first + (((int64_t)1 << shift) - 1) / 2;
}

void oribi_histogram_add(struct oribi_histogram_sum *sum, const struct oribi_histogram *histogram)
{
    sum->sum_us += atomic_load_explicit(&histogram->sum_us, memory_order_relaxed);
    for (uint32_t i = 0; i < ORIBI_HISTOGRAM_BUCKETS; i++) {
        uint64_t n = atomic_load_explicit(&histogram->counts[i], memory_order_relaxed);
        sum->counts[i] += n;
        sum->count += n;
    }
}

void oribi_histogram_merge(struct oribi_histogram_sum *sum, const struct oribi_histogram_sum *other)
{
    sum->count += other->count;
    sum->sum_us += other->sum_us;
    for (uint32_t i = 0; i < ORIBI_HISTOGRAM_BUCKETS; i++)
        sum->counts[i] += other->counts[i];
}

int64_t oribi_histogram_quantile(const struct oribi_histogram_sum *sum, double q)
{
    if (sum->count == 0)
        return 0;
    double exact_rank = q * (double)sum->count;
    uint64_t rank = exact_rank > 0 ? sum->count : 0; /* also where the count, as a double, is rounded beyond 2^64 */
    if (exact_rank > 0 && exact_rank < (double)sum->count)
        rank = (uint64_t)exact_rank;
    if ((double)rank < exact_rank || rank == 0)
        rank++; /* counted from 1 */
    uint64_t seen = 0;
    for (uint32_t i = 0; i < ORIBI_HISTOGRAM_BUCKETS; i++) {
        seen += sum->counts[i];
        if (seen >= rank)
            return middle_of(i);
    }
    return middle_of(ORIBI_HISTOGRAM_BUCKETS - 1);
}

uint64_t oribi_histogram_up_to(const struct oribi_histogram_sum *sum, int64_t us)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < ORIBI_HISTOGRAM_BUCKETS && middle_of(i) <= us; i++)
        count += sum->counts[i];
    return count;
}
