/* Connection, input side: bytes in, complete requests into the run queue. Reading order: oribi_conn_start, oribi__conn_on_event,
 * on_readable, take_input, parse_head, head_done, body input, complete. */
#include "oribi/event/conn.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os.h"
#include "oribi/event/reactor.h"

#include <assert.h>
#include <string.h>
#include <sys/socket.h>

enum {
    FULL_RETRY_AFTER_S = 5, /* files of others go as their bodies are read or their clients leave */
    DIRECT_FROM_BYTES = 16 * 1024,
};

struct oribi_conn *oribi_conn_open(struct oribi_reactor *r, int fd, const void *listener)
{
    struct oribi_conn *c = oribi_pool_try_get(&r->conn_pool);
    if (!c) {
        oribi_os_close(fd);
        return NULL;
    }
    memset(c, 0, sizeof(*c));
    c->watch.fd = fd;
    c->watch.kind = ORIBI_WATCH_STREAM;
    c->watch.interest = ORIBI_READ;
    c->watch.ready = ORIBI_READ | ORIBI_WRITE; /* not asked yet: the first read and write will tell */
    c->listener = listener;
    c->state = ORIBI_CONN_IDLE;
    c->next = r->conns;
    if (c->next)
        c->next->prev = c;
    r->conns = c;
    r->conn_count++;
    oribi_timeouts_arm(&r->timeouts, &c->timer, ORIBI_TIMEOUT_FIRST, r->now_ms);
    return c;
}

void oribi_conn_start(struct oribi_reactor *r, struct oribi_conn *c)
{
    oribi__conn_on_readable(r, c);
}

int oribi__conn_register(struct oribi_reactor *r, struct oribi_conn *c)
{
    if (c->watch.added)
        return 0;
    if (oribi_loop_add(r->loop, &c->watch, c->watch.fd, ORIBI_WATCH_STREAM, c->watch.interest) == 0) {
        r->registered_count++;
        return 0;
    }
    oribi__conn_close(r, c);
    return ORIBI_ESYS;
}

/* A `100 Continue` that the socket did not take: the client may be waiting for it with its body. False when the connection has ended. */
static bool flush_interim(struct oribi_reactor *r, struct oribi_conn *c)
{
    int result = oribi_conn_flush(r, c);
    if (result == ORIBI_AGAIN)
        return true;
    if (result == 0)
        oribi_loop_interest(r->loop, &c->watch, ORIBI_READ);
    else
        oribi__conn_close(r, c);
    return result == 0;
}

void oribi__conn_on_event(struct oribi_reactor *r, struct oribi_conn *c)
{
    switch (c->state) {
    case ORIBI_CONN_BODY:
        if (c->out && !flush_interim(r, c))
            return;
        /* fall through */
    case ORIBI_CONN_IDLE:
    case ORIBI_CONN_HEAD:
    case ORIBI_CONN_LINGER:
        if (c->watch.ready & ORIBI_READ)
            oribi__conn_on_readable(r, c);
        break;
    case ORIBI_CONN_FLUSH: {
        int result = oribi_conn_flush(r, c);
        if (result == 0)
            oribi__conn_continue(r, c);
        else if (result != ORIBI_AGAIN)
            oribi__conn_close(r, c);
        break;
    }
    default: /* queued, called or closed: readiness is remembered in the watch */
        break;
    }
}

/* What is known of an unfinished head points into the buffer as it was when the head began, which may have moved since. */
static void look_at_head_again(struct oribi_reactor *r, struct oribi_conn *c)
{
    struct oribi_parser parser = {0};
    (void)oribi_parser_head(&parser, &r->config.limits, c->buf, c->len, &c->call->head); /* not complete, as we know */
}

void oribi__conn_on_timeout(struct oribi_reactor *r, struct oribi_conn *c, enum oribi_timeout_class timeout_class)
{
    if (timeout_class == ORIBI_TIMEOUT_WRITE && oribi__conn_reads(r, c))
        return;
    if (r->hooks.timed_out)
        r->hooks.timed_out(r->hooks.self, c, timeout_class);
    switch (timeout_class) {
    case ORIBI_TIMEOUT_HEAD:
        if (!c->call) { /* not even its PROXY header has come: a proxy's mistake, with nobody to read an answer */
            oribi__conn_close(r, c);
            break;
        }
        look_at_head_again(r, c);
        oribi_conn_refuse(r, c, ORIBI_ETIMEOUT, "head not finished in time");
        break;
    case ORIBI_TIMEOUT_BODY:
        oribi_conn_refuse(r, c, ORIBI_ETIMEOUT, "body without progress");
        break;
    default: /* nothing was asked yet, or nobody reads: closing says it all */
        oribi__conn_close(r, c);
    }
}

