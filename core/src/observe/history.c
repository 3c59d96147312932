/* The ring of samples: pure, with the reader's clock; at the end the supervisor's readings for it, one each two seconds
 * while the status listener or the agent is on. */
#include "observe/history.h"

#include "observe/state.h"
#include "observe/status.h"
#include "oribi/base/clock.h"
#include "oribi/base/mem.h"

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

/* --- one reading --- */

static uint32_t at_least(uint32_t value, int64_t other)
{
    return other > (int64_t)value ? (uint32_t)(other < UINT32_MAX - 1 ? other : UINT32_MAX - 1) : value;
}

static void read_waiting(const struct oribi__observe *observe, int64_t now_us, struct oribi__history_reading *reading)
{
    int64_t wait;
    reading->values[ORIBI__HISTORY_WAITING] += oribi__waiting(observe, &wait);
    if (wait)
        reading->values[ORIBI__HISTORY_OLDEST_WAIT] = at_least(0, (now_us - wait) / 1000);
}

static void read_slot(const struct oribi_slot *slot, int64_t now_us, struct oribi__history_reading *reading)
{
    uint32_t *values = reading->values;
    uint32_t busy;
    uint32_t threads;
    int64_t call = atomic_load(&slot->call_started_us);
    int64_t wait = atomic_load(&slot->queue_oldest_us);
    oribi__worker_threads(slot, &busy, &threads);
    values[ORIBI__HISTORY_WAITING] += atomic_load(&slot->queue_len);
    values[ORIBI__HISTORY_CONNECTIONS] += atomic_load(&slot->connections_open);
    values[ORIBI__HISTORY_BUSY] += busy;
    values[ORIBI__HISTORY_THREADS] += threads;
    if (wait)
        values[ORIBI__HISTORY_OLDEST_WAIT] = at_least(values[ORIBI__HISTORY_OLDEST_WAIT], (now_us - wait) / 1000);
    if (!call || call > now_us)
        return;
    values[ORIBI__HISTORY_OLDEST_CALL] = at_least(values[ORIBI__HISTORY_OLDEST_CALL], (now_us - call) / 1000);
    reading->calls_us += (uint64_t)(now_us - call);
}

/* A process that was not there at the last reading has used all its time since. */
static void read_process(struct oribi__observe *observe, uint32_t i, struct oribi__history_reading *reading,
                         int64_t *memory_bytes)
{
    int32_t pid = observe->view.policy->records[i].pid;
    uint32_t before_ms = observe->state->history.workers[i].pid == pid ? observe->state->history.workers[i].cpu_ms : 0;
    int64_t bytes;
    int64_t cpu_ms;
    oribi_process_usage(pid, &bytes, &cpu_ms);
    *memory_bytes += bytes;
    if (cpu_ms > before_ms)
        reading->cpu_ms += (uint64_t)(cpu_ms - before_ms);
    observe->state->history.workers[i].pid = pid;
    observe->state->history.workers[i].cpu_ms = (uint32_t)cpu_ms;
}

static void take_reading(struct oribi__observe *observe, int64_t now_ms)
{
    uint64_t sums[ORIBI_SLOT_COUNTERS];
    struct oribi__history_reading reading = {.now_ms = now_ms, .sums = sums};
    const uint64_t *exits = observe->totals.exits;
    int64_t memory_bytes = 0;
    int64_t now_us = oribi_clock_us();
    oribi__status_sum(observe, sums);
    read_waiting(observe, now_us, &reading);
    reading.values[ORIBI__HISTORY_CONNECTIONS] = oribi__frontends_open(observe->view.frontends);
    for (uint32_t i = 0; i < observe->view.policy->slot_count; i++) {
        if (!oribi_policy_has_process(observe->view.policy, i))
            continue;
        read_slot(&observe->view.context->board.slots[i], now_us, &reading);
        read_process(observe, i, &reading, &memory_bytes);
    }
    reading.values[ORIBI__HISTORY_WORKERS] = oribi_policy_serving(observe->view.policy);
    reading.values[ORIBI__HISTORY_MEMORY] = at_least(0, memory_bytes >> 10);
    reading.crashes = oribi__totals_exits(&observe->totals) - exits[ORIBI__EXIT_ASKED] - exits[ORIBI__EXIT_RECYCLED];
    oribi__history_add(observe->state->history.history, &reading);
}

/* --- beginning and end --- */

static void arm(struct oribi__observe *observe, int64_t at_ms)
{
    observe->state->history.next_ms = at_ms;
    oribi_dispatcher_arm(observe->dispatcher, &observe->state->history.reading, at_ms);
}

static void reading_expired(void *owner)
{
    struct oribi__observe *observe = owner;
    struct oribi__history_readings *readings = &observe->state->history;
    int64_t now_ms = oribi_clock_ms();
    int64_t next_ms = readings->next_ms + ORIBI__HISTORY_MS;
    arm(observe, next_ms > now_ms ? next_ms : now_ms + ORIBI__HISTORY_MS); /* what is lost is lost */
    if (!readings->workers)
        readings->workers = oribi_mem_alloc(observe->view.policy->slot_count, sizeof(*readings->workers));
    take_reading(observe, now_ms);
}

void oribi__history_begin(struct oribi__observe *observe)
{
    struct oribi__history_readings *readings = &observe->state->history;
    if (readings->history)
        return;
    readings->history = oribi_mem_alloc(1, sizeof(*readings->history));
    readings->reading = (struct oribi_timer){.expired = reading_expired, .owner = observe};
    arm(observe, oribi_clock_ms());
}

void oribi__history_end(struct oribi__observe *observe)
{
    struct oribi__history_readings *readings = &observe->state->history;
    oribi_dispatcher_arm(observe->dispatcher, &readings->reading, INT64_MAX);
    oribi_mem_free(readings->history);
    oribi_mem_free(readings->workers);
    *readings = (struct oribi__history_readings){0};
}

void oribi__history_json(const struct oribi__observe *observe, uint64_t since, struct oribi_buf *out)
{
    const struct oribi__history *history = observe->state->history.history;
    oribi_buf_print(out, "{\"server\":\"%d-%lld\",\"period_ms\":%d,\"kept\":%d,\"uptime_ms\":%lld,",
                    (int)observe->view.context->supervisor, (long long)observe->started_wall_ms, ORIBI__HISTORY_MS,
                    ORIBI__HISTORY_SAMPLES, (long long)(oribi_clock_ms() - observe->started_ms));
    if (history)
        oribi__history_put(history, since, observe->started_ms, out);
    oribi_buf_print(out, "}\n");
}
