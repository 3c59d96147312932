/* Line of an exchange in the access log: its entry, and the copy of the head that was sent. */
#include "worker/logs/exchange_log.h"

#include "oribi/base/clock.h"
#include "oribi/base/mem.h"
#include "oribi/worker/socket.h"

#include <string.h>

void oribi__logged_head(struct oribi__exchange *exchange, struct oribi_slice head)
{
    if (!(exchange->worker->log_wants & ORIBI_ACCESS_WANTS_SENT))
        return;
    oribi__logged_end(exchange); /* a head that was made once more */
    size_t n = head.n < ORIBI_LOGGED_SENT_MAX ? head.n : ORIBI_LOGGED_SENT_MAX;
    char *copy = oribi_mem_try_alloc(n, 1);
    if (!copy)
        return; /* the line shows dashes */
    memcpy(copy, head.p, n);
    exchange->sent = oribi_slice(copy, n);
}

void oribi__logged_free(struct oribi__exchange *exchange)
{
    oribi_mem_free((char *)exchange->sent.p);
    exchange->sent = oribi_slice(NULL, 0);
}

/* The body behind the head in the connection's buffer counts as used. */
static int64_t bytes_in(const struct oribi_conn_request *base)
{
    return (int64_t)base->used + (base->in_place.n ? 0 : oribi_conn_request_body_len(base));
}

struct oribi_access_entry oribi__logged_entry(struct oribi__exchange *exchange, bool cut, int64_t now_us)
{
    const struct oribi_worker *w = exchange->worker;
    const struct oribi_conn *c = exchange->base.conn;
    const struct oribi_listener *listener = c->listener;
    const char *shown = oribi_listener_shown(listener);
    int64_t total_us = now_us - exchange->base.complete_us;
    int64_t wall_ms = oribi_clock_wall_ms();
    return (struct oribi_access_entry){
        .head = &exchange->base.head,
        .remote_addr = exchange->req.remote_addr,
        .remote_port = exchange->req.remote_port,
        .scheme = exchange->req.scheme,
        .client = c->channel ? &c->channel->head : NULL,
        .port = oribi_slice(listener->port, strlen(listener->port)),
        .listener = oribi_slice(shown, strlen(shown)),
        .worker = w->setup.board ? (uint32_t)(w->slot - w->setup.board->slots) : 0,
        .connection_requests = c->request_count,
        .request_id = w->log_wants & ORIBI_ACCESS_WANTS_ID ? oribi__request_id(exchange) : oribi_slice("", 0),
        .sent_head = exchange->sent,
        .cut = cut,
        .bytes_in = bytes_in(&exchange->base),
        .upstream_us = oribi__upstream_us(&exchange->base.head, wall_ms * 1000 - total_us),
        .total_us = total_us,
        .wall_ms = wall_ms,
    };
}

void oribi__log_access(struct oribi__exchange *exchange, int status, int64_t now_us)
{
    if (oribi_socket_called(&exchange->req))
        return; /* the frontend logs a socket once, at its end */
    bool cut = oribi__exchange_is_cut(exchange);
    struct oribi_access_entry entry = oribi__logged_entry(exchange, cut, now_us);
    entry.status = status;
    entry.closes = exchange->closes;
    entry.body_bytes = cut ? oribi__body_taken(exchange) : exchange->body_sent;
    entry.bytes_out = entry.body_bytes + (exchange->phase == ORIBI_PHASE_STARTED ? exchange->overhead : 0);
    entry.queue_us = exchange->req.queue_us;
    entry.call_us = now_us - exchange->started_us;
    oribi_access_log_add(exchange->worker->setup.access_log, &entry);
}