/* Buffers */

static void give_buf_back(struct oribi_reactor *r, struct oribi_conn *c)
{
    if (!c->buf)
        return;
    if (c->cap == ORIBI_READ_BUF_BYTES)
        oribi_pool_put(&r->buf_pool, c->buf);
    else {
        oribi_mem_free(c->buf);
        r->budget.memory_used -= c->cap;
    }
    c->buf = NULL;
    c->len = c->cap = 0;
}

static bool lend_buf(struct oribi_reactor *r, struct oribi_conn *c)
{
    c->buf = oribi_pool_try_get(&r->buf_pool);
    c->len = 0;
    c->cap = c->buf ? ORIBI_READ_BUF_BYTES : 0;
    return c->buf != NULL;
}

/* Only while the head is incomplete: no slice points into the buffer yet. */
static bool grow_buf(struct oribi_reactor *r, struct oribi_conn *c, size_t cap)
{
    char *buf = oribi_mem_try_alloc(1, cap);
    if (!buf)
        return false;
    r->budget.memory_used += (int64_t)cap;
    uint32_t len = c->len;
    memcpy(buf, c->buf, len);
    give_buf_back(r, c);
    c->buf = buf;
    c->len = len;
    c->cap = (uint32_t)cap;
    return true;
}

/* One byte more than a head may have: the parser must see that there is more to say 431. */
static size_t head_cap_max(const struct oribi_reactor *r)
{
    size_t max = (size_t)r->config.limits.head_bytes_max + 1;
    return max > ORIBI_READ_BUF_BYTES ? max : ORIBI_READ_BUF_BYTES + 1;
}

static bool lend_call(struct oribi_reactor *r, struct oribi_conn *c)
{
    struct oribi_call *call = oribi_pool_try_get(&r->call_pool);
    if (!call)
        return false;
    /* The head is large and the parser fills it; what it fills only on success starts out empty for refusals' log lines. */
    memset(call, 0, offsetof(struct oribi_call, head));
    memset(&call->head, 0, offsetof(struct oribi_head, fields));
    call->head.joined = NULL;
    oribi_body_init(&call->body);
    call->conn = c;
    c->call = call;
    c->request_count++;
    return true;
}

/* Gives the call back; bytes of the next request stay, at the front of the buffer. */
void oribi__conn_drop_call(struct oribi_reactor *r, struct oribi_conn *c)
{
    struct oribi_call *call = c->call;
    if (!call)
        return;
    if (call->rest.len > 0) {
        if (call->rest.len > c->cap && !grow_buf(r, c, call->rest.len)) {
            c->closes = true;
            call->rest.len = 0;
        }
        memcpy(c->buf, call->rest.p, call->rest.len);
        c->len = (uint32_t)call->rest.len;
    } else {
        uint32_t left = c->len - call->used;
        if (left > 0)
            memmove(c->buf, c->buf + call->used, left);
        c->len = left;
    }
    if (c->len == 0)
        give_buf_back(r, c);
    if (call->rest.cap)
        oribi_buf_deinit(&call->rest);
    if (call->body.len > 0 || call->body.fd >= 0 || call->body.memory.cap) {
        oribi_body_deinit(&call->body);
        oribi_budget_set(&r->budget, &call->charge, 0, 0);
    }
    if (call->chunked.trailers.cap) {
        oribi_buf_deinit(&call->chunked.trailers);
        oribi_trailers_release(&call->trailers);
    }
    oribi_head_release(&call->head);
    c->call = NULL;
    oribi_pool_put(&r->call_pool, call);
}

void oribi__conn_close(struct oribi_reactor *r, struct oribi_conn *c)
{
    if (c->state == ORIBI_CONN_CLOSED)
        return;
    bool queued = c->state == ORIBI_CONN_QUEUED;
    c->state = ORIBI_CONN_CLOSED;
    if (r->hooks.closed)
        r->hooks.closed(r->hooks.self, c);
    oribi__conn_drop_call(r, c);
    give_buf_back(r, c);
    oribi__conn_drop_out(r, c);
    oribi_timeouts_arm(&r->timeouts, &c->timer, ORIBI_TIMEOUT_NONE, r->now_ms);
    oribi_loop_remove(r->loop, &c->watch);
    oribi_os_close(c->watch.fd);
    oribi__reactor_forget(r, c, queued);
}

