/* What a door counts (worker/frontend_slot.h): answers of its own, and what there is now, once a turn. Requests that a
 * worker answers are counted by that worker. */
#include "frontend/frontend_private.h"

#include "oribi/http/refusal.h"
#include "oribi/http/status.h"

#include <string.h>

void oribi__count_init(struct oribi__door *door)
{
    door->slot = door->config->slot ? door->config->slot : &door->no_slot;
    door->bytes_in = atomic_load_explicit(&door->slot->bytes_in, memory_order_relaxed);
    door->bytes_out = atomic_load_explicit(&door->slot->bytes_out, memory_order_relaxed);
}

void oribi__count_handshake(struct oribi__door *door, const struct oribi_tls_info *info)
{
    bool newest = oribi_slice_equal(info->version, ORIBI_SLICE("TLSv1.3"));
    enum oribi_door_handshake kind = newest ? (info->resumed ? ORIBI_DOOR_RESUMED_13 : ORIBI_DOOR_FULL_13)
                                            : (info->resumed ? ORIBI_DOOR_RESUMED_12 : ORIBI_DOOR_FULL_12);
    oribi_door_slot_count(&door->slot->handshakes[kind], 1);
}

void oribi__count_request(struct oribi__call *call, struct oribi_slice method, bool h2)
{
    call->method = (uint8_t)oribi_slot_method_of(method);
    oribi_door_slot_count(&call->door->slot->requests[h2], 1);
}

/* Status 0: cut. */
static void answered(struct oribi__door *door, uint8_t method, int status)
{
    oribi_door_slot_count(&door->slot->status_class[oribi_status_class(status)], 1);
    oribi_door_slot_count(&door->slot->method_count[method], 1);
    oribi_door_slot_count(&door->slot->uncalled_count, 1);
}

void oribi__count_site(const struct oribi__call *call, int status)
{
    answered(call->door, call->method, status);
    oribi_door_slot_count(&call->door->slot->site_count, 1);
}

void oribi__count_refusal(struct oribi__door *door, int status, enum oribi_refusal refusal)
{
    oribi_door_slot_count(&door->slot->status_class[oribi_status_class(status)], 1);
    oribi_door_slot_count(&door->slot->refusals[refusal], 1);
    if (status == 503 || status == 507)
        oribi_door_slot_count(&door->slot->shed_count, 1);
}

void oribi__count_failed(const struct oribi__call *call, int status, enum oribi_refusal refusal)
{
    if (refusal != ORIBI_REFUSAL_OTHER)
        oribi__count_refusal(call->door, status, refusal);
    else
        answered(call->door, call->method, status);
}

/* --- what there is now --- */

static void set(_Atomic uint32_t *gauge, uint32_t value)
{
    atomic_store_explicit(gauge, value, memory_order_relaxed);
}

/* Connections of HTTP/1.1 by their deadlines, as a worker has them; of the others those that have a request are in a
 * call, but for those of which each request waits for a worker: a connection of HTTP/2 may have many. */
static void put_states(const struct oribi__door *door)
{
    struct oribi_slot as_worker;
    uint64_t sums[ORIBI_SLOT_CONN_STATES] = {0};
    memset(&as_worker, 0, offsetof(struct oribi_slot, request_count));
    as_worker.connections_open = door->reactor.conn_count;
    as_worker.queue_len = door->waiting_h1;
    for (int c = 0; c < ORIBI_TIMEOUT_CLASSES; c++)
        as_worker.armed[c] = door->reactor.timeouts.armed[c];
    oribi_slot_add_connections(sums, &as_worker);
    sums[ORIBI_SLOT_CONN_READING] += door->arrival_count;
    sums[ORIBI_SLOT_CONN_IDLE] += door->resting_count;
    sums[ORIBI_SLOT_CONN_WAITING] += door->waiting_h2;
    sums[ORIBI_SLOT_CONN_CALLING] += door->client_count - door->resting_count - door->waiting_h2 + door->tunnel_count;
    for (uint32_t i = 0; i < ORIBI_SLOT_CONN_STATES; i++)
        set(&door->slot->states[i], (uint32_t)sums[i]);
}

void oribi__count_turn(struct oribi__door *door)
{
    struct oribi_door_slot *slot = door->slot;
    set(&slot->clients[ORIBI_DOOR_ARRIVING], door->arrival_count);
    set(&slot->clients[ORIBI_DOOR_H1], door->reactor.conn_count);
    set(&slot->clients[ORIBI_DOOR_H2], door->client_count);
    set(&slot->clients[ORIBI_DOOR_TUNNEL], door->tunnel_count);
    put_states(door);
    set(&slot->streams, door->stream_count);
    set(&slot->calls_out, door->calls_out);
    set(&slot->queue_len, door->queue_len);
    atomic_store_explicit(&slot->queue_oldest_us, door->queue_first ? door->queue_first->complete_us : 0,
                          memory_order_relaxed);
    atomic_store_explicit(&slot->bytes_in, door->bytes_in, memory_order_relaxed);
    atomic_store_explicit(&slot->bytes_out, door->bytes_out, memory_order_relaxed);
}
