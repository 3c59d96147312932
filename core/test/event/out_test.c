/* Queued output through a socket that takes little at a time: nothing lost, nothing out of order, nothing kept
 * longer than needed. */
#include "event/out.c"

#include "tap.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* Stands in for the one of base/os/os.c, and counts. */
static int writes;
static size_t write_at_most; /* 0: any */
ssize_t oribi_os_write_vec(int fd, const struct iovec *vec, size_t count)
{
    writes++;
    if (write_at_most > 0 && vec[0].iov_len > write_at_most)
        return write(fd, vec[0].iov_base, write_at_most);
    return writev(fd, vec, (int)count);
}

static int temp_file_fd(const struct oribi_out *out)
{
    return out->temp_file ? out->temp_file->fd : -1;
}

static int near_fd;
static int far_fd;
static char *sent_text; /* what was queued, in order */
static size_t sent_len;
static char *got_text;
static size_t got_len;

enum { TEXT_CAP = 4 * 1024 * 1024 };

static void begin(void)
{
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) < 0)
        fail("socketpair");
    int small = 1; /* the kernel rounds up to its least */
    (void)setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
    near_fd = fds[0];
    far_fd = fds[1];
    sent_len = got_len = 0;
}

static void end(struct oribi_out *out)
{
    oribi_out_destroy(out);
    oribi_os_close(near_fd);
    oribi_os_close(far_fd);
}

static uint32_t random_state = 7;
static uint32_t next_random(void)
{
    random_state = random_state * 1664525u + 1013904223u;
    return random_state >> 8;
}

/* Queues n bytes that differ everywhere, in up to three pieces, the first `skip` of the vector being already sent. */
static void keep(struct oribi_out *out, size_t n, size_t skip, int64_t memory_max)
{
    char *p = sent_text + sent_len;
    char *junk = malloc(skip ? skip : 1);
    for (size_t i = 0; i < n; i++)
        p[i] = (char)next_random();
    struct iovec vec[4] = {{junk, skip}, {p, n / 3}, {NULL, 0}, {p + n / 3, n - n / 3}};
    ok_eq(oribi_out_keep(out, vec, 4, skip, memory_max), 0);
    free(junk);
    sent_len += n;
}

static void read_far(size_t most)
{
    while (most > 0) {
        ssize_t n = read(far_fd, got_text + got_len, most < TEXT_CAP - got_len ? most : TEXT_CAP - got_len);
        if (n <= 0)
            return;
        got_len += (size_t)n;
        most -= (size_t)n;
    }
}

static void drain_all_of(struct oribi_out *out, int64_t sent)
{
    int64_t pending = sent + oribi_out_pending(out);
    int result;
    while ((result = oribi_out_flush(out, near_fd, &sent)) == ORIBI_AGAIN)
        read_far(1000);
    ok_eq(result, 0);
    ok_eq(sent, pending);
    read_far(TEXT_CAP);
    ok_eq(oribi_out_pending(out), 0);
    ok_named(got_len == sent_len && memcmp(got_text, sent_text, got_len) == 0, "%zu bytes arrive in order", sent_len);
}

static void drain_all(struct oribi_out *out)
{
    drain_all_of(out, 0);
}

static void test_memory_then_temp_file_then_file_keep_their_order(void)
{
    begin();
    struct oribi_out *out = oribi_out_try_create();
    keep(out, 9000, 0, 10000);
    ok_eq(temp_file_fd(out), -1);
    keep(out, 1000, 17, 10000); /* exactly at the limit */
    ok_eq(temp_file_fd(out), -1);
    ok_eq(oribi_out_pending(out), 10000);
    keep(out, 1, 0, 10000); /* one beyond it */
    ok(temp_file_fd(out) >= 0);
    ok_eq(oribi_out_in_temp_file(out), 1);
    keep(out, 200000, 5, 10000);
    int fd;
    ok_eq(oribi_os_temp_file(&fd), 0);
    for (size_t i = 0; i < 50000; i++)
        sent_text[sent_len + i] = (char)next_random();
    ok_eq(write(fd, "skipped", 7), 7);
    ok_eq(write(fd, sent_text + sent_len, 50000), 50000);
    sent_len += 50000;
    ok_eq(oribi_out_keep_file(out, fd, 7, 50000), 0);
    ok_eq(oribi_out_pending(out), 10001 + 200000 + 50000);
    drain_all(out);
    end(out);
    ok_eq(fcntl(fd, F_GETFD), -1); /* the file was taken */
}

