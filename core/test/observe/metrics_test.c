/* The metrics: their text, their table in doc/monitoring.md, which samples move. */
#include "observe/metrics.c"

#include "system.h"
#include "observe_world.h"
#include "tap.h"

#include "oribi/base/clock.h"
#include "oribi/base/mem.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORKERS = 64, SLOTS = 2 * WORKERS };

static struct oribi_buf text;

/* Has the next worker measured, if any is. True when the policy has heard of it. */
static bool measure_now(void)
{
    struct oribi_timer *measure = &world->observe.state->footprints.measure;
    uint32_t before = world->reports;
    if (oribi_timer_at(measure) != INT64_MAX)
        oribi_dispatcher_arm(&world->dispatcher, measure, 1);
    (void)oribi_dispatcher_next(&world->dispatcher); /* that one alone */
    return world->reports > before;
}

static void begin(void)
{
    (void)world_begin(WORKERS, SLOTS);
    for (uint32_t i = 0; i < WORKERS; i++) {
        world->policy.records[i].state = ORIBI_RECORD_SERVING;
        world->policy.records[i].pid = getpid();
    }
}

static void end(void)
{
    world_end(world);
    oribi_buf_deinit(&text);
}

static void scrape(bool open_metrics)
{
    text.len = 0;
    oribi__metrics(&world->observe, &text, open_metrics);
    *oribi_buf_reserve(&text, 1) = '\0';
}

/* The value of the sample that begins so, -1: there is none. */
static double sample(const char *name)
{
    char line[160];
    (void)snprintf(line, sizeof(line), "\n%s ", name);
    const char *at = strstr(text.p, line);
    return at ? strtod(at + strlen(line), NULL) : -1;
}

static bool has(const char *words)
{
    return strstr(text.p, words) != NULL;
}

static void test_counters_of_the_living_and_the_dead_are_one_number(void)
{
    begin();
    struct oribi_slot *slots = world->context.board.slots;
    slots[0].request_count = 5;
    slots[63].request_count = 7;
    slots[64].request_count = 1000; /* no worker is there */
    slots[1].method_count[ORIBI_SLOT_POST] = 3;
    slots[1].status_class[0] = 2;
    slots[1].refusals[ORIBI_REFUSAL_WORKER_END] = 4;
    slots[1].timeouts[ORIBI_TIMEOUT_HEAD] = 6;
    oribi__totals_exit(&world->observe.totals, &slots[0], "signal 9");
    memset(&slots[0], 0, offsetof(struct oribi_slot, is_idle_waiter)); /* as the supervisor does then */
    scrape(false);
    ok_eq(sample("oribi_calls_total"), 12);
    ok_eq(sample("oribi_requests_total{method=\"POST\"}"), 3);
    ok_eq(sample("oribi_answers_total{class=\"cut\"}"), 2);
    ok_eq(sample("oribi_refusals_total{status=\"503\",reason=\"worker_end\"}"), 4);
    ok_eq(sample("oribi_timeouts_total{class=\"head\"}"), 6);
    ok_eq(sample("oribi_worker_exits_total{reason=\"signal\"}"), 1);
    ok_eq(sample("oribi_worker_exits_total{reason=\"asked\"}"), 0);
    ok_eq(sample("oribi_workers{state=\"idle\"}"), WORKERS);
    end();
}

static void test_histograms_have_buckets_that_grow(void)
{
    begin();
    struct oribi_slot *slot = world->context.board.slots;
    oribi_histogram_count(&slot->call_time, 900);
    oribi_histogram_count(&slot->call_time, 80000);
    oribi_histogram_count(&slot->call_time, (int64_t)3600 * 1000000);
    scrape(false);
    ok_eq(sample("oribi_call_seconds_bucket{le=\"0.0005\"}"), 0);
    ok_eq(sample("oribi_call_seconds_bucket{le=\"0.001\"}"), 1);
    ok_eq(sample("oribi_call_seconds_bucket{le=\"0.1\"}"), 2);
    ok_eq(sample("oribi_call_seconds_bucket{le=\"300.0\"}"), 2);
    ok_eq(sample("oribi_call_seconds_bucket{le=\"+Inf\"}"), 3);
    ok_eq(sample("oribi_call_seconds_count"), 3);
    ok(has("\noribi_call_seconds_sum 3600.080900\n"));
    end();
}