/* Input */

static bool wants_input(const struct oribi_conn *c)
{
    return c->state == ORIBI_CONN_IDLE || c->state == ORIBI_CONN_HEAD || c->state == ORIBI_CONN_BODY ||
           c->state == ORIBI_CONN_LINGER;
}

static size_t smaller(int64_t a, int64_t b)
{
    return (size_t)(a < b ? a : b);
}

/* How much of the body may be in memory, its own limit and the worker's budget considered. */
static uint32_t body_memory_max(const struct oribi_reactor *r, const struct oribi_call *call)
{
    if (call->body_file)
        return 0;
    return (uint32_t)oribi_budget_memory(&r->budget, call->charge.memory, r->config.limits.body_memory_max);
}

/* What is taken from the heap counts, not what has arrived. */
static void charge_body(struct oribi_reactor *r, struct oribi_call *call)
{
    bool in_file = call->body.fd >= 0;
    oribi_budget_set(&r->budget, &call->charge, in_file ? 0 : (int64_t)call->body.memory.cap,
                     in_file ? call->body.len : 0);
}

/* Room for what a body promises is made when enough of it has come to believe it; before that what has come is copied, so that thousands who announce much and send a few bytes
 * take little. */
static char *body_room(struct oribi_reactor *r, struct oribi_call *call, size_t room)
{
    if (call->body_file || call->body.memory.len < DIRECT_FROM_BYTES)
        return NULL;
    return oribi_body_try_room(&call->body, room, body_memory_max(r, call));
}

/* Where the next read goes, and how much: behind the head, straight into a body in memory, or into the scratch buffer. */
static char *input_room(struct oribi_reactor *r, struct oribi_conn *c, size_t *room)
{
    if (c->state == ORIBI_CONN_LINGER) {
        *room = ORIBI_SCRATCH_BYTES;
        return r->scratch;
    }
    if (c->state == ORIBI_CONN_BODY) {
        struct oribi_call *call = c->call;
        *room = ORIBI_SCRATCH_BYTES;
        if (call->head.chunked)
            return r->scratch;
        *room = smaller(call->head.content_length - call->body.len, ORIBI_SCRATCH_BYTES);
        char *direct = body_room(r, call, *room);
        return direct ? direct : r->scratch;
    }
    if (!c->buf && !lend_buf(r, c))
        return NULL;
    if (c->len == c->cap) {
        size_t cap = smaller((int64_t)c->cap * 4, (int64_t)head_cap_max(r));
        if (oribi_budget_memory(&r->budget, 0, (int64_t)cap) < (int64_t)cap || !grow_buf(r, c, cap))
            return NULL; /* too many long heads at a time */
    }
    *room = c->cap - c->len;
    return c->buf + c->len;
}

static void complete(struct oribi_reactor *r, struct oribi_conn *c)
{
    c->call->complete_us = r->now_us;
    oribi_timeouts_arm(&r->timeouts, &c->timer, ORIBI_TIMEOUT_NONE, r->now_ms);
    oribi_loop_interest(r->loop, &c->watch, 0);
    oribi__reactor_queue(r, c);
}

/* Slower than body_rate_min over the whole body, once body_timeout has passed: holding a socket is cheap, but not for ever. */
static bool too_slow(const struct oribi_reactor *r, const struct oribi_call *call)
{
    int64_t elapsed_ms = r->now_ms - call->body_started_ms;
    if (r->config.body_rate_min == 0 || r->config.body_timeout_ms == 0 || elapsed_ms <= r->config.body_timeout_ms)
        return false;
    return call->body.len * 1000 / elapsed_ms < (int64_t)r->config.body_rate_min;
}

static void body_progress(struct oribi_reactor *r, struct oribi_conn *c)
{
    if (too_slow(r, c->call))
        oribi_conn_refuse(r, c, ORIBI_ETIMEOUT, "body slower than the minimum rate");
    else
        oribi_timeouts_arm(&r->timeouts, &c->timer, ORIBI_TIMEOUT_BODY, r->now_ms);
}

