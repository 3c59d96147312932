/* Request ids: their shape, that they differ, what of a proxy's is kept. */
#include "worker/logs/request_id.c"

#include "tap.h"

#include <stdio.h>
#include <stdlib.h>

static struct oribi__id_source ids;

static void test_an_id_is_a_uuid_of_version_7_with_its_time(void)
{
    char text[ORIBI__ID_LEN + 1] = "";
    char time[13] = "";
    oribi__ids_seed(&ids);
    int64_t before_ms = oribi_clock_wall_ms();
    oribi__id_make(&ids, oribi_clock_us(), text);
    int64_t after_ms = oribi_clock_wall_ms();
    ok_eq(strlen(text), ORIBI__ID_LEN);
    ok_eq(strspn(text, "0123456789abcdef-"), ORIBI__ID_LEN);
    ok(text[8] == '-' && text[13] == '-' && text[18] == '-' && text[23] == '-');
    ok_eq(text[14], '7');
    ok(text[19] && strchr("89ab", text[19]) != NULL);
    snprintf(time, sizeof(time), "%.8s%.4s", text, text + 9);
    unsigned long long ms = strtoull(time, NULL, 16);
    ok_named((int64_t)ms + 2 >= before_ms && (int64_t)ms <= after_ms + 2, "%llu lies in %lld to %lld", ms,
             (long long)before_ms, (long long)after_ms);
}

static void test_ids_of_one_moment_and_of_two_workers_differ(void)
{
    enum { COUNT = 1000 };
    static char texts[2 * COUNT][ORIBI__ID_LEN];
    struct oribi__id_source others;
    int equal = 0;
    oribi__ids_seed(&ids);
    oribi__ids_seed(&others);
    for (int i = 0; i < COUNT; i++) {
        oribi__id_make(&ids, 1000000, texts[2 * i]);
        oribi__id_make(&others, 1000000, texts[2 * i + 1]);
    }
    for (int i = 0; i < 2 * COUNT; i++)
        for (int j = 0; j < i; j++)
            equal += memcmp(texts[i], texts[j], ORIBI__ID_LEN) == 0;
    ok_eq(equal, 0);
}

static void test_what_of_a_proxy_is_an_id(void)
{
    static char text[ORIBI_REQUEST_ID_MAX + 1];
    ok(oribi__id_is_good(ORIBI_SLICE("a")));
    ok(oribi__id_is_good(ORIBI_SLICE("AZaz09-._~+/=:@")));
    ok(!oribi__id_is_good(ORIBI_SLICE("")));
    memset(text, 'x', sizeof(text));
    ok(oribi__id_is_good(oribi_slice(text, ORIBI_REQUEST_ID_MAX)));
    ok(!oribi__id_is_good(oribi_slice(text, ORIBI_REQUEST_ID_MAX + 1)));
    int good = 0;
    for (int c = 0; c < 256; c++) {
        text[1] = (char)c;
        good += oribi__id_is_good(oribi_slice(text, 3));
    }
    ok_eq(good, 26 + 26 + 10 + 9);
}

static struct oribi_head head;

static void add_field(const char *name, const char *value)
{
    head.fields[head.field_count++] =
        (struct oribi_field){name, value, (uint32_t)strlen(value), (uint16_t)strlen(name), ORIBI_FIELD_OTHER};
}

static const char *trace_of(const char *value)
{
    static char text[ORIBI_TRACE_ID_LEN + 1];
    head.field_count = 0;
    add_field("X-Thing", "thing");
    add_field("TraceParent", value);
    struct oribi_slice trace = oribi__trace_id(&head);
    snprintf(text, sizeof(text), "%.*s", (int)trace.n, trace.p);
    return text;
}

#define TRACE  "0af7651916cd43dd8448eb211c80319c"
#define PARENT "b7ad6b7169203331"

static void test_a_trace_id_is_that_of_a_valid_traceparent(void)
{
    static const char *const bad[] = {
        "",
        "00",
        "00-" TRACE,
        "00-" TRACE "-" PARENT,
        "00-" TRACE "-" PARENT "-0",
        "00-" TRACE "-" PARENT "-0g",
        "00-" TRACE "-" PARENT "-01-",
        "00-" TRACE "-" PARENT "-01-what", /* version 00 ends with its flags */
        "01-" TRACE "-" PARENT "-01what",
        "ff-" TRACE "-" PARENT "-01",
        "0g-" TRACE "-" PARENT "-01",
        "00-00000000000000000000000000000000-" PARENT "-01",
        "00-" TRACE "-0000000000000000-01",
        "00-0AF7651916CD43DD8448EB211C80319C-" PARENT "-01",
        "00-" TRACE "-B7AD6B7169203331-01",
        "00-" TRACE "_" PARENT "-01",
        "00_" TRACE "-" PARENT "-01",
        "00-" TRACE "-" PARENT "_01",
        "00-0af7651916cd43dd8448eb211c80319g-" PARENT "-01",
        " 00-" TRACE "-" PARENT "-01",
    };
    is_str(trace_of("00-" TRACE "-" PARENT "-01"), TRACE);
    is_str(trace_of("00-" TRACE "-" PARENT "-00"), TRACE);
    is_str(trace_of("cc-" TRACE "-" PARENT "-09"), TRACE); /* of a later version, 4.3 */
    is_str(trace_of("cc-" TRACE "-" PARENT "-01-what the future brings"), TRACE);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ok_named(!*trace_of(bad[i]), "\"%s\" has no trace id", bad[i]);
    (void)trace_of("00-" TRACE "-" PARENT "-01");
    add_field("traceparent", "00-" TRACE "-" PARENT "-01");
    ok_eq(oribi__trace_id(&head).n, 0); /* two of them */
}

int main(void)
{
    test_a_trace_id_is_that_of_a_valid_traceparent();
    test_an_id_is_a_uuid_of_version_7_with_its_time();
    test_ids_of_one_moment_and_of_two_workers_differ();
    test_what_of_a_proxy_is_an_id();
    return done_testing();
}
