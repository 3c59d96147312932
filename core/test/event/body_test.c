/* Request bodies: where the bytes go, at the limit and one beyond it. */
#include "event/body.c"

#include "tap.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

enum { MEMORY_MAX = 100 };

/* Stands in for the one of base/os/os.c, and counts. */
static int writes;
static int odd_writes; /* those that neither begin nor end a batch */
static size_t written_max = SIZE_MAX;
static size_t writes_left = SIZE_MAX; /* then the disk is full */
ssize_t oribi_os_write_vec(int fd, const struct iovec *vec, size_t count)
{
    writes++;
    off_t at = lseek(fd, 0, SEEK_CUR);
    odd_writes += at % ORIBI_BODY_BATCH_BYTES != 0;
    if (writes_left == 0)
        return ORIBI_ESYS;
    writes_left -= writes_left != SIZE_MAX;
    struct iovec first = vec[0].iov_len > 0 ? vec[0] : vec[1];
    ssize_t written =
        written_max < first.iov_len ? write(fd, first.iov_base, written_max) : writev(fd, vec, (int)count);
    return written < 0 ? oribi_os_fail() : written;
}

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
    ok_eq(oribi_body_append(&body, text, 60, MEMORY_MAX, 0), 0);
    ok_eq(oribi_body_append(&body, text + 60, 40, MEMORY_MAX, 0), 0);
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
    ok_eq(oribi_body_append(&body, text, MEMORY_MAX, MEMORY_MAX, 0), 0);
    ok_eq(oribi_body_append(&body, text + MEMORY_MAX, 1, MEMORY_MAX, 0), 0);
    ok(body.fd >= 0);
    ok_eq(body.len, MEMORY_MAX + 1);
    ok_eq(body.memory.cap, 0); /* nothing is held twice */
    ok(file_holds_pattern(body.fd, MEMORY_MAX + 1));
    ok_eq(oribi_body_append(&body, text + MEMORY_MAX + 1, 2000, MEMORY_MAX, 0), 0);
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
    ok_eq(oribi_body_append(&body, text, 1, 0, 0), 0);
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
    ok_eq(oribi_body_append(&body, text + 100, 1, MEMORY_MAX, 0), 0);
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
    ok_eq(oribi_body_append(&body, text, MEMORY_MAX + 1, MEMORY_MAX, 0), ORIBI_ESTORE);
    if (kept)
        setenv("TMPDIR", kept, 1);
    else
        unsetenv("TMPDIR");
    free(kept);
    oribi_body_deinit(&body);
}

enum { BATCH = ORIBI_BODY_BATCH_BYTES, MIB = 1024 * 1024, SEGMENT = 1448 };

static char *long_text(size_t n)
{
    char *p = malloc(n);
    for (size_t i = 0; i < n; i++)
        p[i] = pattern(i);
    return p;
}

/* A mebibyte that comes as TCP segments, which is what a slow client's reads are. */
static void test_small_pieces_are_written_together(void)
{
    struct oribi_body body;
    char *all = long_text(MIB);
    oribi_body_init(&body);
    writes = 0;
    for (size_t at = 0; at < MIB; at += SEGMENT) {
        size_t n = MIB - at < SEGMENT ? MIB - at : SEGMENT;
        ok_eq(oribi_body_append(&body, all + at, n, 0, BATCH), 0);
        ok_eq(body.len, at + n);
        if (body.memory.len > BATCH)
            fail("more was collected than a batch");
    }
    ok_eq(oribi_body_finish(&body), 0);
    ok_named(writes <= MIB / BATCH + 1, "%d writes a mebibyte", writes);
    ok_eq(body.memory.cap, 0);
    char *back = malloc(MIB);
    ok_eq(pread(body.fd, back, MIB, 0), MIB);
    ok(memcmp(all, back, MIB) == 0);
    oribi_body_deinit(&body);
    free(back);
    free(all);
}

/* Reads as the loopback gives them, whole scratch buffers and what was left; the body begins behind a head. All writes
 * but the first begin where a batch does, whatever is given, and none is less than a batch but the last. */
static void test_writes_begin_where_batches_do(void)
{
    static const size_t reads[][2] = {
        {BATCH, BATCH}, {BATCH, 29696}, {BATCH - 100, 1}, {3 * BATCH + 5, 7}, {40000, 40000}};
    char *all = long_text(2 * MIB);
    char *back = malloc(2 * MIB);
    for (size_t i = 0; i < sizeof(reads) / sizeof(reads[0]); i++)
        for (int shortly = 0; shortly < 2; shortly++) {
            struct oribi_body body;
            oribi_body_init(&body);
            written_max = shortly ? 1000 : SIZE_MAX;
            writes = odd_writes = 0;
            ok_eq(oribi_body_append(&body, all, 100, 0, BATCH), 0);
            for (size_t at = 100, k = 0; at + 4 * (size_t)BATCH <= 2 * MIB; at += reads[i][k++ % 2])
                ok_eq(oribi_body_append(&body, all + at, reads[i][k % 2], 0, BATCH), 0);
            ok(body.memory.len < BATCH);
            ok_eq(oribi_body_finish(&body), 0);
            ok_named(shortly || odd_writes == 0, "%zu and %zu: writes begin where batches do", reads[i][0],
                     reads[i][1]);
            ok_named(shortly || writes <= body.len / BATCH + 1, "%d writes of %lld bytes", writes, (long long)body.len);
            ok_eq(pread(body.fd, back, 2 * MIB, 0), body.len);
            ok(memcmp(all, back, (size_t)body.len) == 0);
            oribi_body_deinit(&body);
        }
    written_max = SIZE_MAX;
    free(back);
    free(all);
}

