/* Counters of a frontend (worker/frontend_slot.h): of its own answers, and, once a turn, of what there is now. Requests
 * that a worker answers are counted by that worker. */
#include "frontend/count.h"
#include "frontend/dispatch.h"
#include "frontend/frontend.h"
#include "frontend/upstream_request.h"

#include "oribi/http/status.h"

#include <string.h>

void oribi__count_init(struct oribi__frontend *frontend)
{
    frontend->slot = frontend->config->slot ? frontend->config->slot : &frontend->no_slot;
    frontend->bytes_in = atomic_load_explicit(&frontend->slot->bytes_in, memory_order_relaxed);
    frontend->bytes_out = atomic_load_explicit(&frontend->slot->bytes_out, memory_order_relaxed);
}

void oribi__count_handshake(struct oribi__frontend *frontend, const struct oribi_tls_info *info)
{
    bool newest = oribi_slice_equal(info->version, ORIBI_SLICE("TLSv1.3"));
    enum oribi_frontend_handshake kind = newest ? (info->resumed ? ORIBI_FRONTEND_RESUMED_13 : ORIBI_FRONTEND_FULL_13)
                                                : (info->resumed ? ORIBI_FRONTEND_RESUMED_12 : ORIBI_FRONTEND_FULL_12);
    oribi_frontend_slot_count(&frontend->slot->handshakes[kind], 1);
}

void oribi__count_request(struct oribi__upstream_request *call, struct oribi_slice method, bool h2)
{
    call->method = (uint8_t)oribi_slot_method_of(method);
    oribi_frontend_slot_count(&call->frontend->slot->requests[h2], 1);
}

/* Status 0: cut. */
static void answered(struct oribi__frontend *frontend, uint8_t method, int status)
{
    oribi_frontend_slot_count(&frontend->slot->status_class[oribi_status_class(status)], 1);
    oribi_frontend_slot_count(&frontend->slot->method_count[method], 1);
    oribi_frontend_slot_count(&frontend->slot->uncalled_count, 1);
}

void oribi__count_local(const struct oribi__upstream_request *call, int status)
{
    answered(call->frontend, call->method, status);
    oribi_frontend_slot_count(&call->frontend->slot->local_count, 1);
}

void oribi__count_refusal(struct oribi__frontend *frontend, int status, enum oribi_refusal refusal)
{
    oribi_frontend_slot_count(&frontend->slot->status_class[oribi_status_class(status)], 1);
    oribi_frontend_slot_count(&frontend->slot->refusals[refusal], 1);
    if (status == 503 || status == 507)
        oribi_frontend_slot_count(&frontend->slot->shed_count, 1);
}

void oribi__count_failed(const struct oribi__upstream_request *call, int status, enum oribi_refusal refusal)
{
    if (refusal != ORIBI_REFUSAL_OTHER)
        oribi__count_refusal(call->frontend, status, refusal);
    else
        answered(call->frontend, call->method, status);
}

/* --- what there is now --- */

static void set(_Atomic uint32_t *gauge, uint32_t value)
{
    atomic_store_explicit(gauge, value, memory_order_relaxed);
}

/* Connections of HTTP/1.1 by their deadlines, as a worker has them; of the others those that have a request are in a
 * call, but for those of which each request waits for a worker: a connection of HTTP/2 may have many. */
static void put_states(const struct oribi__frontend *frontend)
{
    uint64_t sums[ORIBI_SLOT_CONN_STATES] = {0};
    oribi_slot_add_counted(sums, frontend->reactor.conn_count, frontend->waiting_h1, frontend->reactor.timeouts.armed);
    sums[ORIBI_SLOT_CONN_READING] += frontend->arrival_count;
    uint32_t sockets_called =
        frontend->websocket_calls < frontend->websocket_count ? frontend->websocket_calls : frontend->websocket_count;
    sums[ORIBI_SLOT_CONN_IDLE] += frontend->resting_count + frontend->websocket_count - sockets_called;
    sums[ORIBI_SLOT_CONN_WAITING] += frontend->waiting_h2;
    sums[ORIBI_SLOT_CONN_CALLING] += frontend->client_count - frontend->resting_count - frontend->waiting_h2 -
                                     frontend->holding_h2 + frontend->tunnel_count + sockets_called;
    for (uint32_t i = 0; i < ORIBI_SLOT_CONN_STATES; i++)
        set(&frontend->slot->states[i], (uint32_t)sums[i]);
}

void oribi__count_turn(struct oribi__frontend *frontend)
{
    struct oribi_frontend_slot *slot = frontend->slot;
    set(&slot->clients[ORIBI_FRONTEND_ARRIVING], frontend->arrival_count);
    set(&slot->clients[ORIBI_FRONTEND_H1], frontend->reactor.conn_count);
    set(&slot->clients[ORIBI_FRONTEND_H2], frontend->client_count);
    set(&slot->clients[ORIBI_FRONTEND_TUNNEL], frontend->tunnel_count);
    set(&slot->clients[ORIBI_FRONTEND_WEBSOCKET], frontend->websocket_count);
    put_states(frontend);
    set(&slot->streams, frontend->stream_count);
    set(&slot->event_streams, frontend->event_stream_count);
    set(&slot->carried, frontend->carried_count);
    set(&slot->calls_out, frontend->calls_out);
    set(&slot->queue_len, frontend->queue_len);
    atomic_store_explicit(&slot->queue_oldest_us,
                          frontend->dispatch->first ? frontend->dispatch->first->complete_us : 0, memory_order_relaxed);
    atomic_store_explicit(&slot->bytes_in, frontend->bytes_in, memory_order_relaxed);
    atomic_store_explicit(&slot->bytes_out, frontend->bytes_out, memory_order_relaxed);
}
