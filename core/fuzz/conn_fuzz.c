/* The whole way of a connection: a worker with a C application, one end of a socket pair as its client. The input is
 * sent at once, and again in random pieces with a turn of the worker behind each; both times the same must come
 * back.
 *
 * First byte: what is switched on. Second byte: seed of the pieces. The rest is what the client sends.
 *
 * Holds for every input: answers are well-formed and in order, one for each call and at most one refusal, which is
 * the last; nothing is answered behind a close; a client that has finished sending leaves no connection behind. */
#include "worker/worker_private.h"

#include "storing.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/worker/req.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SMALL_LIMITS = 1, SMALL_MEMORY = 2, PROXIED = 4, HALF_CLOSE = 8, STREAMED = 16, BODY_OVER = 32 };
enum { INPUT_MAX = 40000 };

static struct oribi_worker *worker;
static struct oribi_options options;
static const struct oribi_listener listener = {.host = "localhost", .port = "80", .text = "tcp://localhost:80"};

struct exchange {
    uint8_t flags;
    int fd; /* the client's end */
    uint32_t calls;
    bool eof;
    struct oribi_buf got; /* without what may differ between two ways to cut: Date, 100 Continue */
};

static void expect(bool condition)
{
    if (!condition)
        abort();
}

static void start(void)
{
    struct oribi_worker_setup setup = {.options = &options, .life_fd = -1};
    oribi_log_init(open("/dev/null", O_WRONLY | O_CLOEXEC), ORIBI_LOG_ERROR);
    oribi_options_init(&options);
    expect(oribi_worker_create(&setup, &worker) == 0);
}

static void set_limits(uint8_t flags)
{
    struct oribi_limits *limits = &worker->reactor.config.limits;
    oribi_limits_init(limits);
    limits->body_bytes_max = 1 << 20;
    if (flags & SMALL_LIMITS) {
        limits->target_bytes_max = 64;
        limits->head_bytes_max = 1024;
        limits->fields_max = 8;
    }
    if (flags & SMALL_MEMORY)
        limits->body_memory_max = 16;
    if (flags & BODY_OVER)
        limits->body_bytes_max = 100;
}

/* ---- application: says which call this is and what it saw ---- */

static uint32_t sum_of(const char *p, size_t n)
{
    uint32_t sum = 2166136261u;
    for (size_t i = 0; i < n; i++)
        sum = (sum ^ (uint8_t)p[i]) * 16777619u;
    return sum;
}

static uint32_t body_sum(const struct oribi_req *req)
{
    char *copy = oribi_mem_alloc(1, (size_t)req->body_len + 1);
    const char *p = req->body.p;
    if (req->body_fd >= 0) {
        expect(read(req->body_fd, copy, (size_t)req->body_len + 1) == req->body_len);
        p = copy;
    } else {
        expect((int64_t)req->body.n == req->body_len);
    }
    uint32_t sum = sum_of(p, (size_t)req->body_len);
    oribi_mem_free(copy);
    return sum;
}

static void answer(struct exchange *x, struct oribi_req *req)
{
    char text[160];
    int n = snprintf(text, sizeof(text), "call %u: %zu %zu %u fields, %lld %08x body, %u trailers, %.*s\n", x->calls++,
                     req->head->method.n, req->head->target.n, req->head->field_count, (long long)req->body_len,
                     body_sum(req), req->trailer_count, (int)req->remote_addr.n, req->remote_addr.p);
    struct iovec body = {text, (size_t)n};
    if (!(x->flags & STREAMED)) {
        (void)oribi_reply(req, 200, NULL, 0, &body, 1);
        return;
    }
    expect(oribi_reply_begin(req, 200, NULL, 0, -1) == 0);
    (void)oribi_reply_write(req, &body, 1);
    (void)oribi_reply_end(req);
}

/* ---- client ---- */

static bool read_some(struct exchange *x)
{
    if (x->eof)
        return false;
    char *room = oribi_buf_reserve(&x->got, 65536);
    ssize_t n = recv(x->fd, room, 65536, MSG_DONTWAIT);
    x->eof |= n == 0;
    x->got.len += n > 0 ? (size_t)n : 0;
    return n >= 0;
}

/* The connection of this run, while the reactor has one. */
static struct oribi_conn *current;

/* Turns until nothing happens any more. */
static void settle(struct exchange *x)
{
    for (int quiet = 0; quiet < 3; quiet++) {
        struct oribi_req *req;
        await_files(&worker->reactor);
        while ((req = oribi_worker_take(worker)) != NULL) {
            answer(x, req);
            quiet = 0;
        }
        while (read_some(x))
            quiet = 0;
    }
}

static uint32_t next_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

static void send_pieces(struct exchange *x, const char *p, size_t n, uint32_t seed)
{
    uint32_t random = seed * 2654435761u + 1;
    while (n > 0) {
        size_t piece = seed ? 1 + next_random(&random) % (n < 200 ? 12 : n / 16) : n;
        piece = piece < n ? piece : n;
        ssize_t sent = send(x->fd, p, piece, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && x->eof)
            return;
        p += sent > 0 ? sent : 0;
        n -= sent > 0 ? (size_t)sent : 0;
        settle(x);
        if (sent < 0 && x->eof)
            return;
    }
}

