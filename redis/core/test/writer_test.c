#include "src/writer.c"

#include "oribi/base/mem.h"
#include "tap.h"

static void test_a_command(void)
{
    struct oribi_buf out = {0};
    struct oribi_slice arguments[] = {ORIBI_SLICE("SET"), ORIBI_SLICE(""), oribi_slice("a\r\n\0b", 5)};
    ok_eq(oribi_redis_command(&out, arguments, 3), 0);
    is_bytes(out.p, out.len, "*3\r\n$3\r\nSET\r\n$0\r\n\r\n$5\r\na\r\n\0b\r\n", 30);
    size_t before = out.len;
    ok_eq(oribi_redis_command(&out, arguments, 1), 0);
    is_slice(oribi_slice(out.p + before, out.len - before), "*1\r\n$3\r\nSET\r\n");
    oribi_buf_deinit(&out);
}

static void test_numbers(void)
{
    static const struct {
        int64_t value;
        const char *want;
    } CASES[] = {
        {0, "$1\r\n0\r\n"},
        {7, "$1\r\n7\r\n"},
        {-1, "$2\r\n-1\r\n"},
        {1234567890, "$10\r\n1234567890\r\n"},
        {INT64_MAX, "$19\r\n9223372036854775807\r\n"},
        {INT64_MIN, "$20\r\n-9223372036854775808\r\n"},
    };
    struct oribi_buf out = {0};
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        out.len = 0;
        ok_eq(oribi_redis_argument_int(&out, CASES[i].value), 0);
        is_slice(oribi_slice(out.p, out.len), CASES[i].want);
    }
    oribi_buf_deinit(&out);
}

static void test_arguments_that_lie_elsewhere(void)
{
    struct oribi_buf out = {0};
    ok_eq(oribi_redis_begin(&out, 2), 0);
    ok_eq(oribi_redis_argument(&out, ORIBI_SLICE("GET")), 0);
    ok_eq(oribi_redis_argument_head(&out, 12345), 0);
    is_slice(oribi_slice(out.p, out.len), "*2\r\n$3\r\nGET\r\n$12345\r\n");
    out.len = 0;
    ok_eq(oribi_redis_argument_end(&out), 0);
    is_slice(oribi_slice(out.p, out.len), "\r\n");
    oribi_buf_deinit(&out);
}

static void test_maxima(void)
{
    struct oribi_buf out = {0};
    struct oribi_slice none = ORIBI_SLICE("x");
    ok_eq(oribi_redis_command(&out, &none, 0), ORIBI_EINVAL);
    ok_eq(out.len, 0);
    ok_eq(oribi_redis_begin(&out, ORIBI_REDIS_ARGUMENTS_MAX), 0);
    is_slice(oribi_slice(out.p, out.len), "*1048576\r\n");
    size_t before = out.len;
    ok_eq(oribi_redis_begin(&out, (uint64_t)ORIBI_REDIS_ARGUMENTS_MAX + 1), ORIBI_EINVAL);
    ok_eq(oribi_redis_argument_head(&out, ORIBI_REDIS_STRING_MAX + 1), ORIBI_EINVAL);
    /* Refused by its length: its bytes are not looked at. */
    struct oribi_slice long_one[] = {ORIBI_SLICE("SET"), oribi_slice("x", ORIBI_REDIS_STRING_MAX + 1)};
    ok_eq(oribi_redis_argument(&out, long_one[1]), ORIBI_EINVAL);
    ok_eq(oribi_redis_command(&out, long_one, 2), ORIBI_EINVAL);
    ok_eq(out.len, before);
    ok_eq(oribi_redis_argument_head(&out, ORIBI_REDIS_STRING_MAX), 0);
    is_slice(oribi_slice(out.p + before, out.len - before), "$536870912\r\n");
    oribi_buf_deinit(&out);
}

int main(void)
{
    int64_t before = oribi_mem_blocks();
    test_a_command();
    test_numbers();
    test_arguments_that_lie_elsewhere();
    test_maxima();
    ok_eq(oribi_mem_blocks(), before);
    return done_testing();
}
