/* One table names every metric with its kind, its unit and its place in the slot, or the function that writes it.
 * Reading order: the table, oribi__metrics at the end. */
#include "observe/status.h"

#include "observe/state.h"
#include "oribi/base/clock.h"
#include "oribi/base/os/os.h"

#include <stdio.h>
#include <string.h>

enum oribi__metric_kind { ORIBI__COUNTER, ORIBI__GAUGE, ORIBI__HISTOGRAM };

struct oribi__metric;

/* State of one scrape. */
struct oribi__scrape {
    const struct oribi__observe *observe;
    struct oribi_buf *out;
    bool open_metrics;
    struct oribi__totals totals;                      /* of the server since its start */
    struct oribi_slot all;                            /* the totals of its workers by their names */
    struct oribi_frontend_slot frontends;             /* the totals of its frontends by their names */
    struct oribi_process_look looks[ORIBI_SLOTS_MAX]; /* one for each worker there is */
};

struct oribi__metric {
    const char *name; /* a counter's samples have _total behind it */
    const char *unit; /* also the end of the name; NULL: none */
    const char *help;
    const char *label; /* of the samples; NULL: one sample without */
    enum oribi__metric_kind kind;
    uint32_t count;                                     /* of counters behind each other in the slot */
    size_t offset;                                      /* of the first */
    bool of_frontends;                                  /* in a frontend's slot */
    const char *(*value_of)(uint32_t i, char text[16]); /* the label's value; NULL: this one is not shown */
    void (*put)(struct oribi__scrape *, const struct oribi__metric *); /* in the place of all three */
    /* In the place of all three, too: the number of worker i, in us where the unit is seconds; below 0: not known, and
     * not shown */
    int64_t (*of_worker)(const struct oribi__scrape *, uint32_t i);
};

/* --- text --- */

static const char *suffix_of(const struct oribi__metric *metric)
{
    return metric->kind == ORIBI__COUNTER ? "_total" : "";
}

/* A sample without a label's value (NULL), or with it. */
static void put_count(struct oribi__scrape *scrape, const struct oribi__metric *metric, const char *value, uint64_t n)
{
    if (value)
        oribi_buf_print(scrape->out, "%s%s{%s=\"%s\"} %llu\n", metric->name, suffix_of(metric), metric->label, value,
                        (unsigned long long)n);
    else
        oribi_buf_print(scrape->out, "%s%s %llu\n", metric->name, suffix_of(metric), (unsigned long long)n);
}

static void put_seconds(struct oribi__scrape *scrape, const struct oribi__metric *metric, const char *value, int64_t us)
{
    long long whole = us / 1000000;
    int rest = (int)(us % 1000000);
    if (value)
        oribi_buf_print(scrape->out, "%s%s{%s=\"%s\"} %lld.%06d\n", metric->name, suffix_of(metric), metric->label,
                        value, whole, rest);
    else
        oribi_buf_print(scrape->out, "%s%s %lld.%06d\n", metric->name, suffix_of(metric), whole, rest);
}

/* --- the slots' counters --- */

static const char *class_of(uint32_t i, char text[16])
{
    (void)snprintf(text, 16, "%uxx", i); /* fits */
    return i ? text : "cut";
}

static const char *method_of(uint32_t i, char text[16])
{
    return oribi_slot_method_name(i);
}

static const char *timeout_of(uint32_t i, char text[16])
{
    static const char *const names[ORIBI_TIMEOUT_CLASSES] = {
        [ORIBI_TIMEOUT_FIRST] = "first", [ORIBI_TIMEOUT_HEAD] = "head",   [ORIBI_TIMEOUT_BODY] = "body",
        [ORIBI_TIMEOUT_IDLE] = "idle",   [ORIBI_TIMEOUT_WRITE] = "write", [ORIBI_TIMEOUT_LINGER] = "linger",
    };
    return names[i];
}

static void put_counters(struct oribi__scrape *scrape, const struct oribi__metric *metric)
{
    const char *base = metric->of_frontends ? (const char *)&scrape->frontends : (const char *)&scrape->all;
    const _Atomic uint64_t *counters = (const _Atomic uint64_t *)(base + metric->offset);
    for (uint32_t i = 0; i < metric->count; i++) {
        char text[16];
        const char *value = metric->value_of ? metric->value_of(i, text) : NULL;
        if (value || !metric->value_of)
            put_count(scrape, metric, value, counters[i]);
    }
}

static void put_refusals(struct oribi__scrape *scrape, const struct oribi__metric *metric)
{
    for (enum oribi_refusal i = 0; i < ORIBI_REFUSALS; i++) {
        char status[16] = "none";
        if (oribi_refusal_status(i))
            (void)snprintf(status, sizeof(status), "%d", oribi_refusal_status(i)); /* fits */
        oribi_buf_print(scrape->out, "%s%s{status=\"%s\",reason=\"%s\"} %llu\n", metric->name, suffix_of(metric),
                        status, oribi_refusal_name(i), (unsigned long long)scrape->all.refusals[i]);
    }
}

