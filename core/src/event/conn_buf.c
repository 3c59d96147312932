/* Connection, what it borrows while a request is under way: a read buffer from its first byte on, a call from its head on. An idle connection has
 * neither. */
#include "oribi/event/conn.h"

#include "oribi/base/mem.h"
#include "oribi/event/reactor.h"

#include "event/conn_parts.h"

#include <string.h>

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

bool oribi__conn_lend_call(struct oribi_reactor *r, struct oribi_conn *c)
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
        if (call->rest.len > c->cap && !oribi__conn_grow_buf(r, c, call->rest.len)) {
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
        oribi__conn_give_buf_back(r, c);
    if (call->rest.cap)
        oribi_buf_deinit(&call->rest);
    if (call->body.len > 0 || call->body.fd >= 0 || call->body.memory.cap)
        oribi_body_deinit(&call->body);
    if (call->chunked.trailers.cap) {
        oribi_buf_deinit(&call->chunked.trailers);
        oribi_trailers_release(&call->trailers);
    }
    if (call->charge.memory || call->charge.file)
        oribi_budget_set(&r->budget, &call->charge, 0, 0);
    oribi_head_release(&call->head);
    c->call = NULL;
    oribi_pool_put(&r->call_pool, call);
}
