/* The inbox: publications come out as they went in, long ones by sealed memory; what is full, gone or forged. */
#include "worker/inbox.c"

#include "tap.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static int fds[2];
static char *long_text;
static char record[ORIBI_PUBLICATION_RECORD_CAP];

static const struct oribi_publication small = {.channel = ORIBI_SLICE("news"), .data = ORIBI_SLICE("hello")};

static void begin(void)
{
    ok_eq(oribi_inbox_pair(fds), 0);
}

static void end(void)
{
    oribi_os_close(fds[0]);
    oribi_os_close(fds[1]);
}

static void test_a_publication_comes_out(void)
{
    struct oribi_publication got;
    int passed;
    begin();
    ok_eq(oribi_inbox_publish(fds[1], &small, 0), 0);
    ssize_t n = oribi_inbox_receive(fds[0], record, sizeof(record), &passed);
    ok(n > 0 && passed < 0);
    ok_eq(oribi_publication_read(oribi_slice(record, (size_t)n), &got), 0);
    ok(oribi_slice_equal(got.channel, small.channel) && oribi_slice_equal(got.data, small.data));
    ok_eq(oribi_inbox_receive(fds[0], record, sizeof(record), &passed), ORIBI_AGAIN);
    end();
}

static void test_a_long_one_goes_by_memory(void)
{
    struct oribi_publication long_one = {.channel = ORIBI_SLICE("news"),
                                         .data = {long_text, ORIBI_PUBLICATION_DATA_BYTES_MAX}};
    struct oribi_publication got;
    struct oribi_buf data = {0};
    int passed;
    begin();
    ok_eq(oribi_inbox_publish(fds[1], &long_one, 0), 0);
    ssize_t n = oribi_inbox_receive(fds[0], record, sizeof(record), &passed);
    ok(n > 0 && passed >= 0);
    ok_eq(oribi_publication_read(oribi_slice(record, (size_t)n), &got), 0);
    ok_eq(oribi_inbox_memory_take(passed, got.data.n, &data), 0);
    ok(data.len == long_one.data.n && memcmp(data.p, long_text, data.len) == 0);
    oribi_buf_deinit(&data);
    end();
}

static void test_memory_that_is_none_is_refused(void)
{
    struct oribi_buf data = {0};
    int pipes[2];
    int memory;
    ok_eq(oribi_inbox_memory_take(-1, 5, &data), ORIBI_EBAD);
    ok_eq(oribi_inbox_memory(ORIBI_SLICE("hello"), &memory), 0);
    ok_eq(oribi_inbox_memory_take(oribi_os_dup(memory), 4, &data), ORIBI_EBAD);
    ok_eq(oribi_inbox_memory_take(oribi_os_dup(memory), 6, &data), ORIBI_EBAD);
    ok_eq(oribi_inbox_memory_take(memory, 5, &data), 0);
    data.len = 0;
    ok_eq(oribi_os_pipe(pipes), 0); /* a reader would wait for ever */
    ok_eq(oribi_inbox_memory_take(pipes[0], 5, &data), ORIBI_EBAD);
    oribi_os_close(pipes[1]);
    ok_eq(oribi_process_shared_memory(5, &memory), 0); /* could be cut off */
    ok_eq(oribi_inbox_memory_take(memory, 5, &data), ORIBI_EBAD);
    ok_eq(oribi_inbox_memory_take(open("/dev/zero", O_RDONLY | O_CLOEXEC), 5, &data), ORIBI_EBAD);
    ok_eq(data.len, 0);
    oribi_buf_deinit(&data);
}

static void test_a_full_inbox_says_so(void)
{
    int code = 0;
    int sent = 0;
    int passed;
    begin();
    while (sent < 100000 && (code = oribi_inbox_publish(fds[1], &small, 0)) == 0)
        sent++;
    ok_eq(code, ORIBI_AGAIN);
    ok_eq(oribi_inbox_publish(fds[1], &small, 20), ORIBI_AGAIN);
    int received = 0;
    while (oribi_inbox_receive(fds[0], record, sizeof(record), &passed) > 0)
        received++;
    ok_eq(received, sent);
    ok_eq(oribi_inbox_publish(fds[1], &small, 0), 0);
    end();
}

static void test_without_a_reader_it_is_closed(void)
{
    begin();
    oribi_os_close(fds[0]);
    fds[0] = -1;
    ok_eq(oribi_inbox_publish(fds[1], &small, 1000), ORIBI_ECLOSED);
    end();
}

static void test_a_record_that_is_too_long_is_refused(void)
{
    struct iovec vec = {long_text, ORIBI_PUBLICATION_RECORD_CAP + 1};
    int passed;
    begin();
    ok_eq(oribi_inbox_send(fds[1], &vec, 1, fds[0]), 0);
    ok_eq(oribi_inbox_receive(fds[0], record, sizeof(record), &passed), ORIBI_EBAD);
    ok_eq(passed, -1);
    end();
}

static void test_the_way_of_a_process(void)
{
    int fd;
    ok_eq(oribi_publisher_inbox(&fd), ORIBI_PUBLISHER_OUTSIDE);
    oribi_publisher_enter(-1, NULL);
    ok_eq(oribi_publisher_inbox(&fd), ORIBI_PUBLISHER_NONE);
    begin();
    oribi_publisher_enter(fds[1], "/run/control");
    is_str(oribi_publisher_control(), "/run/control");
    ok(oribi_publisher_inbox(&fd) == ORIBI_PUBLISHER_READY && fd == fds[1]);
    (void)dup2(STDIN_FILENO, fds[1]); /* the application has closed it, and opened something else */
    ok_eq(oribi_publisher_inbox(&fd), ORIBI_PUBLISHER_OUTSIDE);
    oribi_publisher_leave();
    ok_eq(oribi_publisher_inbox(&fd), ORIBI_PUBLISHER_OUTSIDE);
    end();
}

int main(void)
{
    long_text = calloc(1, ORIBI_PUBLICATION_DATA_BYTES_MAX);
    if (!long_text)
        return 1;
    memset(long_text, 'x', ORIBI_PUBLICATION_DATA_BYTES_MAX);
    test_a_publication_comes_out();
    test_a_long_one_goes_by_memory();
    test_memory_that_is_none_is_refused();
    test_a_full_inbox_says_so();
    test_without_a_reader_it_is_closed();
    test_a_record_that_is_too_long_is_refused();
    test_the_way_of_a_process();
    free(long_text);
    return done_testing();
}