static void put_gc_time(struct oribi__scrape *scrape, const struct oribi__metric *metric)
{
    put_seconds(scrape, metric, NULL, (int64_t)scrape->all.gc_us);
}

static void put_histogram(struct oribi__scrape *scrape, const struct oribi__metric *metric)
{
    static const struct {
        const char *text;
        int64_t us;
    } bounds[] = {
        {"0.0001", 100},    {"0.00025", 250},   {"0.0005", 500},    {"0.001", 1000},      {"0.0025", 2500},
        {"0.005", 5000},    {"0.01", 10000},    {"0.025", 25000},   {"0.05", 50000},      {"0.1", 100000},
        {"0.25", 250000},   {"0.5", 500000},    {"1.0", 1000000},   {"2.5", 2500000},     {"5.0", 5000000},
        {"10.0", 10000000}, {"30.0", 30000000}, {"60.0", 60000000}, {"300.0", 300000000},
    };
    struct oribi_histogram_sum sum = {0};
    oribi_histogram_add(&sum, (const struct oribi_histogram *)((const char *)&scrape->all + metric->offset));
    for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++)
        oribi_buf_print(scrape->out, "%s_bucket{le=\"%s\"} %llu\n", metric->name, bounds[i].text,
                        (unsigned long long)oribi_histogram_up_to(&sum, bounds[i].us));
    oribi_buf_print(scrape->out, "%s_bucket{le=\"+Inf\"} %llu\n", metric->name, (unsigned long long)sum.count);
    oribi_buf_print(scrape->out, "%s_sum %llu.%06llu\n", metric->name, (unsigned long long)sum.sum_us / 1000000,
                    (unsigned long long)sum.sum_us % 1000000);
    oribi_buf_print(scrape->out, "%s_count %llu\n", metric->name, (unsigned long long)sum.count);
}

/* --- the supervisor's own --- */

static void put_exits(struct oribi__scrape *scrape, const struct oribi__metric *metric)
{
    for (uint32_t i = 0; i < ORIBI__EXIT_REASONS; i++)
        put_count(scrape, metric, oribi__exit_reason_name(i), scrape->totals.exits[i]);
}

static void put_reloads(struct oribi__scrape *scrape, const struct oribi__metric *metric)
{
    put_count(scrape, metric, "done", scrape->totals.reloads_done);
    put_count(scrape, metric, "failed", scrape->totals.reloads_failed);
}

static void put_reload_time(struct oribi__scrape *scrape, const struct oribi__metric *metric)
{
    put_seconds(scrape, metric, NULL, scrape->observe->totals.reload_ms * 1000);
}

static void put_generation(struct oribi__scrape *scrape, const struct oribi__metric *metric)
{
    put_count(scrape, metric, NULL, scrape->observe->view.policy->generation);
}

static void put_start(struct oribi__scrape *scrape, const struct oribi__metric *metric)
{
    put_seconds(scrape, metric, NULL, scrape->observe->started_wall_ms * 1000);
}

/* --- of frontends --- */

static void put_frontends(struct oribi__scrape *scrape, const struct oribi__metric *metric)
{
    static const char *const states[] = {"serving", "starting", "stopped"};
    const struct oribi__frontend_set *frontends = scrape->observe->view.frontends;
    enum { STATES = sizeof(states) / sizeof(states[0]) };
    uint32_t counts[STATES] = {0};
    for (uint32_t i = 0; i < frontends->count; i++) {
        const char *state = oribi__frontend_state(frontends->processes[i]);
        for (size_t k = 0; k < STATES; k++)
            counts[k] += strcmp(state, states[k]) == 0;
    }
    for (size_t k = 0; k < STATES; k++)
        put_count(scrape, metric, states[k], counts[k]);
}

static void put_frontend_exits(struct oribi__scrape *scrape, const struct oribi__metric *metric)
{
    put_count(scrape, metric, NULL, scrape->totals.frontend_exits);
}

static uint64_t frontend_sum(const struct oribi__scrape *scrape, size_t offset)
{
    const struct oribi__frontend_set *frontends = scrape->observe->view.frontends;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < frontends->count; i++) {
        const char *slot = (const char *)oribi__frontends_slot(frontends, i);
        if (slot)
            sum += atomic_load_explicit((const _Atomic uint32_t *)(const void *)(slot + offset), memory_order_relaxed);
    }
    return sum;
}

static void put_frontend_clients(struct oribi__scrape *scrape, const struct oribi__metric *metric)
{
    static const char *const names[ORIBI_FRONTEND_CLIENTS] = {"arriving", "http1", "http2", "tunnel", "websocket"};
    for (uint32_t i = 0; i < ORIBI_FRONTEND_CLIENTS; i++)
        put_count(scrape, metric, names[i],
                  frontend_sum(scrape, offsetof(struct oribi_frontend_slot, clients) + i * sizeof(uint32_t)));
}

static void put_frontend_gauge(struct oribi__scrape *scrape, const struct oribi__metric *metric)
{
    put_count(scrape, metric, NULL, frontend_sum(scrape, metric->offset));
}

