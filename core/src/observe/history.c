/* The ring of samples: pure, with the reader's clock. */
#include "observe/history.h"

#include <string.h>

static const char *const names[ORIBI__HISTORY_FIELDS] = {
    [ORIBI__HISTORY_SPAN] = "span_ms",
    [ORIBI__HISTORY_CUT] = "cut",
    [ORIBI__HISTORY_1XX] = "1xx",
    [ORIBI__HISTORY_2XX] = "2xx",
    [ORIBI__HISTORY_3XX] = "3xx",
    [ORIBI__HISTORY_4XX] = "4xx",
    [ORIBI__HISTORY_5XX] = "5xx",
    [ORIBI__HISTORY_REFUSED] = "refused",
    [ORIBI__HISTORY_CRASHES] = "crashes",
    [ORIBI__HISTORY_CALLS] = "calls",
    [ORIBI__HISTORY_QUEUE_P50] = "queue_wait_p50_us",
    [ORIBI__HISTORY_QUEUE_P95] = "queue_wait_p95_us",
    [ORIBI__HISTORY_QUEUE_P99] = "queue_wait_p99_us",
    [ORIBI__HISTORY_CALL_P50] = "call_p50_us",
    [ORIBI__HISTORY_CALL_P95] = "call_p95_us",
    [ORIBI__HISTORY_CALL_P99] = "call_p99_us",
    [ORIBI__HISTORY_TOTAL_P50] = "total_p50_us",
    [ORIBI__HISTORY_TOTAL_P95] = "total_p95_us",
    [ORIBI__HISTORY_TOTAL_P99] = "total_p99_us",
    [ORIBI__HISTORY_WAITING] = "waiting",
    [ORIBI__HISTORY_OLDEST_WAIT] = "oldest_wait_ms",
    [ORIBI__HISTORY_OLDEST_CALL] = "oldest_call_ms",
    [ORIBI__HISTORY_MEMORY] = "memory_kb",
    [ORIBI__HISTORY_CPU] = "cpu_permille",
    [ORIBI__HISTORY_UTILISATION] = "utilisation_permille",
    [ORIBI__HISTORY_BUSY] = "threads_busy",
    [ORIBI__HISTORY_THREADS] = "threads",
    [ORIBI__HISTORY_WORKERS] = "workers",
    [ORIBI__HISTORY_CONNECTIONS] = "connections_open",
};

static uint32_t cut_to_32(uint64_t value)
{
    return value < ORIBI__HISTORY_NONE ? (uint32_t)value : ORIBI__HISTORY_NONE - 1;
}

/* A counter that has gone back is a mistake of ours or torn: it counts nothing. */
static uint64_t grown(uint64_t before, uint64_t now)
{
    return now > before ? now - before : 0;
}

static void put_quantiles(uint32_t *values, const struct oribi_histogram *histogram)
{
    static const double shares[] = {0.5, 0.95, 0.99};
    struct oribi_histogram_sum sum = {0};
    oribi_histogram_add(&sum, histogram);
    for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++)
        values[i] = sum.count ? cut_to_32((uint64_t)oribi_histogram_quantile(&sum, shares[i])) : ORIBI__HISTORY_NONE;
}

static uint64_t counts_of(const struct oribi_histogram *histogram)
{
    struct oribi_histogram_sum sum = {0};
    oribi_histogram_add(&sum, histogram);
    return sum.count;
}

/* Counters of `all`, which is the difference of two readings. */
static void put_counters(uint32_t *values, const struct oribi_slot *all)
{
    uint64_t refused = 0;
    for (int i = 0; i < ORIBI__HISTORY_REFUSED - ORIBI__HISTORY_CUT; i++)
        values[ORIBI__HISTORY_CUT + i] = cut_to_32(all->status_class[i]);
    for (uint32_t i = 0; i < ORIBI_REFUSALS; i++)
        refused += all->refusals[i];
    values[ORIBI__HISTORY_REFUSED] = cut_to_32(refused);
    values[ORIBI__HISTORY_CALLS] = cut_to_32(counts_of(&all->call_time));
    put_quantiles(values + ORIBI__HISTORY_QUEUE_P50, &all->queue_wait);
    put_quantiles(values + ORIBI__HISTORY_CALL_P50, &all->call_time);
    put_quantiles(values + ORIBI__HISTORY_TOTAL_P50, &all->total_time);
}