/* The n bytes from `offset` on, which the file has, are what is expected next. */
static void keep_part(struct oribi_out *out, int fd, int64_t offset, size_t n)
{
    ok_eq(pread(fd, sent_text + sent_len, n, offset), n);
    sent_len += n;
    ok_eq(oribi_out_keep_file(out, fd, offset, (int64_t)n), 0);
}

static int random_file(size_t n)
{
    int fd;
    char *text = malloc(n);
    for (size_t i = 0; i < n; i++)
        text[i] = (char)next_random();
    ok_eq(oribi_os_temp_file(&fd), 0);
    ok_eq(pwrite(fd, text, n, 0), n);
    free(text);
    return fd;
}

/* As the parts of a multipart/byteranges are: text and parts of one file in turn, more of them than a queue has room
 * for at first, with text in memory and beyond it. */
static void test_parts_of_files_stand_between_texts(void)
{
    for (int memory_max = 0; memory_max < 4000; memory_max += 777) {
        begin();
        struct oribi_out *out = oribi_out_try_create();
        int fd = random_file(100000);
        int other = random_file(3000);
        for (int i = 0; i < 20; i++) {
            keep(out, 100 + next_random() % 100, i % 3, memory_max);
            keep_part(out, fd, next_random() % 50000, 1 + next_random() % 20000);
            if (i % 4 == 0) {
                keep(out, 10, 0, memory_max);
                keep(out, 1000, 0, memory_max);
            }
        }
        keep_part(out, other, 0, 3000);
        keep(out, 77, 0, memory_max);
        drain_all(out);
        ok_eq(fcntl(fd, F_GETFD), -1); /* both are closed when their last part is sent */
        ok_eq(fcntl(other, F_GETFD), -1);
        end(out);
    }
}

/* Room in the list is used again: a queue that never runs empty does not grow. */
static void test_parts_that_are_sent_make_room(void)
{
    begin();
    struct oribi_out *out = oribi_out_try_create();
    int fd = random_file(20000);
    int64_t sent = 0;
    for (int i = 0; i < 200; i++) {
        keep_part(out, oribi_os_dup(fd), i, 3000);
        keep(out, 10, 0, 10000);
        int result = ORIBI_AGAIN;
        while (result == ORIBI_AGAIN && oribi_out_pending(out) > 5000) {
            result = oribi_out_flush(out, near_fd, &sent);
            read_far(1000);
        }
        ok_named(result == 0 || result == ORIBI_AGAIN, "round %d gives %d", i, result);
    }
    ok_named(out->cap <= 4 * FEW_PARTS, "%u parts", out->cap);
    drain_all_of(out, sent);
    end(out);
    oribi_os_close(fd);
}

static void test_what_is_not_sent_is_closed_once(void)
{
    begin();
    struct oribi_out *out = oribi_out_try_create();
    int fd = random_file(9);
    for (int i = 0; i < 9; i++)
        keep_part(out, fd, i, 1);
    keep(out, 10, 0, 5);
    end(out);
    ok_eq(fcntl(fd, F_GETFD), -1);
}

static void test_a_file_cut_before_its_second_part_is_an_error(void)
{
    begin();
    struct oribi_out *out = oribi_out_try_create();
    int fd = random_file(1000);
    keep_part(out, fd, 0, 10);
    keep(out, 10, 0, 100);
    keep_part(out, fd, 900, 100);
    keep(out, 10, 0, 100);
    int64_t sent = 0;
    ok_eq(ftruncate(fd, 950), 0);
    ok_eq(oribi_out_flush(out, near_fd, &sent), ORIBI_ESYS);
    ok_eq(sent, 70);
    end(out);
}

static void test_a_piece_is_split_between_memory_and_file(void)
{
    begin();
    struct oribi_out *out = oribi_out_try_create();
    keep(out, 3000, 0, 1000);
    ok_eq(out->memory.len, 1000);
    ok_eq(oribi_out_in_temp_file(out), 2000);
    drain_all(out);
    end(out);
}

