/* The growing buffer. */
#include "base/buf.c"

#include "huge.h"
#include "tap.h"

#include <stdint.h>

static void test_an_empty_buffer_needs_no_init(void)
{
    struct oribi_buf buf = {0};
    oribi_buf_consume(&buf, 0);
    ok_eq(oribi_buf_try_append(&buf, "", 0), 0);
    ok(buf.p == NULL && buf.len == 0);
    ok(oribi_buf_reserve(&buf, 0) != NULL);
    oribi_buf_deinit(&buf);
    ok(buf.p == NULL && buf.len == 0 && buf.cap == 0);
}

static void test_bytes_appended_one_by_one_stay_in_order(void)
{
    struct oribi_buf buf = {0};
    bool right = true;
    uint32_t moves = 0;
    for (uint32_t i = 0; i < 100000; i++) {
        char c = (char)(i * 7);
        char *before = buf.p;
        right = right && oribi_buf_try_append(&buf, &c, 1) == 0;
        moves += buf.p != before;
    }
    for (uint32_t i = 0; i < 100000; i++)
        right = right && buf.p[i] == (char)(i * 7);
    ok(right);
    ok_eq(buf.len, 100000);
    ok_named(moves < 40, "growth is geometric: %u moves", moves);
    oribi_buf_deinit(&buf);
}

static void test_a_text_is_printed_behind_the_content(void)
{
    struct oribi_buf buf = {0};
    oribi_buf_print(&buf, "%s", "");
    ok_eq(buf.len, 0);
    oribi_buf_print(&buf, "%d %s", 42, "words");
    is_bytes(buf.p, buf.len, "42 words", 8);
    for (int n = 1; n < 2000; n += 37) { /* the NUL behind it never overflows */
        size_t before = buf.len;
        oribi_buf_print(&buf, "%*d", n, 7);
        ok_named(buf.len == before + (size_t)n && buf.p[buf.len - 1] == '7' && buf.len <= buf.cap, "%d bytes", n);
    }
    oribi_buf_deinit(&buf);
}

static void test_reserve_gives_the_place_behind_the_content(void)
{
    struct oribi_buf buf = {0};
    oribi_buf_try_append(&buf, "head", 4);
    char *at = oribi_buf_try_reserve(&buf, 1000);
    ok(at == buf.p + 4);
    ok(buf.cap >= 1004);
    ok_eq(buf.len, 4);
    is_bytes(buf.p, buf.len, "head", 4);
    size_t cap = buf.cap;
    ok(oribi_buf_try_reserve(&buf, cap - 4) == buf.p + 4);
    ok_eq(buf.cap, cap);
    ok(oribi_buf_try_reserve(&buf, cap - 4 + 1) && buf.cap > cap);
    oribi_buf_deinit(&buf);
}

static void test_consume_moves_the_rest_to_the_front(void)
{
    struct oribi_buf buf = {0};
    oribi_buf_try_append(&buf, "abcdef", 6);
    oribi_buf_consume(&buf, 2);
    is_bytes(buf.p, buf.len, "cdef", 4);
    oribi_buf_consume(&buf, 4);
    ok_eq(buf.len, 0);
    oribi_buf_deinit(&buf);
}

static void test_a_size_that_cannot_be_had_leaves_the_buffer_alone(void)
{
    struct oribi_buf buf = {0};
    oribi_buf_try_append(&buf, "abc", 3);
    ok(oribi_buf_try_reserve(&buf, SIZE_MAX) == NULL);
    ok(oribi_buf_try_reserve(&buf, SIZE_MAX - 3) == NULL);
    ok(oribi_buf_try_reserve(&buf, SIZE_MAX / 2) == NULL);
    is_bytes(buf.p, buf.len, "abc", 3);
    struct oribi_buf full = {.p = buf.p, .len = SIZE_MAX - 2, .cap = SIZE_MAX - 2};
    ok_eq(oribi_buf_try_append(&full, "xyz", 3), ORIBI_ENOMEM);
    ok(full.p == buf.p && full.len == SIZE_MAX - 2);
    is_bytes(buf.p, buf.len, "abc", 3);
    oribi_buf_deinit(&buf);
}

int main(void)
{
    test_an_empty_buffer_needs_no_init();
    test_bytes_appended_one_by_one_stay_in_order();
    test_a_text_is_printed_behind_the_content();
    test_reserve_gives_the_place_behind_the_content();
    test_consume_moves_the_rest_to_the_front();
    test_a_size_that_cannot_be_had_leaves_the_buffer_alone();
    return done_testing();
}