static void put_history_bytes(struct oribi__scrape *scrape, const struct oribi__metric *metric)
{
    const struct oribi__frontend_set *frontends = scrape->observe->view.frontends;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < frontends->count; i++) {
        const struct oribi_frontend_slot *slot = oribi__frontends_slot(frontends, i);
        sum += slot ? atomic_load_explicit(&slot->history_bytes, memory_order_relaxed) : 0;
    }
    put_count(scrape, metric, NULL, sum);
}

/* The first of all frontends' certificates to expire; without a certificate no sample. */
static void put_expiry(struct oribi__scrape *scrape, const struct oribi__metric *metric)
{
    const struct oribi__frontend_set *frontends = scrape->observe->view.frontends;
    int64_t first_s = INT64_MAX;
    for (uint32_t i = 0; i < frontends->count; i++) {
        const struct oribi_frontend_slot *slot = oribi__frontends_slot(frontends, i);
        int64_t expires_s = slot ? atomic_load_explicit(&slot->expires_s, memory_order_relaxed) : 0;
        if (expires_s && expires_s < first_s)
            first_s = expires_s;
    }
    if (first_s != INT64_MAX)
        put_count(scrape, metric, NULL, (uint64_t)(first_s > 0 ? first_s : 0));
}

static void put_handshakes(struct oribi__scrape *scrape, const struct oribi__metric *metric)
{
    static const char *const labels[ORIBI_FRONTEND_HANDSHAKES] = {
        [ORIBI_FRONTEND_FULL_13] = "version=\"TLSv1.3\",kind=\"full\"",
        [ORIBI_FRONTEND_RESUMED_13] = "version=\"TLSv1.3\",kind=\"resumed\"",
        [ORIBI_FRONTEND_FULL_12] = "version=\"TLSv1.2\",kind=\"full\"",
        [ORIBI_FRONTEND_RESUMED_12] = "version=\"TLSv1.2\",kind=\"resumed\"",
    };
    for (uint32_t i = 0; i < ORIBI_FRONTEND_HANDSHAKES; i++)
        oribi_buf_print(scrape->out, "%s%s{%s} %llu\n", metric->name, suffix_of(metric), labels[i],
                        (unsigned long long)scrape->frontends.handshakes[i]);
}

static const char *handshake_failures_of(uint32_t i, char text[16])
{
    static const char *const names[ORIBI_FRONTEND_HANDSHAKE_FAILURES] = {"refused", "plain", "left", "late"};
    return names[i];
}

static const char *protocol_of(uint32_t i, char text[16])
{
    return i ? "http2" : "http1";
}

static const char *close_code_of(uint32_t i, char text[16])
{
    if (oribi_frontend_close_codes[i] == 0)
        return "other";
    (void)snprintf(text, 16, "%u", oribi_frontend_close_codes[i]);
    return text;
}

static const char *event_end_of(uint32_t i, char text[16])
{
    static const char *const names[ORIBI_FRONTEND_EVENT_ENDS] = {"client", "slow", "drain", "failed"};
    return names[i];
}

static const char *direction_of(uint32_t i, char text[16])
{
    return i ? "out" : "in";
}

/* --- of certificates by ACME --- */

static void put_placeholders(struct oribi__scrape *scrape, const struct oribi__metric *metric)
{
    put_count(scrape, metric, NULL, oribi__acme_placeholders(scrape->observe->view.acme));
}

static void put_acme_orders(struct oribi__scrape *scrape, const struct oribi__metric *metric)
{
    put_count(scrape, metric, NULL, scrape->totals.acme_orders);
}

static void put_acme_failures(struct oribi__scrape *scrape, const struct oribi__metric *metric)
{
    put_count(scrape, metric, NULL, scrape->totals.acme_failures);
}

static void put_acme_expiry(struct oribi__scrape *scrape, const struct oribi__metric *metric)
{
    const struct oribi__acme_set *acme = scrape->observe->view.acme;
    for (uint32_t i = 0; acme && i < acme->count; i++)
        if (acme->items[i]->expires_s)
            put_seconds(scrape, metric, acme->items[i]->name, acme->items[i]->expires_s * 1000000);
}

static void put_acme_next(struct oribi__scrape *scrape, const struct oribi__metric *metric)
{
    const struct oribi__acme_set *acme = scrape->observe->view.acme;
    for (uint32_t i = 0; acme && i < acme->count; i++)
        if (acme->items[i]->next_s)
            put_seconds(scrape, metric, acme->items[i]->name, acme->items[i]->next_s * 1000000);
}

/* --- of the application's metrics --- */

static void app_counts(const struct oribi__scrape *scrape, struct oribi_metric_counts *counts)
{
    oribi_metric_store_counts(&scrape->observe->view.context->app.view, counts);
}

static void put_app_series(struct oribi__scrape *scrape, const struct oribi__metric *metric)
{
    struct oribi_metric_counts counts;
    app_counts(scrape, &counts);
    put_count(scrape, metric, NULL, counts.series);
}

static void put_app_series_max(struct oribi__scrape *scrape, const struct oribi__metric *metric)
{
    put_count(scrape, metric, NULL, scrape->observe->view.context->app.view.max);
}