/* An answer of many small strings, as applications give them: written together, nothing lost between two writes. */
static void check_pieces(size_t at_most, int writes_max)
{
    enum { COUNT = 5000, BYTES = 99 };
    begin();
    struct oribi_out *out = oribi_out_try_create();
    struct iovec *vec = calloc(COUNT, sizeof(*vec));
    for (size_t i = 0; i < COUNT; i++) {
        size_t n = i % 7 ? BYTES : 0;
        for (size_t k = 0; k < n; k++)
            sent_text[sent_len + k] = (char)next_random();
        vec[i] = (struct iovec){n ? sent_text + sent_len : NULL, n};
        sent_len += n;
    }
    writes = 0;
    write_at_most = at_most;
    ok_eq(oribi_out_keep(out, vec, COUNT, 0, 10000), 0);
    ok_eq(out->memory.len, 10000);
    ok_eq(out->memory.cap, 10000);
    ok_named(writes <= writes_max, "%d writes for %d pieces", writes, COUNT);
    write_at_most = 0;
    drain_all(out);
    free(vec);
    end(out);
}

static void test_many_pieces_are_written_together(void)
{
    check_pieces(0, 20);
    check_pieces(10, 100000); /* a write may come up short anywhere */
}

static void test_no_memory_allowed_means_file_only(void)
{
    begin();
    struct oribi_out *out = oribi_out_try_create();
    keep(out, 3000, 0, 0);
    ok_eq(out->memory.cap, 0);
    drain_all(out);
    end(out);
}

/* A reader that is always a little behind: what was sent must not stay in memory behind what is still to be sent. */
static void test_a_stream_that_never_drains_keeps_little_memory(void)
{
    begin();
    struct oribi_out *out = oribi_out_try_create();
    int64_t sent = 0;
    keep(out, 40000, 0, 50000);
    for (int i = 0; i < 400; i++) {
        (void)oribi_out_flush(out, near_fd, &sent);
        if (oribi_out_pending(out) < 40000)
            keep(out, 5000, 0, 50000);
        read_far(4000);
    }
    ok(sent > 500000);
    ok(oribi_out_pending(out) > 0);
    ok_named(out->memory.cap <= 200000, "memory stays near its limit: %zu", out->memory.cap);
    while (oribi_out_flush(out, near_fd, &sent) == ORIBI_AGAIN)
        read_far(TEXT_CAP);
    read_far(TEXT_CAP);
    ok_named(got_len == sent_len && memcmp(got_text, sent_text, got_len) == 0, "all %zu bytes arrive in order",
             sent_len);
    end(out);
}

/* A reader that stops short of the end has us hold the whole buffer: what counts is what the heap has given, not
 * what is left to send. */
static void test_memory_counts_until_it_is_given_back(void)
{
    begin();
    struct oribi_out *out = oribi_out_try_create();
    int64_t sent = 0;
    keep(out, 60000, 0, 200000);
    keep(out, 60000, 0, 200000);
    while (oribi_out_pending(out) > 5000) {
        ok_eq(oribi_out_flush(out, near_fd, &sent), ORIBI_AGAIN);
        read_far(1000);
    }
    ok(oribi_out_pending(out) > 0);
    ok_eq(oribi_out_memory(out), out->memory.cap);
    ok(oribi_out_memory(out) >= 120000);
    drain_all_of(out, sent);
    end(out);
}

/* All of it is given back as soon as it is sent, though the file behind it takes long. */
static void test_memory_is_given_back_before_the_file_is_sent(void)
{
    begin();
    struct oribi_out *out = oribi_out_try_create();
    int64_t sent = 0;
    keep(out, 400000, 0, 20000);
    ok_eq(oribi_out_memory(out), 20000);
    while (sent <= 20000) {
        ok_eq(oribi_out_flush(out, near_fd, &sent), ORIBI_AGAIN);
        read_far(1000);
    }
    ok_eq(out->memory.cap, 0);
    ok_eq(oribi_out_memory(out), 0);
    ok(oribi_out_pending(out) > 0);
    drain_all_of(out, sent);
    end(out);
}

