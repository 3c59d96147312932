/* The application's metrics as they are shown. */
#include "observe/app_export.c"

#include "tap.h"

#include "oribi/base/os/os.h"
#include "oribi/base/os/os_process.h"

#include <sys/mman.h>
#include <sys/stat.h>

enum { MAX = 30, NOBODY = ORIBI_METRIC_NOBODY };

static struct oribi_metric_store store;
static struct oribi_buf out;
static struct oribi_metric metric;
static char error[ORIBI_ERROR_TEXT_CAP];

static void begin(void)
{
    void *memory =
        mmap(NULL, oribi_metric_store_bytes(MAX), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    oribi_metric_store_at(&store, memory, MAX);
}

static void end(void)
{
    (void)munmap(store.head, oribi_metric_store_bytes(MAX));
    oribi_buf_deinit(&out);
}

static void declare(const char *kind, const char *name, const char *help, const char *label)
{
    ok_eq(oribi_metric_begin(&metric, slice_of(kind), slice_of(name), slice_of(help), error), 0);
    if (label)
        ok_eq(oribi_metric_add_label(&metric, slice_of(label), error), 0);
}

static struct oribi_metric_series *series_of(int32_t worker, const char *value)
{
    uint32_t number;
    struct oribi_metric_values values = {.len = 0};
    oribi_metric_end(&metric);
    ok_eq(oribi_metric_store_declare(&store, &metric, 1, &number, error), 0);
    if (value)
        ok_eq(oribi_metric_values_add(&values, slice_of(value)), 0);
    return oribi_metric_store_series(&store, number, worker, &values);
}

static const char *text(bool open)
{
    out.len = 0;
    oribi__app_export_text(&store, 1, open, &out);
    *oribi_buf_reserve(&out, 1) = '\0';
    return out.p;
}

static const char *json(void)
{
    out.len = 0;
    oribi__app_export_json(&store, 1, &out);
    *oribi_buf_reserve(&out, 1) = '\0';
    return out.p;
}

static void test_nothing_is_shown_of_nothing(void)
{
    begin();
    is_str(text(false), "");
    is_str(json(), "{\"series\":0,\"series_max\":30,\"series_lost\":0,\"changes_dropped\":0,\"metrics\":[]}");
    end();
    oribi_metric_store_at(&store, NULL, 0);
    is_str(text(true), "");
    is_str(json(), "{\"series\":0,\"series_max\":0,\"series_lost\":0,\"changes_dropped\":0,\"metrics\":[]}");
    oribi_buf_deinit(&out);
}

/* A page that is only read is there from then on, too. */
static void test_showing_touches_no_more_than_there_is(void)
{
    int fd;
    struct stat before;
    struct stat after;
    size_t bytes = oribi_metric_store_bytes(ORIBI_METRIC_SERIES_MAX);
    ok_eq(oribi_process_shared_memory(bytes, &fd), 0);
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    oribi_metric_store_at(&store, memory, ORIBI_METRIC_SERIES_MAX);
    declare("gauge", "users", "Users", NULL);
    oribi_metric_set(series_of(NOBODY, NULL), 1);
    ok(fstat(fd, &before) == 0);
    (void)text(false);
    (void)json();
    ok(fstat(fd, &after) == 0);
    off_t index_bytes = 2 * 2 * 4 * ORIBI_METRIC_SERIES_MAX;
    ok_named((after.st_blocks - before.st_blocks) * 512 <= index_bytes + 4096, "%lld bytes before, %lld after",
             (long long)before.st_blocks * 512, (long long)after.st_blocks * 512);
    (void)munmap(memory, bytes);
    oribi_os_close(fd);
    oribi_buf_deinit(&out);
}

static void test_counters_in_both_formats(void)
{
    begin();
    declare("counter", "orders", "Orders \"placed\"\\\n", "shop");
    oribi_metric_count(series_of(NOBODY, "a\"b\\c\nd\xc3\xa4"), 9007199254740993);
    oribi_metric_add(series_of(NOBODY, ""), 0.1);
    is_str(text(false), "# HELP orders_total Orders \"placed\"\\\\\\n\n"
                        "# TYPE orders_total counter\n"
                        "orders_total{shop=\"a\\\"b\\\\c\\nd\xc3\xa4\"} 9007199254740993\n"
                        "orders_total{shop=\"\"} 0.1\n");
    is_str(text(true), "# HELP orders Orders \\\"placed\\\"\\\\\\n\n"
                       "# TYPE orders counter\n"
                       "orders_total{shop=\"a\\\"b\\\\c\\nd\xc3\xa4\"} 9007199254740993\n"
                       "orders_total{shop=\"\"} 0.1\n");
    end();
}

static void test_a_histogram_is_cumulated(void)
{
    begin();
    declare("histogram", "work_seconds", "Work", NULL);
    ok_eq(oribi_metric_add_bound(&metric, 0.1, error), 0);
    ok_eq(oribi_metric_add_bound(&metric, 1, error), 0);
    struct oribi_metric_series *series = series_of(NOBODY, NULL);
    oribi_metric_observe(series, oribi_metric_bucket(&metric, 0.1), 0.1);
    oribi_metric_observe(series, oribi_metric_bucket(&metric, 0.5), 0.5);
    oribi_metric_observe(series, oribi_metric_bucket(&metric, 7), 7);
    is_str(text(true), "# HELP work_seconds Work\n"
                       "# TYPE work_seconds histogram\n"
                       "work_seconds_bucket{le=\"0.1\"} 1\n"
                       "work_seconds_bucket{le=\"1.0\"} 2\n"
                       "work_seconds_bucket{le=\"+Inf\"} 3\n"
                       "work_seconds_sum 7.6\n"
                       "work_seconds_count 3\n");
    ok(strstr(json(), "{\"labels\":{},\"buckets\":{\"0.1\":1,\"1.0\":2,\"+Inf\":3},\"count\":3,\"sum\":7.6}") != NULL);
    end();
}

/* A gauge of three workers, of which one has ended. */
static void test_gauges_of_workers_are_folded(void)
{
    static const struct {
        const char *aggregate;
        const char *sample;
        const char *without; /* when all workers have ended */
    } cases[] = {
        {"sum", "busy{x=\"1\"} 5\n", "busy{x=\"1\"} 0\n"},
        {"max", "busy{x=\"1\"} 3\n", ""},
        {"min", "busy{x=\"1\"} 2\n", ""},
        {"last", "busy{x=\"1\"} 9\n", "busy{x=\"1\"} 9\n"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        begin();
        declare("gauge", "busy", "Busy", "x");
        ok_eq(oribi_metric_set_aggregate(&metric, slice_of(cases[i].aggregate), error), 0);
        oribi_metric_set(series_of(1, "1"), 2);
        oribi_metric_set(series_of(2, "1"), 3);
        oribi_metric_set(series_of(3, "1"), 9);
        oribi_metric_store_worker_ended(&store, 3);
        ok_named(strstr(text(false), cases[i].sample) != NULL, "%s: %s", cases[i].aggregate, text(false));
        oribi_metric_store_worker_ended(&store, 1);
        oribi_metric_store_worker_ended(&store, 2);
        const char *after = strstr(text(false), "busy{");
        is_str(after ? after : "", cases[i].without);
        end();
    }
}

static void test_numbers_read_back_as_they_were(void)
{
    static const double values[] = {
        0, -0.5, 0.1, 1e300, 5e-324, 1.0 / 3, 123456789.123456789, -1e15, 9007199254740993.0};
    char dst[NUMBER_CAP];
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        ok_named(strtod(number_text(values[i], dst), NULL) == values[i], "%.17g is %s", values[i], dst);
    is_str(number_text(HUGE_VAL, dst), "+Inf");
    is_str(number_text(-HUGE_VAL, dst), "-Inf");
    is_str(number_text((double)NAN, dst), "NaN");
    is_str(number_text(10, dst), "10");
    is_str(bound_text(10, dst), "10.0");
    is_str(bound_text(1e20, dst), "1e+20");
    is_str(bound_text(0.005, dst), "0.005");
    is_str(json_number("+Inf"), "null");
    is_str(json_number("NaN"), "null");
    is_str(json_number("-1"), "-1");
}

static void test_a_destroyed_store_is_shown_without_harm(void)
{
    uint32_t state = 7;
    for (int round = 0; round < 300; round++) {
        begin();
        declare("histogram", "work", "Work", "x");
        (void)series_of(NOBODY, "a");
        (void)series_of(NOBODY, "b");
        declare("gauge", "busy", "Busy", "x");
        ok_eq(oribi_metric_set_aggregate(&metric, slice_of("max"), error), 0);
        oribi_metric_set(series_of(1, "1"), 2);
        for (int i = 0; i < 300; i++) {
            state = state * 1664525u + 1013904223u;
            size_t records = round % 2 ? 4096 : oribi_metric_store_bytes(MAX);
            size_t at = (state >> 4) % records;
            state = state * 1664525u + 1013904223u;
            ((unsigned char *)store.head)[at] = (unsigned char)(state >> 16);
        }
        (void)text(false);
        (void)json();
        end();
    }
    ok(true);
}

int main(void)
{
    test_nothing_is_shown_of_nothing();
    test_showing_touches_no_more_than_there_is();
    test_counters_in_both_formats();
    test_a_histogram_is_cumulated();
    test_gauges_of_workers_are_folded();
    test_numbers_read_back_as_they_were();
    test_a_destroyed_store_is_shown_without_harm();
    return done_testing();
}