static void put_app_series_lost(struct oribi__scrape *scrape, const struct oribi__metric *metric)
{
    struct oribi_metric_counts counts;
    app_counts(scrape, &counts);
    put_count(scrape, metric, NULL, counts.lost);
}

static void put_app_dropped(struct oribi__scrape *scrape, const struct oribi__metric *metric)
{
    struct oribi_metric_counts counts;
    app_counts(scrape, &counts);
    put_count(scrape, metric, "no_room", counts.dropped[ORIBI_METRIC_NO_ROOM]);
    put_count(scrape, metric, "too_long", counts.dropped[ORIBI_METRIC_TOO_LONG]);
}

/* --- the table --- */

#define OF(field)               .offset = offsetof(struct oribi_slot, field)
#define SLOT(field, n)          .count = (n), OF(field)
#define LABEL(called, function) .label = called, .value_of = function
#define FRONTEND_AT(field)      .offset = offsetof(struct oribi_frontend_slot, field)
#define FRONTEND(field, n)      .of_frontends = true, .count = (n), FRONTEND_AT(field)
#define NOW(field)              .kind = ORIBI__GAUGE, .put = put_frontend_gauge, FRONTEND_AT(field)
#define TIMES(field)            .kind = ORIBI__HISTOGRAM, .unit = "seconds", OF(field)

/* --- workers --- */

static const struct oribi_slot *slot_of(const struct oribi__scrape *scrape, uint32_t i)
{
    return &scrape->observe->view.context->board.slots[i];
}

static bool lives(const struct oribi__scrape *scrape, uint32_t i)
{
    return oribi_policy_has_process(scrape->observe->view.policy, i);
}

/* Looks at the process of each worker, once a scrape. */
static void scrape_look(struct oribi__scrape *scrape)
{
    for (uint32_t i = 0; i < scrape->observe->view.policy->slot_count; i++)
        if (lives(scrape, i))
            oribi_process_look(scrape->observe->view.policy->records[i].pid, &scrape->looks[i]);
}

static void put_workers(struct oribi__scrape *scrape, const struct oribi__metric *metric)
{
    static const char *const states[] = {"starting", "idle", "busy", "draining", "stopped", "killed", "held"};
    const struct oribi_policy *policy = scrape->observe->view.policy;
    for (size_t k = 0; k < sizeof(states) / sizeof(states[0]); k++) {
        uint64_t count = 0;
        for (uint32_t i = 0; i < policy->slot_count; i++) {
            const char *state = oribi__worker_shown(&policy->records[i], slot_of(scrape, i), &scrape->looks[i]);
            count += state && strcmp(state, states[k]) == 0;
        }
        put_count(scrape, metric, states[k], count);
    }
    put_count(scrape, metric, "empty", oribi__workers_missing(policy));
}

static void put_wanted(struct oribi__scrape *scrape, const struct oribi__metric *metric)
{
    put_count(scrape, metric, NULL, scrape->observe->view.policy->target);
}

static void put_threads(struct oribi__scrape *scrape, const struct oribi__metric *metric)
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
    put_count(scrape, metric, "idle", sums[0]);
    put_count(scrape, metric, "busy", sums[1]);
}

static void put_open(struct oribi__scrape *scrape, const struct oribi__metric *metric)
{
    uint64_t sum = oribi__frontends_open(scrape->observe->view.frontends);
    for (uint32_t i = 0; i < scrape->observe->view.policy->slot_count; i++)
        if (lives(scrape, i))
            sum += atomic_load_explicit(&slot_of(scrape, i)->connections_open, memory_order_relaxed);
    put_count(scrape, metric, NULL, sum);
}

static void put_temp_file_files(struct oribi__scrape *scrape, const struct oribi__metric *metric)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < scrape->observe->view.policy->slot_count; i++)
        if (lives(scrape, i))
            sum += atomic_load_explicit(&slot_of(scrape, i)->temp_file_open, memory_order_relaxed);
    put_count(scrape, metric, NULL, sum);
}

static void put_temp_file_bytes(struct oribi__scrape *scrape, const struct oribi__metric *metric)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < scrape->observe->view.policy->slot_count; i++)
        if (lives(scrape, i))
            sum += (uint64_t)atomic_load_explicit(&slot_of(scrape, i)->temp_file_bytes, memory_order_relaxed);
    put_count(scrape, metric, NULL, sum);
}

static void put_connections(struct oribi__scrape *scrape, const struct oribi__metric *metric)
{
    uint64_t sums[ORIBI_SLOT_CONN_STATES] = {0};
    for (uint32_t i = 0; i < scrape->observe->view.policy->slot_count; i++)
        if (lives(scrape, i))
            oribi_slot_add_connections(sums, slot_of(scrape, i));
    oribi__frontends_add_connections(scrape->observe->view.frontends, sums);
    int64_t oldest_us;
    sums[ORIBI_SLOT_CONN_WAITING] += oribi__handed_off(scrape->observe, &oldest_us);
    for (uint32_t k = 0; k < ORIBI_SLOT_CONN_STATES; k++)
        put_count(scrape, metric, oribi_slot_connections_name(k), sums[k]);
}

