/* Metrics of the application in a process: before there is a store, in it, and in the workers after it. */
#include "worker/app_metrics.c"

#include "child.h"
#include "tap.h"

#include <sys/mman.h>

enum { MAX = 8 };

static struct oribi_metric_store store;
static char error[ORIBI_ERROR_TEXT_CAP];

static void begin(uint32_t max)
{
    void *memory = mmap(NULL, oribi_metric_store_bytes(MAX), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    oribi_metric_store_at(&store, max ? memory : NULL, max);
}

static struct oribi_app_metric *declare(const char *kind, const char *name, const char *label)
{
    struct oribi_metric metric;
    struct oribi_app_metric *made = NULL;
    ok_eq(oribi_metric_begin(&metric, oribi_slice(kind, strlen(kind)), oribi_slice(name, strlen(name)),
                             ORIBI_SLICE("Help"), error),
          0);
    if (label)
        ok_eq(oribi_metric_add_label(&metric, oribi_slice(label, strlen(label)), error), 0);
    oribi_metric_end(&metric);
    return oribi_app_metric_declare(&metric, &made, error) == 0 ? made : NULL;
}

static struct oribi_app_series series_of(struct oribi_app_metric *metric, const char *value)
{
    struct oribi_app_series series;
    oribi_app_series_begin(&series, metric);
    if (value)
        oribi_app_series_add(&series, oribi_slice(value, strlen(value)));
    return series;
}

static struct oribi_metric_counts counts(void)
{
    struct oribi_metric_counts all;
    oribi_metric_store_counts(&store, &all);
    return all;
}

static void test_without_a_server_nothing_is_kept(void)
{
    struct oribi_app_metric *metric = declare("counter", "early", NULL);
    struct oribi_app_series series = series_of(metric, NULL);
    ok(declare("counter", "early_total", NULL) == metric);
    ok(declare("gauge", "early", NULL) == NULL);
    ok(!here.told);
    ok(oribi_app_series_increment(&series) == NULL);
    ok(here.told);
    ok(oribi_app_series_value(&series, NULL) == 0);
    ok_named(oribi_app_series_change(&series, ORIBI_APP_INCREMENT, -1) != NULL, "mistakes are told there too");
}

static void test_a_metric_that_was_declared_early_finds_its_store(void)
{
    struct oribi_app_series series = series_of(declare("counter", "early", NULL), NULL);
    ok(oribi_app_series_increment(&series) == NULL);
    begin(MAX);
    oribi_app_metrics_enter(&store, 1, ORIBI_METRIC_NOBODY);
    ok(oribi_app_series_increment(&series) == NULL);
    ok(oribi_app_series_change(&series, ORIBI_APP_INCREMENT, 2) == NULL);
    ok(oribi_app_series_change(&series, ORIBI_APP_INCREMENT, 0.5) == NULL);
    ok(oribi_app_series_value(&series, NULL) == 3.5);
    ok_eq(counts().series, 1);
}

static void test_one_without_labels_is_there_when_it_is_declared(void)
{
    uint32_t before = counts().series;
    ok(declare("gauge", "zero", NULL) != NULL);
    ok_eq(counts().series, before + 1);
    struct oribi_app_series unseen = series_of(declare("gauge", "later", "x"), "unseen");
    ok(oribi_app_series_value(&unseen, NULL) == 0);
    ok_named(counts().series == before + 1, "reading makes no series");
}

static int as_worker(void *data)
{
    struct oribi_app_series *series = data;
    oribi_app_metrics_enter(&store, 1, 3);
    (void)oribi_app_series_change(series, ORIBI_APP_SET, 5);
    return (int)oribi_app_series_value(series, NULL);
}

static int reads(void *data)
{
    oribi_app_metrics_enter(&store, 1, 4);
    return (int)oribi_app_series_value(data, NULL);
}

static void test_a_worker_that_only_reads_sees_what_others_wrote(void)
{
    struct oribi_app_series series = series_of(declare("counter", "early", NULL), NULL);
    ok(oribi_app_series_value(&series, NULL) == 3.5);
    ok_eq(child_code(reads, &series), 3);
}

static void test_a_gauge_of_workers_has_a_part_for_each_role(void)
{
    struct oribi_metric metric;
    struct oribi_app_metric *busy;
    ok_eq(oribi_metric_begin(&metric, ORIBI_SLICE("gauge"), ORIBI_SLICE("busy"), ORIBI_SLICE("Help"), error), 0);
    ok_eq(oribi_metric_set_aggregate(&metric, ORIBI_SLICE("sum"), error), 0);
    ok_eq(oribi_app_metric_declare(&metric, &busy, error), 0);
    struct oribi_app_series series = series_of(busy, NULL);
    ok(oribi_app_series_change(&series, ORIBI_APP_SET, 2) == NULL);
    uint32_t before = counts().series;
    ok_eq(child_code(as_worker, &series), 5);
    ok_eq(counts().series, before + 1);
    ok(oribi_app_series_value(&series, NULL) == 2);
}

static void test_values_that_cannot_be(void)
{
    static const struct {
        const char *kind;
        const char *name;
        enum oribi_app_change change;
        double value;
        bool right;
    } cases[] = {
        {"counter", "early", ORIBI_APP_INCREMENT, 0, true},
        {"counter", "early", ORIBI_APP_INCREMENT, -1, false},
        {"counter", "early", ORIBI_APP_INCREMENT, (double)NAN, false},
        {"counter", "early", ORIBI_APP_INCREMENT, HUGE_VAL, false},
        {"counter", "early", ORIBI_APP_INCREMENT, 1e300, true},
        {"counter", "early", ORIBI_APP_DECREMENT, 1, false},
        {"counter", "early", ORIBI_APP_SET, 1, false},
        {"counter", "early", ORIBI_APP_OBSERVE, 1, false},
        {"gauge", "zero", ORIBI_APP_SET, HUGE_VAL, true},
        {"gauge", "zero", ORIBI_APP_DECREMENT, -1, true},
        {"gauge", "zero", ORIBI_APP_OBSERVE, 1, false},
        {"histogram", "times", ORIBI_APP_OBSERVE, -1, true},
        {"histogram", "times", ORIBI_APP_OBSERVE, (double)NAN, false},
        {"histogram", "times", ORIBI_APP_OBSERVE, HUGE_VAL, false},
        {"histogram", "times", ORIBI_APP_INCREMENT, 1, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct oribi_app_series series = series_of(declare(cases[i].kind, cases[i].name, NULL), NULL);
        const char *wrong = oribi_app_series_change(&series, cases[i].change, cases[i].value);
        ok_named((wrong == NULL) == cases[i].right, "%s, change %d by %g", cases[i].kind, (int)cases[i].change,
                 cases[i].value);
    }
}

static void test_what_has_no_room_is_dropped_and_counted(void)
{
    char long_text[ORIBI_METRIC_VALUES_MAX];
    struct oribi_app_metric *later = declare("gauge", "later", "x");
    memset(long_text, 'x', sizeof(long_text) - 1);
    long_text[sizeof(long_text) - 1] = '\0';
    struct oribi_app_series series = series_of(later, long_text);
    ok(oribi_app_series_change(&series, ORIBI_APP_SET, 1) == NULL);
    ok_eq(counts().dropped[ORIBI_METRIC_TOO_LONG], 1);
    for (char value[] = "a"; counts().series < MAX; value[0]++) {
        series = series_of(later, value);
        ok(oribi_app_series_change(&series, ORIBI_APP_SET, 1) == NULL);
    }
    series = series_of(later, "one more");
    ok(oribi_app_series_change(&series, ORIBI_APP_SET, 1) == NULL);
    ok(oribi_app_series_change(&series, ORIBI_APP_SET, 1) == NULL);
    ok_eq(counts().dropped[ORIBI_METRIC_NO_ROOM], 2);
    ok(oribi_app_series_value(&series, NULL) == 0);
}

static void test_a_name_of_another_process_is_refused(void)
{
    struct oribi_metric metric;
    uint32_t number;
    struct oribi_app_metric *made;
    ok_eq(oribi_metric_begin(&metric, ORIBI_SLICE("gauge"), ORIBI_SLICE("theirs"), ORIBI_SLICE("Help"), error), 0);
    ok_eq(oribi_metric_store_declare(&store, &metric, 1, &number, error), 0);
    ok_eq(oribi_metric_begin(&metric, ORIBI_SLICE("counter"), ORIBI_SLICE("theirs"), ORIBI_SLICE("Help"), error), 0);
    ok_eq(oribi_app_metric_declare(&metric, &made, error), ORIBI_EINVAL);
    oribi_app_metrics_enter(&store, 2, ORIBI_METRIC_NOBODY);
    ok_eq(oribi_app_metric_declare(&metric, &made, error), 0);
}

static void test_without_room_for_any_nothing_is_kept_or_said(void)
{
    begin(0);
    here.told = false;
    oribi_app_metrics_enter(&store, 1, 0);
    struct oribi_app_series series = series_of(declare("counter", "early", NULL), NULL);
    ok(oribi_app_series_increment(&series) == NULL);
    ok(!here.told);
    oribi_app_metrics_leave();
    ok(oribi_app_series_increment(&series) == NULL);
}

int main(void)
{
    test_without_a_server_nothing_is_kept();
    test_a_metric_that_was_declared_early_finds_its_store();
    test_one_without_labels_is_there_when_it_is_declared();
    test_a_worker_that_only_reads_sees_what_others_wrote();
    test_a_gauge_of_workers_has_a_part_for_each_role();
    test_values_that_cannot_be();
    test_what_has_no_room_is_dropped_and_counted();
    test_a_name_of_another_process_is_refused();
    test_without_room_for_any_nothing_is_kept_or_said();
    return done_testing();
}