/* A call of 30 s is work of all the samples it spans, so calls under way count with what they have run by now. With
 * several threads the worker tells when one of its calls began and not when the others did: then at least those that
 * are under way at this moment are taken for busy if that call is older than the sample. */
static uint32_t utilisation(const struct oribi__history *history, const struct oribi__history_reading *reading,
                            uint64_t ended_us, uint64_t span_ms)
{
    uint64_t threads = reading->values[ORIBI__HISTORY_THREADS];
    uint64_t busy = reading->values[ORIBI__HISTORY_BUSY];
    if (threads == 0)
        return 0;
    uint64_t permille = grown(history->calls_us, ended_us + reading->calls_us) / (span_ms * threads);
    if (reading->values[ORIBI__HISTORY_OLDEST_CALL] > span_ms && permille < busy * 1000 / threads)
        permille = busy * 1000 / threads;
    return permille < 1000 ? (uint32_t)permille : 1000;
}

static void remember(struct oribi__history *history, const struct oribi__history_reading *reading)
{
    memcpy(history->sums, reading->sums, sizeof(history->sums));
    history->begun = true;
    history->last_ms = reading->now_ms;
    history->crashes = reading->crashes;
    history->calls_us = reading->calls_us;
}

void oribi__history_add(struct oribi__history *history, const struct oribi__history_reading *reading)
{
    uint64_t differences[ORIBI_SLOT_COUNTERS];
    struct oribi_slot all;
    if (!history->begun || reading->now_ms <= history->last_ms) {
        remember(history, reading);
        return;
    }
    uint64_t span_ms = (uint64_t)(reading->now_ms - history->last_ms);
    struct oribi__history_sample *sample = &history->samples[history->count++ % ORIBI__HISTORY_SAMPLES];
    for (uint32_t i = 0; i < ORIBI_SLOT_COUNTERS; i++)
        differences[i] = grown(history->sums[i], reading->sums[i]);
    oribi_slot_unfold(differences, &all);
    sample->at_ms = reading->now_ms;
    memcpy(sample->values, reading->values, sizeof(sample->values));
    put_counters(sample->values, &all);
    sample->values[ORIBI__HISTORY_SPAN] = cut_to_32(span_ms);
    sample->values[ORIBI__HISTORY_CRASHES] = cut_to_32(grown(history->crashes, reading->crashes));
    sample->values[ORIBI__HISTORY_CPU] = cut_to_32(reading->cpu_ms * 1000 / span_ms);
    sample->values[ORIBI__HISTORY_UTILISATION] = utilisation(history, reading, all.call_time.sum_us, span_ms);
    remember(history, reading);
}

/* --- the answer --- */

static void put_sample(const struct oribi__history_sample *sample, int64_t origin_ms, struct oribi_buf *out)
{
    oribi_buf_print(out, "[%lld", (long long)(sample->at_ms - origin_ms));
    for (uint32_t i = 0; i < ORIBI__HISTORY_FIELDS; i++) {
        if (sample->values[i] == ORIBI__HISTORY_NONE)
            oribi_buf_print(out, ",null");
        else
            oribi_buf_print(out, ",%u", sample->values[i]);
    }
    oribi_buf_print(out, "]");
}

void oribi__history_put(const struct oribi__history *history, uint64_t since, int64_t origin_ms, struct oribi_buf *out)
{
    uint64_t oldest = history->count > ORIBI__HISTORY_SAMPLES ? history->count - ORIBI__HISTORY_SAMPLES + 1 : 1;
    uint64_t first = since < oldest || since > history->count ? oldest : since + 1;
    oribi_buf_print(out, "\"first\":%llu,\"last\":%llu,\"fields\":[\"at_ms\"", (unsigned long long)first,
                    (unsigned long long)history->count);
    for (uint32_t i = 0; i < ORIBI__HISTORY_FIELDS; i++)
        oribi_buf_print(out, ",\"%s\"", names[i]);
    oribi_buf_print(out, "],\"samples\":[");
    for (uint64_t n = first; n <= history->count; n++) {
        oribi_buf_print(out, "%s", n > first ? "," : "");
        put_sample(&history->samples[(n - 1) % ORIBI__HISTORY_SAMPLES], origin_ms, out);
    }
    oribi_buf_print(out, "]");
}
