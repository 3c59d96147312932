/* The queue of connections between workers: its messages, whoever sends them, and their descriptors. Two workers that
 * use it: handoff_test.c. */
#include "worker/placement/handoff.c"

#include "worker/two.h"

static char buf[MESSAGE_CAP];

static void test_an_item_arrives_as_it_was_given(void)
{
    int before = open_fds();
    struct oribi_handoff queue;
    ok_eq(oribi_handoff_create(&queue), 0);
    int pair[2];
    int body_fd = -1;
    ok_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    ok_eq(oribi_os_temp_file(&body_fd), 0);
    ok_eq(write(body_fd, "body", 4), 4);
    struct oribi_handoff_item item = {.fd = pair[0],
                                      .body_fd = body_fd,
                                      .body_len = 4,
                                      .complete_us = 4711,
                                      .request_count = 3,
                                      .listener = 2,
                                      .listener_hash = 99,
                                      .addr_len = 9,
                                      .port_len = 2,
                                      .addr = "127.0.0.1",
                                      .port = "80"};
    struct iovec vec[2] = {{(char *)"GET / ", 6}, {(char *)"HTTP/1.1", 8}};
    int64_t oldest_us = 1;
    ok(!oribi_handoff_waiting(&queue, &oldest_us));
    ok_eq(oldest_us, 0);
    ok_eq(oribi_handoff_give(&queue, &item, vec, 2), 0);
    ok(oribi_handoff_waiting(&queue, &oldest_us));
    ok_eq(oldest_us, 4711);
    ok(oribi_handoff_waiting(&queue, &oldest_us)); /* nothing was taken */
    struct oribi_handoff_item got;
    ok_eq(oribi_handoff_take(&queue, buf, sizeof(buf), &got), 0);
    ok(got.fd >= 0 && got.fd != pair[0] && got.body_fd >= 0);
    is_slice(got.bytes, "GET / HTTP/1.1");
    ok_eq(got.body_len, 4);
    ok_eq(got.complete_us, 4711);
    ok_eq(got.request_count, 3);
    ok_eq(got.listener, 2);
    ok_eq(got.listener_hash, 99);
    is_bytes(got.addr, got.addr_len, "127.0.0.1", 9);
    is_bytes(got.port, got.port_len, "80", 2);
    ok(fcntl(got.fd, F_GETFD) & FD_CLOEXEC);
    char text[4];
    ok_eq(pread(got.body_fd, text, 4, 0), 4);
    ok_eq(write(got.fd, "x", 1), 1);
    ok_eq(read(pair[1], text, 4), 1);
    ok_eq(oribi_handoff_take(&queue, buf, sizeof(buf), &got), ORIBI_AGAIN);
    close(got.fd);
    close(got.body_fd);
    close(pair[0]);
    close(pair[1]);
    close(body_fd);
    oribi_handoff_close(&queue);
    ok_eq(open_fds(), before);
}

static int give_bytes(const struct oribi_handoff *queue, int fd, size_t n)
{
    struct oribi_handoff_item item = {.fd = fd, .body_fd = -1};
    struct iovec vec = {buf, n};
    return oribi_handoff_give(queue, &item, &vec, 1);
}

static void test_bytes_at_the_limit_and_one_more(void)
{
    struct oribi_handoff queue;
    struct oribi_handoff_item got;
    static char room[MESSAGE_CAP];
    oribi_handoff_create(&queue);
    ok_eq(give_bytes(&queue, 0, ORIBI_HANDOFF_BYTES_MAX), 0);
    ok_eq(give_bytes(&queue, 0, ORIBI_HANDOFF_BYTES_MAX + 1), ORIBI_ELIMIT);
    ok_eq(oribi_handoff_take(&queue, room, sizeof(room), &got), 0);
    ok_eq(got.bytes.n, ORIBI_HANDOFF_BYTES_MAX);
    ok(!got.long_bytes);
    close(got.fd);
    ok_eq(oribi_handoff_take(&queue, room, sizeof(room), &got), ORIBI_AGAIN);
    oribi_handoff_close(&queue);
}