static void test_what_waits_now(void)
{
    begin();
    struct oribi_slot *slots = world->context.board.slots;
    slots[2].queue_len = 3;
    slots[2].queue_oldest_us = oribi_clock_us() - 7000000;
    slots[3].queue_len = 1;
    slots[3].queue_oldest_us = oribi_clock_us();
    slots[2].connections_open = 9;
    slots[2].threads = 4;
    slots[2].threads_busy = 4;
    slots[2].call_started_us = oribi_clock_us() - 2000000;
    scrape(false);
    ok_eq(sample("oribi_requests_waiting"), 4);
    ok(sample("oribi_oldest_wait_seconds") >= 7);
    ok_eq(sample("oribi_connections_open"), 9);
    ok_eq(sample("oribi_threads{state=\"busy\"}"), 4);
    ok_eq(sample("oribi_threads{state=\"idle\"}"), WORKERS - 1);
    ok(sample("oribi_worker_call_seconds{worker=\"2\"}") >= 2);
    ok(sample("oribi_worker_call_seconds{worker=\"3\"}") == 0);
    ok(!oribi_os_adopts_orphans() || sample("oribi_worker_resident_memory_bytes{worker=\"2\"}") > 100000);
    ok(sample("oribi_worker_cpu_seconds_total{worker=\"2\"}") >= 0);
    ok_eq(sample("oribi_worker_cpu_seconds_total{worker=\"64\"}"), -1);
    end();
}

/* Of two workers, one of which has just answered: its numbers do not fit each other, and no sum is below 0. */
static void test_connections_by_what_they_do(void)
{
    begin();
    struct oribi_slot *slots = world->context.board.slots;
    for (int c = ORIBI_TIMEOUT_FIRST; c < ORIBI_TIMEOUT_CLASSES; c++)
        slots[2].armed[c] = 1U << c;
    slots[2].queue_len = 3;
    slots[2].connections_open = 126 + 3 + 4;
    slots[3].armed[ORIBI_TIMEOUT_IDLE] = 1;
    slots[3].queue_len = 1;
    slots[3].connections_open = 1;
    scrape(false);
    ok_eq(sample("oribi_connections_by_state{state=\"idle\"}"), 2 + 16 + 1);
    ok_eq(sample("oribi_connections_by_state{state=\"reading\"}"), 4 + 8);
    ok_eq(sample("oribi_connections_by_state{state=\"waiting\"}"), 3 + 1);
    ok_eq(sample("oribi_connections_by_state{state=\"calling\"}"), 4);
    ok_eq(sample("oribi_connections_by_state{state=\"writing\"}"), 32);
    ok_eq(sample("oribi_connections_by_state{state=\"closing\"}"), 64);
    end();
}

/* memory_max asks always, and hears of each; few workers are measured more often than many. */
static void test_a_limit_of_memory_has_workers_measured(void)
{
    if (!only_on_linux("memory of other processes is not known"))
        return;
    begin();
    struct oribi__footprints *footprints = &world->observe.state->footprints;
    for (uint32_t i = 0; i < WORKERS; i++)
        world->context.board.slots[i].state = ORIBI_SLOT_IDLE;
    world->policy.config.memory_max = 1 << 30;
    oribi__footprints_configured(&world->observe);
    ok(oribi_timer_at(&footprints->measure) <= oribi_clock_ms());
    ok(measure_now());
    ok_eq(world->report.type, ORIBI_EVENT_MEASURED);
    ok_eq(world->report.slot, 0);
    ok_eq(world->report.ticket, world->policy.records[0].ticket);
    ok(world->report.bytes > 10000 && world->report.bytes == footprints->workers[0].shares.proportional_bytes);
    ok(oribi_timer_at(&footprints->measure) >= footprints->workers[0].at_ms + ORIBI__FOOTPRINT_PAUSE_MS);
    for (uint32_t i = 2; i < WORKERS; i++) {
        world->policy.records[i].state = ORIBI_RECORD_STOPPING;
        footprints->workers[i] = (struct oribi__footprint){world->policy.records[i].pid, .at_ms = oribi_clock_ms()};
    }
    footprints->workers[1] = footprints->workers[2]; /* fresh, as all are but the first */
    footprints->workers[0].at_ms -= 2 * ORIBI__FOOTPRINT_FEW_MS;
    ok(measure_now());
    ok_eq(world->report.slot, 0);
    world->policy.stopping = true;
    ok(!measure_now());
    ok_eq(oribi_timer_at(&footprints->measure), INT64_MAX);
    end();
}

