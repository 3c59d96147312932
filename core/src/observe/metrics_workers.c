/* Metrics of workers: their states now, and the resources that each uses. */
#include "observe/metrics_private.h"

#include "oribi/base/clock.h"

#include <stdio.h>
#include <string.h>

static const struct oribi_slot *slot_of(const struct oribi__scrape *scrape, uint32_t i)
{
    return &scrape->observe->view.context->board.slots[i];
}

static bool lives(const struct oribi__scrape *scrape, uint32_t i)
{
    return oribi_policy_has_process(scrape->observe->view.policy, i);
}

void oribi__scrape_look(struct oribi__scrape *scrape)
{
    for (uint32_t i = 0; i < scrape->observe->view.policy->slot_count; i++)
        if (lives(scrape, i))
            oribi_process_look(scrape->observe->view.policy->records[i].pid, &scrape->looks[i]);
}

void oribi__put_workers(struct oribi__scrape *scrape, const struct oribi__metric *metric)
{
    static const char *const states[] = {"starting", "idle", "busy", "draining", "stopped", "killed", "held"};
    const struct oribi_policy *policy = scrape->observe->view.policy;
    for (size_t k = 0; k < sizeof(states) / sizeof(states[0]); k++) {
        uint64_t count = 0;
        for (uint32_t i = 0; i < policy->slot_count; i++) {
            const char *state = oribi__worker_shown(&policy->records[i], slot_of(scrape, i), &scrape->looks[i]);
            count += state && strcmp(state, states[k]) == 0;
        }
        oribi__put_count(scrape, metric, states[k], count);
    }
    oribi__put_count(scrape, metric, "empty", oribi__workers_missing(policy));
}

void oribi__put_wanted(struct oribi__scrape *scrape, const struct oribi__metric *metric)
{
    oribi__put_count(scrape, metric, NULL, scrape->observe->view.policy->target);
}

void oribi__put_threads(struct oribi__scrape *scrape, const struct oribi__metric *metric)
{
    uint64_t sums[2] = {0};
    for (uint32_t i = 0; i < scrape->observe->view.policy->slot_count; i++) {
        uint32_t busy;
        uint32_t threads;
        if (scrape->observe->view.policy->records[i].state != ORIBI_RECORD_SERVING)
            continue;
        oribi__worker_threads(slot_of(scrape, i), &busy, &threads);
        sums[0] += busy < threads ? threads - busy : 0;
        sums[1] += busy;
    }
    oribi__put_count(scrape, metric, "idle", sums[0]);
    oribi__put_count(scrape, metric, "busy", sums[1]);
}

void oribi__put_open(struct oribi__scrape *scrape, const struct oribi__metric *metric)
{
    uint64_t sum = oribi__frontends_open(scrape->observe->view.frontends);
    for (uint32_t i = 0; i < scrape->observe->view.policy->slot_count; i++)
        if (lives(scrape, i))
            sum += atomic_load_explicit(&slot_of(scrape, i)->connections_open, memory_order_relaxed);
    oribi__put_count(scrape, metric, NULL, sum);
}

void oribi__put_temp_file_files(struct oribi__scrape *scrape, const struct oribi__metric *metric)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < scrape->observe->view.policy->slot_count; i++)
        if (lives(scrape, i))
            sum += atomic_load_explicit(&slot_of(scrape, i)->temp_file_open, memory_order_relaxed);
    oribi__put_count(scrape, metric, NULL, sum);
}

void oribi__put_temp_file_bytes(struct oribi__scrape *scrape, const struct oribi__metric *metric)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < scrape->observe->view.policy->slot_count; i++)
        if (lives(scrape, i))
            sum += (uint64_t)atomic_load_explicit(&slot_of(scrape, i)->temp_file_bytes, memory_order_relaxed);
    oribi__put_count(scrape, metric, NULL, sum);
}

void oribi__put_connections(struct oribi__scrape *scrape, const struct oribi__metric *metric)
{
    uint64_t sums[ORIBI_SLOT_CONN_STATES] = {0};
    for (uint32_t i = 0; i < scrape->observe->view.policy->slot_count; i++)
        if (lives(scrape, i))
            oribi_slot_add_connections(sums, slot_of(scrape, i));
    oribi__frontends_add_connections(scrape->observe->view.frontends, sums);
    int64_t oldest_us;
    sums[ORIBI_SLOT_CONN_WAITING] += oribi__handed_off(scrape->observe, &oldest_us);
    for (uint32_t k = 0; k < ORIBI_SLOT_CONN_STATES; k++)
        oribi__put_count(scrape, metric, oribi_slot_connections_name(k), sums[k]);
}