static void test_bytes_in_a_file(void)
{
    static const size_t lengths[] = {1, ORIBI_HANDOFF_BYTES_MAX + 1, ORIBI_HANDOFF_LONG_BYTES_MAX};
    int before = open_fds();
    char *bytes = malloc(ORIBI_HANDOFF_LONG_BYTES_MAX + 1);
    memset(bytes, 'x', ORIBI_HANDOFF_LONG_BYTES_MAX + 1);
    struct oribi_handoff queue;
    struct oribi_handoff_item got;
    struct oribi_handoff_item item = {.fd = 0, .body_fd = -1};
    oribi_handoff_create(&queue);
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
        for (int with = 0; with < 4; with++) {
            int ring_fd;
            struct iovec vec[2] = {{(char *)"y", 1}, {bytes, lengths[i] - 1}};
            ok_eq(oribi_process_shared_memory(10, &ring_fd), 0);
            item.body_fd = with & 1 ? 1 : -1;
            item.ring_fd = with & 2 ? ring_fd : 0;
            ok_eq(oribi_handoff_give_long(&queue, &item, vec, 2), 0);
            ok_eq(oribi_handoff_take(&queue, buf, sizeof(buf), &got), 0);
            ok(got.long_bytes && got.bytes.p == got.long_bytes && got.bytes.n == lengths[i]);
            ok(got.long_bytes[0] == 'y' && memcmp(got.long_bytes + 1, bytes, lengths[i] - 1) == 0);
            ok_eq(oribi_os_same_file(got.fd, 0), true);
            ok_eq(got.body_fd >= 0 && oribi_os_same_file(got.body_fd, 1), with & 1);
            ok_eq(got.ring_fd > 0 && oribi_os_same_file(got.ring_fd, ring_fd), (with & 2) != 0);
            oribi_mem_free(got.long_bytes);
            oribi_os_close(got.fd);
            oribi_os_close(got.body_fd);
            oribi_os_close(got.ring_fd > 0 ? got.ring_fd : -1);
            oribi_os_close(ring_fd);
        }
    struct iovec one_more = {bytes, ORIBI_HANDOFF_LONG_BYTES_MAX + 1};
    item.ring_fd = 0;
    ok_eq(oribi_handoff_give_long(&queue, &item, &one_more, 1), ORIBI_ELIMIT);
    ok_eq(oribi_handoff_take(&queue, buf, sizeof(buf), &got), ORIBI_AGAIN);
    oribi_handoff_close(&queue);
    free(bytes);
    ok_eq(open_fds(), before);
}

/* Of a sender that is at fault, or hostile. */
static void test_a_file_that_does_not_hold_the_bytes_drops_the_message(void)
{
    int before = open_fds();
    int pipes[2];
    int file;
    struct oribi_handoff queue;
    struct oribi_handoff_item got;
    struct iovec vec = {buf, 5};
    const struct oribi_handoff_item item = {.fd = 0, .body_fd = -1};
    oribi_handoff_create(&queue);
    ok(pipe(pipes) == 0 && oribi_process_shared_memory(4, &file) == 0);
    ok_eq(give(&queue, &item, &vec, 1, file), 0);
    ok_eq(oribi_handoff_take(&queue, buf, sizeof(buf), &got), ORIBI_EBAD);
    ok_eq(write(pipes[1], "12345", 5), 5);
    ok_eq(give(&queue, &item, &vec, 1, pipes[0]), 0);
    ok_eq(oribi_handoff_take(&queue, buf, sizeof(buf), &got), ORIBI_EBAD);
    ok_eq(give(&queue, &item, &vec, 0, file), 0);
    ok_eq(oribi_handoff_take(&queue, buf, sizeof(buf), &got), ORIBI_EBAD);
    vec.iov_len = 4;
    ok_eq(give(&queue, &item, &vec, 1, file), 0);
    ok_eq(oribi_handoff_take(&queue, buf, sizeof(buf), &got), 0);
    ok_eq(got.bytes.n, 4);
    oribi_mem_free(got.long_bytes);
    close(got.fd);
    close(file);
    close(pipes[0]);
    close(pipes[1]);
    oribi_handoff_close(&queue);
    ok_eq(open_fds(), before);
}