/* One worker at a time, while somebody asks; no scrape measures. */
static void test_what_is_slow_to_measure_is_measured_in_turn(void)
{
    if (!only_on_linux("memory of other processes is not known"))
        return;
    begin();
    struct oribi__footprints *footprints = &world->observe.state->footprints;
    for (uint32_t i = 0; i < WORKERS; i++)
        world->context.board.slots[i].state = ORIBI_SLOT_IDLE;
    oribi__footprints_configured(&world->observe);
    ok(!footprints->workers && oribi_timer_at(&footprints->measure) == INT64_MAX);
    oribi__footprints_ask(&world->observe);
    scrape(false);
    ok_eq(sample("oribi_worker_proportional_memory_bytes{worker=\"0\"}"), -1);
    ok_eq(sample("oribi_worker_measured_age_seconds{worker=\"0\"}"), -1);
    ok(!measure_now()); /* no limit: the policy does not hear of it */
    scrape(false);
    ok(sample("oribi_worker_proportional_memory_bytes{worker=\"0\"}") > 10000);
    ok(sample("oribi_worker_own_memory_bytes{worker=\"0\"}") > 10000);
    ok(sample("oribi_worker_shared_memory_bytes{worker=\"0\"}") >= 0);
    ok(sample("oribi_worker_descriptors{worker=\"0\"}") >= 3);
    ok(sample("oribi_worker_measured_age_seconds{worker=\"0\"}") >= 0);
    ok_eq(sample("oribi_worker_system_threads{worker=\"0\"}"), 1);
    ok_eq(sample("oribi_worker_descriptors{worker=\"1\"}"), -1);
    for (int turns = 1; turns < WORKERS; turns++) {
        ok(oribi_timer_at(&footprints->measure) > footprints->workers[turns - 1].at_ms);
        ok(!measure_now());
    }
    scrape(false);
    ok(sample("oribi_worker_descriptors{worker=\"63\"}") >= 3);
    footprints->workers[5].at_ms -= ORIBI__FOOTPRINT_AGE_MS; /* old, but in a call */
    world->context.board.slots[5].state = ORIBI_SLOT_BUSY;
    footprints->workers[7].at_ms -= ORIBI__FOOTPRINT_AGE_MS;
    int64_t old_ms = footprints->workers[5].at_ms;
    ok(!measure_now());
    ok(oribi_clock_ms() - footprints->workers[7].at_ms < ORIBI__FOOTPRINT_AGE_MS);
    ok_eq(footprints->workers[5].at_ms, old_ms);
    world->policy.records[7].pid = getppid(); /* another process has its place */
    scrape(false);
    ok_eq(sample("oribi_worker_descriptors{worker=\"7\"}"), -1);
    footprints->asked_ms -= ORIBI__FOOTPRINT_ASKED_MS;
    ok(!measure_now());
    ok_eq(oribi_timer_at(&footprints->measure), INT64_MAX);
    oribi__footprints_ask(&world->observe);
    ok(oribi_timer_at(&footprints->measure) <= oribi_clock_ms());
    end();
}

/* Counters go on when a worker has gone; what it had in memory goes with it. */
static void test_what_the_collector_has_done(void)
{
    begin();
    struct oribi_slot *slots = world->context.board.slots;
    for (uint32_t i = 0; i < 2; i++) {
        slots[i].gc_count = 2;
        slots[i].gc_us = 1500;
        slots[i].live_objects = 30000;
        slots[i].heap_pages = 70;
    }
    scrape(false);
    ok_eq(sample("oribi_gc_runs_total"), 4);
    ok(has("\noribi_gc_seconds_total 0.003000\n"));
    ok_eq(sample("oribi_worker_live_objects{worker=\"0\"}"), 30000);
    ok_eq(sample("oribi_worker_heap_pages{worker=\"1\"}"), 70);
    ok_eq(sample("oribi_worker_live_objects{worker=\"2\"}"), -1); /* has not told */
    oribi__totals_exit(&world->observe.totals, &slots[0], "signal 9");
    memset(&slots[0], 0, offsetof(struct oribi_slot, is_idle_waiter));
    scrape(false);
    ok_eq(sample("oribi_gc_runs_total"), 4);
    ok_eq(sample("oribi_worker_live_objects{worker=\"0\"}"), -1);
    ok_eq(sample("oribi_worker_live_objects{worker=\"1\"}"), 30000);
    end();
}