static void put_waiting(struct oribi__scrape *scrape, const struct oribi__metric *metric)
{
    int64_t oldest_us;
    uint64_t sum = oribi__waiting(scrape->observe, &oldest_us);
    for (uint32_t i = 0; i < scrape->observe->view.policy->slot_count; i++)
        if (lives(scrape, i))
            sum += atomic_load_explicit(&slot_of(scrape, i)->queue_len, memory_order_relaxed);
    put_count(scrape, metric, NULL, sum);
}

static void put_oldest(struct oribi__scrape *scrape, const struct oribi__metric *metric)
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
    put_seconds(scrape, metric, NULL, longest_us);
}

static void put_each(struct oribi__scrape *scrape, const struct oribi__metric *metric)
{
    for (uint32_t i = 0; i < scrape->observe->view.policy->slot_count; i++) {
        char text[16];
        int64_t n = lives(scrape, i) ? metric->of_worker(scrape, i) : -1;
        if (n < 0)
            continue;
        (void)snprintf(text, sizeof(text), "%u", i); /* fits */
        if (metric->unit && strcmp(metric->unit, "seconds") == 0)
            put_seconds(scrape, metric, text, n);
        else
            put_count(scrape, metric, text, (uint64_t)n);
    }
}

static int64_t call_us_of(const struct oribi__scrape *scrape, uint32_t i)
{
    int64_t started_us = atomic_load_explicit(&slot_of(scrape, i)->call_started_us, memory_order_relaxed);
    int64_t now_us = oribi_clock_us();
    return started_us && now_us > started_us ? now_us - started_us : 0;
}

static int64_t cpu_us_of(const struct oribi__scrape *scrape, uint32_t i)
{
    return scrape->looks[i].cpu_ms * 1000;
}

static int64_t resident_of(const struct oribi__scrape *scrape, uint32_t i)
{
    return scrape->looks[i].resident_bytes;
}

static int64_t system_threads_of(const struct oribi__scrape *scrape, uint32_t i)
{
    return scrape->looks[i].threads;
}

static const struct oribi_process_shares *shares_of(const struct oribi__scrape *scrape, uint32_t i)
{
    static const struct oribi_process_shares unknown = {-1, -1, -1};
    const struct oribi__footprint *footprint = oribi__footprint_of(scrape->observe, i);
    return footprint && footprint->shares_known ? &footprint->shares : &unknown;
}

static int64_t proportional_of(const struct oribi__scrape *scrape, uint32_t i)
{
    return shares_of(scrape, i)->proportional_bytes;
}

static int64_t own_of(const struct oribi__scrape *scrape, uint32_t i)
{
    return shares_of(scrape, i)->own_bytes;
}

static int64_t shared_of(const struct oribi__scrape *scrape, uint32_t i)
{
    return shares_of(scrape, i)->shared_bytes;
}

static int64_t descriptors_of(const struct oribi__scrape *scrape, uint32_t i)
{
    const struct oribi__footprint *footprint = oribi__footprint_of(scrape->observe, i);
    return footprint ? footprint->descriptors : -1;
}

static int64_t measured_age_us_of(const struct oribi__scrape *scrape, uint32_t i)
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

static int64_t live_objects_of(const struct oribi__scrape *scrape, uint32_t i)
{
    return told(&slot_of(scrape, i)->live_objects);
}

static int64_t heap_pages_of(const struct oribi__scrape *scrape, uint32_t i)
{
    return told(&slot_of(scrape, i)->heap_pages);
}

