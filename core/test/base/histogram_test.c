/* Histograms of times: against the exact quantiles of random data. */
#include "base/histogram.c"

#include "child.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define TOP_US ((int64_t)1 << ORIBI_HISTOGRAM_TOP_BITS)

enum { SAMPLES = 20000 };

static struct oribi_histogram histogram;
static struct oribi_histogram_sum sum;

static void clear(void)
{
    memset(&histogram, 0, sizeof(histogram));
    memset(&sum, 0, sizeof(sum));
}

static void test_buckets_follow_on_each_other_without_a_gap(void)
{
    uint32_t last = 0;
    bool steps = true;
    for (int64_t us = 0; us < 1 << 20; us++) {
        uint32_t bucket = oribi_histogram_bucket(us);
        steps = steps && (bucket == last || bucket == last + 1);
        last = bucket;
    }
    ok(steps);
    ok_eq(oribi_histogram_bucket(-1), 0);
    ok_eq(oribi_histogram_bucket(INT64_MIN), 0);
    ok_eq(oribi_histogram_bucket(TOP_US - 1), ORIBI_HISTOGRAM_BUCKETS - 1);
    ok_eq(oribi_histogram_bucket(TOP_US), ORIBI_HISTOGRAM_BUCKETS - 1);
    ok_eq(oribi_histogram_bucket(INT64_MAX), ORIBI_HISTOGRAM_BUCKETS - 1);
}

static void test_the_middle_of_a_bucket_is_in_it(void)
{
    bool inside = true;
    for (uint32_t i = 0; i < ORIBI_HISTOGRAM_BUCKETS; i++)
        inside = inside && oribi_histogram_bucket(middle_of(i)) == i;
    ok(inside);
}

static void test_nothing_counted_has_no_quantile(void)
{
    clear();
    oribi_histogram_add(&sum, &histogram);
    ok_eq(sum.count, 0);
    ok_eq(oribi_histogram_quantile(&sum, 0.5), 0);
    ok_eq(oribi_histogram_up_to(&sum, INT64_MAX), 0);
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static uint64_t state = 88172645463325252;

static uint64_t draw(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* Of the same share of times, counted from the shortest. */
static int64_t exact(const int64_t *sorted, double q)
{
    double rank = q * SAMPLES;
    size_t i = (size_t)rank;
    if ((double)i < rank || i == 0)
        i++;
    return sorted[i - 1];
}

/* Of another process' numbers, which may be any. */
static void test_a_count_beyond_what_a_double_tells_apart(void)
{
    struct oribi_histogram_sum theirs = {.count = UINT64_MAX};
    theirs.counts[3] = UINT64_MAX;
    ok_eq(oribi_histogram_quantile(&theirs, 1), 3);
    ok_eq(oribi_histogram_quantile(&theirs, 0.5), 3);
    theirs.count = UINT64_MAX - 1;
    ok_eq(oribi_histogram_quantile(&theirs, 1), 3);
}

static void check_quantiles(const char *what, int64_t *times)
{
    static const double shares[] = {0, 0.001, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1};
    uint64_t total_us = 0;
    clear();
    for (size_t i = 0; i < SAMPLES; i++) {
        oribi_histogram_count(&histogram, times[i]);
        total_us += (uint64_t)times[i];
    }
    oribi_histogram_add(&sum, &histogram);
    qsort(times, SAMPLES, sizeof(*times), by_size);
    ok_named(sum.count == SAMPLES && sum.sum_us == total_us, "%s: count and sum are exact", what);
    for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
        double right = (double)exact(times, shares[i]);
        double told = (double)oribi_histogram_quantile(&sum, shares[i]);
        double off = told > right ? told - right : right - told;
        ok_named(off <= right * 0.032, "%s: quantile %g is %g, told as %g", what, shares[i], right, told);
    }
}

static void test_quantiles_are_right_within_their_error(void)
{
    static int64_t times[SAMPLES];
    for (size_t i = 0; i < SAMPLES; i++)
        times[i] = (int64_t)(draw() % 1000000);
    check_quantiles("even up to a second", times);
    for (size_t i = 0; i < SAMPLES; i++)
        times[i] = (int64_t)(draw() & (((uint64_t)1 << draw() % ORIBI_HISTOGRAM_TOP_BITS) - 1));
    check_quantiles("all powers of two", times);
    for (size_t i = 0; i < SAMPLES; i++)
        times[i] = (int64_t)(draw() % 32);
    check_quantiles("below 32 us", times);
    for (size_t i = 0; i < SAMPLES; i++)
        times[i] = draw() % 100 ? 250 : (int64_t)3600 * 1000000;
    check_quantiles("two peaks, one at an hour", times);
}

static void test_times_up_to_a_bound_are_counted(void)
{
    clear();
    for (int64_t us = 1; us <= 100000; us++)
        oribi_histogram_count(&histogram, us);
    oribi_histogram_add(&sum, &histogram);
    static const int64_t bounds[] = {1, 10, 31, 100, 1000, 10000, 50000};
    for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
        double told = (double)oribi_histogram_up_to(&sum, bounds[i]);
        double off = told > (double)bounds[i] ? told - (double)bounds[i] : (double)bounds[i] - told;
        ok_named(off <= (double)bounds[i] * 0.032, "%g times up to %lld us", told, (long long)bounds[i]);
    }
    ok_eq(oribi_histogram_up_to(&sum, INT64_MAX), 100000);
    ok_eq(oribi_histogram_up_to(&sum, -1), 0);
}

static void test_sums_of_several_histograms_are_merged(void)
{
    static struct oribi_histogram_sum other;
    clear();
    memset(&other, 0, sizeof(other));
    oribi_histogram_count(&histogram, 5);
    oribi_histogram_count(&histogram, 700);
    oribi_histogram_add(&sum, &histogram);
    oribi_histogram_add(&sum, &histogram);
    oribi_histogram_add(&other, &histogram);
    oribi_histogram_merge(&sum, &other);
    ok_eq(sum.count, 6);
    ok_eq(sum.sum_us, 3 * 705);
    ok_eq(oribi_histogram_up_to(&sum, 5), 3);
}

enum { TIMES = 100000 };

static int write_times(void *data)
{
    for (int64_t us = 0; us < TIMES; us++)
        oribi_histogram_count(data, us);
    return 0;
}

static void test_what_a_child_counts_the_parent_reads(void)
{
    struct oribi_histogram *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    memset(&sum, 0, sizeof(sum));
    ok_eq(child_code(write_times, shared), 0);
    oribi_histogram_add(&sum, shared);
    ok_eq(sum.count, TIMES);
    ok_eq(sum.sum_us, (uint64_t)TIMES * (TIMES - 1) / 2);
    (void)munmap(shared, sizeof(*shared));
}

int main(void)
{
    test_buckets_follow_on_each_other_without_a_gap();
    test_the_middle_of_a_bucket_is_in_it();
    test_nothing_counted_has_no_quantile();
    test_a_count_beyond_what_a_double_tells_apart();
    test_quantiles_are_right_within_their_error();
    test_times_up_to_a_bound_are_counted();
    test_sums_of_several_histograms_are_merged();
    test_what_a_child_counts_the_parent_reads();
    return done_testing();
}
