/* TCP over the loopback device, for tests of the OS layer. */
#ifndef ORIBI_TEST_LOOPBACK_H
#define ORIBI_TEST_LOOPBACK_H

#include "tap.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

static inline int listen_tcp(struct sockaddr_in *address)
{
    socklen_t len = sizeof(*address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (bind(fd, (struct sockaddr *)address, len) < 0 || listen(fd, 8) < 0 ||
        getsockname(fd, (struct sockaddr *)address, &len) < 0)
        exit(2);
    return fd;
}

static inline int connect_tcp(const struct sockaddr_in *address)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0)
        exit(2);
    return fd;
}

static inline void wait_readable(int fd)
{
    struct pollfd wanted = {.fd = fd, .events = POLLIN};
    if (poll(&wanted, 1, 30000) != 1)
        diag("descriptor %d did not become readable", fd);
}

#endif