static void test_a_full_queue_says_so_and_loses_nothing(void)
{
    int before = open_fds();
    struct oribi_handoff queue;
    struct oribi_handoff_item got;
    oribi_handoff_create(&queue);
    int given = 0;
    int result;
    while ((result = give_bytes(&queue, 0, 500)) == 0 && given < 100000)
        given++;
    ok_eq(result, ORIBI_AGAIN);
    diag("%d messages of 500 bytes fit", given);
    ok(given >= 100);
    int taken = 0;
    while (oribi_handoff_take(&queue, buf, sizeof(buf), &got) == 0) {
        taken += got.bytes.n == 500;
        close(got.fd);
    }
    ok_eq(taken, given);
    ok_eq(give_bytes(&queue, 0, 500), 0);
    oribi_handoff_close(&queue);
    ok_eq(open_fds(), before);
}

static void test_messages_of_another_version_are_dropped_with_their_descriptors(void)
{
    struct oribi_handoff queue;
    struct oribi_handoff_item got;
    oribi_handoff_create(&queue);
    int before = open_fds();
    struct message_head head = {.version = VERSION + 1, .body_len = -1};
    struct iovec vec = {&head, sizeof(head)};
    int fds[2] = {0, 1};
    ok_eq(send_message(queue.give_fd, &vec, 1, fds, 2), 0);
    ok_eq(oribi_handoff_take(&queue, buf, sizeof(buf), &got), ORIBI_EBAD);
    vec.iov_len = 3;
    ok_eq(send_message(queue.give_fd, &vec, 1, fds, 1), 0);
    ok_eq(oribi_handoff_take(&queue, buf, sizeof(buf), &got), ORIBI_EBAD);
    head = (struct message_head){.version = VERSION, .body_len = -1, .addr_len = sizeof(head.addr) + 1};
    vec.iov_len = sizeof(head);
    ok_eq(send_message(queue.give_fd, &vec, 1, fds, 1), 0);
    ok_eq(oribi_handoff_take(&queue, buf, sizeof(buf), &got), ORIBI_EBAD);
    ok_eq(oribi_handoff_take(&queue, buf, sizeof(buf), &got), ORIBI_AGAIN);
    ok_eq(open_fds(), before);
    oribi_handoff_close(&queue);
}