static void test_a_batch_is_full_at_its_limit(void)
{
    struct oribi_body body;
    oribi_body_init(&body);
    writes = 0;
    ok_eq(oribi_body_append(&body, text, 450, 0, 1000), 0);
    ok_eq(oribi_body_append(&body, text + 450, 450, 0, 1000), 0);
    ok_eq(writes, 0);
    ok_eq(oribi_body_append(&body, text + 900, 100, 0, 1000), 0);
    ok_eq(writes, 1);
    ok_eq(oribi_body_append(&body, text + 1000, 1, 0, 1000), 0);
    ok_eq(writes, 1);
    ok(file_holds_pattern(body.fd, 1000));
    /* no memory any more: both at once, and it is given back */
    ok_eq(oribi_body_append(&body, text + 1001, 9, 0, 0), 0);
    ok_eq(body.memory.cap, 0);
    ok(file_holds_pattern(body.fd, 1010));
    ok_eq(oribi_body_finish(&body), 0);
    ok(file_holds_pattern(body.fd, 1010));
    oribi_body_deinit(&body);
}

static void test_a_full_disk_is_seen_at_the_end_at_the_latest(void)
{
    struct oribi_body body;
    oribi_body_init(&body);
    ok_eq(oribi_body_append(&body, text, 400, 0, 1000), 0);
    writes_left = 0;
    ok_eq(oribi_body_finish(&body), ORIBI_ESTORE);
    writes_left = SIZE_MAX;
    oribi_body_deinit(&body);
}

static void test_no_room_is_told_from_other_failures(void)
{
    struct oribi_body body;
    struct rlimit before;
    (void)signal(SIGXFSZ, SIG_IGN);
    (void)getrlimit(RLIMIT_FSIZE, &before);
    struct rlimit small = {.rlim_cur = 500, .rlim_max = before.rlim_max};
    (void)setrlimit(RLIMIT_FSIZE, &small);
    oribi_body_init(&body);
    ok_eq(oribi_body_append(&body, text, 500, 0, 0), 0);
    ok_eq(oribi_body_append(&body, text, 1, 0, 0), ORIBI_EFULL);
    (void)setrlimit(RLIMIT_FSIZE, &before);
    oribi_body_deinit(&body);
}

/* Bytes of a body whose file takes no more, memory's behind those of the file. */
static bool is_all_there(const struct oribi_body *body, size_t n)
{
    size_t stored = (size_t)body->len - body->memory.len;
    return (size_t)body->len == n && (body->fd < 0 ? stored == 0 : file_holds_pattern(body->fd, stored)) &&
           memcmp(body->memory.p, text + stored, body->memory.len) == 0;
}

static void test_a_write_that_fails_loses_nothing(void)
{
    struct oribi_body body;
    struct rlimit before;
    (void)getrlimit(RLIMIT_FSIZE, &before);
    struct rlimit small = {.rlim_cur = 500, .rlim_max = before.rlim_max};
    oribi_body_init(&body);
    ok_eq(oribi_body_append(&body, text, 90, MEMORY_MAX, 0), 0);
    writes_left = 0;
    ok(oribi_body_append(&body, text + 90, 2000, MEMORY_MAX, 0) < 0); /* not even the first 90 */
    ok_eq(body.fd, -1);
    ok(is_all_there(&body, 90));
    writes_left = SIZE_MAX;
    (void)setrlimit(RLIMIT_FSIZE, &small);
    ok_eq(oribi_body_append(&body, text + 90, 310, 0, 1000), 0);
    ok_eq(oribi_body_append(&body, text + 400, 1000, 0, 1000), ORIBI_EFULL); /* 500 of 1000 are written */
    ok(is_all_there(&body, 400));
    (void)setrlimit(RLIMIT_FSIZE, &before);
    ok_eq(oribi_body_append(&body, text + 400, 1000, 0, 1000), 0); /* all 1000 are written when there is room */
    ok(is_all_there(&body, 1400));
    ok_eq(oribi_body_finish(&body), 0);
    ok(file_holds_pattern(body.fd, 1400));
    oribi_body_deinit(&body);
}

/* On its way to another process: no disk is waited for, and what cannot be moved stays. */
static void test_a_body_moves_to_a_file_in_memory(void)
{
    struct oribi_body body;
    char *before = getenv("TMPDIR") ? strdup(getenv("TMPDIR")) : NULL;
    setenv("TMPDIR", "/nonexistent/nowhere", 1);
    oribi_body_init(&body);
    ok_eq(oribi_body_append(&body, text, 2000, 4000, 0), 0);
    writes_left = 0;
    ok(oribi_body_spool(&body) < 0);
    writes_left = SIZE_MAX;
    ok(body.fd < 0 && body.len == 2000 && holds_pattern(body.memory.p, 2000));
    ok_eq(oribi_body_spool(&body), 0);
    ok(body.fd >= 0 && body.len == 2000 && body.memory.cap == 0);
    ok(file_holds_pattern(body.fd, 2000));
    oribi_body_deinit(&body);
    if (before)
        setenv("TMPDIR", before, 1);
    else
        unsetenv("TMPDIR");
    free(before);
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
    test_small_pieces_are_written_together();
    test_writes_begin_where_batches_do();
    test_a_batch_is_full_at_its_limit();
    test_a_full_disk_is_seen_at_the_end_at_the_latest();
    test_no_room_is_told_from_other_failures();
    test_a_write_that_fails_loses_nothing();
    test_a_body_moves_to_a_file_in_memory();
    return done_testing();
}