void oribi__put_waiting(struct oribi__scrape *scrape, const struct oribi__metric *metric)
{
    int64_t oldest_us;
    uint64_t sum = oribi__waiting(scrape->observe, &oldest_us);
    for (uint32_t i = 0; i < scrape->observe->view.policy->slot_count; i++)
        if (lives(scrape, i))
            sum += atomic_load_explicit(&slot_of(scrape, i)->queue_len, memory_order_relaxed);
    oribi__put_count(scrape, metric, NULL, sum);
}

void oribi__put_oldest(struct oribi__scrape *scrape, const struct oribi__metric *metric)
{
    int64_t now_us = oribi_clock_us();
    int64_t oldest_us;
    (void)oribi__waiting(scrape->observe, &oldest_us);
    int64_t longest_us = oldest_us && oldest_us < now_us ? now_us - oldest_us : 0;
    for (uint32_t i = 0; i < scrape->observe->view.policy->slot_count; i++) {
        int64_t since_us = atomic_load_explicit(&slot_of(scrape, i)->queue_oldest_us, memory_order_relaxed);
        if (lives(scrape, i) && since_us && now_us - since_us > longest_us)
            longest_us = now_us - since_us;
    }
    oribi__put_seconds(scrape, metric, NULL, longest_us);
}

void oribi__put_each(struct oribi__scrape *scrape, const struct oribi__metric *metric)
{
    for (uint32_t i = 0; i < scrape->observe->view.policy->slot_count; i++) {
        char text[16];
        int64_t n = lives(scrape, i) ? metric->of_worker(scrape, i) : -1;
        if (n < 0)
            continue;
        (void)snprintf(text, sizeof(text), "%u", i); /* fits */
        if (metric->unit && strcmp(metric->unit, "seconds") == 0)
            oribi__put_seconds(scrape, metric, text, n);
        else
            oribi__put_count(scrape, metric, text, (uint64_t)n);
    }
}

int64_t oribi__call_us_of(const struct oribi__scrape *scrape, uint32_t i)
{
    int64_t started_us = atomic_load_explicit(&slot_of(scrape, i)->call_started_us, memory_order_relaxed);
    int64_t now_us = oribi_clock_us();
    return started_us && now_us > started_us ? now_us - started_us : 0;
}

int64_t oribi__cpu_us_of(const struct oribi__scrape *scrape, uint32_t i)
{
    return scrape->looks[i].cpu_ms * 1000;
}

int64_t oribi__resident_of(const struct oribi__scrape *scrape, uint32_t i)
{
    return scrape->looks[i].resident_bytes;
}

int64_t oribi__system_threads_of(const struct oribi__scrape *scrape, uint32_t i)
{
    return scrape->looks[i].threads;
}

static const struct oribi_process_shares *shares_of(const struct oribi__scrape *scrape, uint32_t i)
{
    static const struct oribi_process_shares unknown = {-1, -1, -1};
    const struct oribi__footprint *footprint = oribi__footprint_of(scrape->observe, i);
    return footprint && footprint->shares_known ? &footprint->shares : &unknown;
}

int64_t oribi__proportional_of(const struct oribi__scrape *scrape, uint32_t i)
{
    return shares_of(scrape, i)->proportional_bytes;
}

int64_t oribi__own_of(const struct oribi__scrape *scrape, uint32_t i)
{
    return shares_of(scrape, i)->own_bytes;
}

int64_t oribi__shared_of(const struct oribi__scrape *scrape, uint32_t i)
{
    return shares_of(scrape, i)->shared_bytes;
}

int64_t oribi__descriptors_of(const struct oribi__scrape *scrape, uint32_t i)
{
    const struct oribi__footprint *footprint = oribi__footprint_of(scrape->observe, i);
    return footprint ? footprint->descriptors : -1;
}

int64_t oribi__measured_age_us_of(const struct oribi__scrape *scrape, uint32_t i)
{
    const struct oribi__footprint *footprint = oribi__footprint_of(scrape->observe, i);
    return footprint ? (oribi_clock_ms() - footprint->at_ms) * 1000 : -1;
}

/* 0 stands for what a worker has not told: Perl's never do. */
static int64_t told(const _Atomic uint64_t *number)
{
    uint64_t n = atomic_load_explicit(number, memory_order_relaxed);
    return n ? (int64_t)n : -1;
}

int64_t oribi__live_objects_of(const struct oribi__scrape *scrape, uint32_t i)
{
    return told(&slot_of(scrape, i)->live_objects);
}

int64_t oribi__heap_pages_of(const struct oribi__scrape *scrape, uint32_t i)
{
    return told(&slot_of(scrape, i)->heap_pages);
}
