/* A snapshot of the server for `ctl top`, from the scoreboard and from small files of /proc. Nothing here waits for a
 * worker: it is as quick while all of them are stuck or stopped. */
#include "oribi/observe/top_snapshot.h"
#include "observe/status.h"
#include "observe/state.h"

#include "oribi/base/clock.h"
#include "oribi/base/mem.h"

#include <stdio.h>
#include <string.h>

static uint64_t since(int64_t then, int64_t now)
{
    return then && now > then ? (uint64_t)(now - then) : 0;
}

/* May be torn while the worker writes it. */
static void copy_call(char dst[ORIBI_SLOT_LINE_CAP], const struct oribi_slot *slot)
{
    memcpy(dst, slot->line, ORIBI_SLOT_LINE_CAP);
    dst[ORIBI_SLOT_LINE_CAP - 1] = '\0';
}

static void look_at_worker(struct oribi__top_worker *to, uint32_t i, const struct oribi_worker_record *record,
                           const struct oribi_slot *slot)
{
    struct oribi_process_look look;
    uint32_t busy;
    uint32_t threads;
    oribi__worker_threads(slot, &busy, &threads);
    oribi_process_look(record->pid, &look);
    *to = (struct oribi__top_worker){
        .worker = i,
        .pid = (uint64_t)(record->pid > 0 ? record->pid : 0),
        .generation = record->generation,
        .requests = atomic_load_explicit(&slot->request_count, memory_order_relaxed) +
                    atomic_load_explicit(&slot->uncalled_count, memory_order_relaxed),
        .connections_open = atomic_load_explicit(&slot->connections_open, memory_order_relaxed),
        .queued = atomic_load_explicit(&slot->queue_len, memory_order_relaxed),
        .threads = threads,
        .threads_busy = busy,
        .memory_bytes = (uint64_t)look.resident_bytes,
        .cpu_ms = (uint64_t)look.cpu_ms,
        .up_ms = since(record->ready_at, oribi_clock_ms()),
        .call_us = since(atomic_load_explicit(&slot->call_started_us, memory_order_relaxed), oribi_clock_us()),
    };
    (void)snprintf(to->state, sizeof(to->state), "%s", oribi__worker_shown(record, slot, &look)); /* fits */
    if (to->call_us > 0)
        copy_call(to->call, slot);
}

static void look_at_workers(struct oribi__top_snapshot *to, const struct oribi__observe *observe)
{
    const struct oribi_policy *policy = observe->view.policy;
    int64_t oldest_us;
    to->workers = oribi_mem_try_alloc(policy->slot_count, sizeof(*to->workers));
    to->waiting = oribi__waiting(observe, &oldest_us);
    to->connections_open = oribi__frontends_open(observe->view.frontends);
    to->oldest_us = since(oldest_us, oribi_clock_us());
    for (uint32_t i = 0; to->workers && i < policy->slot_count; i++) {
        const struct oribi_slot *slot = &observe->view.context->board.slots[i];
        if (!oribi__worker_state(&policy->records[i], slot))
            continue;
        struct oribi__top_worker *worker = &to->workers[to->count++];
        look_at_worker(worker, i, &policy->records[i], slot);
        to->waiting += worker->queued;
        to->connections_open += worker->connections_open;
        uint64_t waits_us = since(atomic_load_explicit(&slot->queue_oldest_us, memory_order_relaxed), oribi_clock_us());
        to->oldest_us = waits_us > to->oldest_us ? waits_us : to->oldest_us;
    }
}

