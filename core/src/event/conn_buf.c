/* Connection, what it borrows while a request is under way: a read buffer from its first byte on, a call from its
 * head on. An idle connection has neither. */
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

bool oribi__conn_lend_exchange(struct oribi_reactor *r, struct oribi_conn *c)
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

/* Gives the call back; bytes of the next request stay, at the front of the buffer. */
void oribi__conn_drop_exchange(struct oribi_reactor *r, struct oribi_conn *c)
{
    struct oribi_exchange *exchange = c->exchange;
    if (!exchange)
        return;
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