static bool append_body(struct oribi_reactor *r, struct oribi_conn *c, const char *p, size_t n)
{
    struct oribi_body *body = &c->call->body;
    if (n == 0)
        return true;
    uint32_t memory_max = body_memory_max(r, c->call);
    bool to_file = body->fd >= 0 || body->memory.len + n > memory_max;
    if (to_file && !oribi_budget_file(&r->budget, (int64_t)(body->memory.len + n))) {
        oribi_conn_refuse_busy(r, c, FULL_RETRY_AFTER_S, "buffers_file_max is used up");
        return false;
    }
    if (oribi_body_append(body, p, n, memory_max) == 0) {
        charge_body(r, c->call);
        return true;
    }
    if (r->hooks.refused)
        r->hooks.refused(r->hooks.self, c, 0, "request body could not be stored");
    oribi__conn_close(r, c);
    return false;
}

static void begin_body(struct oribi_reactor *r, struct oribi_conn *c)
{
    c->state = ORIBI_CONN_BODY;
    c->call->body_started_ms = r->now_ms;
    oribi_timeouts_arm(&r->timeouts, &c->timer, ORIBI_TIMEOUT_BODY, r->now_ms);
    if (c->call->head.expect_continue) {
        /* We buffer bodies before the call, so the wish is granted at once: RFC 9110 10.1.1. */
        struct iovec vec = {(void *)"HTTP/1.1 100 Continue\r\n\r\n", 25};
        (void)oribi_conn_send(r, c, &vec, 1, false); /* a broken connection shows at the next read */
        if (c->out)
            oribi_loop_interest(r->loop, &c->watch, ORIBI_READ | ORIBI_WRITE);
    }
}

static void chunked_done(struct oribi_reactor *r, struct oribi_conn *c)
{
    const struct oribi_buf *text = &c->call->chunked.trailers;
    if (text->len > 0 && oribi_trailers_read(oribi_slice(text->p, text->len), &c->call->trailers) < 0)
        oribi__conn_close(r, c);
    else
        complete(r, c);
}

static void chunked_input(struct oribi_reactor *r, struct oribi_conn *c, char *p, size_t n)
{
    struct oribi_call *call = c->call;
    size_t len = n;
    size_t used = 0;
    int result = oribi_chunked_decode(&call->chunked, &r->config.limits, p, &len, &used);
    if (result < 0) {
        oribi_conn_refuse(r, c, result, call->chunked.reason);
        return;
    }
    if (!append_body(r, c, p, len))
        return;
    if (!call->chunked.done) {
        body_progress(r, c);
        return;
    }
    if (used < n && oribi_buf_try_append(&call->rest, p + used, n - used) < 0) {
        oribi__conn_close(r, c);
        return;
    }
    chunked_done(r, c);
}

/* The bytes behind a chunked head are decoded where they stand: a small body never moves. */
static void chunked_begin(struct oribi_reactor *r, struct oribi_conn *c, size_t rest)
{
    struct oribi_call *call = c->call;
    char *p = c->buf + call->used;
    size_t len = rest;
    size_t used = 0;
    int result = oribi_chunked_decode(&call->chunked, &r->config.limits, p, &len, &used);
    if (result < 0) {
        oribi_conn_refuse(r, c, result, call->chunked.reason);
        return;
    }
    if (call->chunked.done) {
        call->in_place = oribi_slice(p, len);
        call->used += (uint32_t)used;
        chunked_done(r, c);
        return;
    }
    c->len = call->used;
    begin_body(r, c);
    (void)append_body(r, c, p, len);
}

static void head_done(struct oribi_reactor *r, struct oribi_conn *c, size_t head_len)
{
    struct oribi_call *call = c->call;
    const struct oribi_head *head = &call->head;
    size_t rest = c->len - head_len;
    call->used = (uint32_t)head_len;
    if (head->chunked) {
        chunked_begin(r, c, rest);
        return;
    }
    if ((int64_t)rest >= head->content_length) {
        call->in_place = oribi_slice(c->buf + head_len, (size_t)head->content_length);
        call->used += (uint32_t)head->content_length;
        complete(r, c);
        return;
    }
    call->body_file = head->content_length > (int64_t)r->config.limits.body_memory_max;
    c->len = call->used;
    begin_body(r, c);
    (void)append_body(r, c, c->buf + head_len, rest);
}

/* An empty line before a request line is ignored (RFC 9112 2.2): it begins no request. */
static bool head_begun(const struct oribi_conn *c)
{
    for (uint32_t i = 0; i < c->len; i++)
        if (c->buf[i] != '\r' && c->buf[i] != '\n')
            return true;
    return false;
}