static void test_stopped_workers_and_empty_places(void)
{
    if (!only_on_linux("what a process does is not known"))
        return;
    begin();
    int status;
    pid_t child = fork();
    if (child == 0)
        for (;;)
            (void)pause();
    ok_eq(kill(child, SIGSTOP), 0);
    ok_eq(waitpid(child, &status, WUNTRACED), child);
    world->policy.records[0].pid = child;
    world->policy.records[1].state = ORIBI_RECORD_FREE;
    world->policy.records[2].state = ORIBI_RECORD_HELD;
    scrape(false);
    ok_eq(sample("oribi_workers{state=\"stopped\"}"), 1);
    ok_eq(sample("oribi_workers{state=\"empty\"}"), 2);
    ok_eq(sample("oribi_workers{state=\"idle\"}"), WORKERS - 3);
    ok_eq(kill(child, SIGKILL), 0);
    ok_eq(waitpid(child, &status, 0), child);
    end();
}

/* Requests that frontends answer are the server's; requests that they give to workers are told apart, and not counted
 * twice. */
static void test_frontends(void)
{
    begin();
    static struct oribi_frontend_slot slots[2];
    static struct oribi__frontend_process processes[2] = {{.ready = false}, {.ready = true}};
    world->context.board.slots[0].request_count = 5;
    world->context.board.slots[0].status_class[2] = 5;
    world->context.board.slots[0].connections_open = 1;
    scrape(false);
    ok_eq(sample("oribi_frontend_calls_total"), 0);
    ok_eq(sample("oribi_frontend_certificate_expires_timestamp_seconds"), -1);
    ok_eq(sample("oribi_frontends{state=\"serving\"}"), 0);
    world->frontends =
        (struct oribi__frontend_set){.count = 2, .processes = {&processes[0], &processes[1]}, .slots = slots};
    slots[0].status_class[2] = 3;
    slots[0].uncalled_count = slots[0].local_count = 3;
    slots[1].method_count[ORIBI_SLOT_GET] = 3;
    slots[1].call_count = 5;
    slots[1].requests[1] = 8;
    slots[1].handshakes[ORIBI_FRONTEND_RESUMED_13] = 2;
    slots[1].handshake_failures[ORIBI_FRONTEND_PLAIN] = 4;
    slots[1].bytes_in = 70;
    slots[0].clients[ORIBI_FRONTEND_H1] = 2;
    slots[1].clients[ORIBI_FRONTEND_H2] = 3;
    slots[1].states[ORIBI_SLOT_CONN_CALLING] = 5;
    slots[1].streams = 11;
    slots[0].expires_s = 1800000001;
    slots[1].expires_s = 1800000000;
    slots[1].queue_len = 6;
    slots[1].queue_oldest_us = oribi_clock_us() - 7000000;
    world->observe.totals.frontend_exits = 9;
    scrape(false);
    ok_eq(sample("oribi_calls_total"), 5);
    ok_eq(sample("oribi_requests_uncalled_total"), 3);
    ok_eq(sample("oribi_requests_total{method=\"GET\"}"), 3);
    ok_eq(sample("oribi_answers_total{class=\"2xx\"}"), 8);
    ok_eq(sample("oribi_connections_open"), 6);
    ok_eq(sample("oribi_connections_by_state{state=\"calling\"}"), 6);
    ok_eq(sample("oribi_requests_waiting"), 6);
    ok(sample("oribi_oldest_wait_seconds") >= 7);
    ok_eq(sample("oribi_received_bytes_total"), 0);
    ok_eq(sample("oribi_frontend_received_bytes_total"), 70);
    ok_eq(sample("oribi_frontend_local_answers_total"), 3);
    ok_eq(sample("oribi_frontend_calls_total"), 5);
    ok_eq(sample("oribi_frontend_requests_total{protocol=\"http2\"}"), 8);
    ok_eq(sample("oribi_frontend_handshakes_total{version=\"TLSv1.3\",kind=\"resumed\"}"), 2);
    ok_eq(sample("oribi_frontend_handshakes_failed_total{reason=\"plain\"}"), 4);
    ok_eq(sample("oribi_frontend_connections_open{protocol=\"http2\"}"), 3);
    ok_eq(sample("oribi_frontend_streams_open"), 11);
    ok_eq(sample("oribi_frontend_certificate_expires_timestamp_seconds"), 1800000000);
    ok_eq(sample("oribi_frontend_exits_total"), 9);
    ok_eq(sample("oribi_frontends{state=\"serving\"}"), 1);
    ok_eq(sample("oribi_frontends{state=\"starting\"}"), 1);
    end();
}

