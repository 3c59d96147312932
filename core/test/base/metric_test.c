/* Declarations of an application's metrics: what Prometheus takes and what it does not. */
#include "base/metric.c"

#include "tap.h"

#include <stdlib.h>

static struct oribi_metric metric;
static char error[ORIBI_ERROR_TEXT_CAP];

static struct oribi_slice slice(const char *text)
{
    return oribi_slice(text, strlen(text));
}

static int begin(const char *kind, const char *name)
{
    return oribi_metric_begin(&metric, slice(kind), slice(name), slice("Some help"), error);
}

static bool says(const char *words)
{
    bool has = strstr(error, words) != NULL;
    if (!has)
        diag("it says: %s", error);
    return has;
}

static const char *repeat(char c, size_t n)
{
    static char text[1024];
    memset(text, c, n);
    text[n] = '\0';
    return text;
}

static void test_names(void)
{
    static const char *const good[] = {"a", "_", ":", "orders_total", "a9", "A:b_C"};
    static const char *const bad[] = {"", "9a", "a-b", "a b", "\xc3\xa4", "a\n", "a{", "a.b"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        ok_named(begin("gauge", good[i]) == 0, "%s is a name", good[i]);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ok_named(begin("gauge", bad[i]) == ORIBI_EINVAL, "%s is none", bad[i]);
    ok(begin("gauge", "oribi_x") == ORIBI_EINVAL && says("the server's own"));
    ok_eq(begin("gauge", "oribi"), 0);
    ok(begin("summary", "x") == ORIBI_EINVAL && says("\"summary\""));
    ok_eq(begin("gauge", repeat('n', ORIBI_METRIC_NAME_MAX)), 0);
    ok(begin("gauge", repeat('n', ORIBI_METRIC_NAME_MAX + 1)) == ORIBI_EINVAL && says("at most 128 bytes"));
    ok_eq(begin("counter", "_total"), 0);
    is_str(metric.name, "_total");
}

static void test_a_counter_is_the_same_with_and_without_its_ending(void)
{
    ok_eq(begin("counter", "orders_total"), 0);
    is_str(metric.name, "orders");
    ok_eq(begin("gauge", "orders_total"), 0);
    is_str(metric.name, "orders_total");
}

static void test_help(void)
{
    ok_eq(oribi_metric_begin(&metric, slice("gauge"), slice("x"), slice(repeat('h', ORIBI_METRIC_HELP_MAX)), error), 0);
    ok(oribi_metric_begin(&metric, slice("gauge"), slice("x"), slice(repeat('h', ORIBI_METRIC_HELP_MAX + 1)), error) ==
           ORIBI_EINVAL &&
       says("1 to 470 bytes"));
    ok_eq(oribi_metric_begin(&metric, slice("gauge"), slice("x"), slice(""), error), ORIBI_EINVAL);
    ok_eq(oribi_metric_begin(&metric, slice("gauge"), slice("x"), oribi_slice("a\0\xc3\xa4\xc3(", 6), error), 0);
    is_str(metric.help, "a?\xc3\xa4?(");
}

static void test_labels(void)
{
    ok_eq(begin("histogram", "x"), 0);
    ok_eq(oribi_metric_add_label(&metric, slice("shop"), error), 0);
    ok(oribi_metric_add_label(&metric, slice("shop"), error) == ORIBI_EINVAL && says("twice"));
    ok(oribi_metric_add_label(&metric, slice("le"), error) == ORIBI_EINVAL && says("buckets"));
    ok(oribi_metric_add_label(&metric, slice("__name"), error) == ORIBI_EINVAL && says("Prometheus' own"));
    ok_eq(oribi_metric_add_label(&metric, slice("a:b"), error), ORIBI_EINVAL);
    ok_eq(oribi_metric_add_label(&metric, slice(""), error), ORIBI_EINVAL);
    ok_eq(oribi_metric_add_label(&metric, slice(repeat('l', ORIBI_METRIC_LABEL_NAME_MAX + 1)), error), ORIBI_EINVAL);
    ok_eq(oribi_metric_add_label(&metric, slice(repeat('l', ORIBI_METRIC_LABEL_NAME_MAX)), error), 0);
    for (char name[] = "a"; metric.label_count < ORIBI_METRIC_LABELS_MAX; name[0]++)
        ok_eq(oribi_metric_add_label(&metric, slice(name), error), 0);
    ok(oribi_metric_add_label(&metric, slice("z"), error) == ORIBI_EINVAL && says("at most 8 labels"));
    ok_eq(begin("gauge", "x"), 0);
    ok_eq(oribi_metric_add_label(&metric, slice("le"), error), 0);
}

static void test_buckets(void)
{
    ok_eq(begin("histogram", "x"), 0);
    oribi_metric_end(&metric);
    ok_eq(metric.bound_count, 11);
    ok_eq(begin("histogram", "x"), 0);
    for (int i = 0; i < ORIBI_METRIC_BUCKETS_MAX; i++)
        ok_eq(oribi_metric_add_bound(&metric, i, error), 0);
    ok_eq(oribi_metric_add_bound(&metric, HUGE_VAL, error), 0);
    ok(oribi_metric_add_bound(&metric, 99, error) == ORIBI_EINVAL && says("at most 32 buckets"));
    oribi_metric_end(&metric);
    ok_eq(oribi_metric_bucket(&metric, -1), 0);
    ok_eq(oribi_metric_bucket(&metric, 0), 0);
    ok_eq(oribi_metric_bucket(&metric, 0.5), 1);
    ok_eq(oribi_metric_bucket(&metric, 31), 31);
    ok_eq(oribi_metric_bucket(&metric, 31.5), 32);
    ok_eq(begin("histogram", "x"), 0);
    ok_eq(oribi_metric_add_bound(&metric, 1, error), 0);
    ok(oribi_metric_add_bound(&metric, 1, error) == ORIBI_EINVAL && says("more than the one before"));
    ok_eq(oribi_metric_add_bound(&metric, (double)NAN, error), ORIBI_EINVAL);
    ok_eq(begin("gauge", "x"), 0);
    ok_eq(oribi_metric_add_bound(&metric, 1, error), ORIBI_EINVAL);
}

static void test_aggregates(void)
{
    ok_eq(begin("gauge", "x"), 0);
    ok(!oribi_metric_is_per_worker(&metric));
    ok_eq(oribi_metric_set_aggregate(&metric, slice("sum"), error), 0);
    ok(oribi_metric_is_per_worker(&metric));
    ok(oribi_metric_set_aggregate(&metric, slice("mean"), error) == ORIBI_EINVAL && says("\"mean\""));
    ok_eq(begin("counter", "x"), 0);
    ok_eq(oribi_metric_set_aggregate(&metric, slice("sum"), error), ORIBI_EINVAL);
}

static void test_a_difference_is_named(void)
{
    struct oribi_metric other;
    ok_eq(begin("counter", "orders"), 0);
    ok_eq(oribi_metric_add_label(&metric, slice("shop"), error), 0);
    other = metric;
    memcpy(other.help, "another", 8);
    ok_eq(oribi_metric_compare(&metric, &other, error), 0);
    ok_eq(begin("counter", "orders"), 0);
    ok(oribi_metric_compare(&metric, &other, error) < 0 && says("there is a counter orders with shop already"));
    ok_eq(begin("histogram", "x"), 0);
    other = metric;
    oribi_metric_end(&metric);
    ok(oribi_metric_compare(&metric, &other, error) < 0 && says("with other buckets"));
}

/* --- values --- */

static struct oribi_metric_values values;

static void test_values_are_read_back(void)
{
    struct oribi_slice value;
    size_t at = 0;
    values = (struct oribi_metric_values){.len = 0};
    ok_eq(oribi_metric_values_add(&values, slice("north")), 0);
    ok_eq(oribi_metric_values_add(&values, slice("")), 0);
    ok_eq(oribi_metric_values_add(&values, oribi_slice("\xc3\xa4\xff\0", 4)), 0);
    ok(oribi_metric_values_next(values.bytes, values.len, &at, &value) && oribi_slice_equal(value, slice("north")));
    ok(oribi_metric_values_next(values.bytes, values.len, &at, &value) && value.n == 0);
    ok(oribi_metric_values_next(values.bytes, values.len, &at, &value) &&
       oribi_slice_equal(value, slice("\xc3\xa4??")));
    ok(!oribi_metric_values_next(values.bytes, values.len, &at, &value));
}

static void test_values_have_a_maximum(void)
{
    values = (struct oribi_metric_values){.len = 0};
    ok_eq(oribi_metric_values_add(&values, slice(repeat('v', ORIBI_METRIC_VALUES_MAX - 1))), ORIBI_ELIMIT);
    ok_eq(oribi_metric_values_add(&values, slice(repeat('v', ORIBI_METRIC_VALUES_MAX - 2))), 0);
    ok_eq(oribi_metric_values_add(&values, slice("")), ORIBI_ELIMIT);
    values = (struct oribi_metric_values){.len = 0};
    for (int i = 0; i < ORIBI_METRIC_LABELS_MAX; i++)
        ok_eq(oribi_metric_values_add(&values, slice(repeat('v', 40))), 0);
}

/* --- anything --- */

static uint32_t random_state = 1;

static uint32_t random_below(uint32_t n)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 8) % n;
}

