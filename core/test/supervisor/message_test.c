/* Records between the processes: whole or not at all, with or without a descriptor. */
#include "supervisor/message.c"

#include "tap.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

static int ends[2];

static struct oribi_message sample(const char *text, size_t len)
{
    struct oribi_message message = {
        .kind = ORIBI_MESSAGE_WORKER_FAILED, .generation = 1, .slot = 2, .ticket = 3, .pid = 4};
    oribi_message_set_text(&message, text, len);
    return message;
}

static void test_a_record_arrives_as_it_was_sent(void)
{
    struct oribi_message sent = sample("why", 3);
    struct oribi_message got;
    int passed = 7;
    ok_eq(oribi_message_receive(ends[0], &got, &passed), 0);
    ok_eq(oribi_message_send(ends[1], &sent, 1), 0);
    ok_eq(oribi_message_receive(ends[0], &got, &passed), 1);
    ok_eq(got.kind, ORIBI_MESSAGE_WORKER_FAILED);
    ok_eq(got.generation, 1);
    ok_eq(got.slot, 2);
    ok_eq(got.ticket, 3);
    ok_eq(got.pid, 4);
    is_str(got.text, "why");
    ok_eq(passed, -1);
}

static void test_text_is_cut_at_its_maximum(void)
{
    static char text[ORIBI_MESSAGE_TEXT_MAX + 1];
    struct oribi_message got;
    memset(text, 'x', sizeof(text));
    for (size_t len = ORIBI_MESSAGE_TEXT_MAX; len <= ORIBI_MESSAGE_TEXT_MAX + 1; len++) {
        struct oribi_message sent = sample(text, len);
        ok_eq(oribi_message_send(ends[1], &sent, 1), 0);
        ok_eq(oribi_message_receive(ends[0], &got, NULL), 1);
        ok_eq(got.text_len, ORIBI_MESSAGE_TEXT_MAX);
        ok_eq(strlen(got.text), ORIBI_MESSAGE_TEXT_MAX);
    }
}

static void test_a_descriptor_comes_along(void)
{
    int fds[2];
    int passed = -1;
    char byte = 0;
    struct oribi_message sent = sample("", 0);
    struct oribi_message got;
    ok(pipe(fds) == 0);
    ok_eq(oribi_message_send_fd(ends[1], &sent, fds[0]), 0);
    ok_eq(oribi_message_receive(ends[0], &got, &passed), 1);
    ok(passed >= 0 && passed != fds[0]);
    ok(fcntl(passed, F_GETFD) & FD_CLOEXEC);
    ok(write(fds[1], "y", 1) == 1 && read(passed, &byte, 1) == 1 && byte == 'y');
    close(passed);

    ok_eq(oribi_message_send_fd(ends[1], &sent, fds[0]), 0); /* nobody asks for it: it is closed */
    close(fds[0]);
    ok_eq(oribi_message_receive(ends[0], &got, NULL), 1);
    ok(write(fds[1], "y", 1) < 0); /* no reader is left */
    close(fds[1]);
}

static void test_what_is_no_record_is_told_apart(void)
{
    struct oribi_message sent = sample("", 0);
    struct oribi_message got;
    ok(send(ends[1], "hello", 5, 0) == 5);
    ok_eq(oribi_message_receive(ends[0], &got, NULL), ORIBI_EBAD);
    sent.magic = MAGIC + 1; /* another build's */
    ok(send(ends[1], &sent, offsetof(struct oribi_message, text), 0) > 0);
    ok_eq(oribi_message_receive(ends[0], &got, NULL), ORIBI_EBAD);
    sent.magic = MAGIC;
    sent.text_len = 1; /* and not there */
    ok(send(ends[1], &sent, offsetof(struct oribi_message, text), 0) > 0);
    if (oribi_os_record_type(false) == SOCK_STREAM) { /* it may still come */
        ok_eq(oribi_message_receive(ends[0], &got, NULL), 0);
        ok(send(ends[1], "x", 1, 0) == 1);
        ok_eq(oribi_message_receive(ends[0], &got, NULL), 1);
        ok(strcmp(got.text, "x") == 0);
    } else {
        ok_eq(oribi_message_receive(ends[0], &got, NULL), ORIBI_EBAD);
    }
}

/* A record with two descriptors, which no sender of ours writes: room for one descriptor must not take two, nor keep
 * the first of them. */
static void test_a_record_with_two_descriptors_is_refused_and_both_are_closed(void)
{
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(2 * sizeof(int))];
    } two = {0};
    int fds[2];
    struct oribi_message sent = sample("", 0);
    struct oribi_message got;
    int passed = 7;
    sent.magic = MAGIC;
    struct iovec vec = {&sent, offsetof(struct oribi_message, text)};
    struct msghdr record = {.msg_iov = &vec, .msg_iovlen = 1, .msg_control = two.room, .msg_controllen = sizeof(two)};
    ok_eq(pipe(fds), 0);
    *CMSG_FIRSTHDR(&record) =
        (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(2 * sizeof(int))};
    memcpy(CMSG_DATA(CMSG_FIRSTHDR(&record)), (int[]){fds[0], fds[0]}, 2 * sizeof(int));
    ok(sendmsg(ends[1], &record, 0) > 0);
    bool packets = oribi_os_record_type(false) == SOCK_SEQPACKET;
    vec.iov_len = 0; /* an empty record with descriptors is no end; a stream has no such thing */
    ok(!packets || sendmsg(ends[1], &record, 0) == 0);
    close(fds[0]);
    ok_eq(oribi_message_receive(ends[0], &got, &passed), ORIBI_EBAD);
    ok_eq(passed, -1);
    if (packets)
        ok_eq(oribi_message_receive(ends[0], &got, &passed), ORIBI_EBAD);
    ok_eq(passed, -1);
    ok(write(fds[1], "y", 1) < 0); /* no reader is left */
    close(fds[1]);
}

static void test_a_full_socket_does_not_block_who_may_not(void)
{
    struct oribi_message sent = sample("", 0);
    struct oribi_message got;
    int count = 0;
    int code;
    while ((code = oribi_message_send(ends[1], &sent, 0)) == 0)
        count++;
    ok_eq(code, ORIBI_AGAIN);
    ok(count >= 32); /* as many spawns as may be on their way to one mold */
    while (oribi_message_receive(ends[0], &got, NULL) == 1)
        count--;
    ok_eq(count, 0);
}

static void test_the_end_of_a_process_is_the_end_of_its_socket(void)
{
    struct oribi_message sent = sample("", 0);
    struct oribi_message got;
    close(ends[1]);
    ok_eq(oribi_message_receive(ends[0], &got, NULL), ORIBI_ECLOSED);
    ok_eq(oribi_message_send(ends[0], &sent, 1), ORIBI_ECLOSED);
    close(ends[0]);
}

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    ok_eq(oribi_message_pair(ends), 0);
    test_a_record_arrives_as_it_was_sent();
    test_text_is_cut_at_its_maximum();
    test_a_descriptor_comes_along();
    test_what_is_no_record_is_told_apart();
    test_a_record_with_two_descriptors_is_refused_and_both_are_closed();
    test_a_full_socket_does_not_block_who_may_not();
    test_the_end_of_a_process_is_the_end_of_its_socket();
    return done_testing();
}
