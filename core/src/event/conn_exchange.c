/* Connection: an exchange from its begin to the next one. Reading order: begin (the head's first byte), complete (into
 * the run queue), finish (the answer is written) or refuse (an answer of our own), continue (the next request, or the
 * end). */
#include "oribi/event/conn.h"

#include "oribi/base/error.h"
#include "oribi/event/reactor.h"
#include "oribi/http/response.h"

#include "event/conn_private.h"

#include <assert.h>
#include <string.h>
#include <sys/socket.h>

static void go_on(struct oribi_reactor *r, struct oribi_conn *c);
static void answer_and_close(struct oribi_reactor *r, struct oribi_conn *c, size_t n);
static void tell_refused(struct oribi_reactor *r, struct oribi_conn *c, int status, size_t n, const char *reason);
static void keep_next_bytes(struct oribi_reactor *r, struct oribi_conn *c);
static void begin_linger(struct oribi_reactor *r, struct oribi_conn *c);

bool oribi__conn_begin(struct oribi_reactor *r, struct oribi_conn *c)
{
    struct oribi_exchange *exchange = oribi_pool_try_get(&r->exchange_pool);
    if (!exchange)
        return false;
    /* The head is large and the parser fills it; what it fills only on success starts out empty for refusals' log
     * lines. */
    memset(exchange, 0, offsetof(struct oribi_exchange, head));
    memset(&exchange->head, 0, offsetof(struct oribi_head, fields));
    exchange->head.joined = NULL;
    oribi_body_init(&exchange->body);
    exchange->conn = c;
    c->exchange = exchange;
    c->request_count++;
    return true;
}

void oribi__conn_complete(struct oribi_reactor *r, struct oribi_conn *c)
{
    c->exchange->complete_us = r->now_us;
    oribi_timeouts_arm(&r->timeouts, &c->timer, ORIBI_TIMEOUT_NONE, r->now_ms);
    oribi_loop_interest(r->loop, &c->watch, 0);
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

void oribi__conn_refuse(struct oribi_reactor *r, struct oribi_conn *c, int error, const char *reason)
{
    int status = oribi_error_status(error);
    bool is_head = c->exchange && c->exchange->head.is_head;
    size_t n = status == 0 ? 0
                           : oribi_response_error(status, oribi_reactor_date(r), r->config.server, is_head, r->scratch,
                                                  ORIBI_SCRATCH_BYTES);
    tell_refused(r, c, status, n, reason ? reason : oribi_error_text(error));
    if (status == 0)
        oribi__conn_close(r, c);
    else
        answer_and_close(r, c, n);
}

void oribi_conn_refuse_busy(struct oribi_reactor *r, struct oribi_conn *c, uint32_t retry_after_s, const char *reason)
{
    assert(c->state >= ORIBI_CONN_HEAD && c->state <= ORIBI_CONN_CALL);
    if (c->state == ORIBI_CONN_QUEUED)
        oribi__reactor_unqueue(r, c);
    c->state = ORIBI_CONN_CALL;
    size_t n = oribi_response_busy(503, retry_after_s, oribi_reactor_date(r), r->config.server,
                                   c->exchange->head.is_head, r->scratch, ORIBI_SCRATCH_BYTES);
    tell_refused(r, c, 503, n, reason);
    answer_and_close(r, c, n);
}

/* Sends an answer of our own, `n` bytes in the scratch buffer, and closes. */
static void answer_and_close(struct oribi_reactor *r, struct oribi_conn *c, size_t n)
{
    struct iovec vec = {r->scratch, n};
    (void)oribi_conn_send(r, c, &vec, 1, false); /* a broken connection is closed below */
    c->closes = true;
    c->lingers = true;
    if (c->exchange)
        c->exchange->used = c->len; /* no byte after an error is ever read as a request */
    else
        c->len = 0;
    go_on(r, c);
}

/* Length of the body in an answer of our own. */
static size_t body_bytes(const char *answer, size_t n)
{
    const char *end = memmem(answer, n, "\r\n\r\n", 4);
    return end ? (size_t)(answer + n - end) - 4 : 0;
}

static void tell_refused(struct oribi_reactor *r, struct oribi_conn *c, int status, size_t n, const char *reason)
{
    if (r->hooks.refused)
        r->hooks.refused(r->hooks.self, c, status, body_bytes(r->scratch, n), reason);
}

/* The answer is written: drops the exchange at once, so that a slow reader holds nothing but its output. */
static void go_on(struct oribi_reactor *r, struct oribi_conn *c)
{
    oribi__conn_drop_exchange(r, c);
    if (c->broken) {
        oribi__conn_close(r, c);
        return;
    }
    if (!c->out) {
        oribi__conn_continue(r, c);
        return;
    }
    c->state = ORIBI_CONN_FLUSH;
    oribi_loop_interest(r->loop, &c->watch, ORIBI_WRITE);
    oribi__conn_arm_write(r, c);
    (void)oribi__conn_register(r, c); /* closes the connection itself when it fails */
}

void oribi__conn_drop_exchange(struct oribi_reactor *r, struct oribi_conn *c)
{
    struct oribi_exchange *exchange = c->exchange;
    if (!exchange)
        return;
    keep_next_bytes(r, c);
    if (exchange->rest.cap)
        oribi_buf_deinit(&exchange->rest);
    if (exchange->body.len > 0 || exchange->body.fd >= 0 || exchange->body.memory.cap)
        oribi_body_deinit(&exchange->body);
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
    struct oribi_exchange *exchange = c->exchange;
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
            oribi__conn_close(r, c);
        return;
    }
    c->state = ORIBI_CONN_IDLE;
    oribi_loop_interest(r->loop, &c->watch, ORIBI_READ);
    if (c->len > 0) {
        oribi__conn_parse(r, c);
        if (!oribi__conn_wants_input(c))
            return;
    } else {
        oribi_timeouts_arm(&r->timeouts, &c->timer, ORIBI_TIMEOUT_IDLE, r->now_ms);
    }
    if (oribi__conn_register(r, c) == 0 && (c->watch.ready & ORIBI_READ))
        oribi__reactor_again(r, c);
}

/* Closing with unread input resets the connection, and the reset can overtake our answer: RFC 9112 9.6. */
static void begin_linger(struct oribi_reactor *r, struct oribi_conn *c)
{
    (void)shutdown(c->watch.fd, SHUT_WR); /* fails only if the peer is gone, which the next read tells */
    c->state = ORIBI_CONN_LINGER;
    c->linger_left = ORIBI_LINGER_BYTES_MAX;
    c->linger_since_ms = (uint32_t)r->now_ms;
    c->watch.ready |= ORIBI_READ;
    oribi_loop_interest(r->loop, &c->watch, ORIBI_READ);
    oribi_timeouts_arm(&r->timeouts, &c->timer, ORIBI_TIMEOUT_LINGER, r->now_ms);
    if (oribi__conn_register(r, c) == 0)
        oribi__reactor_again(r, c);
}

struct oribi_slice oribi_conn_behind(const struct oribi_conn *c)
{
    const struct oribi_exchange *exchange = c->exchange;
    if (exchange->rest.len > 0)
        return oribi_slice(exchange->rest.p, exchange->rest.len);
    return oribi_slice(c->buf + exchange->used, c->len - exchange->used);
}
