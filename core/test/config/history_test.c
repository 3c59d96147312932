/* Lines of the option `history`: each part, at its maximum and one beyond. */
#include "config/history.c"

#include "tap.h"

static char error[ORIBI_ERROR_TEXT_CAP];

static int read_line(const char *line, struct oribi_history *history)
{
    error[0] = '\0';
    return oribi_history_read(line, history, error);
}

static void test_lines(void)
{
    struct oribi_history history;
    ok_eq(read_line("h:,100,300s", &history), 0);
    is_slice(history.prefix, "h:");
    ok_eq(history.messages_max, 100);
    ok_eq(history.age_max_ms, 300000);
    ok_eq(read_line(",1,1ms", &history), 0);
    ok_eq(history.prefix.n, 0);
    ok_eq(history.age_max_ms, 1);
    ok_eq(read_line("a,b,100000,31622400s", &history), 0);
    is_slice(history.prefix, "a,b");
}

static void test_lines_that_are_none(void)
{
    static const char *const bad[] = {
        "",          "h:",        "h:,1",          "1,1s",   "h:,0,1s", "h:,100001,1s", "h:,,1s",
        "h:,-1,1s",  "h:,1x,1s",  "h:,9999999,1s", "h:,1,0", "h:,1,",   "h:,1,x",       "h:,1,31622401s",
        "a\nb,1,1s", "\xff,1,1s", "h:,1,1s,2s"};
    struct oribi_history history;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ok_named(read_line(bad[i], &history) == ORIBI_EINVAL && strncmp(error, "history: ", 9) == 0, "line %zu: %s", i,
                 error);
}

int main(void)
{
    test_lines();
    test_lines_that_are_none();
    return done_testing();
}