static void drop_between(struct oribi_buf *buf, const char *start, const char *end)
{
    char *at = buf->p;
    while (buf->len && (at = memmem(at, (size_t)(buf->p + buf->len - at), start, strlen(start))) != NULL) {
        char *stop = memmem(at + strlen(start), (size_t)(buf->p + buf->len - at) - strlen(start), end, strlen(end));
        expect(stop);
        memmove(at, stop, (size_t)(buf->p + buf->len - stop));
        buf->len -= (size_t)(stop - at);
    }
}

/* ---- what must hold ---- */

static size_t hex(const char *p, const char *end)
{
    size_t value = 0;
    for (; p < end && *p != '\r'; p++)
        value = value * 16 + (size_t)(*p <= '9' ? *p - '0' : *p - 'a' + 10);
    return value;
}

/* Whether the request that was answered said HEAD is not known here: its answer simply has no body. */
static const char *skip_body(const char *head, const char *body, const char *end)
{
    const char *length = memmem(head, (size_t)(body - head), "\r\nContent-Length: ", 18);
    bool chunked = memmem(head, (size_t)(body - head), "\r\nTransfer-Encoding: chunked\r\n", 30) != NULL;
    expect(!(length && chunked));
    if (body == end || memcmp(body, "HTTP/1.1 ", (size_t)(end - body) < 9 ? (size_t)(end - body) : 9) == 0)
        return body;
    if (length) {
        size_t n = strtoul(length + 18, NULL, 10);
        expect((size_t)(end - body) >= n);
        return body + n;
    }
    while (chunked) {
        const char *line = memmem(body, (size_t)(end - body), "\r\n", 2);
        expect(line);
        size_t n = hex(body, line);
        expect((size_t)(end - line) >= n + 4 && memcmp(line + 2 + n, "\r\n", 2) == 0);
        body = line + 4 + n;
        chunked = n > 0;
    }
    return length || body > head ? body : end;
}

/* Walks over the answers; returns how many are the application's. */
static uint32_t check_answers(const struct exchange *x)
{
    const char *p = x->got.p;
    const char *end = p + x->got.len;
    uint32_t answers = 0;
    bool last = false;
    while (p < end) {
        const char *body = memmem(p, (size_t)(end - p), "\r\n\r\n", 4);
        expect(body && !last && end - p > 13 && memcmp(p, "HTTP/1.1 ", 9) == 0);
        body += 4;
        bool ours = memcmp(p + 9, "200", 3) == 0;
        last = memmem(p, (size_t)(body - p), "\r\nConnection: close\r\n", 21) != NULL;
        expect(ours || last); /* a refusal closes */
        bool close_delimited = ours && last && !memmem(p, (size_t)(body - p), "\r\nContent-Length: ", 18) &&
                               !memmem(p, (size_t)(body - p), "\r\nTransfer-Encoding: ", 21);
        const char *next = close_delimited ? end : skip_body(p, body, end);
        char want[32];
        int n = snprintf(want, sizeof(want), "call %u: ", answers);
        if (ours && next > body)
            expect(memmem(body, (size_t)(next - body), want, (size_t)n) != NULL);
        answers += ours;
        p = next;
    }
    expect(!last || x->eof);
    return answers;
}

static void run(struct exchange *x, const char *p, size_t n, uint32_t seed)
{
    int fds[2];
    expect(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
    (void)fcntl(fds[1], F_SETFL, O_NONBLOCK);
    x->fd = fds[0];
    struct oribi_conn *c = oribi_conn_open(&worker->reactor, fds[1], &listener);
    expect(c != NULL);
    current = c;
    c->proxy_awaited = x->flags & PROXIED;
    oribi_conn_start(&worker->reactor, c);
    send_pieces(x, p, n, seed);
    if (x->flags & HALF_CLOSE)
        (void)shutdown(x->fd, SHUT_WR);
    settle(x);
    expect(!(x->flags & HALF_CLOSE) || worker->reactor.conn_count == 0);
    close(x->fd);
    settle(&(struct exchange){.eof = true, .fd = -1});
    expect(worker->reactor.conn_count == 0 && worker->reactor.queue_len == 0);
    drop_between(&x->got, "HTTP/1.1 100 Continue\r\n\r\n", "");
    drop_between(&x->got, "\r\nDate: ", "\r\n");
    expect(check_answers(x) == x->calls);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!worker)
        start();
    if (size < 2 || size > INPUT_MAX)
        return 0;
    const char *bytes = (const char *)data + 2;
    struct exchange whole = {.flags = data[0]};
    struct exchange pieces = {.flags = data[0]};
    set_limits(data[0]);
    run(&whole, bytes, size - 2, 0);
    run(&pieces, bytes, size - 2, data[1] + 1u);
    expect(whole.calls == pieces.calls);
    expect(oribi_slice_equal(oribi_slice(whole.got.p, whole.got.len), oribi_slice(pieces.got.p, pieces.got.len)));
    oribi_buf_deinit(&whole.got);
    oribi_buf_deinit(&pieces.got);
    return 0;
}
