/* Options for answers of the server's own. */
#include "config/options.c"

#include "oribi/base/error.h"
#include "tap.h"

static char error[ORIBI_ERROR_TEXT_CAP];

static void set_ok(struct oribi_options *options, const char *name, const char *value)
{
    ok_named(oribi_options_set(options, name, value, error) == 0, "%s %s: %s", name, value, error);
}

static void set_fails(struct oribi_options *options, const char *name, const char *value, const char *want)
{
    ok_named(oribi_options_set(options, name, value, error) == ORIBI_EINVAL, "%s %s is refused", name, value);
    is_str(error, want);
}

static void test_lines_are_checked_when_they_are_read(void)
{
    struct oribi_options options;
    oribi_options_init(&options);
    set_fails(&options, "answer", "robots.txt=200", "answer \"robots.txt=200\" needs a path that begins with a slash");
    set_fails(&options, "redirect", "/a=b",
              "redirect \"/a=b\" needs a path or an http(s) URL to lead to, as /old=/new");
    set_fails(&options, "health", "up", "health \"up\" needs a path that begins with a slash");
    set_ok(&options, "answer", "/a=200:two\nlines");
    set_ok(&options, "health", "/up");
    set_ok(&options, "health", "");
    ok(!options.health);
    oribi_options_deinit(&options);
}

static void test_loops_are_found_when_all_are_read(void)
{
    struct oribi_options options;
    oribi_options_init(&options);
    set_ok(&options, "redirect", "/b=/c");
    ok_eq(oribi_options_finish(&options, error), 0);
    set_ok(&options, "redirect", "/c=/b");
    ok_eq(oribi_options_finish(&options, error), ORIBI_EINVAL);
    ok_named(strstr(error, " leads back to itself, by ") != NULL, "%s", error);
    oribi_options_deinit(&options);
}

static void test_more_of_them_than_of_other_lists(void)
{
    struct oribi_options options;
    oribi_options_init(&options);
    for (int i = 0; i < ORIBI_FIXED_MAX; i++)
        if (oribi_options_set(&options, "answer", "/a=200:x", error) != 0)
            ok_named(false, "answer %d", i);
    ok_eq(options.answers.count, ORIBI_FIXED_MAX);
    set_fails(&options, "answer", "/a=200:x", "answer is given more than 1024 times");
    oribi_options_deinit(&options);
}

int main(void)
{
    test_lines_are_checked_when_they_are_read();
    test_loops_are_found_when_all_are_read();
    test_more_of_them_than_of_other_lists();
    return done_testing();
}
