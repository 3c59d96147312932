/* Request bodies: where the bytes go, at the limit and one beyond it. */
#include "event/body.c"

#include "tap.h"

#include <stdlib.h>
#include <unistd.h>

enum { MEMORY_MAX = 100 };

static char pattern(size_t i)
{
    return (char)('a' + i % 23);
}

static bool holds_pattern(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] != pattern(i))
            return false;
    return true;
}

static char text[4096];

static void test_memory_max_bytes_stay_in_memory(void)
{
    struct oribi_body body;
    oribi_body_init(&body);
    ok_eq(oribi_body_append(&body, text, 60, MEMORY_MAX), 0);
    ok_eq(oribi_body_append(&body, text + 60, 40, MEMORY_MAX), 0);
    ok_eq(body.fd, -1);
    ok_eq(body.len, MEMORY_MAX);
    ok_eq(body.memory.len, MEMORY_MAX);
    ok(holds_pattern(body.memory.p, MEMORY_MAX));
    oribi_body_deinit(&body);
    ok_eq(body.len, 0);
}

static bool file_holds_pattern(int fd, size_t n)
{
    static char back[8192];
    return pread(fd, back, sizeof(back), 0) == (ssize_t)n && holds_pattern(back, n);
}

static void test_one_byte_more_moves_everything_to_a_file(void)
{
    struct oribi_body body;
    oribi_body_init(&body);
    ok_eq(oribi_body_append(&body, text, MEMORY_MAX, MEMORY_MAX), 0);
    ok_eq(oribi_body_append(&body, text + MEMORY_MAX, 1, MEMORY_MAX), 0);
    ok(body.fd >= 0);
    ok_eq(body.len, MEMORY_MAX + 1);
    ok_eq(body.memory.cap, 0); /* nothing is held twice */
    ok(file_holds_pattern(body.fd, MEMORY_MAX + 1));
    ok_eq(oribi_body_append(&body, text + MEMORY_MAX + 1, 2000, MEMORY_MAX), 0);
    ok(file_holds_pattern(body.fd, MEMORY_MAX + 2001));
    ok_eq(body.len, MEMORY_MAX + 2001);
    int fd = body.fd;
    oribi_body_deinit(&body);
    ok_eq(body.fd, -1);
    ok_eq(write(fd, "", 0), -1); /* closed */
}

static void test_a_limit_of_zero_goes_to_the_file_at_once(void)
{
    struct oribi_body body;
    oribi_body_init(&body);
    ok_eq(oribi_body_append(&body, text, 1, 0), 0);
    ok(body.fd >= 0);
    ok(file_holds_pattern(body.fd, 1));
    oribi_body_deinit(&body);
}

static void test_room_is_given_up_to_the_limit_only(void)
{
    struct oribi_body body;
    oribi_body_init(&body);
    char *room = oribi_body_try_room(&body, MEMORY_MAX, MEMORY_MAX);
    ok(room != NULL);
    memcpy(room, text, 30);
    oribi_body_grown(&body, 30);
    ok_eq(body.len, 30);
    ok(oribi_body_try_room(&body, MEMORY_MAX - 30 + 1, MEMORY_MAX) == NULL);
    room = oribi_body_try_room(&body, MEMORY_MAX - 30, MEMORY_MAX);
    ok(room != NULL);
    memcpy(room, text + 30, 70);
    oribi_body_grown(&body, 70);
    ok(holds_pattern(body.memory.p, 100));
    ok_eq(oribi_body_append(&body, text + 100, 1, MEMORY_MAX), 0);
    ok(oribi_body_try_room(&body, 1, MEMORY_MAX) == NULL); /* it is in a file now */
    ok(file_holds_pattern(body.fd, 101));
    oribi_body_deinit(&body);
}

static void test_no_place_for_a_file_is_an_error_not_a_crash(void)
{
    struct oribi_body body;
    oribi_body_init(&body);
    const char *before = getenv("TMPDIR");
    char *kept = before ? strdup(before) : NULL;
    setenv("TMPDIR", "/nonexistent/nowhere", 1);
    ok_eq(oribi_body_append(&body, text, MEMORY_MAX + 1, MEMORY_MAX), ORIBI_ESYS);
    if (kept)
        setenv("TMPDIR", kept, 1);
    else
        unsetenv("TMPDIR");
    free(kept);
    oribi_body_deinit(&body);
}

int main(void)
{
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = pattern(i);
    test_memory_max_bytes_stay_in_memory();
    test_one_byte_more_moves_everything_to_a_file();
    test_a_limit_of_zero_goes_to_the_file_at_once();
    test_room_is_given_up_to_the_limit_only();
    test_no_place_for_a_file_is_an_error_not_a_crash();
    return done_testing();
}
