#include "oribi/server/message.h"

#include "oribi/base/error.h"
#include "oribi/base/os.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

/* The record's size is part of it, so that builds of different layout do not understand each other by accident. */
enum { MAGIC = 0x0b1b0000 + (int)sizeof(struct oribi_message) };

int oribi_message_pair(int fds[2])
{
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0 ? oribi_os_fail() : 0;
}

void oribi_message_set_text(struct oribi_message *message, const char *text, size_t len)
{
    if (len > ORIBI_MESSAGE_TEXT_MAX)
        len = ORIBI_MESSAGE_TEXT_MAX;
    memcpy(message->text, text, len);
    message->text[len] = '\0';
    message->text_len = (uint32_t)len;
}

int oribi_message_send(int fd, struct oribi_message *message, int wait)
{
    message->magic = MAGIC;
    size_t len = offsetof(struct oribi_message, text) + message->text_len;
    ssize_t n;
    do
        n = send(fd, message, len, MSG_NOSIGNAL | (wait ? 0 : MSG_DONTWAIT));
    while (n < 0 && errno == EINTR); /* a record is sent whole or not at all: nothing to go on from */
    return n < 0 ? oribi_os_fail() : 0;
}

int oribi_message_receive(int fd, struct oribi_message *message)
{
    ssize_t n;
    do
        n = recv(fd, message, sizeof(*message) - 1, MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n < 0) {
        int code = oribi_os_fail();
        return code == ORIBI_AGAIN ? 0 : code;
    }
    if (n == 0)
        return ORIBI_ECLOSED;
    size_t head = offsetof(struct oribi_message, text);
    if ((size_t)n < head || message->magic != MAGIC || message->text_len != (size_t)n - head)
        return ORIBI_EBAD;
    message->text[message->text_len] = '\0';
    return 1;
}