static const struct oribi__metric table[] = {
    {"oribi_requests", LABEL("method", method_of), SLOT(method_count, ORIBI_SLOT_METHODS),
     .help = "requests answered, without those that were refused"},
    {"oribi_answers", LABEL("class", class_of), SLOT(status_class, 6),
     .help = "answers by class of their status, refusals included; cut: none, or ended before its end"},
    {"oribi_calls", SLOT(request_count, 1), .help = "requests answered by the application"},
    {"oribi_requests_uncalled", SLOT(uncalled_count, 1),
     .help = "requests answered without the application, such as files"},
    {"oribi_refusals", LABEL("status, reason", NULL), .put = put_refusals,
     .help = "requests that the server itself refused; status none: closed without an answer"},
    {"oribi_shed", SLOT(shed_count, 1), .help = "requests refused because the server has no room: 503 and 507"},
    {"oribi_clients_gone", SLOT(gone_count, 1), .help = "requests dropped before their call: the client had gone"},
    {"oribi_calls_cancelled", SLOT(cancelled_count, 1),
     .help = "calls told to end: their client had gone (cancel_gone)"},
    {"oribi_timeouts", LABEL("class", timeout_of), SLOT(timeouts, ORIBI_TIMEOUT_CLASSES),
     .help = "connections closed by a timeout; idle is the usual end"},
    {"oribi_calls_overdue", SLOT(overdue_count, 1), .help = "calls that passed call_timeout"},
    {"oribi_queue_wait_seconds", TIMES(queue_wait),
     .help = "a request's wait for its call, from the proxy on with X-Request-Start"},
    {"oribi_call_seconds", TIMES(call_time), .help = "time inside the application"},
    {"oribi_request_seconds", TIMES(total_time), .help = "from the complete request to the end of its call"},
    {"oribi_requests_waiting", .kind = ORIBI__GAUGE, .put = put_waiting,
     .help = "complete requests that wait for a call"},
    {"oribi_oldest_wait_seconds", .unit = "seconds", .kind = ORIBI__GAUGE, .put = put_oldest,
     .help = "wait of the oldest of them"},
    {"oribi_connections", SLOT(connection_count, 1), .help = "connections accepted"},
    {"oribi_connections_open", .kind = ORIBI__GAUGE, .put = put_open, .help = "open connections"},
    {"oribi_connections_by_state", LABEL("state", NULL), .kind = ORIBI__GAUGE, .put = put_connections,
     .help = "the same by what they do"},
    {"oribi_connections_evicted", SLOT(evicted_count, 1), .help = "connections closed for new ones (connections_max)"},
    {"oribi_connections_lost", SLOT(lost_count, 1),
     .help = "connections that lost their descriptors on the way from a sibling"},
    {"oribi_handoffs_given", SLOT(passed_count, 1),
     .help = "connections passed on to siblings, and requests that frontends gave to the hand-off queue"},
    {"oribi_handoffs_taken", SLOT(taken_count, 1),
     .help = "connections taken over from siblings, and requests of frontends"},
    {"oribi_received_bytes", .unit = "bytes", SLOT(bytes_in, 1),
     .help = "bytes that workers read from clients and frontends"},
    {"oribi_sent_bytes", .unit = "bytes", SLOT(bytes_out, 1),
     .help = "bytes that workers sent to clients and frontends"},
    {"oribi_temp_files", SLOT(temp_file_count, 1), .help = "bodies and answers too large for memory, kept in a file"},
    {"oribi_temp_file_written_bytes", .unit = "bytes", SLOT(temp_file_written_bytes, 1),
     .help = "bytes that went to such files"},
    {"oribi_temp_files_open", .kind = ORIBI__GAUGE, .put = put_temp_file_files, .help = "such files open now"},
    {"oribi_temp_file_open_bytes", .unit = "bytes", .kind = ORIBI__GAUGE, .put = put_temp_file_bytes,
     .help = "bytes in them"},
    {"oribi_log_lines_dropped", SLOT(unlogged_count, 1),
     .help = "lines of workers that the logs had no room for: slow reader, full disk"},
    {"oribi_workers", LABEL("state", NULL), .kind = ORIBI__GAUGE, .put = put_workers,
     .help = "workers by what they do"},
    {"oribi_workers_wanted", .kind = ORIBI__GAUGE, .put = put_wanted, .help = "workers that there should be"},
    {"oribi_threads", LABEL("state", NULL), .kind = ORIBI__GAUGE, .put = put_threads,
     .help = "threads of workers by what they do"},
    {"oribi_worker_call_seconds", LABEL("worker", NULL), .unit = "seconds", .kind = ORIBI__GAUGE,
     .of_worker = call_us_of, .help = "age of the worker's call; 0: none"},
    {"oribi_worker_resident_memory_bytes", LABEL("worker", NULL), .unit = "bytes", .kind = ORIBI__GAUGE,
     .of_worker = resident_of, .help = "resident memory of the worker, shared memory included"},
    {"oribi_worker_proportional_memory_bytes", LABEL("worker", NULL), .unit = "bytes", .kind = ORIBI__GAUGE,
     .of_worker = proportional_of,
     .help = "the same, each page divided among the processes that share it (PSS); the sum is what all use"},
    {"oribi_worker_own_memory_bytes", LABEL("worker", NULL), .unit = "bytes", .kind = ORIBI__GAUGE, .of_worker = own_of,
     .help = "memory that no other process shares"},
    {"oribi_worker_shared_memory_bytes", LABEL("worker", NULL), .unit = "bytes", .kind = ORIBI__GAUGE,
     .of_worker = shared_of, .help = "memory that other processes share: what forking has saved"},
    {"oribi_worker_descriptors", LABEL("worker", NULL), .kind = ORIBI__GAUGE, .of_worker = descriptors_of,
     .help = "descriptors that the worker has open"},
    {"oribi_worker_measured_age_seconds", LABEL("worker", NULL), .unit = "seconds", .kind = ORIBI__GAUGE,
     .of_worker = measured_age_us_of, .help = "how long ago the last four were measured"},
    {"oribi_worker_system_threads", LABEL("worker", NULL), .kind = ORIBI__GAUGE, .of_worker = system_threads_of,
     .help = "threads of the worker in the kernel, the server's and the language's included"},
    {"oribi_worker_cpu_seconds", LABEL("worker", NULL), .unit = "seconds", .of_worker = cpu_us_of,
     .help = "processor time of the worker; begins at 0 with each new process"},
    {"oribi_gc_runs", SLOT(gc_count, 1), .help = "runs of Ruby's garbage collector in workers"},
    {"oribi_gc_seconds", .unit = "seconds", .put = put_gc_time, .help = "the time that they took"},
    {"oribi_worker_live_objects", LABEL("worker", NULL), .kind = ORIBI__GAUGE, .of_worker = live_objects_of,
     .help = "Ruby objects of the worker, garbage included"},
    {"oribi_worker_heap_pages", LABEL("worker", NULL), .kind = ORIBI__GAUGE, .of_worker = heap_pages_of,
     .help = "pages of memory in which Ruby keeps them"},
    {"oribi_frontends", LABEL("state", NULL), .kind = ORIBI__GAUGE, .put = put_frontends,
     .help = "frontends by what they do"},
    {"oribi_frontend_exits", .put = put_frontend_exits, .help = "frontends that ended unasked"},
    {"oribi_frontend_connections_open", LABEL("protocol", NULL), .kind = ORIBI__GAUGE, .put = put_frontend_clients,
     .help = "open connections of frontends by what is spoken"},
    {"oribi_frontend_handshakes", LABEL("version, kind", NULL), .put = put_handshakes,
     .help = "TLS handshakes, full and resumed"},
    {"oribi_frontend_handshakes_failed", LABEL("reason", handshake_failures_of),
     FRONTEND(handshake_failures, ORIBI_FRONTEND_HANDSHAKE_FAILURES),
     .help = "TLS handshakes that failed, or that clients broke off"},
    {"oribi_frontend_certificate_expires_timestamp_seconds", .kind = ORIBI__GAUGE, .unit = "seconds", .put = put_expiry,
     .help = "when the first certificate of frontends expires, seconds since 1970"},
    {"oribi_acme_placeholders", .kind = ORIBI__GAUGE, .put = put_placeholders,
     .help = "certificates of acme that have not come yet: a self-signed one serves"},
    {"oribi_acme_orders", .put = put_acme_orders,
     .help = "orders for certificates of acme that have ended, well or not"},
    {"oribi_acme_failures", .put = put_acme_failures, .help = "those that have failed"},
    {"oribi_acme_certificate_expires_timestamp_seconds", LABEL("name", NULL), .kind = ORIBI__GAUGE, .unit = "seconds",
     .put = put_acme_expiry, .help = "when each certificate of acme expires, seconds since 1970"},
    {"oribi_acme_next_order_timestamp_seconds", LABEL("name", NULL), .kind = ORIBI__GAUGE, .unit = "seconds",
     .put = put_acme_next, .help = "when the next order for it is due, seconds since 1970"},
    {"oribi_frontend_requests", LABEL("protocol", protocol_of), FRONTEND(requests, 2),
     .help = "well-formed requests that frontends have read, whoever answered them"},
    {"oribi_frontend_local_answers", FRONTEND(local_count, 1),
     .help = "requests that frontends answered with local content: files, fixed answers, health"},
    {"oribi_frontend_calls", FRONTEND(call_count, 1), .help = "requests that frontends gave to workers"},
    {"oribi_frontend_calls_retried", FRONTEND(posted_count, 1),
     .help = "those of them given to another worker, as the first one had ended"},
    {"oribi_frontend_calls_out", NOW(calls_out), .help = "requests of frontends that workers have"},
    {"oribi_frontend_requests_waiting", NOW(queue_len),
     .help = "complete requests that wait in frontends for a worker"},
    {"oribi_frontend_streams_open", NOW(streams), .help = "open streams of HTTP/2"},
    {"oribi_frontend_streams_reset", FRONTEND(reset_count, 1), .help = "streams of HTTP/2 reset, by either side"},
    {"oribi_frontend_received_bytes", .unit = "bytes", FRONTEND(bytes_in, 1),
     .help = "bytes that frontends read from clients, without TLS"},
    {"oribi_frontend_sent_bytes", .unit = "bytes", FRONTEND(bytes_out, 1),
     .help = "bytes that frontends sent to clients, without TLS"},
    {"oribi_websockets_opened", FRONTEND(websocket_count, 1), .help = "WebSockets that the application has accepted"},
    {"oribi_websockets_closed", LABEL("code", close_code_of), FRONTEND(websocket_closed, ORIBI_FRONTEND_CLOSE_CODES),
     .help = "WebSockets that have ended, by their close code (1006: without one)"},
    {"oribi_websocket_messages", LABEL("direction", direction_of), FRONTEND(websocket_messages, 2),
     .help = "messages from clients and to clients"},
    {"oribi_websocket_message_bytes", LABEL("direction", direction_of), .unit = "bytes", FRONTEND(websocket_bytes, 2),
     .help = "bytes of these messages"},
    {"oribi_event_streams_open", NOW(event_streams), .help = "open event streams (server-sent events)"},
    {"oribi_event_streams_opened", FRONTEND(event_stream_count, 1), .help = "event streams that have begun"},
    {"oribi_event_streams_ended", LABEL("reason", event_end_of),
     FRONTEND(event_streams_ended, ORIBI_FRONTEND_EVENT_ENDS), .help = "event streams that have ended, by the reason"},
    {"oribi_events", FRONTEND(event_count, 1), .help = "server-sent events, counted for each client"},
    {"oribi_event_bytes", .unit = "bytes", FRONTEND(event_bytes, 1), .help = "bytes of these events"},
    {"oribi_event_resets", FRONTEND(event_resets, 1),
     .help = "channels of event streams of which not all that was missed could be sent"},
    {"oribi_published", FRONTEND(publish_count, 1), .help = "messages published to channels"},
    {"oribi_publish_refused", FRONTEND(publish_refused, 1),
     .help = "records in the inbox of publications that are none, or for which memory was out"},
    {"oribi_delivered", FRONTEND(delivered_count, 1), .help = "published messages given to subscribers, each counted"},
    {"oribi_resumes", FRONTEND(resumed_count, 1), .help = "subscriptions that got all that they had missed"},
    {"oribi_resume_resets", FRONTEND(resume_reset_count, 1),
     .help = "subscriptions for which the history does not reach back"},
    {"oribi_history_dropped", FRONTEND(history_dropped, 1),
     .help = "messages of histories that history_memory_max has pushed out"},
    {"oribi_channels", NOW(topics), .help = "channels with a subscriber or a history; each frontend has its own"},
    {"oribi_subscriptions", NOW(subscriptions), .help = "subscriptions to channels"},
    {"oribi_history_bytes", .kind = ORIBI__GAUGE, .unit = "bytes", .put = put_history_bytes,
     .help = "memory of the histories of channels; each frontend has its own"},
    {"oribi_worker_exits", LABEL("reason", NULL), .put = put_exits, .help = "workers that ended"},
    {"oribi_reloads", LABEL("result", NULL), .put = put_reloads, .help = "reloads that have ended"},
    {"oribi_last_reload_seconds", .unit = "seconds", .kind = ORIBI__GAUGE, .put = put_reload_time,
     .help = "how long the last reload took"},
    {"oribi_generation", .kind = ORIBI__GAUGE, .put = put_generation,
     .help = "generation of the application that serves"},
    {"oribi_start_time_seconds", .unit = "seconds", .kind = ORIBI__GAUGE, .put = put_start,
     .help = "start of this supervisor, seconds since 1970; an upgrade starts another, counters go on"},
    {"oribi_app_series", .kind = ORIBI__GAUGE, .put = put_app_series,
     .help = "series of the application's own metrics, each worker's part of a gauge included"},
    {"oribi_app_series_max", .kind = ORIBI__GAUGE, .put = put_app_series_max,
     .help = "how many there can be (metrics_max)"},
    {"oribi_app_series_lost", .kind = ORIBI__GAUGE, .put = put_app_series_lost,
     .help = "series lost: their process was killed while it made one"},
    {"oribi_app_changes_dropped", LABEL("reason", NULL), .put = put_app_dropped,
     .help = "changes of the application's metrics that were not kept: no room for the series, or too long labels"},
};

