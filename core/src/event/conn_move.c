/* Connection, on its way between processes. Nothing but bytes moves: the request is parsed once more where it
 * arrives, so there is no format of parsed requests to keep in step between two versions of the program. */
#include "oribi/event/conn.h"

#include "oribi/base/error.h"
#include "oribi/base/os/os.h"
#include "oribi/event/reactor.h"

#include "event/conn_private.h"

#include <assert.h>
#include <string.h>

bool oribi_conn_movable(const struct oribi_conn *c)
{
    if (c->out || c->closes || c->broken)
        return false;
    switch (c->state) {
    case ORIBI_CONN_IDLE:
    case ORIBI_CONN_HEAD:
    case ORIBI_CONN_QUEUED:
        return true;
    default:
        return false;
    }
}

static void add(struct oribi_wire *wire, const void *p, size_t n)
{
    if (n == 0)
        return;
    assert(wire->count < ORIBI_WIRE_VECS_MAX);
    wire->vec[wire->count++] = (struct iovec){(void *)p, n};
}

/* A body with a length. If it did not fit behind the head, the buffer holds no byte of a next request. */
static void add_sized(const struct oribi_conn *c, struct oribi_wire *wire)
{
    const struct oribi_body *body = &c->exchange->body;
    add(wire, c->buf, c->len);
    if (body->len == 0)
        return;
    assert(c->len == c->exchange->used);
    if (body->fd < 0)
        add(wire, body->memory.p, body->memory.len);
}

/* The body was decoded, in the buffer or in memory of its own. Trailers, and the bytes behind them, are as they
 * came. */
static void add_chunked(const struct oribi_conn *c, struct oribi_wire *wire)
{
    const struct oribi_conn_request *exchange = c->exchange;
    const struct oribi_buf *trailers = &exchange->chunked.trailers;
    struct oribi_slice behind = oribi_conn_behind(c);
    bool in_place = exchange->in_place.p != NULL;
    struct oribi_slice body =
        in_place ? exchange->in_place : oribi_slice(exchange->body.memory.p, exchange->body.memory.len);
    add(wire, c->buf, in_place ? (size_t)(exchange->in_place.p - c->buf) : exchange->used);
    if (body.n > 0) {
        add(wire, wire->chunk_head, oribi_chunk_head(wire->chunk_head, body.n));
        add(wire, body.p, body.n);
        add(wire, "\r\n", 2);
    }
    add(wire, "0\r\n", 3);
    add(wire, trailers->p, trailers->len);
    add(wire, "\r\n", 2);
    add(wire, behind.p, behind.n);
}

void oribi_conn_wire(const struct oribi_conn *c, struct oribi_wire *wire)
{
    wire->count = 0;
    wire->body_fd = -1;
    wire->body_len = 0;
    if (__builtin_expect(c->channel != NULL, 0) && c->channel->known)
        add(wire, c->channel->text.p, c->channel->text.len);
    if (c->state != ORIBI_CONN_QUEUED) {
        add(wire, c->buf, c->len);
        return;
    }
    if (c->exchange->body.fd >= 0) {
        wire->body_fd = c->exchange->body.fd;
        wire->body_len = c->exchange->body.len;
    }
    if (c->exchange->head.chunked)
        add_chunked(c, wire);
    else
        add_sized(c, wire);
}

void oribi_conn_joined(struct oribi_reactor *r, struct oribi_conn *c, int fd)
{
    struct oribi_conn_request *exchange = c->exchange;
    if (fd >= 0) {
        int64_t len = exchange->parts->len;
        oribi_parts_destroy(exchange->parts);
        exchange->parts = NULL;
        oribi_body_deinit(&exchange->body);
        exchange->body.fd = fd;
        exchange->body.len = len;
    }
    oribi__conn_charge_body(r, exchange);
}

bool oribi_conn_may_join(struct oribi_reactor *r, struct oribi_conn *c)
{
    struct oribi_conn_request *exchange = c->exchange;
    int64_t len = exchange->parts->len;
    if (!oribi_budget_file(&r->budget, len))
        return false;
    oribi_budget_set(&r->budget, &exchange->charge, exchange->charge.memory, exchange->charge.file + len);
    return true;
}

/* A body that was taken apart travels in one piece. */
static int join(struct oribi_reactor *r, struct oribi_conn *c)
{
    int fd = -1;
    if (!oribi_conn_may_join(r, c))
        return ORIBI_ELIMIT;
    int error = oribi_parts_spool(c->exchange->parts, &c->exchange->body, &fd);
    oribi_conn_joined(r, c, error < 0 ? -1 : fd);
    return error;
}

int oribi_conn_spool(struct oribi_reactor *r, struct oribi_conn *c)
{
    struct oribi_conn_request *exchange = c->exchange;
    assert(c->state == ORIBI_CONN_QUEUED);
    if (exchange->parts)
        return join(r, c);
    if (exchange->body.fd >= 0 || exchange->body.len == 0)
        return 0;
    if (!oribi_budget_file(&r->budget, exchange->body.len))
        return ORIBI_ELIMIT;
    int result = oribi_body_spool(&exchange->body);
    oribi__conn_charge_body(r, exchange);
    return result;
}

void oribi_conn_leave(struct oribi_reactor *r, struct oribi_conn *c)
{
    /* The other end of the hand-off has a descriptor of its own: closing ours says nothing to the peer. */
    oribi__conn_close(r, c);
}

/* Puts the bytes at the front of an empty connection's buffer and parses them. Takes body_fd. */
static void inject(struct oribi_reactor *r, struct oribi_conn *c, struct oribi_slice bytes, int body_fd,
                   int64_t body_len)
{
    assert(!c->buf && c->state == ORIBI_CONN_IDLE);
    if (!oribi__conn_lend_buf(r, c) || (bytes.n > c->cap && !oribi__conn_grow_buf(r, c, bytes.n))) {
        oribi_os_close(body_fd);
        oribi__conn_close(r, c);
        return;
    }
    memcpy(c->buf, bytes.p, bytes.n);
    c->len = (uint32_t)bytes.n;
    c->moving_in = body_fd >= 0;
    oribi__conn_begin(r, c);
    c->moving_in = false;
    if (body_fd >= 0)
        oribi__conn_body_inject(r, c, body_fd, body_len);
}

void oribi_conn_resume(struct oribi_reactor *r, struct oribi_conn *c, struct oribi_slice bytes, int body_fd,
                       int64_t body_len, int64_t complete_us)
{
    if (bytes.n > 0)
        inject(r, c, bytes, body_fd, body_len);
    else
        oribi_os_close(body_fd);
    if (c->state == ORIBI_CONN_CLOSED)
        return;
    if (c->state == ORIBI_CONN_QUEUED && complete_us > 0 && complete_us < c->exchange->complete_us) {
        c->exchange->complete_us = complete_us;
        oribi__reactor_queue_by_age(r, c);
    }
    /* Registered at once: the connection was kept alive before and will be again, and the loop sees a client that
     * leaves while its request waits. */
    if (oribi__conn_register(r, c) < 0)
        return;
    if (c->state == ORIBI_CONN_IDLE)
        oribi__conn_arm_rest(r, c, ORIBI_TIMEOUT_IDLE);
}
