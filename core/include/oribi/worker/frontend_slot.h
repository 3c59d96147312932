/* frontend_slot - what frontends count: a mapping of their own, one slot for each frontend, beside the scoreboard of
 * workers. Made where a server has frontends. A frontend writes its own slot, in one thread and without a lock; the
 * supervisor reads it, and clears what tells of now when the frontend has ended. The counters stay: the frontend that
 * takes its place counts on. */
#ifndef ORIBI_WORKER_FRONTEND_SLOT_H
#define ORIBI_WORKER_FRONTEND_SLOT_H

#include "oribi/worker/placement/scoreboard.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* The protocol that a client of a frontend speaks. */
enum oribi_frontend_clients {
    ORIBI_FRONTEND_ARRIVING, /* a handshake, or nothing yet */
    ORIBI_FRONTEND_H1,
    ORIBI_FRONTEND_H2,
    ORIBI_FRONTEND_TUNNEL, /* bytes, after 101 */
    ORIBI_FRONTEND_WEBSOCKET,
    ORIBI_FRONTEND_CLIENTS,
};

/* New ones go to the end, as in all of these. */
enum oribi_frontend_handshake {
    ORIBI_FRONTEND_FULL_13,
    ORIBI_FRONTEND_RESUMED_13,
    ORIBI_FRONTEND_FULL_12,
    ORIBI_FRONTEND_RESUMED_12,
    ORIBI_FRONTEND_HANDSHAKES,
};

enum oribi_frontend_handshake_failure {
    ORIBI_FRONTEND_REFUSED,   /* an alert was sent or came */
    ORIBI_FRONTEND_PLAIN,     /* HTTP without TLS */
    ORIBI_FRONTEND_ABANDONED, /* the client has gone */
    ORIBI_FRONTEND_LATE,      /* head_timeout */
    ORIBI_FRONTEND_HANDSHAKE_FAILURES,
};

/* The codes with which WebSockets end, in the order of oribi_frontend_close_codes. */
enum {
    ORIBI_FRONTEND_CLOSE_CODES = 13,
};
extern const uint16_t oribi_frontend_close_codes[ORIBI_FRONTEND_CLOSE_CODES]; /* the last, 0, stands for all others */

/* Why event streams have ended. */
enum oribi_frontend_event_end {
    ORIBI_FRONTEND_EVENTS_CLIENT,  /* its client has gone, or its connection has ended */
    ORIBI_FRONTEND_EVENTS_SLOW,    /* websocket_pending_max */
    ORIBI_FRONTEND_EVENTS_DRAINED, /* a stop, an upgrade */
    ORIBI_FRONTEND_EVENTS_FAILED,  /* out of memory, subscriptions_max */
    ORIBI_FRONTEND_EVENT_ENDS,
};

struct oribi_frontend_slot {
    /* now; written by the frontend once a turn */
    _Atomic uint32_t clients[ORIBI_FRONTEND_CLIENTS];
    _Atomic uint32_t states[ORIBI_SLOT_CONN_STATES]; /* the same by what they do */
    _Atomic uint32_t streams;                        /* of HTTP/2, without an answer or with an unfinished one */
    _Atomic uint32_t event_streams;                  /* server-sent events */
    _Atomic uint32_t carried;                        /* of `clients`, WebSockets and tunnels that are such streams */
    _Atomic uint32_t calls_out;                      /* requests that workers have */
    _Atomic uint32_t queue_len;                      /* whole requests that wait for a worker */
    _Atomic int64_t queue_oldest_us;                 /* since when the oldest of them waits; 0: none waits */
    _Atomic uint32_t topics;                         /* with a subscriber or a history */
    _Atomic uint32_t subscriptions;
    _Atomic uint64_t history_bytes;
    _Atomic int64_t expires_s; /* when the first of its certificates expires, seconds since 1970; 0: it has none */
    /* written by the supervisor: no other server has the frontend's addresses, which may end when the supervisor
     * dies */
    _Atomic uint32_t sole;