static const struct oribi__acme_certificate certificates[] = {
    {.name = "example.org", .expires_s = 1800000000, .next_s = 1790000000, .state = "good"},
    {.name = "example.net", .placeholder = true, .next_s = 1780000000, .state = "failed"},
};

static void add_certificates(void)
{
    world->acme = (struct oribi__acme_set){.count = 2, .items = {&certificates[0], &certificates[1]}};
}

static void test_certificates_by_acme(void)
{
    begin();
    scrape(false);
    ok_eq(sample("oribi_acme_placeholders"), 0);
    ok(!has("example.org"));
    add_certificates();
    world->observe.totals.acme_orders = 3;
    world->observe.totals.acme_failures = 2;
    scrape(false);
    ok_eq(sample("oribi_acme_placeholders"), 1);
    ok_eq(sample("oribi_acme_orders_total"), 3);
    ok_eq(sample("oribi_acme_failures_total"), 2);
    ok_eq(sample("oribi_acme_certificate_expires_timestamp_seconds{name=\"example.org\"}"), 1800000000);
    ok_eq(sample("oribi_acme_certificate_expires_timestamp_seconds{name=\"example.net\"}"), -1); /* a placeholder's */
    ok_eq(sample("oribi_acme_next_order_timestamp_seconds{name=\"example.net\"}"), 1780000000);
    end();
}

/* Lines of one family stand together under its HELP and TYPE, and OpenMetrics ends with EOF. */
static void test_both_formats(void)
{
    if (!only_on_linux("memory of other processes is not known"))
        return;
    begin();
    world->context.board.slots[0].live_objects = world->context.board.slots[0].heap_pages = 1;
    static struct oribi_frontend_slot frontend = {.expires_s = 1};
    static const struct oribi__frontend_process process;
    world->frontends = (struct oribi__frontend_set){.count = 1, .processes = {&process}, .slots = &frontend};
    oribi__footprints_ask(&world->observe);
    for (uint32_t i = 0; i < WORKERS; i++)
        world->context.board.slots[i].state = ORIBI_SLOT_IDLE;
    ok(!measure_now());
    add_certificates();
    scrape(false);
    ok(has("# TYPE oribi_requests_total counter\n") && has("# HELP oribi_requests_total "));
    ok(!has("# EOF") && !has("# UNIT"));
    scrape(true);
    ok(has("# TYPE oribi_requests counter\n") && !has("# TYPE oribi_requests_total"));
    ok(has("# UNIT oribi_queue_wait_seconds seconds\n") && has("# UNIT oribi_sent_bytes bytes\n"));
    ok(text.len > 6 && strcmp(text.p + text.len - 6, "# EOF\n") == 0);
    for (size_t i = 0; i < METRICS; i++) {
        char line[96];
        size_t unit_n = table[i].unit ? strlen(table[i].unit) : 0;
        size_t n = strlen(table[i].name);
        (void)snprintf(line, sizeof(line), "\n%s%s", table[i].name, suffix_of(&table[i]));
        ok_named(has(line), "%s has a sample", table[i].name);
        ok_named(unit_n == 0 || strcmp(table[i].name + n - unit_n, table[i].unit) == 0, "%s ends with its unit",
                 table[i].name);
    }
    end();
}

