/* See http.h. A connection's life: closed -> (connecting) -> sending -> reading -> idle -> sending ... -> closed.
 * Each owner has its own HTTP_OPEN_MAX places, so that finding an idle connection is a glance. */
#define _GNU_SOURCE
#include "http.h"

#include "../../load/http_client.h"

#include <sys/epoll.h>

enum { EVENTS_MAX = 256, OUT_BYTES = 8 * 1024, IN_BYTES = 16 * 1024 };
enum state { CLOSED, IDLE, BUSY };
static const double SCAN_S = 0.01; /* how often deadlines are looked at */

struct conn {
    int fd;
    enum state state;
    uint32_t generation; /* tells an event of a socket that was here before */
    int owner;
    int tag;
    double deadline_s;
    bool wants_out;

    size_t out_len;
    size_t out_sent;
    char out[OUT_BYTES];

    char *in;
    size_t in_cap;
    size_t in_len;
    size_t head_len; /* 0: not there yet */
    long body_len;   /* -1: chunked, -2: until the end of the connection */
    size_t chunk_at; /* where the next chunk's size stands */
    size_t chunk_to; /* where its data go when the head's rest is moved together */
    bool keep;
};

struct http {
    int epoll_fd;
    int owners;
    struct conn *conns;
    http_done done;
    void *self;
    double scanned_s;
    size_t opened;
    struct http_address address;
};

double now_s(void)
{
    return http_now_s();
}

static void die(const char *what)
{
    fprintf(stderr, "driver: %s\n", what);
    exit(2);
}

struct http *http_create(const char *address, int owners, http_done done, void *self)
{
    struct http *http = calloc(1, sizeof(*http));
    if (!http || !(http->conns = calloc((size_t)owners * HTTP_OPEN_MAX, sizeof(*http->conns))))
        die("no memory");
    http->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    http->owners = owners;
    http->done = done;
    http->self = self;
    if (!http_address_parse(&http->address, address))
        die("the address is neither IPv4:PORT nor a path");
    for (int i = 0; i < owners * HTTP_OPEN_MAX; i++) {
        http->conns[i].fd = -1;
        http->conns[i].owner = i / HTTP_OPEN_MAX;
    }
    return http;
}

static void watch(struct http *http, struct conn *c, int op, bool out)
{
    struct epoll_event event = {.events = EPOLLIN | (out ? (uint32_t)EPOLLOUT : 0)};
    event.data.u64 = (uint64_t)c->generation << 32 | (uint32_t)(c - http->conns);
    c->wants_out = out;
    if (epoll_ctl(http->epoll_fd, op, c->fd, &event) != 0)
        die("epoll_ctl failed");
}

static void end_conn(struct conn *c)
{
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
    c->generation++;
    c->state = CLOSED;
}

static int open_conn(struct http *http, struct conn *c)
{
    c->fd = http_connect(&http->address, (struct http_connecting){.flags = SOCK_NONBLOCK});
    if (c->fd < 0) {
        end_conn(c);
        return -1;
    }
    http->opened++;
    watch(http, c, EPOLL_CTL_ADD, false);
    return 0;
}

/* An idle connection that the server has closed meanwhile is no connection. */
static bool still_there(struct conn *c)
{
    char byte;
    ssize_t n = recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN)
        return true;
    end_conn(c);
    return false;
}

static struct conn *place_of(struct http *http, int owner)
{
    struct conn *first = &http->conns[owner * HTTP_OPEN_MAX];
    struct conn *closed = NULL;
    for (struct conn *c = first; c < first + HTTP_OPEN_MAX; c++) {
        if (c->state == IDLE && still_there(c))
            return c;
        if (c->state == CLOSED)
            closed = c;
    }
    if (!closed)
        die("an owner has too many requests under way");
    return open_conn(http, closed) == 0 ? closed : NULL;
}

/* Returns -1 when the connection is broken. */
static int flush_out(struct http *http, struct conn *c)
{
    while (c->out_sent < c->out_len) {
        ssize_t n = send(c->fd, c->out + c->out_sent, c->out_len - c->out_sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == ENOTCONN)) {
            if (!c->wants_out)
                watch(http, c, EPOLL_CTL_MOD, true);
            return 0;
        }
        if (n < 0)
            return -1;
        c->out_sent += (size_t)n;
    }
    if (c->wants_out)
        watch(http, c, EPOLL_CTL_MOD, false);
    return 0;
}

int http_send(struct http *http, int owner, int tag, const char *bytes, size_t len, double deadline_s)
{
    if (len > OUT_BYTES)
        die("a request is too long");
    struct conn *c = place_of(http, owner);
    if (!c)
        return -1;
    memcpy(c->out, bytes, len);
    c->out_len = len;
    c->out_sent = 0;
    c->in_len = 0;
    c->head_len = 0;
    c->tag = tag;
    c->deadline_s = deadline_s;
    c->state = BUSY;
    if (flush_out(http, c) == 0)
        return 0;
    end_conn(c);
    return -1;
}

void http_abort(struct http *http, int owner)
{
    struct conn *first = &http->conns[owner * HTTP_OPEN_MAX];
    for (struct conn *c = first; c < first + HTTP_OPEN_MAX; c++)
        if (c->state == BUSY)
            end_conn(c);
}

void http_hurry(struct http *http, double deadline_s)
{
    for (int i = 0; i < http->owners * HTTP_OPEN_MAX; i++)
        if (http->conns[i].deadline_s > deadline_s)
            http->conns[i].deadline_s = deadline_s;
}

