/* The supervisor's readings for its history: one each two seconds while the status listener or the agent is on. */
#include "observe/history.h"
#include "observe/status.h"
#include "observe/state.h"

#include "oribi/base/clock.h"
#include "oribi/base/mem.h"

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

static void take(struct oribi__observe *observe, int64_t now_ms)
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
    take(observe, now_ms);
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