    /* Counters: all of 64 bits, from here to the end. First those that a worker's slot has, too, under the same names:
     * what the frontend has done itself, and what no worker counts. */
    _Atomic uint64_t uncalled_count; /* answers of the frontend's own: files, fixed answers, health, errors */
    _Atomic uint64_t connection_count;
    _Atomic uint64_t status_class[6];
    _Atomic uint64_t method_count[ORIBI_SLOT_METHODS];
    _Atomic uint64_t refusals[ORIBI_REFUSALS];
    _Atomic uint64_t timeouts[ORIBI_TIMEOUT_CLASSES];
    _Atomic uint64_t shed_count;
    _Atomic uint64_t gone_count;
    _Atomic uint64_t evicted_count;
    _Atomic uint64_t passed_count; /* requests given to the hand-off queue, each with a new channel */
    /* counters that only frontends have */
    _Atomic uint64_t handshakes[ORIBI_FRONTEND_HANDSHAKES];
    _Atomic uint64_t handshake_failures[ORIBI_FRONTEND_HANDSHAKE_FAILURES];
    _Atomic uint64_t requests[2];  /* over HTTP/1.1, over HTTP/2 */
    _Atomic uint64_t local_count;  /* of uncalled_count: what the options have it answer */
    _Atomic uint64_t call_count;   /* requests given to workers */
    _Atomic uint64_t posted_count; /* of these, those given to another worker after the first one had died */
    _Atomic uint64_t reset_count;  /* streams that ended by a reset of either side */
    _Atomic uint64_t bytes_in;     /* from clients, without what TLS adds */
    _Atomic uint64_t bytes_out;
    _Atomic uint64_t websocket_count; /* handshakes that the application has accepted */
    _Atomic uint64_t websocket_closed[ORIBI_FRONTEND_CLOSE_CODES];
    _Atomic uint64_t websocket_messages[2]; /* from clients, to clients; as are the next */
    _Atomic uint64_t websocket_bytes[2];    /* of these messages */
    _Atomic uint64_t event_stream_count;    /* that have begun */
    _Atomic uint64_t event_streams_ended[ORIBI_FRONTEND_EVENT_ENDS];
    _Atomic uint64_t event_count;        /* events sent, each client counts */
    _Atomic uint64_t event_bytes;        /* of these events */
    _Atomic uint64_t event_resets;       /* oribi.reset, each channel of a stream counts */
    _Atomic uint64_t publish_count;      /* messages to which it has given a place, as the frontend that leads */
    _Atomic uint64_t publish_refused;    /* records that no publisher of ours writes, and what memory was not for */
    _Atomic uint64_t delivered_count;    /* messages to subscribers */
    _Atomic uint64_t resumed_count;      /* subscriptions that got all that they had missed */
    _Atomic uint64_t resume_reset_count; /* subscriptions for which the history does not reach back */
    _Atomic uint64_t history_dropped;    /* messages that history_memory_max has pushed out */
    char apart[128];                     /* slots of two frontends share no cache line */
};

enum {
    ORIBI_FRONTEND_COUNTERS = (offsetof(struct oribi_frontend_slot, history_dropped) + sizeof(uint64_t) -
                               offsetof(struct oribi_frontend_slot, uncalled_count)) /
                              sizeof(uint64_t),
};

/* Adds n to a counter of the frontend's own slot. */
void oribi_frontend_slot_count(_Atomic uint64_t *counter, uint64_t n);

/* Adds the counters of a slot to `sums`, and to `workers` (oribi_slot_fold()) those that a worker's slot has, too. For
 * every reader, also while the frontend writes. */
void oribi_frontend_slot_fold(uint64_t sums[ORIBI_FRONTEND_COUNTERS], uint64_t workers[ORIBI_SLOT_COUNTERS],
                              const struct oribi_frontend_slot *slot);

/* Gives the sums their names: writes them to the counters of `slot`, which is no frontend's, and clears its rest. */
void oribi_frontend_slot_unfold(const uint64_t sums[ORIBI_FRONTEND_COUNTERS], struct oribi_frontend_slot *slot);

/* The slot's frontend has ended: nothing of now is left. */
void oribi_frontend_slot_ended(struct oribi_frontend_slot *slot);

/* Its connections. */
uint32_t oribi_frontend_slot_open(const struct oribi_frontend_slot *slot);

#endif
