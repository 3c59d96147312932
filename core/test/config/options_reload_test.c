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
        {"bind", "unix:///run/other"},
        {"sendfile_map", "/other=/other"},
        {"answer", "/other=200:other"},
        {"redirect", "/other=/else"},
        {"header", "X-Other:other"},
        {"error_page", "500=/other"},
        {"request_id_header", "X-Other-Id"},
        {"access_log_format", "json"},
        {"gone_on", "fin"},
        {"client_verify", "optional"},
        {"tls_min", "1.3"},
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
    return done_testing();
}
