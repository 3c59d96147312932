/* cancel_gone and gone_on. */
#include "config/options.c"

#include "oribi/base/error.h"
#include "tap.h"

static char error[ORIBI_ERROR_TEXT_CAP];

/* Whether calls of GET, HEAD, POST and DELETE are cancelled: "GH.." for the first two. "?": the value is refused. */
static const char *cancelled(const char *value)
{
    static const char *const methods[] = {"GET", "HEAD", "POST", "DELETE"};
    static char letters[5];
    struct oribi_options options;
    oribi_options_init(&options);
    int code = value ? oribi_options_set(&options, "cancel_gone", value, error) : 0;
    if (code == 0)
        code = oribi_options_finish(&options, error);
    memset(letters, 0, sizeof(letters));
    for (size_t i = 0; i < 4 && code == 0; i++)
        letters[i] = oribi_options_cancels(&options, oribi_slice(methods[i], strlen(methods[i]))) ? *methods[i] : '.';
    oribi_options_deinit(&options);
    return code < 0 ? "?" : letters;
}

static void test_methods(void)
{
    is_str(cancelled(NULL), "....");
    is_str(cancelled("off"), "....");
    is_str(cancelled(""), "....");
    is_str(cancelled("on"), "GH..");
    is_str(cancelled("GET"), "G...");
    is_str(cancelled("GET,POST"), "G.P.");
    is_str(cancelled(" POST  DELETE, "), "..PD");
    is_str(cancelled("GETS"), "....");
}

static void test_any_of_them(void)
{
    static const char *const values[] = {"off", "", "on", "GETS"};
    for (int i = 0; i < 4; i++) {
        struct oribi_options options;
        oribi_options_init(&options);
        ok_eq(oribi_options_set(&options, "cancel_gone", values[i], error), 0);
        ok_eq(oribi_options_cancels_any(&options), i >= 2);
        oribi_options_deinit(&options);
    }
}

static void test_what_is_no_method(void)
{
    char text[ORIBI_METHOD_BYTES_MAX + 2];
    is_str(cancelled("get"), "?");
    is_str(error, "cancel_gone takes off, on, or methods in capitals, GET,HEAD for one; not \"get\"");
    is_str(cancelled("GET;POST"), "?");
    is_str(cancelled("GET,/"), "?");
    memset(text, 'X', sizeof(text));
    text[ORIBI_METHOD_BYTES_MAX] = '\0';
    is_str(cancelled(text), "....");
    text[ORIBI_METHOD_BYTES_MAX] = 'X';
    text[ORIBI_METHOD_BYTES_MAX + 1] = '\0';
    is_str(cancelled(text), "?");
}

static void test_it_needs_the_helper(void)
{
    struct oribi_options options;
    oribi_options_init(&options);
    ok_eq(oribi_options_set(&options, "helper", "off", error), 0);
    ok_eq(oribi_options_finish(&options, error), 0);
    ok_eq(oribi_options_set(&options, "cancel_gone", "on", error), 0);
    ok_eq(oribi_options_finish(&options, error), ORIBI_EINVAL);
    is_str(error, "cancel_gone needs helper, which notices that a client has left");
    oribi_options_deinit(&options);
}

static void test_what_is_taken_for_gone(void)
{
    struct oribi_options options;
    oribi_options_init(&options);
    is_str(options.gone_on, "auto");
    ok_eq(oribi_options_set(&options, "gone_on", "reset", error), 0);
    ok_eq(oribi_options_set(&options, "gone_on", "half", error), ORIBI_EINVAL);
    is_str(error, "gone_on must be one of: auto fin reset; not \"half\"");
    oribi_options_deinit(&options);
}

int main(void)
{
    test_methods();
    test_any_of_them();
    test_what_is_no_method();
    test_it_needs_the_helper();
    test_what_is_taken_for_gone();
    return done_testing();
}