enum { METRICS = sizeof(table) / sizeof(table[0]) };

static const char *const kinds[] = {
    [ORIBI__COUNTER] = "counter", [ORIBI__GAUGE] = "gauge", [ORIBI__HISTOGRAM] = "histogram"};

static void put_family(struct oribi__scrape *scrape, const struct oribi__metric *metric)
{
    const char *suffix = scrape->open_metrics ? "" : suffix_of(metric);
    oribi_buf_print(scrape->out, "# HELP %s%s %s\n", metric->name, suffix, metric->help);
    oribi_buf_print(scrape->out, "# TYPE %s%s %s\n", metric->name, suffix, kinds[metric->kind]);
    if (metric->unit && scrape->open_metrics)
        oribi_buf_print(scrape->out, "# UNIT %s %s\n", metric->name, metric->unit);
    if (metric->put)
        metric->put(scrape, metric);
    else if (metric->of_worker)
        put_each(scrape, metric);
    else if (metric->kind == ORIBI__HISTOGRAM)
        put_histogram(scrape, metric);
    else
        put_counters(scrape, metric);
}

void oribi__metrics(const struct oribi__observe *observe, struct oribi_buf *out, bool open_metrics)
{
    struct oribi__scrape scrape = {.observe = observe, .out = out, .open_metrics = open_metrics};
    oribi__status_totals(observe, &scrape.totals);
    oribi_slot_unfold(scrape.totals.ended, &scrape.all);
    oribi_frontend_slot_unfold(scrape.totals.frontends, &scrape.frontends);
    scrape_look(&scrape);
    for (size_t i = 0; i < METRICS; i++)
        put_family(&scrape, &table[i]);
    oribi__app_export_text(&observe->view.context->app.view, observe->view.policy->generation, open_metrics, out);
    if (open_metrics)
        oribi_buf_print(scrape.out, "# EOF\n");
}

void oribi__metrics_doc(struct oribi_buf *out)
{
    struct oribi__scrape scrape = {.out = out};
    for (size_t i = 0; i < METRICS; i++)
        oribi_buf_print(scrape.out, "| `%s%s` | %s%s%s%s | %s |\n", table[i].name, suffix_of(&table[i]),
                        kinds[table[i].kind], table[i].label ? " `" : "", table[i].label ? table[i].label : "",
                        table[i].label ? "`" : "", table[i].help);
}