/* The deadline of a head counts from its first byte and does not move; before that the connection is as idle as it was. */
static void await_head(struct oribi_reactor *r, struct oribi_conn *c)
{
    uint8_t armed = c->timer.timeout_class;
    if (armed == ORIBI_TIMEOUT_HEAD)
        return;
    if (head_begun(c))
        oribi_timeouts_arm(&r->timeouts, &c->timer, ORIBI_TIMEOUT_HEAD, r->now_ms);
    else if (armed != ORIBI_TIMEOUT_FIRST && armed != ORIBI_TIMEOUT_IDLE)
        oribi_timeouts_arm(&r->timeouts, &c->timer, ORIBI_TIMEOUT_IDLE, r->now_ms);
}

/* The one PROXY header a connection begins with. True when it is there and bytes of a request stand behind it. A header that comes in pieces
 * has the deadline of a head. */
static bool take_proxy(struct oribi_reactor *r, struct oribi_conn *c)
{
    struct oribi_proxy proxy;
    ssize_t n = oribi_proxy_parse(c->buf, c->len, &proxy);
    c->state = ORIBI_CONN_HEAD;
    if (n == ORIBI_AGAIN) {
        if (c->timer.timeout_class != ORIBI_TIMEOUT_HEAD)
            oribi_timeouts_arm(&r->timeouts, &c->timer, ORIBI_TIMEOUT_HEAD, r->now_ms);
        return false;
    }
    if (n < 0) {
        oribi_conn_refuse(r, c, (int)n, proxy.reason);
        return false;
    }
    c->proxy_awaited = false;
    c->proxy_tls = proxy.tls;
    if (proxy.known) {
        static_assert(sizeof(proxy.addr) <= sizeof(c->addr) && sizeof(proxy.port) <= sizeof(c->port), "room");
        memcpy(c->addr, proxy.addr, proxy.addr_len);
        memcpy(c->port, proxy.port, proxy.port_len);
        c->addr_len = proxy.addr_len;
        c->port_len = proxy.port_len;
    }
    c->len -= (uint32_t)n;
    memmove(c->buf, c->buf + n, c->len);
    c->state = ORIBI_CONN_IDLE;
    oribi_timeouts_arm(&r->timeouts, &c->timer, ORIBI_TIMEOUT_FIRST, r->now_ms);
    return c->len > 0;
}

static void parse_head(struct oribi_reactor *r, struct oribi_conn *c)
{
    if (c->proxy_awaited && !take_proxy(r, c))
        return;
    if (!c->call && !lend_call(r, c)) {
        oribi__conn_close(r, c);
        return;
    }
    c->state = ORIBI_CONN_HEAD;
    struct oribi_call *call = c->call;
    ssize_t result = oribi_parser_head(&call->parser, &r->config.limits, c->buf, c->len, &call->head);
    if (result > 0)
        head_done(r, c, (size_t)result);
    else if (result != ORIBI_AGAIN)
        oribi_conn_refuse(r, c, (int)result, call->parser.reason);
    else
        await_head(r, c);
}

/* What is still sent behind our last answer is read and forgotten. */
static void linger(struct oribi_reactor *r, struct oribi_conn *c, size_t n)
{
    if (n > c->linger_left || (uint32_t)r->now_ms - c->linger_since_ms >= ORIBI_LINGER_MS_MAX) {
        oribi__conn_close(r, c);
        return;
    }
    c->linger_left -= (uint32_t)n;
    oribi_timeouts_arm(&r->timeouts, &c->timer, ORIBI_TIMEOUT_LINGER, r->now_ms);
}

static void take_input(struct oribi_reactor *r, struct oribi_conn *c, char *p, size_t n)
{
    if (c->state == ORIBI_CONN_LINGER) {
        linger(r, c, n);
        return;
    }
    if (c->state != ORIBI_CONN_BODY) {
        c->len += (uint32_t)n;
        parse_head(r, c);
        return;
    }
    struct oribi_call *call = c->call;
    if (call->head.chunked) {
        chunked_input(r, c, p, n);
        return;
    }
    if (p != r->scratch) {
        oribi_body_grown(&call->body, n);
        charge_body(r, call);
    } else if (!append_body(r, c, p, n))
        return;
    if (call->body.len == call->head.content_length)
        complete(r, c);
    else
        body_progress(r, c);
}

