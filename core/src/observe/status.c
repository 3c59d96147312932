/* Status of the server, as a table for people and as JSON for programs, from the scoreboard. */
#include "observe/status.h"
#include "observe/state.h"

#include "oribi/base/escape.h"
#include "oribi/base/log.h"
#include "oribi/config/listener.h"
#include "oribi/base/clock.h"

#include <string.h>

static uint64_t load(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static uint64_t requests_of(const struct oribi_slot *slot)
{
    return load(&slot->request_count) + load(&slot->uncalled_count);
}

const char *oribi__worker_state(const struct oribi_worker_record *record, const struct oribi_slot *slot)
{
    switch (record->state) {
    case ORIBI_RECORD_SPAWNING:
    case ORIBI_RECORD_BOOTING:
        return "starting";
    case ORIBI_RECORD_SERVING:
        return atomic_load(&slot->call_started_us) ? "busy" : "idle";
    case ORIBI_RECORD_LEAVING:
    case ORIBI_RECORD_STOPPING:
        return "draining";
    case ORIBI_RECORD_KILLED:
        return "killed";
    case ORIBI_RECORD_HELD:
        return "held";
    case ORIBI_RECORD_FREE:
    case ORIBI_RECORD_LOST:
        break;
    }
    return NULL;
}

const char *oribi__worker_shown(const struct oribi_worker_record *record, const struct oribi_slot *slot,
                                const struct oribi_process_look *look)
{
    const char *state = oribi__worker_state(record, slot);
    return state && look->stopped && record->state != ORIBI_RECORD_KILLED ? "stopped" : state;
}

uint32_t oribi__workers_missing(const struct oribi_policy *policy)
{
    uint32_t there = 0;
    for (uint32_t i = 0; i < policy->slot_count; i++)
        there += oribi_policy_has_process(policy, i);
    return there < policy->target ? policy->target - there : 0;
}

const char *oribi__server_state(const struct oribi__observe *observe)
{
    const struct oribi_policy *policy = observe->view.policy;
    if (policy->stopping)
        return "stopping";
    if (policy->stop_at)
        return "stopping soon";
    if (policy->next_generation)
        return "reloading";
    if (policy->rolling || policy->reforking)
        return "replacing workers";
    if (policy->upgrade_pid)
        return "upgrading";
    if (policy->up && oribi__frontends_missing(observe->view.frontends))
        return "no frontend serves";
    return policy->up ? "serving" : "starting";
}

void oribi__status_totals(const struct oribi__observe *observe, struct oribi__totals *all)
{
    *all = observe->totals;
    oribi__inherited_totals_add(&observe->inherited, all);
    for (uint32_t i = 0; i < observe->view.policy->slot_count; i++)
        if (oribi_policy_has_process(observe->view.policy, i))
            oribi_slot_fold(all->ended, &observe->view.context->board.slots[i]);
    oribi__frontends_fold(observe->view.frontends, all->frontends, all->ended);
}

void oribi__status_sum(const struct oribi__observe *observe, uint64_t sums[ORIBI_SLOT_COUNTERS])
{
    struct oribi__totals all;
    oribi__status_totals(observe, &all);
    memcpy(sums, all.ended, sizeof(all.ended));
}

static void export_expired(void *owner)
{
    oribi__export_totals(owner);
}

void oribi__export_totals(struct oribi__observe *observe)
{
    struct oribi__totals all;
    if (!observe->inherited.to)
        return;
    oribi__status_totals(observe, &all);
    oribi__inherited_totals_write(&observe->inherited, &all);
    observe->state->export_totals.expired = export_expired;
    observe->state->export_totals.owner = observe;
    oribi_dispatcher_arm(observe->dispatcher, &observe->state->export_totals, oribi_clock_ms() + ORIBI__TOTALS_MS);
}

static void sum(const struct oribi__observe *observe, struct oribi__totals *totals, struct oribi_slot *all)
{
    oribi__status_totals(observe, totals);
    oribi_slot_unfold(totals->ended, all);
}

/* The slot's line may change while it is copied; what a peer chose stays printable and without quotes. */
static void copy_line(const struct oribi_slot *slot, char line[ORIBI_SLOT_LINE_CAP])
{
    memcpy(line, slot->line, ORIBI_SLOT_LINE_CAP);
    line[ORIBI_SLOT_LINE_CAP - 1] = '\0';
    for (char *p = line; *p; p++)
        *p = *p < 0x20 || *p > 0x7e || *p == '"' || *p == '\\' ? '?' : *p;
}

static int64_t call_ms(const struct oribi_slot *slot, int64_t now_us)
{
    int64_t started = atomic_load(&slot->call_started_us);
    return started && now_us > started ? (now_us - started) / 1000 : 0;
}

/* Where the kernel does not tell how memory is shared, the proportional share is all that is resident. */
static void measure(const struct oribi_process_look *look, pid_t pid, struct oribi_process_shares *shares)
{
    if (pid <= 0 || !oribi_process_shares(pid, shares))
        *shares = (struct oribi_process_shares){.proportional_bytes = look->resident_bytes};
}

static long long in_mb(int64_t bytes)
{
    return (long long)(bytes >> 20);
}

void oribi__worker_threads(const struct oribi_slot *slot, uint32_t *busy, uint32_t *threads)
{
    *threads = atomic_load(&slot->threads);
    *busy = atomic_load(&slot->threads_busy);
    if (*threads > 0)
        return;
    *threads = 1;
    *busy = atomic_load(&slot->call_started_us) ? 1 : 0;
}

uint32_t oribi__handed_off(const struct oribi__observe *observe, int64_t *oldest_us)
{
    if (!oribi_handoff_waiting(&observe->view.context->handoff, oldest_us))
        return 0;
    int32_t count = atomic_load_explicit(&observe->view.context->board.slots->handed_off, memory_order_relaxed);
    return count > 0 ? (uint32_t)count : 1;
}

uint32_t oribi__waiting(const struct oribi__observe *observe, int64_t *oldest_us)
{
    int64_t at_frontends_us;
    uint32_t count = oribi__handed_off(observe, oldest_us);
    uint32_t at_frontends = oribi__frontends_waiting(observe->view.frontends, &at_frontends_us);
    if (count == 0)
        *oldest_us = 0;
    if (at_frontends_us && (!*oldest_us || at_frontends_us < *oldest_us))
        *oldest_us = at_frontends_us;
    return count + at_frontends;
}

static void put_threads(struct oribi_buf *out, const struct oribi_slot *slot)
{
    uint32_t busy;
    uint32_t threads;
    oribi__worker_threads(slot, &busy, &threads);
    if (threads > 1)
        oribi_buf_print(out, "  %u/%u threads", busy, threads);
}

static uint64_t read_by(const struct oribi_frontend_slot *slot)
{
    return load(&slot->requests[0]) + load(&slot->requests[1]);
}

static void put_frontend(const struct oribi__observe *observe, uint32_t i, struct oribi_buf *out)
{
    const struct oribi__frontend_process *frontend = observe->view.frontends->processes[i];
    const struct oribi_frontend_slot *slot = oribi__frontends_slot(observe->view.frontends, i);
    oribi_buf_print(out, "frontend %u, pid %d, %s", i, (int)frontend->pid, oribi__frontend_state(frontend));
    if (slot)
        oribi_buf_print(out, ", %u open, %llu request%s, %llu answered by itself", oribi_frontend_slot_open(slot),
                        (unsigned long long)read_by(slot), oribi_log_plural(read_by(slot)),
                        (unsigned long long)load(&slot->uncalled_count));
    uint32_t sockets = slot ? atomic_load(&slot->clients[ORIBI_FRONTEND_WEBSOCKET]) : 0;
    if (sockets)
        oribi_buf_print(out, ", %u WebSocket%s, %llu messages in, %llu out", sockets, oribi_log_plural(sockets),
                        (unsigned long long)load(&slot->websocket_messages[0]),
                        (unsigned long long)load(&slot->websocket_messages[1]));
    uint32_t streams = slot ? atomic_load(&slot->event_streams) : 0;
    if (streams)
        oribi_buf_print(out, ", %u event stream%s", streams, oribi_log_plural(streams));
    uint32_t subscriptions = slot ? atomic_load(&slot->subscriptions) : 0;
    if (subscriptions)
        oribi_buf_print(out, ", %u subscription%s", subscriptions, oribi_log_plural(subscriptions));
    uint32_t waiting = slot ? atomic_load(&slot->queue_len) : 0;
    if (waiting)
        oribi_buf_print(out, ", %u waiting", waiting);
    oribi_buf_print(out, "\n");
}

static void put_frontend_json(const struct oribi__observe *observe, uint32_t i, struct oribi_buf *out)
{
    const struct oribi__frontend_process *frontend = observe->view.frontends->processes[i];
    const struct oribi_frontend_slot *slot = oribi__frontends_slot(observe->view.frontends, i);
    const char *state = oribi__frontend_state(frontend);
    oribi_buf_print(out, "{\"pid\":%d,\"state\":\"%s\",\"ready\":%s", (int)frontend->pid, state,
                    strcmp(state, "serving") == 0 ? "true" : "false");
    if (slot)
        oribi_buf_print(
            out,
            ",\"connections_open\":%u,\"websockets\":%u,\"websocket_messages_in\":%llu,"
            "\"websocket_messages_out\":%llu,\"event_streams\":%u,\"streams\":%u,\"queued\":%u,\"calls_out\":%u,"
            "\"requests\":%llu,\"requests_uncalled\":%llu,\"channels\":%u,\"subscriptions\":%u,\"published\":%llu,"
            "\"delivered\":%llu",
            oribi_frontend_slot_open(slot), atomic_load(&slot->clients[ORIBI_FRONTEND_WEBSOCKET]),
            (unsigned long long)load(&slot->websocket_messages[0]),
            (unsigned long long)load(&slot->websocket_messages[1]), atomic_load(&slot->event_streams),
            atomic_load(&slot->streams), atomic_load(&slot->queue_len), atomic_load(&slot->calls_out),
            (unsigned long long)read_by(slot), (unsigned long long)load(&slot->uncalled_count),
            atomic_load(&slot->topics), atomic_load(&slot->subscriptions),
            (unsigned long long)load(&slot->publish_count), (unsigned long long)load(&slot->delivered_count));
    oribi_buf_print(out, "}");
}

/* --- certificates of acme --- */

static void put_certificates(const struct oribi__observe *observe, struct oribi_buf *out)
{
    const struct oribi__acme_set *acme = observe->view.acme;
    for (uint32_t i = 0; acme && i < acme->count; i++) {
        const struct oribi__acme_certificate *item = acme->items[i];
        oribi_buf_print(out, "certificate of %s: %s%s%s\n", item->name, item->state, item->reason[0] ? ": " : "",
                        item->reason);
    }
}

void oribi__status_text(struct oribi__observe *observe, struct oribi_buf *out)
{
    const struct oribi_policy *policy = observe->view.policy;
    struct oribi__totals totals;
    struct oribi_slot all;
    int64_t now_ms = oribi_clock_ms();
    sum(observe, &totals, &all);
    oribi_buf_print(out, "%s, pid %d, %s, generation %u, %u of %u worker%s, up %lld s\n",
                    observe->view.context->program, observe->view.context->supervisor, oribi__server_state(observe),
                    policy->generation, oribi_policy_serving(policy), policy->target, oribi_log_plural(policy->target),
                    (long long)(now_ms - observe->started_ms) / 1000);
    for (uint32_t i = 0; i < observe->view.context->listeners->count; i++)
        oribi_buf_print(out, "listening on %s%s\n", oribi_listener_shown(&observe->view.context->listeners->items[i]),
                        observe->view.context->listeners->items[i].tls        ? " (frontend, TLS)"
                        : observe->view.context->listeners->items[i].frontend ? " (frontend)"
                                                                              : "");
    for (uint32_t i = 0; i < observe->view.frontends->count; i++)
        put_frontend(observe, i, out);
    put_certificates(observe, out);
    if (observe->view.restart_file[0])
        oribi_buf_print(out, "a touch of %s reloads\n", observe->view.restart_file);
    oribi_buf_print(out, "%llu requests", (unsigned long long)requests_of(&all));
    if (all.uncalled_count > 0)
        oribi_buf_print(out, " (%llu answered without the application)", (unsigned long long)all.uncalled_count);
    oribi_buf_print(out, ", %llu connections, %llu worker exits\n\n", (unsigned long long)all.connection_count,
                    (unsigned long long)oribi__totals_exits(&totals));
    oribi_buf_print(out, "worker      pid  gen  state     requests  open  queued   MB  own  shared   age s  call\n");
    for (uint32_t i = 0; i < policy->slot_count; i++) {
        const struct oribi_worker_record *record = &policy->records[i];
        const struct oribi_slot *slot = &observe->view.context->board.slots[i];
        char line[ORIBI_SLOT_LINE_CAP] = "";
        struct oribi_process_look look;
        struct oribi_process_shares shares;
        if (!oribi__worker_state(record, slot))
            continue;
        oribi_process_look(record->pid, &look);
        measure(&look, record->pid, &shares);
        int64_t call = call_ms(slot, oribi_clock_us());
        if (call > 0)
            copy_line(slot, line);
        oribi_buf_print(out, "%6u %8d %4u  %-8s %9llu %5u %7u %4lld %4lld %7lld %7lld", i, record->pid,
                        record->generation, oribi__worker_shown(record, slot, &look),
                        (unsigned long long)requests_of(slot), atomic_load(&slot->connections_open),
                        atomic_load(&slot->queue_len), in_mb(shares.proportional_bytes), in_mb(shares.own_bytes),
                        in_mb(shares.shared_bytes),
                        record->ready_at ? (long long)(now_ms - record->ready_at) / 1000 : 0);
        put_threads(out, slot);
        if (call > 0)
            oribi_buf_print(out, "  %lld ms %s", (long long)call, line);
        oribi_buf_print(out, "\n");
    }
}

/* A number that is measured now, or in turn with its age (footprint.h); null where it is not known. */
static void put_number(struct oribi_buf *out, const char *name, bool known, int64_t n)
{
    if (known)
        oribi_buf_print(out, "\"%s\":%lld,", name, (long long)n);
    else
        oribi_buf_print(out, "\"%s\":null,", name);
}

/* `quick`: no worker is measured for this answer. */
static void put_memory(struct oribi__observe *observe, struct oribi_buf *out, uint32_t i,
                       const struct oribi_process_look *look, bool quick)
{
    pid_t pid = observe->view.policy->records[i].pid;
    const struct oribi__footprint *kept = quick ? oribi__footprint_of(observe, i) : NULL;
    struct oribi__footprint footprint = {.descriptors = -1};
    if (kept)
        footprint = *kept;
    if (!quick) {
        measure(look, pid, &footprint.shares);
        footprint.shares_known = true;
        footprint.descriptors = pid > 0 ? oribi_process_descriptors(pid) : -1;
        footprint.at_ms = oribi_clock_ms();
    }
    oribi_buf_print(out, "\"memory_resident_bytes\":%lld,\"cpu_ms\":%lld,\"system_threads\":%u,",
                    (long long)look->resident_bytes, (long long)look->cpu_ms, look->threads);
    put_number(out, "memory_bytes", footprint.shares_known, footprint.shares.proportional_bytes);
    put_number(out, "memory_own_bytes", footprint.shares_known, footprint.shares.own_bytes);
    put_number(out, "memory_shared_bytes", footprint.shares_known, footprint.shares.shared_bytes);
    put_number(out, "descriptors", footprint.descriptors >= 0, footprint.descriptors);
    put_number(out, "measured_age_ms", !quick || kept, oribi_clock_ms() - footprint.at_ms);
}

static void put_text(struct oribi_buf *out, const char *text)
{
    oribi_escape_append_json(out, oribi_slice(text, strlen(text)));
}

static void put_acme_json(const struct oribi__observe *observe, struct oribi_buf *out)
{
    const struct oribi__acme_set *acme = observe->view.acme;
    oribi_buf_print(out, ",\"acme\":[");
    for (uint32_t i = 0; acme && i < acme->count; i++) {
        const struct oribi__acme_certificate *item = acme->items[i];
        oribi_buf_print(out, "%s{\"name\":\"%s\",\"names\":\"%s\",\"state\":\"%s\",\"placeholder\":%s,\"failures\":%u",
                        i ? "," : "", item->name, item->names, item->state, item->placeholder ? "true" : "false",
                        item->failures);
        oribi_buf_print(out, ",\"valid_from\":%lld,\"valid_to\":%lld,\"next_order\":%lld,\"reason\":",
                        (long long)item->begins_s, (long long)item->expires_s, (long long)item->next_s);
        put_text(out, item->reason);
        oribi_buf_print(out, "}");
    }
    oribi_buf_print(out, "]");
}

/* "call":"GET /","request_id":"…": what may change while it is read, and what a peer chose. */
static void put_call(struct oribi_buf *out, const struct oribi_slot *slot, int64_t now_us)
{
    char line[ORIBI_SLOT_LINE_CAP] = "";
    char id[sizeof(slot->id)] = "";
    int64_t deadline_us = atomic_load(&slot->call_deadline_us);
    int64_t call = call_ms(slot, now_us);
    if (call > 0) {
        memcpy(line, slot->line, sizeof(line));
        memcpy(id, slot->id, sizeof(id));
        line[sizeof(line) - 1] = id[sizeof(id) - 1] = '\0';
    }
    oribi_buf_print(out, "\"call_ms\":%lld,\"call_overdue\":%s,\"call\":", (long long)call,
                    call > 0 && deadline_us && now_us > deadline_us ? "true" : "false");
    put_text(out, line);
    oribi_buf_print(out, ",\"request_id\":");
    put_text(out, id);
}

static void put_gc(struct oribi_buf *out, const struct oribi_slot *slot)
{
    uint64_t objects = load(&slot->live_objects);
    uint64_t pages = load(&slot->heap_pages);
    oribi_buf_print(out, "\"gc_runs\":%llu,\"gc_ms\":%llu,", (unsigned long long)load(&slot->gc_count),
                    (unsigned long long)load(&slot->gc_us) / 1000);
    put_number(out, "live_objects", objects > 0, (int64_t)objects);
    put_number(out, "heap_pages", pages > 0, (int64_t)pages);
}

static void put_worker(struct oribi__observe *observe, struct oribi_buf *out, uint32_t i, bool quick)
{
    const struct oribi_worker_record *record = &observe->view.policy->records[i];
    const struct oribi_slot *slot = &observe->view.context->board.slots[i];
    uint32_t busy;
    uint32_t threads;
    struct oribi_process_look look;
    oribi_process_look(record->pid, &look);
    oribi__worker_threads(slot, &busy, &threads);
    oribi_buf_print(
        out, "{\"worker\":%u,\"pid\":%d,\"generation\":%u,\"state\":\"%s\",\"requests\":%llu,\"connections_open\":%u,",
        i, record->pid, record->generation, oribi__worker_shown(record, slot, &look),
        (unsigned long long)requests_of(slot), atomic_load(&slot->connections_open));
    oribi_buf_print(out, "\"requests_uncalled\":%llu,", (unsigned long long)load(&slot->uncalled_count));
    oribi_buf_print(out, "\"threads\":%u,\"threads_busy\":%u,", threads, busy);
    put_gc(out, slot);
    oribi_buf_print(out, "\"queued\":%u,", atomic_load(&slot->queue_len));
    oribi_buf_print(out, "\"stopped\":%s,", look.stopped ? "true" : "false");
    put_memory(observe, out, i, &look, quick);
    oribi_buf_print(out, "\"busy_ms\":%llu,\"age_ms\":%lld,", (unsigned long long)load(&slot->call_time.sum_us) / 1000,
                    record->ready_at ? (long long)(oribi_clock_ms() - record->ready_at) : 0);
    put_call(out, slot, oribi_clock_us());
    oribi_buf_print(out, "}");
}

/* "call_ms":{"count":9,"mean":1.250,"p50":1.024,…}, with a comma behind it. */
static void put_quantiles(struct oribi_buf *out, const char *name, const struct oribi_histogram *histogram)
{
    static const struct {
        const char *name;
        double share;
    } quantiles[] = {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p999", 0.999}, {"max", 1}};
    struct oribi_histogram_sum sum_of = {0};
    oribi_histogram_add(&sum_of, histogram);
    oribi_buf_print(out, "\"%s\":{\"count\":%llu,\"mean\":%.3f", name, (unsigned long long)sum_of.count,
                    sum_of.count ? (double)sum_of.sum_us / (double)sum_of.count / 1000 : 0.0);
    for (size_t i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++)
        oribi_buf_print(out, ",\"%s\":%.3f", quantiles[i].name,
                        (double)oribi_histogram_quantile(&sum_of, quantiles[i].share) / 1000);
    oribi_buf_print(out, "},");
}

static void put_times(struct oribi_buf *out, const struct oribi_slot *all)
{
    put_quantiles(out, "queue_wait_ms", &all->queue_wait);
    put_quantiles(out, "call_time_ms", &all->call_time);
    put_quantiles(out, "total_time_ms", &all->total_time);
}

static void put_connections(struct oribi__observe *observe, struct oribi_buf *out)
{
    uint64_t sums[ORIBI_SLOT_CONN_STATES] = {0};
    for (uint32_t i = 0; i < observe->view.policy->slot_count; i++)
        if (oribi_policy_has_process(observe->view.policy, i))
            oribi_slot_add_connections(sums, &observe->view.context->board.slots[i]);
    oribi__frontends_add_connections(observe->view.frontends, sums);
    int64_t oldest_us;
    sums[ORIBI_SLOT_CONN_WAITING] += oribi__handed_off(observe, &oldest_us);
    oribi_buf_print(out, "\"connections_by_state\":{");
    for (uint32_t k = 0; k < ORIBI_SLOT_CONN_STATES; k++)
        oribi_buf_print(out, "%s\"%s\":%llu", k ? "," : "", oribi_slot_connections_name(k),
                        (unsigned long long)sums[k]);
    oribi_buf_print(out, "},");
}

void oribi__status_json(struct oribi__observe *observe, struct oribi_buf *out, bool quick)
{
    const struct oribi_policy *policy = observe->view.policy;
    struct oribi__totals totals;
    struct oribi_slot all;
    sum(observe, &totals, &all);
    oribi_buf_print(
        out, "{\"program\":\"%s\",\"pid\":%d,\"state\":\"%s\",\"generation\":%u,\"workers\":%u,\"workers_wanted\":%u,",
        observe->view.context->program, observe->view.context->supervisor, oribi__server_state(observe),
        policy->generation, oribi_policy_serving(policy), policy->target);
    oribi_buf_print(out, "\"version\":");
    put_text(out, observe->view.version);
    oribi_buf_print(
        out, ",\"uptime_ms\":%lld,\"requests\":%llu,\"connections\":%llu,\"bytes_in\":%llu,\"bytes_out\":%llu,",
        (long long)(oribi_clock_ms() - observe->started_ms), (unsigned long long)requests_of(&all),
        (unsigned long long)all.connection_count, (unsigned long long)all.bytes_in, (unsigned long long)all.bytes_out);
    oribi_buf_print(out, "\"requests_uncalled\":%llu,\"workers_missing\":%u,", (unsigned long long)all.uncalled_count,
                    oribi__workers_missing(policy));
    oribi_buf_print(out, "\"gc_runs\":%llu,\"gc_ms\":%llu,", (unsigned long long)all.gc_count,
                    (unsigned long long)all.gc_us / 1000);
    oribi_buf_print(out, "\"connections_evicted\":%llu,\"connections_lost\":%llu,",
                    (unsigned long long)all.evicted_count, (unsigned long long)all.lost_count);
    put_connections(observe, out);
    put_times(out, &all);
    oribi_buf_print(out, "\"worker_exits\":%llu,\"answers\":{\"cut\":%llu",
                    (unsigned long long)oribi__totals_exits(&totals), (unsigned long long)all.status_class[0]);
    for (int i = 1; i < 6; i++)
        oribi_buf_print(out, ",\"%dxx\":%llu", i, (unsigned long long)all.status_class[i]);
    oribi_buf_print(out, "},\"listeners\":[");
    for (uint32_t i = 0; i < observe->view.context->listeners->count; i++) {
        oribi_buf_print(out, "%s", i ? "," : "");
        put_text(out, oribi_listener_shown(&observe->view.context->listeners->items[i]));
    }
    oribi_buf_print(out, "],\"frontends\":[");
    for (uint32_t i = 0; i < observe->view.frontends->count; i++) {
        oribi_buf_print(out, "%s", i ? "," : "");
        put_frontend_json(observe, i, out);
    }
    oribi_buf_print(out, "]");
    put_acme_json(observe, out);
    oribi_buf_print(out, ",\"restart_file\":");
    put_text(out, observe->view.restart_file);
    oribi_buf_print(out, ",\"processes\":[");
    bool first = true;
    for (uint32_t i = 0; i < policy->slot_count; i++) {
        if (!oribi__worker_state(&policy->records[i], &observe->view.context->board.slots[i]))
            continue;
        oribi_buf_print(out, "%s", first ? "" : ",");
        first = false;
        put_worker(observe, out, i, quick);
    }
    oribi_buf_print(out, "]");
    if (quick) {
        oribi_buf_print(out, ",\"app\":");
        oribi__app_export_json(&observe->view.context->app.view, policy->generation, out);
    }
    oribi_buf_print(out, "}\n");
}
