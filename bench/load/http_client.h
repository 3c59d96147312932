/* Parts of every C client here: an address, a connection to it, bytes out, the head of an answer in. For the drivers of
 * bench/ and e2e/, which differ in what they do with it: threads that block, one epoll loop, thousands of slow members.
 * Functions are static, since each driver is one program. */
#ifndef BENCH_LOAD_HTTP_CLIENT_H
#define BENCH_LOAD_HTTP_CLIENT_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define HTTP_CLIENT_FN __attribute__((unused)) static

enum { HTTP_CLIENT_PORT = 9292 }; /* of an address without one */

struct http_address {
    socklen_t len;
    union {
        struct sockaddr any;
        struct sockaddr_in in;
        struct sockaddr_un un;
    } to;
};

/* CLOCK_MONOTONIC in seconds. */
HTTP_CLIENT_FN double http_now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* As many descriptors as this process may have; ends it where they are fewer than `count`. */
HTTP_CLIENT_FN void http_want_descriptors(rlim_t count)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0) {
        perror("getrlimit");
        exit(1);
    }
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_max < count) {
        fprintf(stderr, "%lu descriptors are needed, %lu allowed\n", (unsigned long)count,
                (unsigned long)limit.rlim_max);
        exit(3);
    }
}

/* "127.0.0.1:9292", "127.0.0.1", or the path of a unix socket, which holds a slash and no colon. False: it is none
 * of them. */
HTTP_CLIENT_FN bool http_address_parse(struct http_address *address, const char *text)
{
    const char *colon = strrchr(text, ':');
    memset(address, 0, sizeof(*address));
    if (strchr(text, '/') && !colon) {
        if (strlen(text) >= sizeof(address->to.un.sun_path))
            return false;
        address->to.un.sun_family = AF_UNIX;
        snprintf(address->to.un.sun_path, sizeof(address->to.un.sun_path), "%s", text);
        address->len = sizeof(address->to.un);
        return true;
    }
    char host[64];
    snprintf(host, sizeof(host), "%.*s", colon ? (int)(colon - text) : (int)strlen(text), text);
    address->to.in.sin_family = AF_INET;
    address->to.in.sin_port = htons((uint16_t)(colon ? strtol(colon + 1, NULL, 10) : HTTP_CLIENT_PORT));
    address->len = sizeof(address->to.in);
    return inet_pton(AF_INET, host, &address->to.in.sin_addr) == 1;
}

struct http_connecting {
    int flags;          /* SOCK_NONBLOCK, or 0 */
    int receive_buffer; /* SO_RCVBUF in bytes; 0: the system's. A larger one makes a faster reader */
    int patience_s;     /* SO_RCVTIMEO and SO_SNDTIMEO; 0: none */
};

/* Gives a connected socket; one that does not block may still be connecting. -1 with errno. */
HTTP_CLIENT_FN int http_connect(const struct http_address *address, struct http_connecting how)
{
    int on = 1;
    const struct timeval patience = {.tv_sec = how.patience_s};
    int fd = socket(address->to.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | how.flags, 0);
    if (fd < 0)
        return -1;
    if (how.receive_buffer)
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &how.receive_buffer, sizeof(how.receive_buffer));
    if (how.patience_s) {
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    }
    if (address->to.any.sa_family == AF_INET)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (connect(fd, &address->to.any, address->len) == 0 || errno == EINPROGRESS)
        return fd;
    int kept = errno;
    close(fd);
    errno = kept;
    return -1;
}

/* For sockets that block. False with errno when the connection is broken. */
HTTP_CLIENT_FN bool http_send_all(int fd, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t sent = send(fd, p, n, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return false;
        p += sent;
        n -= (size_t)sent;
    }
    return true;
}

/* More bytes of an answer from a socket that blocks; as recv(2), but a process that was stopped for a while goes on
 * (signal(7): SO_RCVTIMEO). */
HTTP_CLIENT_FN ssize_t http_receive(int fd, char *p, size_t room)
{
    ssize_t n;
    do {
        n = recv(fd, p, room, 0);
    } while (n < 0 && errno == EINTR);
    return n;
}

/* Finds a field of a head by its name in any case. Gives the length of its value, or -1. Borrows head. */
HTTP_CLIENT_FN int http_head_field(const char *head, size_t head_len, const char *name, const char **value)
{
    size_t name_len = strlen(name);
    const char *end = head + head_len;
    const char *line = memmem(head, head_len, "\r\n", 2);
    while (line && line + 2 + name_len < end) {
        line += 2;
        const char *next = memmem(line, (size_t)(end - line), "\r\n", 2);
        if (next && strncasecmp(line, name, name_len) == 0 && line[name_len] == ':') {
            const char *at = line + name_len + 1;
            while (at < next && *at == ' ')
                at++;
            *value = at;
            return (int)(next - at);
        }
        line = next;
    }
    return -1;
}

/* A field's value as a number; `otherwise` where there is no such field. */
HTTP_CLIENT_FN double http_head_number(const char *head, size_t head_len, const char *name, double otherwise)
{
    const char *value;
    return http_head_field(head, head_len, name, &value) > 0 ? strtod(value, NULL) : otherwise;
}

struct http_answer_head {
    int status;
    size_t len;          /* of the head, its empty line included */
    long content_length; /* -1: the field is not there */
    bool chunked;
    bool closes;
};

/* The head at the front of [p, p+n). 1: it is there, 0: more bytes are needed, -1: this is no answer. */
HTTP_CLIENT_FN int http_answer_head(const char *p, size_t n, struct http_answer_head *head)
{
    const char *end = memmem(p, n, "\r\n\r\n", 4);
    const char *value;
    if (!end)
        return 0;
    head->len = (size_t)(end + 4 - p);
    if (head->len < 13 || strncmp(p, "HTTP/1.", 7) != 0)
        return -1;
    head->status = (int)strtol(p + 9, NULL, 10);
    head->content_length = (long)http_head_number(p, head->len, "content-length", -1);
    head->chunked = http_head_field(p, head->len, "transfer-encoding", &value) == 7;
    int said = http_head_field(p, head->len, "connection", &value);
    head->closes = p[7] == '1' ? said == 5 && strncasecmp(value, "close", 5) == 0 : said != 10;
    return 1;
}

#endif