/* Of a hostile process: the kernel keeps those for which a message has no place. */
static void test_more_descriptors_than_a_message_has(void)
{
    enum { MANY = 8 };
    int before = open_fds();
    struct oribi_handoff queue;
    struct oribi_handoff_item got;
    struct message_head head = {.version = VERSION, .body_len = -1};
    struct iovec vec = {&head, sizeof(head)};
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(MANY * sizeof(int))];
    } many = {0};
    struct msghdr message = {
        .msg_iov = &vec, .msg_iovlen = 1, .msg_control = many.room, .msg_controllen = sizeof(many.room)};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    *rights =
        (struct cmsghdr){.cmsg_len = CMSG_LEN(MANY * sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memset(CMSG_DATA(rights), 0, MANY * sizeof(int)); /* descriptor 0, many times */
    oribi_handoff_create(&queue);
    ok_eq(sendmsg(queue.give_fd, &message, 0), sizeof(head));
    ok_eq(oribi_handoff_take(&queue, buf, sizeof(buf), &got), ORIBI_ELIMIT);
    ok(got.fd >= 0 && got.body_fd < 0 && got.ring_fd == 0 && !got.long_bytes);
    oribi_os_close(got.fd);
    oribi_handoff_close(&queue);
    ok_eq(open_fds(), before);
}

/* A message whose descriptors find no place: told apart from one that is none of ours, with what did come. */
static void check_without_room(int room, bool with_body)
{
    struct oribi_handoff queue;
    struct oribi_handoff_item got;
    oribi_handoff_create(&queue);
    struct oribi_handoff_item item = {.fd = 0, .body_fd = with_body ? 1 : -1, .body_len = 5};
    struct iovec vec = {(char *)"GET / ", 6};
    ok_eq(oribi_handoff_give(&queue, &item, &vec, 1), 0);
    limit_descriptors(room);
    ok_eq(oribi_handoff_take(&queue, buf, sizeof(buf), &got), ORIBI_ELIMIT);
    ok_eq(got.fd >= 0, room > 0);
    ok_eq(got.body_fd, -1);
    is_slice(got.bytes, "GET / ");
    oribi_os_close(got.fd);
    limit_descriptors(-1);
    oribi_handoff_close(&queue);
}

static void test_a_message_without_its_descriptors_is_told_apart(void)
{
    int before = open_fds();
    check_without_room(0, false);
    check_without_room(0, true);
    check_without_room(1, true);
    ok_eq(open_fds(), before);
}

static void test_a_wakeup_is_no_item(void)
{
    struct oribi_handoff queue;
    struct oribi_handoff_item got;
    oribi_handoff_create(&queue);
    oribi_handoff_notify(&queue);
    struct pollfd ready = {.fd = queue.take_fd, .events = POLLIN};
    ok_eq(poll(&ready, 1, 0), 1);
    ok_eq(oribi_handoff_take(&queue, buf, sizeof(buf), &got), ORIBI_HANDOFF_WAKEUP);
    ok_eq(oribi_handoff_take(&queue, buf, sizeof(buf), &got), ORIBI_AGAIN);
    oribi_handoff_notify(&queue);
    ok_eq(give_bytes(&queue, 0, 10), 0);
    ok_eq(oribi_handoff_take(&queue, buf, sizeof(buf), &got), ORIBI_HANDOFF_WAKEUP);
    ok_eq(oribi_handoff_take(&queue, buf, sizeof(buf), &got), 0);
    close(got.fd);
    oribi_handoff_close(&queue);
}

static void check_refused(size_t bytes, const char *unread, bool answered)
{
    struct oribi_handoff queue;
    int pair[2];
    oribi_handoff_create(&queue);
    ok_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    ok_eq(write(pair[1], unread, strlen(unread)), (ssize_t)strlen(unread));
    memcpy(buf, "GET /", 5);
    ok_eq(give_bytes(&queue, pair[0], bytes), 0);
    close(pair[0]);
    ok_eq(oribi_handoff_refuse(&queue), answered);
    char text[600];
    ssize_t n = read(pair[1], text, sizeof(text));
    if (answered)
        ok(n > 12 && memcmp(text, "HTTP/1.1 503", 12) == 0);
    else
        ok_eq(n, 0);
    ok_eq(read(pair[1], text, sizeof(text)), 0);
    close(pair[1]);
    oribi_handoff_close(&queue);
}

static void test_what_nobody_will_take_is_answered_503(void)
{
    check_refused(5, "", true);
    check_refused(0, "GET / HTTP/1.1\r\n", true); /* of a kept connection: nobody has read it yet */
    check_refused(0, "", false);
    struct oribi_handoff closed = {1000, 1000}; /* no such descriptor */
    ok_eq(oribi_handoff_refuse(&closed), 0);
}

static void test_a_queue_passes_an_exec_by_name(void)
{
    struct oribi_handoff queue;
    struct oribi_handoff again = {-1, -1};
    char text[24];
    oribi_handoff_create(&queue);
    oribi_handoff_export(&queue, text, sizeof(text));
    oribi_handoff_set_inheritable(&queue, true);
    ok(!(fcntl(queue.take_fd, F_GETFD) & FD_CLOEXEC));
    ok_eq(oribi_handoff_import(&again, text), 0);
    ok_eq(again.take_fd, queue.take_fd);
    ok_eq(again.give_fd, queue.give_fd);
    ok(fcntl(queue.take_fd, F_GETFD) & FD_CLOEXEC);
    ok_eq(oribi_handoff_import(&again, "0,1"), ORIBI_EINVAL);
    ok_eq(oribi_handoff_import(&again, "7000,7001"), ORIBI_EINVAL);
    ok_eq(oribi_handoff_import(&again, "1"), ORIBI_EINVAL);
    ok_eq(oribi_handoff_import(&again, ""), ORIBI_EINVAL);
    oribi_handoff_close(&queue);
}

int main(void)
{
    quiet_log();
    test_an_item_arrives_as_it_was_given();
    test_bytes_at_the_limit_and_one_more();
    test_bytes_in_a_file();
    test_a_file_that_does_not_hold_the_bytes_drops_the_message();
    test_a_full_queue_says_so_and_loses_nothing();
    test_messages_of_another_version_are_dropped_with_their_descriptors();
    test_more_descriptors_than_a_message_has();
    test_a_message_without_its_descriptors_is_told_apart();
    test_a_wakeup_is_no_item();
    test_what_nobody_will_take_is_answered_503();
    test_a_queue_passes_an_exec_by_name();
    return done_testing();
}