static void look_at_frontends(struct oribi__top_snapshot *to, const struct oribi__frontend_set *frontends)
{
    to->frontends = frontends->count;
    to->frontends_serving = oribi__frontends_serving(frontends);
    for (uint32_t i = 0; i < frontends->count; i++) {
        const struct oribi_frontend_slot *slot = oribi__frontends_slot(frontends, i);
        if (!slot)
            continue;
        to->frontend_clients += oribi_frontend_slot_open(slot);
        to->frontend_clients_h2 += atomic_load_explicit(&slot->clients[ORIBI_FRONTEND_H2], memory_order_relaxed);
        to->frontend_streams += atomic_load_explicit(&slot->streams, memory_order_relaxed);
        to->websockets += atomic_load_explicit(&slot->clients[ORIBI_FRONTEND_WEBSOCKET], memory_order_relaxed);
        to->frontend_calls_out += atomic_load_explicit(&slot->calls_out, memory_order_relaxed);
    }
}

static void look_at_frontends_counters(struct oribi__top_snapshot *to, const struct oribi__totals *totals)
{
    struct oribi_frontend_slot all;
    oribi_frontend_slot_unfold(totals->frontends, &all);
    for (uint32_t i = 0; i < ORIBI_FRONTEND_HANDSHAKES; i++)
        to->handshakes += all.handshakes[i];
    to->handshakes_resumed = all.handshakes[ORIBI_FRONTEND_RESUMED_13] + all.handshakes[ORIBI_FRONTEND_RESUMED_12];
    for (uint32_t i = 0; i < ORIBI_FRONTEND_HANDSHAKE_FAILURES; i++)
        to->handshakes_failed += all.handshake_failures[i];
    to->websocket_messages_in = all.websocket_messages[0];
    to->websocket_messages_out = all.websocket_messages[1];
}

/* Ends that nobody asked for. */
static uint64_t deaths_of(const struct oribi__totals *totals)
{
    return oribi__totals_exits(totals) - totals->exits[ORIBI__EXIT_ASKED] - totals->exits[ORIBI__EXIT_RECYCLED];
}

static void look_at_counters(struct oribi__top_snapshot *to, const struct oribi__observe *observe)
{
    struct oribi__totals totals;
    struct oribi_slot all;
    oribi__status_totals(observe, &totals);
    oribi_slot_unfold(totals.ended, &all);
    look_at_frontends_counters(to, &totals);
    to->deaths = deaths_of(&totals);
    to->requests = all.request_count + all.uncalled_count;
    to->uncalled = all.uncalled_count;
    to->cut = all.status_class[0];
    to->status_4xx = all.status_class[4];
    to->status_5xx = all.status_class[5];
    for (uint32_t i = 0; i < ORIBI_REFUSALS; i++)
        to->refused += all.refusals[i];
    to->shed = all.shed_count;
    to->overdue = all.overdue_count;
    to->connections = all.connection_count;
    to->bytes_in = all.bytes_in;
    to->bytes_out = all.bytes_out;
    oribi_histogram_add(&to->times[ORIBI__TOP_QUEUE_WAIT], &all.queue_wait);
    oribi_histogram_add(&to->times[ORIBI__TOP_CALL_TIME], &all.call_time);
    oribi_histogram_add(&to->times[ORIBI__TOP_TOTAL_TIME], &all.total_time);
}

void oribi__top_answer(const struct oribi__observe *observe, struct oribi_buf *out)
{
    const struct oribi_policy *policy = observe->view.policy;
    struct oribi__top_snapshot snapshot = {
        .pid = (uint64_t)observe->view.context->supervisor,
        .taken_us = (uint64_t)oribi_clock_us(),
        .up_ms = since(observe->started_ms, oribi_clock_ms()),
        .generation = policy->generation,
        .serving = oribi_policy_serving(policy),
        .wanted = policy->target,
    };
    (void)snprintf(snapshot.program, sizeof(snapshot.program), "%s", observe->view.context->program); /* fits */
    (void)snprintf(snapshot.version, sizeof(snapshot.version), "%s", observe->view.version);
    (void)snprintf(snapshot.state, sizeof(snapshot.state), "%s", oribi__server_state(observe)); /* fits */
    look_at_counters(&snapshot, observe);
    look_at_workers(&snapshot, observe);
    look_at_frontends(&snapshot, observe->view.frontends);
    oribi__top_write(&snapshot, out);
    oribi__top_deinit(&snapshot);
}