static void test_a_file_that_comes_up_short_is_an_error(void)
{
    begin();
    struct oribi_out *out = oribi_out_try_create();
    int fd;
    ok_eq(oribi_os_temp_file(&fd), 0);
    ok_eq(write(fd, "12345", 5), 5);
    ok_eq(oribi_out_keep_file(out, fd, 0, 6), 0);
    int64_t sent = 0;
    ok_eq(oribi_out_flush(out, near_fd, &sent), ORIBI_ESYS);
    ok_eq(sent, 5);
    end(out);
}

/* /dev/null takes all bytes, like a peer that reads faster than we send: only our own bound ends a call. */
static void test_no_peer_takes_more_than_a_turn(void)
{
    begin();
    struct oribi_out *out = oribi_out_try_create();
    int null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    int fd;
    int64_t sent = 0;
    ok_eq(oribi_os_temp_file(&fd), 0);
    ok_eq(ftruncate(fd, 3 * ORIBI_OUT_TURN_BYTES), 0);
    ok_eq(oribi_out_keep_file(out, fd, 1, 2 * ORIBI_OUT_TURN_BYTES + 1), 0);
    ok_eq(oribi_out_flush(out, null_fd, &sent), 1);
    ok_eq(sent, ORIBI_OUT_TURN_BYTES);
    ok_eq(oribi_out_flush(out, null_fd, &sent), 1);
    ok_eq(sent, 2 * ORIBI_OUT_TURN_BYTES);
    ok_eq(oribi_out_flush(out, null_fd, &sent), 0);
    ok_eq(sent, 2 * ORIBI_OUT_TURN_BYTES + 1);
    oribi_os_close(null_fd);
    end(out);
}

static void test_a_file_of_just_a_turn_goes_at_once(void)
{
    begin();
    struct oribi_out *out = oribi_out_try_create();
    int null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    int fd;
    int64_t sent = 0;
    ok_eq(oribi_os_temp_file(&fd), 0);
    ok_eq(ftruncate(fd, ORIBI_OUT_TURN_BYTES), 0);
    ok_eq(oribi_out_keep_file(out, fd, 0, ORIBI_OUT_TURN_BYTES), 0);
    ok_eq(oribi_out_flush(out, null_fd, &sent), 0);
    ok_eq(sent, ORIBI_OUT_TURN_BYTES);
    oribi_os_close(null_fd);
    end(out);
}

static void test_a_peer_that_is_gone_is_reported(void)
{
    begin();
    struct oribi_out *out = oribi_out_try_create();
    keep(out, 100, 0, 1000);
    oribi_os_close(far_fd);
    far_fd = -1;
    int64_t sent = 0;
    ok_eq(oribi_out_flush(out, near_fd, &sent), ORIBI_ECLOSED);
    ok_eq(sent, 0);
    end(out);
}

static void test_no_place_for_the_temp_file_is_an_error(void)
{
    begin();
    struct oribi_out *out = oribi_out_try_create();
    setenv("TMPDIR", "/nonexistent/nowhere", 1);
    struct iovec vec = {sent_text, 100};
    ok_eq(oribi_out_keep(out, &vec, 1, 0, 10), ORIBI_ESTORE);
    unsetenv("TMPDIR");
    end(out);
}

int main(void)
{
    unsetenv("TMPDIR");
    sent_text = malloc(TEXT_CAP);
    got_text = malloc(TEXT_CAP);
    test_memory_then_temp_file_then_file_keep_their_order();
    test_parts_of_files_stand_between_texts();
    test_parts_that_are_sent_make_room();
    test_what_is_not_sent_is_closed_once();
    test_a_file_cut_before_its_second_part_is_an_error();
    test_a_piece_is_split_between_memory_and_file();
    test_many_pieces_are_written_together();
    test_no_memory_allowed_means_file_only();
    test_a_stream_that_never_drains_keeps_little_memory();
    test_memory_counts_until_it_is_given_back();
    test_memory_is_given_back_before_the_file_is_sent();
    test_a_file_that_comes_up_short_is_an_error();
    test_no_peer_takes_more_than_a_turn();
    test_a_file_of_just_a_turn_goes_at_once();
    test_a_peer_that_is_gone_is_reported();
    test_no_place_for_the_temp_file_is_an_error();
    free(sent_text);
    free(got_text);
    return done_testing();
}
