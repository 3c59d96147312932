/* Connection, on its way between processes. Nothing but bytes moves: the request is parsed once more where it arrives, so there is no format of parsed requests
 * to keep in step between two versions of the program. */
#include "oribi/event/conn.h"

#include "oribi/base/os.h"
#include "oribi/event/reactor.h"

#include <assert.h>

/* A chunked body was decoded where it stood, and the interim answer to an expectation would be sent twice before a spooled body. */
static bool wire_is_whole(const struct oribi_call *call)
{
    if (call->head.chunked)
        return false;
    return call->body.fd < 0 || !call->head.expect_continue;
}

bool oribi_conn_movable(const struct oribi_conn *c)
{
    if (c->out || c->closes || c->broken)
        return false;
    switch (c->state) {
    case ORIBI_CONN_IDLE:
    case ORIBI_CONN_HEAD:
        return true;
    case ORIBI_CONN_QUEUED:
        return wire_is_whole(c->call);
    default:
        return false;
    }
}

size_t oribi_conn_wire(const struct oribi_conn *c, struct iovec vec[2], int *body_fd, int64_t *body_len)
{
    *body_fd = -1;
    *body_len = 0;
    if (c->len == 0)
        return 0;
    vec[0] = (struct iovec){c->buf, c->len};
    if (c->state != ORIBI_CONN_QUEUED || c->call->body.len == 0)
        return 1;
    /* The body did not fit behind the head, so nothing of a next request was read. */
    assert(c->len == c->call->used);
    if (c->call->body.fd >= 0) {
        *body_fd = c->call->body.fd;
        *body_len = c->call->body.len;
        return 1;
    }
    vec[1] = (struct iovec){c->call->body.memory.p, c->call->body.memory.len};
    return 2;
}

void oribi_conn_leave(struct oribi_reactor *r, struct oribi_conn *c)
{
    oribi__conn_close(
        r, c); /* the other end of the hand-off has a descriptor of its own: closing ours says nothing to the peer */
}

void oribi_conn_resume(struct oribi_reactor *r, struct oribi_conn *c, struct oribi_slice bytes, int body_fd,
                       int64_t body_len, int64_t complete_us)
{
    if (bytes.n > 0)
        oribi__conn_inject(r, c, bytes, body_fd, body_len);
    else
        oribi_os_close(body_fd);
    if (c->state == ORIBI_CONN_CLOSED)
        return;
    if (c->state == ORIBI_CONN_QUEUED && complete_us > 0 && complete_us < c->call->complete_us)
        c->call->complete_us = complete_us;
    /* Registered at once: it was kept alive before and will be again, and a client that leaves is seen while it waits. */
    if (oribi__conn_register(r, c) < 0)
        return;
    if (c->state == ORIBI_CONN_IDLE)
        oribi_timeouts_arm(&r->timeouts, &c->timer, ORIBI_TIMEOUT_IDLE, r->now_ms);
}
