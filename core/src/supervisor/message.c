/* Records over SOCK_SEQPACKET; where the system has no such sockets, over a stream, in which the head says where a
 * record ends (oribi_os_record_type()). EINTR is looked at here, because a record is no stream that os.h could go on
 * with. */
#include "oribi/supervisor/message.h"

#include "oribi/base/error.h"
#include "oribi/base/os/os.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

/* The record's size is part of it, so that builds of different layout do not understand each other by accident. */
enum { MAGIC = 0x0b1b0000 + (int)sizeof(struct oribi_message) };

int oribi_message_pair(int fds[2])
{
    return oribi_os_socket_pair(oribi_os_record_type(false), false, fds);
}

void oribi_message_set_text(struct oribi_message *message, const char *text, size_t len)
{
    if (len > ORIBI_MESSAGE_TEXT_MAX)
        len = ORIBI_MESSAGE_TEXT_MAX;
    memcpy(message->text, text, len);
    message->text[len] = '\0';
    message->text_len = (uint32_t)len;
}

/* A stream may take a part, and the reader waits for the rest: so does this. */
static int send_rest(int fd, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t sent = send(fd, p, n, MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR)
            return oribi_os_fail();
        p += sent > 0 ? sent : 0;
        n -= sent > 0 ? (size_t)sent : 0;
    }
    return 0;
}

static int send_record(int fd, struct oribi_message *message, int passed, int flags)
{
    message->magic = MAGIC;
    char control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec vec = {message, offsetof(struct oribi_message, text) + message->text_len};
    struct msghdr record = {.msg_iov = &vec, .msg_iovlen = 1};
    if (passed >= 0) {
        record.msg_control = control;
        record.msg_controllen = sizeof(control);
        struct cmsghdr *head = CMSG_FIRSTHDR(&record);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(head), &passed, sizeof(int));
    }
    ssize_t n;
    do
        n = sendmsg(fd, &record, MSG_NOSIGNAL | flags);
    while (n < 0 && errno == EINTR); /* a record is sent whole or not at all: nothing to go on from */
    if (n < 0)
        return oribi_os_fail();
    return (size_t)n == vec.iov_len ? 0 : send_rest(fd, (const char *)message + n, vec.iov_len - (size_t)n);
}

int oribi_message_send(int fd, struct oribi_message *message, int wait)
{
    return send_record(fd, message, -1, wait ? 0 : MSG_DONTWAIT);
}

int oribi_message_send_fd(int fd, struct oribi_message *message, int passed)
{
    return send_record(fd, message, passed, 0);
}

/* Room for one descriptor and no more: others the kernel closes, and says so (MSG_CTRUNC). */
union control {
    struct cmsghdr align;
    char room[CMSG_LEN(sizeof(int))];
};

static int passed_fd(struct msghdr *record)
{
    int fd = -1;
    struct cmsghdr *head = CMSG_FIRSTHDR(record);
    if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS)
        memcpy(&fd, CMSG_DATA(head), sizeof(int));
    return oribi_os_lift(fd);
}

/* How many bytes the next record of a stream has, once all of them are there: ORIBI_AGAIN. 0 at the end. Bytes that are
 * no record are taken with it as one. */
static ssize_t next_len(int fd, struct oribi_message *message)
{
    ssize_t n;
    do
        n = recv(fd, message, sizeof(*message) - 1, MSG_PEEK | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        return n < 0 ? oribi_os_fail() : 0;
    size_t head = offsetof(struct oribi_message, text);
    if ((size_t)n >= sizeof(message->magic) && message->magic != MAGIC)
        return n;
    if ((size_t)n < head)
        return ORIBI_AGAIN;
    if (message->text_len > ORIBI_MESSAGE_TEXT_MAX)
        return n;
    size_t len = head + message->text_len;
    return (size_t)n < len ? ORIBI_AGAIN : (ssize_t)len;
}

int oribi_message_receive(int fd, struct oribi_message *message, int *passed)
{
    union control control;
    struct iovec vec = {message, sizeof(*message) - 1};
    struct msghdr record = {
        .msg_iov = &vec, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof(control.room)};
    ssize_t n = 0;
    if (oribi_os_record_type(false) != SOCK_SEQPACKET && (n = next_len(fd, message)) > 0)
        vec.iov_len = (size_t)n;
    if (n >= 0)
        n = oribi_os_receive(fd, &record);
    if (passed)
        *passed = -1;
    if (n < 0)
        return n == ORIBI_AGAIN ? 0 : (int)n;
    int got = passed_fd(&record);
    size_t head = offsetof(struct oribi_message, text);
    bool whole = (record.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
    if (n == 0 && got < 0 && whole) /* an empty record looks the same, and none of ours is empty */
        return ORIBI_ECLOSED;
    bool valid = whole && (size_t)n >= head && message->magic == MAGIC && message->text_len == (size_t)n - head;
    if (valid && passed)
        *passed = got;
    else
        oribi_os_close(got);
    if (!valid)
        return ORIBI_EBAD;
    message->text[message->text_len] = '\0';
    return 1;
}
