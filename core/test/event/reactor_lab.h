/* A reactor with one hook of each kind, and connections over socket pairs; no worker above. */
#ifndef ORIBI_TEST_REACTOR_LAB_H
#define ORIBI_TEST_REACTOR_LAB_H

#include "oribi/event/reactor.h"

#include "tap.h"

#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define REQUEST "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

static struct oribi_reactor r;
static enum oribi_loop_source source;
static int64_t bytes_read;
static int64_t bytes_sent;
static int closed_count;
static int refused_status;
static const char *refused_as; /* the reason's word */
static size_t refused_bytes;
static int lost_count;

static inline void on_refused(void *self, struct oribi_conn *c, enum oribi_refusal refusal, size_t head_bytes,
                              size_t body_bytes, const char *text)
{
    refused_status = oribi_refusal_status(refusal);
    refused_as = oribi_refusal_name(refusal);
    refused_bytes = body_bytes;
}

static inline void on_closed(void *self, struct oribi_conn *c)
{
    closed_count++;
}

static inline void on_read(void *self, int64_t bytes)
{
    bytes_read += bytes;
}

static inline void on_sent(void *self, int64_t bytes)
{
    bytes_sent += bytes;
}

static inline void on_lost(void *self, struct oribi_conn *c)
{
    lost_count++;
}

static inline void begin(void)
{
    struct oribi_reactor_config config = {
        .head_timeout_ms = 5000,
        .body_timeout_ms = 5000,
        .idle_timeout_ms = 5000,
        .write_timeout_ms = 5000,
        .response_memory_max = 1 << 20,
        .exchange_bytes = sizeof(struct oribi_conn_request),
    };
    const struct oribi_reactor_hooks hooks = {
        .refused = on_refused, .closed = on_closed, .read = on_read, .sent = on_sent, .lost = on_lost};
    oribi_limits_init(&config.limits);
    bytes_read = bytes_sent = 0;
    closed_count = refused_status = lost_count = 0;
    refused_bytes = 0;
    ok_eq(oribi_reactor_init(&r, &config, &hooks, source), 0);
}

static inline void end(void)
{
    oribi_reactor_deinit(&r);
}

static inline struct oribi_conn *open_conn(int *far)
{
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) < 0)
        fail("socketpair");
    struct oribi_conn *c = oribi_conn_open(&r, fds[0], NULL);
    *far = fds[1];
    oribi_conn_start(&r, c);
    return c;
}

static inline void turn(void)
{
    (void)oribi_reactor_turn(&r);
}

static inline void send_text(int fd, const char *text)
{
    ok_eq(write(fd, text, strlen(text)), (long long)strlen(text));
}

static inline size_t read_all(int fd)
{
    static char block[65536];
    size_t total = 0;
    ssize_t n;
    while ((n = read(fd, block, sizeof(block))) > 0)
        total += (size_t)n;
    return total;
}

/* Runs all cases with each readiness source; ends the program's TAP. */
static inline int run_with_both_sources(void (*run_all)(void))
{
    (void)signal(SIGPIPE, SIG_IGN);
    source = ORIBI_LOOP_BEST;
    run_all();
    source = ORIBI_LOOP_POLL;
    run_all();
    return done_testing();
}

#endif
