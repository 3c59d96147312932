/* Connection: an exchange from its begin to the next one. Reading order: begin (the head is parsed), complete (into the
 * run queue), finish (the answer is written) or refuse (an answer of our own), continue (the next request, or the end);
 * the read buffer, which is lent while there are bytes. */
#include "oribi/event/conn.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/event/reactor.h"
#include "oribi/http/response.h"

#include "event/conn_private.h"

#include <assert.h>
#include <string.h>
#include <sys/socket.h>

/* From the first byte of a head to the run queue. */
static bool take_proxy(struct oribi_reactor *r, struct oribi_conn *c);
static bool take_channel_head(struct oribi_reactor *r, struct oribi_conn *c);
static bool lend_exchange(struct oribi_reactor *r, struct oribi_conn *c);
static void head_done(struct oribi_reactor *r, struct oribi_conn *c, size_t head_len);
static void await_head(struct oribi_reactor *r, struct oribi_conn *c);

/* From the answer to the next request. */
static void go_on(struct oribi_reactor *r, struct oribi_conn *c);
static size_t write_own(struct oribi_reactor *r, struct oribi_conn *c, int status, uint32_t retry_after_s,
                        struct oribi_slice *page);
static void answer_and_close(struct oribi_reactor *r, struct oribi_conn *c, size_t n, struct oribi_slice page);
static void tell_refused(struct oribi_reactor *r, struct oribi_conn *c, enum oribi_refusal refusal, size_t n,
                         struct oribi_slice page, const char *text);
static void keep_next_bytes(struct oribi_reactor *r, struct oribi_conn *c);
static void begin_linger(struct oribi_reactor *r, struct oribi_conn *c);

void oribi__conn_begin(struct oribi_reactor *r, struct oribi_conn *c)
{
    if (c->proxy_awaited && !take_proxy(r, c))
        return;
    if (__builtin_expect(c->channel != NULL, 0) && !c->channel->known && !take_channel_head(r, c))
        return;
    if (!c->exchange && !lend_exchange(r, c)) {
        oribi__conn_close(r, c);
        return;
    }
    c->state = ORIBI_CONN_HEAD;
    struct oribi_conn_request *exchange = c->exchange;
    ssize_t result = oribi_parser_head(&exchange->parser, oribi__conn_limits(r, c), c->buf, c->len, &exchange->head);
    if (result > 0)
        head_done(r, c, (size_t)result);
    else if (result != ORIBI_AGAIN)
        oribi__conn_refuse(r, c, exchange->parser.fault.refusal, exchange->parser.fault.reason);
    else
        await_head(r, c);
}

