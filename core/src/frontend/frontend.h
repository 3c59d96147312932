/* Context of a frontend: the fields that all its modules use. */
#ifndef ORIBI_FRONTEND_FRONTEND_H
#define ORIBI_FRONTEND_FRONTEND_H

#include "frontend/config.h"
#include "oribi/base/log.h"
#include "oribi/config/trust.h"
#include "oribi/event/reactor.h"
#include "oribi/event/timers.h"
#include "oribi/base/limits.h"
#include "oribi/worker/frontend_slot.h"

#include <stdbool.h>
#include <stdint.h>

struct oribi__accept;
struct oribi__answer_files;
struct oribi__answers;
struct oribi__arrivals;
struct oribi__channels;
struct oribi__dispatch;
struct oribi__events;
struct oribi__h1_clients;
struct oribi__h2_clients;
struct oribi__locals;
struct oribi__publishing;
struct oribi__spare;
struct oribi__topics;
struct oribi__tunnels;
struct oribi__upstream;
struct oribi__websockets;

enum {
    ORIBI__FRONTEND_INLINE_BYTES = 128 * 1024, /* of a request's body, beyond it the body goes to a file */
    ORIBI__FRONTEND_TIMERS = 8,                /* armed at most at a time that are of no client */
    ORIBI__FRONTEND_GRACE_MS = 1000,           /* of a drain, for requests that are on their way */
    ORIBI__FRONTEND_CLOSING_MS = 5000,         /* for a client that does not read the end of its WebSocket */
};

/* One process, one thread, one reactor: clients of HTTP/1.1 are the reactor's own connections; clients of HTTP/2,
 * clients that still shake hands, and channels are watched beside them. A module's state is behind its own header. */
struct oribi__frontend {
    struct oribi_reactor reactor;
    struct oribi_frontend_config *config;
    struct oribi_limits answer_limits; /* of chunked answers: no maximum of the body */
    struct oribi_trust trust;
    struct oribi_log_limit log_limit;
    struct oribi_timers timers; /* of all modules; those of HTTP/1.1 are the reactor's timeouts */
    bool draining;
    bool gives_up; /* no worker takes a request any more: the supervisor is gone, or time is over */
    int64_t drain_since_ms;

    /* counters, those of the present kept by the modules that are named */
    struct oribi_frontend_slot *slot;
    struct oribi_frontend_slot no_slot; /* for a frontend that no supervisor has given a slot */
    uint64_t bytes_in;
    uint64_t bytes_out;
    uint32_t arrival_count;      /* arrive.h */
    uint32_t client_count;       /* clients_h2.h, as are the next three */
    uint32_t resting_count;      /* clients without a stream */
    uint32_t waiting_h2;         /* clients of which each request waits for a worker */
    uint32_t holding_h2;         /* clients whose streams are all WebSockets or tunnels, which count by themselves */
    uint32_t stream_count;       /* streams_h2.h */
    uint32_t carried_count;      /* of tunnel_count and websocket_count, those that are streams */
    uint32_t waiting_h1;         /* clients_h1.h: connections whose request waits for a worker */
    uint32_t tunnel_count;       /* tunnel.h */
    uint32_t websocket_count;    /* websocket.h: open ones, whose handshake is over */
    uint32_t websocket_busy;     /* those with something under way */
    uint32_t websocket_calls;    /* calls of theirs that wait or are out */
    uint32_t event_stream_count; /* events.h */
    uint32_t queue_len;          /* dispatch.h */
    uint32_t calls_out;          /* channel.h */

    /* modules */
    struct oribi__accept *accept;
    struct oribi__answer_files *answer_files;
    struct oribi__answers *answers;
    struct oribi__arrivals *arrivals;
    struct oribi__channels *channels;
    struct oribi__dispatch *dispatch;
    struct oribi__events *events;
    struct oribi__h1_clients *h1;
    struct oribi__h2_clients *h2;
    struct oribi__locals *locals;
    struct oribi__publishing *publishing;
    struct oribi__spare *spare;
    struct oribi__topics *topics;
    struct oribi__tunnels *tunnels;
    struct oribi__upstream *upstream;
    struct oribi__websockets *websockets;
};

/* Makes room in the timers for those of one client more: an arrival, a client of HTTP/2 and a busy WebSocket have one
 * each. 0 or ORIBI_ENOMEM. */
static inline int oribi__frontend_reserve_timer(struct oribi__frontend *frontend)
{
    return oribi_timers_try_reserve(&frontend->timers, ORIBI__FRONTEND_TIMERS + frontend->arrival_count +
                                                           frontend->client_count + frontend->websocket_busy + 1);
}

#endif
