/* Messages with a descriptor. */
#include "worker/frontend_protocol.c"

#include "tap.h"

#include <dirent.h>
#include <unistd.h>

static int fds[2];
static char text[16];
static int passed;

static int open_count(void)
{
    int n = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (dir && readdir(dir))
        n++;
    if (dir)
        (void)closedir(dir);
    return n;
}

static void test_a_descriptor_comes_with_the_message(void)
{
    ok_eq(oribi__frontend_message_send(fds[0], oribi_slice("word", 4), fds[0]), 0);
    ok_eq(oribi__frontend_message_receive(fds[1], text, sizeof(text), &passed), 4);
    ok(memcmp(text, "word", 4) == 0);
    ok(passed > STDERR_FILENO && passed != fds[0] && oribi_os_same_file(passed, fds[0]));
    oribi_os_close(passed);
}

static void test_a_message_without_one(void)
{
    ok(send(fds[0], "x", 1, 0) == 1);
    ok_eq(oribi__frontend_message_receive(fds[1], text, sizeof(text), &passed), 1);
    ok_eq(passed, -1);
    ok_eq(oribi__frontend_message_receive(fds[1], text, sizeof(text), &passed), ORIBI_AGAIN);
    ok_eq(passed, -1);
}

/* One process could fill another one's table so. */
static void test_of_several_descriptors_one_is_kept(void)
{
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(2 * sizeof(int))];
    } control = {0};
    struct iovec vec = {(void *)"two", 3};
    struct msghdr message = {
        .msg_iov = &vec, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof(control.room)};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    int two[2] = {fds[0], fds[1]};
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(two));
    memcpy(CMSG_DATA(head), two, sizeof(two));
    int before = open_count();
    ok(sendmsg(fds[0], &message, 0) == 3);
    ok_eq(oribi__frontend_message_receive(fds[1], text, sizeof(text), &passed), 3);
    ok(passed >= 0);
    oribi_os_close(passed);
    ok_eq(open_count(), before);
}

static void test_a_peer_that_has_gone(void)
{
    oribi_os_close(fds[0]);
    ok_eq(oribi__frontend_message_receive(fds[1], text, sizeof(text), &passed), 0);
    ok_eq(passed, -1);
    ok(oribi__frontend_message_send(fds[1], oribi_slice("x", 1), fds[1]) < 0);
}

int main(void)
{
    if (oribi_os_socket_pair(oribi_os_record_type(false), false, fds) < 0)
        return 1;
    test_a_descriptor_comes_with_the_message();
    test_a_message_without_one();
    test_of_several_descriptors_one_is_kept();
    test_a_peer_that_has_gone();
    oribi_os_close(fds[1]);
    return done_testing();
}