static size_t random_text(char *dst, size_t max)
{
    static const char usual[] = "aZ_:09 \"\\\n\x00\x7f\xc3\xa4\xe2\x82\xac\xff\x80-{";
    size_t n = random_below((uint32_t)max + 1);
    for (size_t i = 0; i < n; i++)
        dst[i] = random_below(4) ? usual[random_below(sizeof(usual) - 1)] : (char)random_below(256);
    return n;
}

static bool is_plain_name(const char *p, bool colons)
{
    if (!*p || (*p >= '0' && *p <= '9'))
        return false;
    for (; *p; p++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", *p) && !(colons && *p == ':'))
            return false;
    return true;
}

static void test_whatever_is_accepted_is_a_name_and_utf_8(void)
{
    uint32_t names = 0;
    uint32_t labels = 0;
    bool right = true;
    for (int round = 0; round < 200000; round++) {
        char name[12];
        char help[64];
        struct oribi_slice value = {0};
        size_t at = 0;
        size_t n = random_text(name, sizeof(name));
        size_t help_n = random_text(help, sizeof(help));
        if (oribi_metric_begin(&metric, slice("histogram"), oribi_slice(name, n), oribi_slice(help, help_n), error) ==
            0) {
            names++;
            right = right && is_plain_name(metric.name, true) && strlen(metric.help) == help_n;
        }
        n = random_text(name, 6);
        if (oribi_metric_add_label(&metric, oribi_slice(name, n), error) == 0) {
            labels++;
            right = right && is_plain_name(metric.labels[metric.label_count - 1], false);
        }
        values = (struct oribi_metric_values){.len = 0};
        right = right && oribi_metric_values_add(&values, oribi_slice(help, help_n)) == 0 &&
                oribi_metric_values_next(values.bytes, values.len, &at, &value) && value.n == help_n;
        for (size_t i = 0; i < value.n;) {
            size_t step = value.p[i] && (unsigned char)value.p[i] < 0x80 ? 1 : oribi_utf8_len(value.p + i, value.n - i);
            right = right && step > 0;
            i += step ? step : 1;
        }
    }
    ok(right);
    ok_named(names > 100 && labels > 100, "%u names and %u labels were accepted", names, labels);
}

int main(void)
{
    test_names();
    test_a_counter_is_the_same_with_and_without_its_ending();
    test_help();
    test_labels();
    test_buckets();
    test_aggregates();
    test_a_difference_is_named();
    test_values_are_read_back();
    test_values_have_a_maximum();
    test_whatever_is_accepted_is_a_name_and_utf_8();
    return done_testing();
}