/* True while reading should go on. */
static bool read_once(struct oribi_reactor *r, struct oribi_conn *c)
{
    size_t room = 0;
    char *p = input_room(r, c, &room);
    if (!p) {
        oribi__conn_close(r, c);
        return false;
    }
    ssize_t n = oribi_os_read(c->watch.fd, p, room);
    if (n == ORIBI_AGAIN) {
        c->watch.ready &= (uint8_t)~ORIBI_READ;
        if (c->state == ORIBI_CONN_IDLE)
            give_buf_back(r, c);
        return false;
    }
    if (n <= 0) { /* the end, or a reset: nothing is half a request's due */
        c->eof = true;
        oribi__conn_close(r, c);
        return false;
    }
    if (r->hooks.read)
        r->hooks.read(r->hooks.self, n);
    /* A short read has emptied the socket (epoll(7)), unless the end of the stream is waiting behind it. */
    bool emptied = (size_t)n < room && !(c->watch.ready & ORIBI_HANGUP);
    if (emptied)
        c->watch.ready &= (uint8_t)~ORIBI_READ;
    take_input(r, c, p, (size_t)n);
    return !emptied;
}

void oribi__conn_on_readable(struct oribi_reactor *r, struct oribi_conn *c)
{
    for (int i = 0; i < ORIBI_READS_PER_TURN && wants_input(c); i++)
        if (!read_once(r, c))
            break;
    if (!wants_input(c))
        return;
    if (oribi__conn_register(r, c) == 0 && (c->watch.ready & ORIBI_READ))
        oribi__reactor_again(r, c);
}

/* A spooled body arrives whole beside the head that announces it. */
static void inject_body(struct oribi_reactor *r, struct oribi_conn *c, int body_fd, int64_t body_len)
{
    struct oribi_call *call = c->call;
    bool fits = c->state == ORIBI_CONN_BODY && !call->head.chunked && call->body.len == 0 &&
                call->head.content_length == body_len;
    if (!fits) {
        oribi_os_close(body_fd);
        oribi__conn_close(r, c);
        return;
    }
    call->body.fd = body_fd;
    call->body.len = body_len;
    charge_body(r, call);
    complete(r, c);
}

void oribi__conn_inject(struct oribi_reactor *r, struct oribi_conn *c, struct oribi_slice bytes, int body_fd,
                        int64_t body_len)
{
    assert(!c->buf && c->state == ORIBI_CONN_IDLE);
    if (!lend_buf(r, c) || (bytes.n > c->cap && !grow_buf(r, c, bytes.n))) {
        oribi_os_close(body_fd);
        oribi__conn_close(r, c);
        return;
    }
    memcpy(c->buf, bytes.p, bytes.n);
    c->len = (uint32_t)bytes.n;
    parse_head(r, c);
    if (body_fd >= 0)
        inject_body(r, c, body_fd, body_len);
}

/* The answer is drained (or there was none): close, or look for the next request. Never calls an application, so pipelined requests go to the
 * tail of the queue and other connections have their turn. */
void oribi__conn_continue(struct oribi_reactor *r, struct oribi_conn *c)
{
    if (c->closes) {
        bool unread = c->lingers || c->len > 0 || (c->watch.ready & ORIBI_READ);
        give_buf_back(r, c);
        if (!unread) {
            oribi__conn_close(r, c);
            return;
        }
        /* Closing with unread input resets the connection, and the reset can overtake our answer: RFC 9112 9.6. */
        (void)shutdown(c->watch.fd, SHUT_WR); /* fails only if the peer is gone, which the next read tells */
        c->state = ORIBI_CONN_LINGER;
        c->linger_left = ORIBI_LINGER_BYTES_MAX;
        c->linger_since_ms = (uint32_t)r->now_ms;
        c->watch.ready |= ORIBI_READ;
        oribi_loop_interest(r->loop, &c->watch, ORIBI_READ);
        oribi_timeouts_arm(&r->timeouts, &c->timer, ORIBI_TIMEOUT_LINGER, r->now_ms);
        if (oribi__conn_register(r, c) == 0)
            oribi__reactor_again(r, c);
        return;
    }
    c->state = ORIBI_CONN_IDLE;
    oribi_loop_interest(r->loop, &c->watch, ORIBI_READ);
    if (c->len > 0) {
        parse_head(r, c);
        if (!wants_input(c))
            return;
    } else {
        oribi_timeouts_arm(&r->timeouts, &c->timer, ORIBI_TIMEOUT_IDLE, r->now_ms);
    }
    if (oribi__conn_register(r, c) == 0 && (c->watch.ready & ORIBI_READ))
        oribi__reactor_again(r, c);
}
