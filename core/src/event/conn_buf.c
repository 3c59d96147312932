/* Connection, the read buffer: lent from its first byte on, given back when no byte is left. An idle connection has
 * none. */
#include "oribi/event/conn.h"

#include "oribi/base/mem.h"
#include "oribi/event/reactor.h"

#include "event/conn_private.h"

#include <string.h>

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