/* The one PROXY header a connection begins with. True when it is there and bytes of a request stand behind it. A
 * header that comes in pieces has the deadline of a head. */
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
        oribi__conn_refuse(r, c, oribi_refusal_of((int)n, ORIBI_REFUSAL_PROXY_HEADER), proxy.reason);
        return false;
    }
    c->proxy_awaited = false;
    c->proxy_tls = proxy.tls;
    if (proxy.known) {
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

/* Takes the head before a request of a channel; only a frontend writes there, so anything else ends the channel. */
static bool take_channel_head(struct oribi_reactor *r, struct oribi_conn *c)
{
    struct oribi_channel *channel = c->channel;
    c->state = ORIBI_CONN_HEAD;
    ssize_t n = oribi_channel_head_len(c->buf, c->len);
    if (n == ORIBI_AGAIN)
        return false;
    channel->text.len = 0;
    if (n < 0 || oribi_buf_try_append(&channel->text, c->buf, (size_t)n) < 0 ||
        oribi_channel_head_read(channel->text.p, (size_t)n, &channel->head) < 0) { /* its slices are in `text` */
        oribi__conn_close(r, c);
        return false;
    }
    channel->known = true;
    r->neighbour = true;
    c->proxy_tls = channel->head.tls;
    c->addr_len = channel->head.addr_len;
    c->port_len = channel->head.port_len;
    memcpy(c->addr, channel->head.addr, sizeof(c->addr));
    memcpy(c->port, channel->head.port, sizeof(c->port));
    c->len -= (uint32_t)n;
    memmove(c->buf, c->buf + n, c->len);
    return c->len > 0;
}

static bool lend_exchange(struct oribi_reactor *r, struct oribi_conn *c)
{
    struct oribi_conn_request *exchange = oribi_pool_try_get(&r->exchange_pool);
    if (!exchange)
        return false;
    /* The head is large and the parser fills it; what it fills only on success starts out empty for refusals' log
     * lines. */
    memset(exchange, 0, offsetof(struct oribi_conn_request, head));
    memset(&exchange->head, 0, offsetof(struct oribi_head, fields));
    exchange->head.joined = NULL;
    oribi_body_init(&exchange->body);
    exchange->conn = c;
    c->exchange = exchange;
    c->request_count++;
    return true;
}

static void head_done(struct oribi_reactor *r, struct oribi_conn *c, size_t head_len)
{
    struct oribi_conn_request *exchange = c->exchange;
    const struct oribi_head *head = &exchange->head;
    size_t rest = c->len - head_len;
    exchange->used = (uint32_t)head_len;
    if (__builtin_expect(c->channel != NULL, 0)) {
        exchange->head.keep_alive = c->channel->head.keeps; /* what the client has asked for */
        exchange->head.minor = 1; /* the frontend's, whatever the client's: chunks tell a whole answer from a cut one */
    }
    if (head->chunked) {
        oribi__conn_chunked_begin(r, c, rest);
        return;
    }
    if ((int64_t)rest >= head->content_length) {
        exchange->in_place = oribi_slice(c->buf + head_len, (size_t)head->content_length);
        exchange->used += (uint32_t)head->content_length;
        oribi__conn_complete(r, c);
        return;
    }
    oribi__conn_body_begin(r, c, rest);
}

/* An empty line before a request line is ignored (RFC 9112 2.2): it begins no request. */
static bool head_begun(const struct oribi_conn *c)
{
    for (uint32_t i = 0; i < c->len; i++)
        if (c->buf[i] != '\r' && c->buf[i] != '\n')
            return true;
    return false;
}

/* The deadline of a head counts from its first byte and does not move; before that the connection is as idle as it
 * was. */
static void await_head(struct oribi_reactor *r, struct oribi_conn *c)
{
    uint8_t armed = c->timer.timeout_class;
    if (armed == ORIBI_TIMEOUT_HEAD)
        return;
    if (head_begun(c))
        oribi__conn_arm_rest(r, c, ORIBI_TIMEOUT_HEAD);
    else if (armed != ORIBI_TIMEOUT_FIRST && armed != ORIBI_TIMEOUT_IDLE)
        oribi__conn_arm_rest(r, c, ORIBI_TIMEOUT_IDLE);
}

void oribi__conn_complete(struct oribi_reactor *r, struct oribi_conn *c)
{
    c->exchange->complete_us = r->now_us;
    if (__builtin_expect(c->channel != NULL, 0) && c->channel->head.complete_us < r->now_us)
        c->exchange->complete_us = c->channel->head.complete_us; /* it has waited in the frontend */
    oribi_timeouts_arm(&r->timeouts, &c->timer, ORIBI_TIMEOUT_NONE, r->now_ms);
    oribi_loop_interest(r->loop, &c->watch, 0);
    if (r->hooks.claims && r->hooks.claims(r->hooks.self, c))
        oribi__reactor_queue_claimed(r, c);
    else
        oribi__reactor_queue(r, c);
}

void oribi_conn_finish(struct oribi_reactor *r, struct oribi_conn *c, bool closes)
{
    assert(c->state == ORIBI_CONN_CALL);
    if (closes) {
        c->closes = true;
        /* The client wanted to go on, so its next request may be on the way: closing with that unread would reset the
         * connection. */
        c->lingers = c->exchange->head.keep_alive;
    }
    go_on(r, c);
}

/* Length of the body in an answer of our own. */
static size_t body_bytes(const char *answer, size_t n)
{
    const char *end = oribi_os_memmem(answer, n, "\r\n\r\n", 4);
    return end ? (size_t)(answer + n - end) - 4 : 0;
}

void oribi__conn_refuse(struct oribi_reactor *r, struct oribi_conn *c, enum oribi_refusal refusal, const char *text)
{
    int status = oribi_refusal_status(refusal);
    struct oribi_slice page = {0};
    size_t n = status == 0 ? 0 : write_own(r, c, status, 0, &page);
    tell_refused(r, c, refusal, n, page, text);
    if (status == 0)
        oribi__conn_close(r, c);
    else
        answer_and_close(r, c, n, page);
}

void oribi_conn_refuse_busy(struct oribi_reactor *r, struct oribi_conn *c, uint32_t retry_after_s,
                            enum oribi_refusal refusal, const char *text)
{
    struct oribi_slice page = {0};
    assert(c->state >= ORIBI_CONN_HEAD && c->state <= ORIBI_CONN_CALL);
    if (c->state == ORIBI_CONN_QUEUED)
        oribi__reactor_unqueue(r, c);
    c->state = ORIBI_CONN_CALL;
    size_t n = write_own(r, c, oribi_refusal_status(refusal), retry_after_s, &page);
    tell_refused(r, c, refusal, n, page, text);
    answer_and_close(r, c, n, page);
}

/* An answer of our own in the scratch buffer. Gives its length, and the page that follows it. */
static size_t write_own(struct oribi_reactor *r, struct oribi_conn *c, int status, uint32_t retry_after_s,
                        struct oribi_slice *page)
{
    struct oribi_server_answer own = {.status = status,
                                      .is_head = c->exchange && c->exchange->head.is_head,
                                      .retry_after_s = retry_after_s,
                                      .date = oribi_reactor_date(r),
                                      .server = r->config.server,
                                      .added = r->config.added};
    if (r->hooks.page)
        own.page = r->hooks.page(r->hooks.self, status, &own.type);
    if (!own.is_head)
        *page = own.page;
    return oribi_response_own(&own, r->scratch, ORIBI_SCRATCH_BYTES);
}

/* Sends an answer of our own, `n` bytes in the scratch buffer and a page, and closes. */
static void answer_and_close(struct oribi_reactor *r, struct oribi_conn *c, size_t n, struct oribi_slice page)
{
    struct iovec vec[2] = {{r->scratch, n}, {(void *)page.p, page.n}};
    (void)oribi_conn_send(r, c, vec, page.n ? 2 : 1, false); /* a broken connection is closed below */
    c->closes = true;
    c->lingers = true;
    if (c->exchange)
        c->exchange->used = c->len; /* no byte after an error is ever read as a request */
    else
        c->len = 0;
    go_on(r, c);
}

static void tell_refused(struct oribi_reactor *r, struct oribi_conn *c, enum oribi_refusal refusal, size_t n,
                         struct oribi_slice page, const char *text)
{
    size_t body = body_bytes(r->scratch, n);
    if (r->hooks.refused)
        r->hooks.refused(r->hooks.self, c, refusal, n - body, body + page.n, text);
}

/* The answer is written: drops the exchange at once, so that a slow reader holds nothing but its output. Only where
 * that is on its way to a file the exchange stays until it is there: whether the answer broke off is known then. */
static void go_on(struct oribi_reactor *r, struct oribi_conn *c)
{
    if (__builtin_expect(!c->out, 1)) {
        oribi__conn_drop_exchange(r, c);
        if (c->broken)
            oribi__conn_close(r, c);
        else
            oribi__conn_continue(r, c);
        return;
    }
    if (!c->unstored)
        oribi__conn_drop_exchange(r, c);
    if (c->broken) {
        oribi__conn_close(r, c);
        return;
    }
    c->state = ORIBI_CONN_FLUSH;
    oribi_loop_interest(r->loop, &c->watch, oribi_out_waits(c->out) ? 0 : ORIBI_WRITE);
    oribi__conn_arm_write(r, c);
    (void)oribi__conn_register(r, c); /* closes the connection itself when it fails */
}

/* While it is the writer's turn, readiness of the socket is of no interest: poll(2) would report it at once. */
void oribi__conn_flush_on(struct oribi_reactor *r, struct oribi_conn *c)
{
    int result = oribi_conn_flush(r, c);
    if (result != 0 && result != ORIBI_AGAIN) {
        oribi_conn_abort(r, c, c->exchange && c->exchange->unlogged && c->exchange->reset_when_cut);
        return;
    }
    if (c->exchange && !c->unstored) {
        if (r->hooks.stored)
            r->hooks.stored(r->hooks.self, c);
        oribi__conn_drop_exchange(r, c);
    }
    if (result == 0)
        oribi__conn_continue(r, c);
    else
        oribi_loop_interest(r->loop, &c->watch, oribi_out_waits(c->out) ? 0 : ORIBI_WRITE);
}

void oribi__conn_drop_exchange(struct oribi_reactor *r, struct oribi_conn *c)
{
    struct oribi_conn_request *exchange = c->exchange;
    if (!exchange)
        return;
    if (__builtin_expect(c->channel != NULL, 0))
        c->channel->known = false;
    keep_next_bytes(r, c);
    if (exchange->rest.cap)
        oribi_buf_deinit(&exchange->rest);
    if (exchange->body.len > 0 || oribi_body_in_file(&exchange->body) || exchange->body.memory.cap)
        oribi_body_deinit(&exchange->body);
    if (exchange->parts)
        oribi_parts_destroy(exchange->parts);
    if (exchange->chunked.trailers.cap) {
        oribi_buf_deinit(&exchange->chunked.trailers);
        oribi_trailers_release(&exchange->trailers);
    }
    if (exchange->charge.memory || exchange->charge.file)
        oribi_budget_set(&r->budget, &exchange->charge, 0, 0);
    oribi_head_release(&exchange->head);
    c->exchange = NULL;
    oribi_pool_put(&r->exchange_pool, exchange);
}

/* Moves the bytes of the next request to the front of the buffer. Without memory for them the connection closes. */
static void keep_next_bytes(struct oribi_reactor *r, struct oribi_conn *c)
{
    struct oribi_conn_request *exchange = c->exchange;
    if (exchange->rest.len > 0) {
        if (exchange->rest.len > c->cap && !oribi__conn_grow_buf(r, c, exchange->rest.len)) {
            c->closes = true;
            exchange->rest.len = 0;
        }
        memcpy(c->buf, exchange->rest.p, exchange->rest.len);
        c->len = (uint32_t)exchange->rest.len;
    } else {
        uint32_t left = c->len - exchange->used;
        if (left > 0)
            memmove(c->buf, c->buf + exchange->used, left);
        c->len = left;
    }
    if (c->len == 0)
        oribi__conn_give_buf_back(r, c);
}

/* Never calls an application: a pipelined request goes to the tail of the run queue, and other connections have their
 * turn. */
void oribi__conn_continue(struct oribi_reactor *r, struct oribi_conn *c)
{
    if (c->closes) {
        bool unread = c->lingers || c->len > 0 || (c->watch.ready & ORIBI_READ);
        oribi__conn_give_buf_back(r, c);
        if (unread)
            begin_linger(r, c);
        else
            oribi__conn_end(r, c);
        return;
    }
    c->state = ORIBI_CONN_IDLE;
    oribi_loop_interest(r->loop, &c->watch, ORIBI_READ);
    if (c->len > 0) {
        oribi__conn_begin(r, c);
        if (!oribi__conn_wants_input(c))
            return;
    } else {
        oribi__conn_arm_rest(r, c, ORIBI_TIMEOUT_IDLE);
    }
    if (oribi__conn_register(r, c) == 0 && (c->watch.ready & ORIBI_READ))
        oribi__reactor_post(r, c);
}

/* Closing with unread input resets the connection, and the reset can overtake our answer: RFC 9112 9.6. */
static void begin_linger(struct oribi_reactor *r, struct oribi_conn *c)
{
    oribi__conn_shut(c);
    (void)shutdown(c->watch.fd, SHUT_WR); /* fails only if the peer is gone, which the next read tells */
    c->state = ORIBI_CONN_LINGER;
    c->linger_left = ORIBI_LINGER_BYTES_MAX;
    c->linger_since_ms = (uint32_t)r->now_ms;
    c->watch.ready |= ORIBI_READ;
    oribi_loop_interest(r->loop, &c->watch, ORIBI_READ);
    oribi_timeouts_arm(&r->timeouts, &c->timer, ORIBI_TIMEOUT_LINGER, r->now_ms);
    if (oribi__conn_register(r, c) == 0)
        oribi__reactor_post(r, c);
}

struct oribi_slice oribi_conn_behind(const struct oribi_conn *c)
{
    const struct oribi_conn_request *exchange = c->exchange;
    if (exchange->rest.len > 0)
        return oribi_slice(exchange->rest.p, exchange->rest.len);
    return oribi_slice(c->buf + exchange->used, c->len - exchange->used);
}

/* --- the read buffer --- */

bool oribi__conn_lend_buf(struct oribi_reactor *r, struct oribi_conn *c)
{
    c->buf = oribi_pool_try_get(&r->buf_pool);
    c->len = 0;
    c->cap = c->buf ? ORIBI_READ_BUF_BYTES : 0;
    return c->buf != NULL;
}

/* Only while the head is incomplete: no slice points into the buffer yet. */
bool oribi__conn_grow_buf(struct oribi_reactor *r, struct oribi_conn *c, size_t cap)
{
    char *buf = oribi_mem_try_alloc(1, cap);
    if (!buf)
        return false;
    r->budget.memory_used += (int64_t)cap;
    uint32_t len = c->len;
    memcpy(buf, c->buf, len);
    oribi__conn_give_buf_back(r, c);
    c->buf = buf;
    c->len = len;
    c->cap = (uint32_t)cap;
    return true;
}

void oribi__conn_give_buf_back(struct oribi_reactor *r, struct oribi_conn *c)
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
