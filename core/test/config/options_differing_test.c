/* Options in the log: which are shown, how long ones and secrets are shown, and the changes of a reload. */
#include "config/options_differing.c"

#include "tap.h"

#include <stdlib.h>

static struct oribi_options options;
static struct oribi_buf text;
static struct oribi_buf json;

static void begin(void)
{
    oribi_options_deinit(&options);
    oribi_options_init(&options);
    options.lang = ORIBI_LANG_RUBY;
}

static void set(const char *name, const char *value)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    ok_named(oribi_options_set(&options, name, value, error) == 0, "%s = %s", name, value);
}

/* To be freed. */
static char *differing(void)
{
    struct oribi_buf lines = {0};
    oribi_options_differing(&options, &lines);
    char *copy = strdup(lines.p);
    oribi_buf_deinit(&lines);
    return copy;
}

static const char *ended(struct oribi_buf *buf)
{
    oribi_buf_append(buf, "", 1);
    return buf->p;
}

static const char *shown(void)
{
    char *lines = differing();
    text.len = json.len = 0;
    oribi_options_show(lines, &text, &json);
    free(lines);
    (void)ended(&json);
    return ended(&text);
}

/* From what the options were to what they are. */
static const char *changes(const char *before)
{
    char *now = differing();
    text.len = json.len = 0;
    oribi_options_show_changes(before, now, &text, &json);
    free(now);
    (void)ended(&json);
    return ended(&text);
}

static void test_only_what_was_given_another_value_is_shown(void)
{
    begin();
    is_str(shown(), "");
    is_str(json.p, "");
    set("workers", "4");
    set("call_timeout", "30");
    set("write_timeout", "60s"); /* as it is anyway */
    set("bind", "127.0.0.1:80");
    set("env", "production");
    char usual[64];
    (void)oribi_options_get(&options, oribi_options_find("idle_timeout"), usual, sizeof(usual));
    set("idle_timeout", usual);
    ok_named(strstr(shown(), "workers 4") && strstr(text.p, "call_timeout 30s"), "%s", text.p);
    ok(!strstr(text.p, "bind") && !strstr(text.p, "env") && !strstr(text.p, "idle_timeout"));
    ok_named(strstr(json.p, "\"workers\":\"4\",") != NULL, "%s", json.p);
}

static void test_secrets_and_long_values_are_not(void)
{
    char value[200];
    begin();
    memset(value, 'x', sizeof(value) - 1);
    value[sizeof(value) - 1] = '\0';
    set("status_token", "s3cret");
    set("pid_file", value);
    set("header", "X-A:\"b\"");
    set("header", "X-B:c");
    set("header", "X-C:d");
    ok(!strstr(shown(), "s3cret") && strstr(text.p, "status_token (not shown)"));
    ok_named(strstr(text.p, "header X-A:\"b\" (and 2 more)") != NULL, "%s", text.p);
    ok(strstr(json.p, "\"header\":\"X-A:\\\"b\\\" (and 2 more)\"") != NULL);
    ok(strstr(text.p, "xxx...") != NULL && strlen(text.p) < 200);
}

static void test_a_reload_tells_what_has_changed(void)
{
    begin();
    set("workers", "2");
    set("call_timeout", "30");
    set("header", "X-A:b");
    char *before = differing();
    is_str(changes(before), "");
    begin();
    set("workers", "4");
    set("keepalive_requests_max", "7");
    set("header", "X-A:b");
    set("header", "X-B:c");
    set("control", "/tmp/s"); /* a restart's */
    is_str(changes(before), "header X-A:b → X-A:b (and 1 more), workers 2 → 4, call_timeout 30s → its default, "
                            "keepalive_requests_max 0 → 7");
    ok_named(strstr(json.p, "\"workers\":[\"2\",\"4\"]") != NULL, "%s", json.p);
    free(before);
    before = differing();
    begin();
    set("header", "X-A:b");
    set("header", "X-B:d"); /* looks alike, and is not */
    ok_named(strstr(changes(before), "workers 4 → its default") && strstr(text.p, "header X-A:b (and 1 more) → X-A:b"),
             "%s", text.p);
    free(before);
}

static void test_what_is_too_much_is_counted(void)
{
    begin();
    size_t count;
    const struct oribi_option *table = oribi_options_table(&count);
    char value[61];
    memset(value, 'y', 60);
    value[60] = '\0';
    long given = 0;
    struct oribi_buf lines = {0};
    for (size_t i = 0; i < count; i++) {
        char line[160];
        int n = snprintf(line, sizeof(line), "%s 00000000 %s\n", table[i].name, value);
        oribi_buf_append(&lines, line, (size_t)n);
        given++;
    }
    text.len = json.len = 0;
    oribi_options_show(ended(&lines), &text, &json);
    const char *more = strstr(ended(&text), " and ");
    long left_out = more ? strtol(more + 5, NULL, 10) : 0;
    ok_named(left_out > 0 && left_out < given && text.len < 2 * TEXT_BYTES_MAX, "%s", text.p);
    oribi_buf_deinit(&lines);
}

static void test_a_value_is_found_by_its_name(void)
{
    begin();
    set("error_log_format", "json");
    char *lines = differing();
    ok(oribi_options_differing_is(lines, "error_log_format", "json"));
    ok(!oribi_options_differing_is(lines, "error_log_format", "jso"));
    ok(!oribi_options_differing_is(lines, "error_log", "json"));
    ok(!oribi_options_differing_is("", "error_log_format", "json"));
    free(lines);
}

int main(void)
{
    test_only_what_was_given_another_value_is_shown();
    test_secrets_and_long_values_are_not();
    test_a_reload_tells_what_has_changed();
    test_what_is_too_much_is_counted();
    test_a_value_is_found_by_its_name();
    oribi_options_deinit(&options);
    oribi_buf_deinit(&text);
    oribi_buf_deinit(&json);
    return done_testing();
}
