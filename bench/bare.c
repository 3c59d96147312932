/* The reference of every speed figure: the least a server can do. One process, one epoll, level-triggered as most
 * are written; requests are found by their empty line and not looked at; the answer is a fixed head of the size that
 * Oribi's has, with a Date of this second, and 13 bytes. Requests that came together are answered in one write. bare
 * PORT */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { EVENTS_MAX = 64, BUF_BYTES = 16 * 1024, CONNS_MAX = 4096, ANSWER_BYTES = 256, TOGETHER_MAX = 32 };

/* So many answers in a row, of which as many are written as there were requests. */
static char answer[ANSWER_BYTES * TOGETHER_MAX];
static size_t answer_len;
static time_t answer_second;
static bool close_after; /* BARE_CLOSE in the environment: a connection per request */

/* Bytes of a request whose end has not come. */
static char *pending[CONNS_MAX];
static size_t pending_len[CONNS_MAX];

static void answer_refresh(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    if (now.tv_sec == answer_second)
        return;
    answer_second = now.tv_sec;
    char date[64];
    struct tm tm;
    gmtime_r(&now.tv_sec, &tm);
    strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", &tm);
    int n = snprintf(answer, ANSWER_BYTES,
                     "HTTP/1.1 200 OK\r\nDate: %s\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n"
                     "%s\r\nHello, World!",
                     date, close_after ? "Connection: close\r\n" : "");
    answer_len = (size_t)n;
    for (size_t i = 1; i < TOGETHER_MAX; i++)
        memcpy(answer + i * answer_len, answer, answer_len);
}

static int listen_on(int port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int one = 1;
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof addr) != 0 || listen(fd, 1024) != 0) {
        perror("bare: listen");
        exit(1);
    }
    return fd;
}

static void accept_all(int ep, int listener)
{
    for (;;) {
        int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0)
            return;
        int one = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        struct epoll_event ev = {.events = EPOLLIN, .data.fd = fd};
        if (fd >= CONNS_MAX || epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev) != 0)
            close(fd);
    }
}

static void end_conn(int fd)
{
    free(pending[fd]);
    pending[fd] = NULL;
    pending_len[fd] = 0;
    close(fd);
}

static bool answer_all(int fd, size_t count)
{
    return write(fd, answer, count * answer_len) == (ssize_t)(count * answer_len);
}

/* Answers each whole request in the bytes; keeps the rest. Returns -1 when the connection is to end. */
static int serve(int fd, const char *buf, size_t len)
{
    const char *end;
    size_t pos = 0, count = 0;
    while ((end = memmem(buf + pos, len - pos, "\r\n\r\n", 4))) {
        pos = (size_t)(end + 4 - buf);
        if (++count == TOGETHER_MAX || close_after) {
            if (!answer_all(fd, count) || close_after)
                return -1;
            count = 0;
        }
    }
    if (count && !answer_all(fd, count))
        return -1;
    size_t rest = len - pos;
    if (rest == 0)
        return 0;
    if (rest > BUF_BYTES / 2 || !(pending[fd] = malloc(BUF_BYTES)))
        return -1;
    memcpy(pending[fd], buf + pos, rest);
    pending_len[fd] = rest;
    return 0;
}

static void on_readable(int fd)
{
    char buf[BUF_BYTES];
    size_t kept = pending_len[fd];
    if (kept)
        memcpy(buf, pending[fd], kept);
    ssize_t n = read(fd, buf + kept, sizeof buf - kept);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    free(pending[fd]);
    pending[fd] = NULL;
    pending_len[fd] = 0;
    if (n <= 0 || serve(fd, buf, kept + (size_t)n) != 0)
        end_conn(fd);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: bare PORT\n");
        return 1;
    }
    close_after = getenv("BARE_CLOSE") != NULL;
    signal(SIGPIPE, SIG_IGN); /* clients leave with requests under way */
    int listener = listen_on((int)strtol(argv[1], NULL, 10));
    int ep = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event ev = {.events = EPOLLIN, .data.fd = listener};
    if (ep < 0 || epoll_ctl(ep, EPOLL_CTL_ADD, listener, &ev) != 0) {
        perror("bare: epoll");
        return 1;
    }
    for (;;) {
        struct epoll_event events[EVENTS_MAX];
        int n = epoll_wait(ep, events, EVENTS_MAX, -1);
        answer_refresh();
        for (int i = 0; i < n; i++) {
            if (events[i].data.fd == listener)
                accept_all(ep, listener);
            else
                on_readable(events[i].data.fd);
        }
    }
}
