/* Plain sockets: connecting, and the transport of those that bring none (oribi/redis/conn.h). */
#include "oribi/base/clock.h"
#include "oribi/base/os/os.h"
#include "oribi/redis/conn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int reason(struct oribi_redis_conn *conn, const char *what)
{
    int error = errno;
    if (error == EINTR || error == EAGAIN || error == EWOULDBLOCK)
        return ORIBI_AGAIN;
    oribi_redis_conn_fail(conn, "%s: %s", what, strerror(error));
    return error == ECONNRESET || error == EPIPE ? ORIBI_ECLOSED : ORIBI_ESYS;
}

ssize_t oribi_redis_socket_receive(struct oribi_redis_conn *conn, const struct iovec *pieces, int n, int timeout_ms)
{
    struct msghdr message = {.msg_iov = (struct iovec *)pieces, .msg_iovlen = (size_t)n};
    /* A shorter wait than the last counts; a longer one is worth a system call where it spares others. */
    if (timeout_ms > 0 && (timeout_ms < conn->timeout_ms || timeout_ms / 2 >= conn->timeout_ms)) {
        struct timeval limit = {.tv_sec = timeout_ms / 1000, .tv_usec = timeout_ms % 1000 * 1000};
        setsockopt(conn->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
        conn->timeout_ms = timeout_ms;
    }
    int flags = timeout_ms == 0 ? MSG_DONTWAIT : 0;
    ssize_t got =
        n == 1 ? recv(conn->fd, pieces->iov_base, pieces->iov_len, flags) : recvmsg(conn->fd, &message, flags);
    if (got > 0)
        return got;
    if (got < 0)
        return reason(conn, "cannot read");
    oribi_redis_conn_fail(conn, "the server closed the connection");
    return ORIBI_ECLOSED;
}

ssize_t oribi_redis_socket_send(struct oribi_redis_conn *conn, const struct iovec *pieces, int n)
{
    struct msghdr message = {.msg_iov = (struct iovec *)pieces, .msg_iovlen = (size_t)n};
    int flags = MSG_NOSIGNAL | MSG_DONTWAIT;
    ssize_t sent =
        n == 1 ? send(conn->fd, pieces->iov_base, pieces->iov_len, flags) : sendmsg(conn->fd, &message, flags);
    return sent >= 0 ? sent : reason(conn, "cannot write");
}

int oribi_redis_socket_wait(struct oribi_redis_conn *conn, bool for_read, int timeout_ms)
{
    struct pollfd one = {.fd = conn->fd, .events = (short)(POLLOUT | (for_read ? POLLIN : 0))};
    int found = poll(&one, 1, timeout_ms);
    if (found < 0)
        return reason(conn, "cannot wait");
    return found == 0 ? ORIBI_AGAIN : 0;
}

void oribi_redis_socket_close(struct oribi_redis_conn *conn, bool quiet)
{
    oribi_os_close(conn->fd);
}

/* Waits for a connect(2) under way; 0, ORIBI_ETIMEOUT or ORIBI_ESYS with errno. */
static int await_connect(int fd, int64_t until_ms)
{
    for (;;) {
        int64_t left = until_ms ? until_ms - oribi_clock_ms() : INT_MAX;
        if (left <= 0)
            return ORIBI_ETIMEOUT;
        struct pollfd one = {.fd = fd, .events = POLLOUT};
        int found = poll(&one, 1, left > INT_MAX ? INT_MAX : (int)left);
        if (found < 0 && errno != EINTR)
            return ORIBI_ESYS;
        if (found <= 0)
            continue;
        int error = 0;
        socklen_t size = sizeof(error);
        if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
            return ORIBI_ESYS;
        errno = error;
        return error ? ORIBI_ESYS : 0;
    }
}

/* A connected, blocking socket, or -1 with *error. */
static int connect_one(const struct sockaddr *address, socklen_t size, int64_t until_ms, int *error)
{
    *error = ORIBI_ESYS;
    int fd = oribi_os_socket(address->sa_family, SOCK_STREAM, true);
    if (fd < 0)
        return -1;
    int one = 1;
    if (address->sa_family != AF_UNIX) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
    }
    /* A unix socket whose queue is full answers EAGAIN instead of going on in the background (connect(2)). */
    int done;
    while ((done = connect(fd, address, size)) != 0 && errno == EAGAIN) {
        if (until_ms && oribi_clock_ms() >= until_ms)
            break;
        poll(NULL, 0, 1);
    }
    if (done != 0 && errno == EAGAIN)
        *error = ORIBI_ETIMEOUT;
    else if (done == 0)
        *error = 0;
    else if (errno == EINPROGRESS || errno == EINTR)
        *error = await_connect(fd, until_ms);
    if (*error == 0 && fcntl(fd, F_SETFL, 0) == 0)
        return fd;
    if (*error == 0)
        *error = ORIBI_ESYS;
    int why = errno;
    oribi_os_close(fd);
    errno = why;
    return -1;
}

static int connected(struct oribi_redis_conn *conn, int fd, int error, const char *where)
{
    if (fd >= 0) {
        oribi_redis_conn_attach(conn, fd);
        return 0;
    }
    if (error == ORIBI_ETIMEOUT)
        oribi_redis_conn_fail(conn, "cannot connect to %s within %lld ms", where, (long long)conn->connect_ms);
    else
        oribi_redis_conn_fail(conn, "cannot connect to %s: %s", where, strerror(errno));
    return error;
}

static int connect_host(struct oribi_redis_conn *conn, const struct oribi_redis_place *place)
{
    char port[8];
    char where[ORIBI_REDIS_HOST_MAX + 16];
    snprintf(port, sizeof(port), "%u", place->port);
    snprintf(where, sizeof(where), strchr(place->host, ':') ? "[%s]:%s" : "%s:%s", place->host, port);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int unknown = getaddrinfo(place->host, port, &hints, &found);
    if (unknown) {
        oribi_redis_conn_fail(conn, "cannot connect to %s: %s", where,
                              unknown == EAI_SYSTEM ? strerror(errno) : gai_strerror(unknown));
        return ORIBI_ESYS;
    }
    int64_t until_ms = conn->connect_ms ? oribi_clock_ms() + conn->connect_ms : 0;
    int fd = -1;
    int error = ORIBI_ESYS;
    for (struct addrinfo *one = found; one && fd < 0 && error != ORIBI_ETIMEOUT; one = one->ai_next)
        fd = connect_one(one->ai_addr, one->ai_addrlen, until_ms, &error);
    int why = errno;
    freeaddrinfo(found);
    errno = why;
    return connected(conn, fd, error, where);
}

int oribi_redis_conn_connect(struct oribi_redis_conn *conn, const struct oribi_redis_place *place)
{
    if (!place->path[0])
        return connect_host(conn, place);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t n = strlen(place->path);
    memcpy(address.sun_path, place->path, n);
    int64_t until_ms = conn->connect_ms ? oribi_clock_ms() + conn->connect_ms : 0;
    int error;
    int fd = connect_one((const struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + 1),
                         until_ms, &error);
    return connected(conn, fd, error, place->path);
}