static void test_the_size_hangs_on_the_number_of_workers_alone(void)
{
    begin();
    scrape(false);
    size_t lines = 0;
    for (const char *p = text.p; (p = strchr(p, '\n')) != NULL; p++)
        lines++;
    for (int i = 0; i < 10000; i++)
        oribi__totals_exit(&world->observe.totals, &world->context.board.slots[i % WORKERS], "exit code 0");
    int64_t began_us = oribi_clock_us();
    scrape(false);
    diag("a scrape of %d workers took %lld us and has %zu bytes", WORKERS, (long long)(oribi_clock_us() - began_us),
         text.len);
    for (const char *p = text.p; (p = strchr(p, '\n')) != NULL; p++)
        lines--;
    ok_eq(lines, 0);
    ok_eq(sample("oribi_worker_exits_total{reason=\"recycled\"}"), 10000);
    end();
}

static void test_the_client_chooses_the_format(void)
{
    static const struct {
        const char *accept;
        bool open;
    } cases[] = {
        {"", false},
        {"*/*", false},
        {"text/plain", false},
        {"application/openmetrics-text", true},
        {"application/openmetrics-text;q=0", false},
        {"application/openmetrics-text; version=1.0.0;q=0.5, text/plain;version=0.0.4;q=0.6", false},
        {"application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,"
         "text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
         true},
        {",, ,", false},
        {"application/openmetrics-text;q=", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        ok_named(oribi__metrics_open_wanted(oribi_slice(cases[i].accept, strlen(cases[i].accept))) == cases[i].open,
                 "%s", cases[i].accept);
}

/* The page has exactly the rows that the table in the source gives. */
static void test_the_page_has_the_table(void)
{
    static char page[64 * 1024];
    FILE *file = fopen("../doc/monitoring.md", "re");
    if (!ok(file != NULL))
        return;
    page[fread(page, 1, sizeof(page) - 1, file)] = '\0';
    (void)fclose(file);
    text.len = 0;
    oribi__metrics_doc(&text);
    *oribi_buf_reserve(&text, 1) = '\0';
    if (!ok(strstr(page, text.p) != NULL))
        diag("doc/monitoring.md should have:\n%s", text.p);
    oribi_buf_deinit(&text);
}

/* oribi_x_total{label="value"}: the page has a row "| `oribi_x_total` `label` | … `value` …", but for numbers of
 * workers, bounds, and what a section of its own lists. */
static void look_up(const char *page, const char *sample, size_t n)
{
    char name[64];
    char label[32];
    char value[32];
    char want[128];
    if (sscanf(sample, "%63[a-z0-9_]{%31[a-z]=\"%31[^\"]\"", name, label, value) != 3 || strcmp(label, "worker") == 0 ||
        strcmp(label, "le") == 0 || strcmp(name, "oribi_refusals_total") == 0)
        return;
    (void)snprintf(want, sizeof(want), "\n| `%s` `%s` | ", name, label);
    const char *row = strstr(page, want);
    (void)snprintf(want, sizeof(want), "`%s`", value);
    const char *found = row ? strstr(row, want) : NULL;
    ok_named(found && found < row + 1 + strcspn(row + 1, "\n"), "doc/monitoring.md has %.*s", (int)n, sample);
}

static void test_the_page_has_the_values_of_labels(void)
{
    static char page[64 * 1024];
    FILE *file = fopen("../doc/monitoring.md", "re");
    if (!ok(file != NULL))
        return;
    page[fread(page, 1, sizeof(page) - 1, file)] = '\0';
    (void)fclose(file);
    begin();
    scrape(false);
    for (const char *line = text.p; *line; line += strcspn(line, "\n") + 1)
        look_up(page, line, strcspn(line, " \n"));
    end();
}

int main(void)
{
    test_counters_of_the_living_and_the_dead_are_one_number();
    test_histograms_have_buckets_that_grow();
    test_what_waits_now();
    test_connections_by_what_they_do();
    test_a_limit_of_memory_has_workers_measured();
    test_what_is_slow_to_measure_is_measured_in_turn();
    test_what_the_collector_has_done();
    test_stopped_workers_and_empty_places();
    test_frontends();
    test_certificates_by_acme();
    test_both_formats();
    test_the_size_hangs_on_the_number_of_workers_alone();
    test_the_client_chooses_the_format();
    test_the_page_has_the_table();
    test_the_page_has_the_values_of_labels();
    return done_testing();
}