size_t http_opened(const struct http *http)
{
    return http->opened;
}

int http_field(const struct http_response *response, const char *name, const char **value)
{
    return http_head_field(response->head, response->head_len, name, value);
}

/* Reads what the head says about the body's end. Returns -1 for a head that is none. */
static int read_head(struct conn *c)
{
    struct http_answer_head head;
    int there = http_answer_head(c->in, c->in_len, &head);
    if (there <= 0)
        return there;
    c->head_len = head.len;
    c->keep = !head.closes;
    if (head.status == 204 || head.status == 304)
        c->body_len = 0;
    else if (head.content_length >= 0)
        c->body_len = head.content_length;
    else
        c->body_len = head.chunked ? -1 : -2;
    if (c->body_len == -2)
        c->keep = false;
    c->chunk_at = c->chunk_to = c->head_len;
    return 0;
}

/* Moves the chunks' data together behind the head. Returns 1 when the last one is there, -1 for what are no chunks. */
static int read_chunks(struct conn *c)
{
    for (;;) {
        const char *line = c->in + c->chunk_at;
        const char *eol = memmem(line, c->in_len - c->chunk_at, "\r\n", 2);
        if (!eol)
            return 0;
        char *after;
        unsigned long size = strtoul(line, &after, 16);
        if (after == line)
            return -1;
        size_t data = (size_t)(eol + 2 - c->in);
        if (c->in_len < data + size + 2)
            return 0;
        if (size == 0)
            return memmem(eol, c->in_len - (data - 2), "\r\n\r\n", 4) ? 1 : 0;
        memmove(c->in + c->chunk_to, c->in + data, size);
        c->chunk_to += size;
        c->chunk_at = data + size + 2;
    }
}

/* 1: the answer is whole, 0: more is needed, -1: this is no answer. */
static int whole(struct conn *c)
{
    if (c->head_len == 0 && read_head(c) != 0)
        return -1;
    if (c->head_len == 0 || c->body_len == -2)
        return 0;
    return c->body_len == -1 ? read_chunks(c) : c->in_len >= c->head_len + (size_t)c->body_len;
}

static void finish(struct http *http, struct conn *c, bool good)
{
    struct http_response response = {.head = c->in, .head_len = c->head_len, .body = c->in + c->head_len};
    if (!good) {
        end_conn(c);
        http->done(http->self, c->owner, c->tag, NULL);
        return;
    }
    response.status = (int)strtol(c->in + 9, NULL, 10);
    response.body_len = c->body_len == -1 ? c->chunk_to - c->head_len : c->in_len - c->head_len;
    int idle = 0;
    struct conn *first = &http->conns[c->owner * HTTP_OPEN_MAX];
    for (struct conn *other = first; other < first + HTTP_OPEN_MAX; other++)
        idle += other->state == IDLE;
    if (c->keep && idle < HTTP_IDLE_MAX)
        c->state = IDLE;
    else
        end_conn(c);
    http->done(http->self, c->owner, c->tag, &response);
}

static void on_readable(struct http *http, struct conn *c)
{
    for (;;) {
        if (c->in_cap - c->in_len < IN_BYTES) {
            c->in_cap = c->in_cap ? c->in_cap * 2 : 2 * IN_BYTES;
            if (!(c->in = realloc(c->in, c->in_cap)))
                die("no memory");
        }
        size_t room = c->in_cap - c->in_len - 1;
        ssize_t n = recv(c->fd, c->in + c->in_len, room, 0);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0) {
            finish(http, c, n == 0 && c->head_len > 0 && c->body_len == -2);
            return;
        }
        c->in_len += (size_t)n;
        c->in[c->in_len] = '\0';
        int got = whole(c);
        if (got != 0) {
            finish(http, c, got > 0);
            return;
        }
        if ((size_t)n < room)
            return;
    }
}

static void on_event(struct http *http, const struct epoll_event *event)
{
    struct conn *c = &http->conns[(uint32_t)event->data.u64];
    if (c->generation != (uint32_t)(event->data.u64 >> 32) || c->state == CLOSED)
        return;
    if (c->state == IDLE) {
        end_conn(c); /* the server closes, or talks unasked */
        return;
    }
    if ((event->events & EPOLLOUT) && flush_out(http, c) != 0) {
        finish(http, c, false);
        return;
    }
    if (event->events & (EPOLLIN | EPOLLHUP | EPOLLERR))
        on_readable(http, c);
}

static void end_overdue(struct http *http)
{
    double now = now_s();
    if (now < http->scanned_s + SCAN_S)
        return;
    http->scanned_s = now;
    for (int i = 0; i < http->owners * HTTP_OPEN_MAX; i++)
        if (http->conns[i].state == BUSY && http->conns[i].deadline_s < now)
            finish(http, &http->conns[i], false);
}

void http_turn(struct http *http, double wait_s)
{
    struct epoll_event events[EVENTS_MAX];
    double most = wait_s < 0 ? 0 : wait_s > SCAN_S ? SCAN_S : wait_s;
    struct timespec wait = {0, (long)(most * 1e9)};
    int n = epoll_pwait2(http->epoll_fd, events, EVENTS_MAX, &wait, NULL);
    for (int i = 0; i < n; i++)
        on_event(http, &events[i]);
    end_overdue(http);
}
