/* Options that a reload takes over: those that the table's column names. */
#include "config/options_reload.c"

#include "tap.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static int log_fd;

static const char *logged_since(off_t from)
{
    static char text[4096];
    ssize_t n = pread(log_fd, text, sizeof(text) - 1, from);
    text[n > 0 ? n : 0] = '\0';
    return text;
}

/* Texts of options that take not any. */
static const char *other_text(const struct oribi_option *option)
{
    static const char *const texts[][2] = {
        {"bind", "unix:///run/other"}, {"sendfile_map", "/other=/other"},
        {"history", "other:,1,1s"},    {"answer", "/other=200:other"},
        {"redirect", "/other=/else"},  {"header", "X-Other:other"},
        {"error_page", "500=/other"},  {"request_id_header", "X-Other-Id"},
        {"access_log_format", "json"}, {"gone_on", "fin"},
        {"client_verify", "optional"}, {"tls_min", "1.3"},
        {"acme", "other.example"},
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (strcmp(option->name, texts[i][0]) == 0)
            return texts[i][1];
    return option->choices ? "json" : "/other";
}

/* A value that the option takes and does not have. */
static void other_value(const struct oribi_options *options, const struct oribi_option *option, char *dst, size_t cap)
{
    char now[64];
    (void)oribi_options_get(options, option, now, sizeof(now));
    switch (option->type) {
    case ORIBI_OPTION_BOOL:
        snprintf(dst, cap, "%s", strcmp(now, "on") == 0 ? "off" : "on");
        break;
    case ORIBI_OPTION_COUNT:
    case ORIBI_OPTION_SIZE:
    case ORIBI_OPTION_TIME:
        oribi__option_format_number(option->type, option->max, dst);
        break;
    case ORIBI_OPTION_RANGE:
        snprintf(dst, cap, "17..%lld", (long long)option->max);
        break;
    default:
        snprintf(dst, cap, "%s", other_text(option));
    }
}

/* One change of the configuration, as a reload meets it. */
static void check_column(const struct oribi_option *option)
{
    struct oribi_options running;
    struct oribi_options fresh;
    char text[ORIBI_OPTIONS_ANNOUNCED_CAP];
    char value[OPTION_NUMBER_CAP + 64];
    char error[ORIBI_ERROR_TEXT_CAP];
    char taken[128];
    char before[128];
    char warning[64];
    oribi_options_init(&running);
    oribi_options_init(&fresh);
    (void)oribi_options_get(&running, option, before, sizeof(before));
    other_value(&fresh, option, value, sizeof(value));
    ok_named(oribi_options_set(&fresh, option->name, value, error) == 0, "%s: %s", option->name, error);
    off_t end = lseek(log_fd, 0, SEEK_END);
    (void)oribi_options_announce(&fresh, text, sizeof(text));
    struct oribi_options copy = running;
    oribi_options_take_over(&copy, text);

    (void)oribi_options_get(&copy, option, taken, sizeof(taken));
    snprintf(warning, sizeof(warning), "warn: reload: %s: ", option->name);
    if (option->reloads) {
        ok_named(*logged_since(end) == '\0', "%s: no warning: %s", option->name, logged_since(end));
        if (is_number(option))
            ok_named(strcmp(taken, value) == 0, "%s is taken over: %s", option->name, taken);
    } else {
        ok_named(strstr(logged_since(end), warning) != NULL, "%s: a warning", option->name);
        ok_named(strcmp(taken, before) == 0, "%s stays: %s", option->name, taken);
    }
    oribi_options_deinit(&fresh);
    oribi_options_deinit(&running);
}

static void test_each_option_does_what_the_table_says(void)
{
    size_t count;
    const struct oribi_option *table = oribi_options_table(&count);
    for (size_t i = 0; i < count; i++)
        if (table[i].group != ORIBI_GROUP_COMMAND)
            check_column(&table[i]);
}

static void test_a_warning_tells_both_values(void)
{
    struct oribi_options running;
    char error[ORIBI_ERROR_TEXT_CAP];
    oribi_options_init(&running);
    ok_eq(oribi_options_set(&running, "control", "/run/one", error), 0);
    off_t end = lseek(log_fd, 0, SEEK_END);
    oribi_options_take_over(&running, "control=/run/two\npid_file=/run/pid\n");
    ok(strstr(logged_since(end),
              "reload: control: /run/two takes effect at a restart; until then it stays /run/one\n"));
    ok(strstr(logged_since(end),
              "reload: pid_file: /run/pid takes effect at a restart; until then it stays not set\n"));
    is_str(running.control, "/run/one");
    oribi_options_deinit(&running);
}

/* A path as long as the system knows is told as far as it fits, which is no difference. */
static void test_a_long_path_is_the_same_on_both_sides(void)
{
    char path[4096];
    char text[ORIBI_OPTIONS_ANNOUNCED_CAP];
    char error[ORIBI_ERROR_TEXT_CAP];
    struct oribi_options running;
    memset(path, 'x', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    oribi_options_init(&running);
    ok_eq(oribi_options_set(&running, "pid_file", path, error), 0);
    ok_eq(oribi_options_set(&running, "control", path, error), 0);
    off_t end = lseek(log_fd, 0, SEEK_END);
    size_t len = oribi_options_announce(&running, text, sizeof(text));
    ok(len < sizeof(text) && strstr(text, "\nverbose=off\n") != NULL); /* the last one is there */
    oribi_options_take_over(&running, text);
    is_str(logged_since(end), "");
    oribi_options_deinit(&running);
}

/* Whatever arrives, texts stay those of the supervisor. */
static void test_nothing_else_is_taken(void)
{
    struct oribi_options running;
    oribi_options_init(&running);
    off_t end = lseek(log_fd, 0, SEEK_END);
    oribi_options_take_over(&running, "user=nobody\nhelp=on\nnonsense=1\nworkers\n\nworkers=3");
    ok(running.user == NULL && !running.help);
    ok_eq(running.workers, 3);
    is_str(logged_since(end), "");
    oribi_options_take_over(&running, "workers=many\n");
    ok(strstr(logged_since(end), "warn: reload: workers must be a whole number"));
    ok_eq(running.workers, 3);
    oribi_options_deinit(&running);
}

/* ---- options_differing ---- */

/* Options in the log: which are shown, how long ones and secrets are shown, and the changes of a reload. */

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

static const char *shown_of(void)
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
    is_str(shown_of(), "");
    is_str(json.p, "");
    set("workers", "4");
    set("call_timeout", "30");
    set("write_timeout", "60s"); /* as it is anyway */
    set("bind", "127.0.0.1:80");
    set("env", "production");
    char usual[64];
    (void)oribi_options_get(&options, oribi_options_find("idle_timeout"), usual, sizeof(usual));
    set("idle_timeout", usual);
    ok_named(strstr(shown_of(), "workers 4") && strstr(text.p, "call_timeout 30s"), "%s", text.p);
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
    ok(!strstr(shown_of(), "s3cret") && strstr(text.p, "status_token (not shown)"));
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
    char path[] = "/tmp/oribi-reload-XXXXXX";
    log_fd = mkstemp(path);
    if (log_fd < 0 || unlink(path) < 0)
        return skip_all("no file for the log");
    oribi_log_init(log_fd, ORIBI_LOG_INFO);
    test_each_option_does_what_the_table_says();
    test_a_warning_tells_both_values();
    test_a_long_path_is_the_same_on_both_sides();
    test_nothing_else_is_taken();
    oribi_log_init(STDERR_FILENO, ORIBI_LOG_INFO);

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
