/* door_slot - what doors count: a mapping of their own, one slot for each door, beside the scoreboard of workers. Made
 * where a server has doors. A door writes its own slot, in one thread and without a lock; the supervisor reads it, and
 * clears what tells of now when the door has ended. The counters stay: the door that takes its place counts on. */
#ifndef ORIBI_WORKER_FRONTEND_SLOT_H
#define ORIBI_WORKER_FRONTEND_SLOT_H

#include "oribi/worker/placement/scoreboard.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* What a door's clients speak. */
enum oribi_door_clients {
    ORIBI_DOOR_ARRIVING, /* a handshake, or nothing yet */
    ORIBI_DOOR_H1,
    ORIBI_DOOR_H2,
    ORIBI_DOOR_TUNNEL, /* bytes, after 101 */
    ORIBI_DOOR_CLIENTS,
};

/* New ones go to the end, as in all of these. */
enum oribi_door_handshake {
    ORIBI_DOOR_FULL_13,
    ORIBI_DOOR_RESUMED_13,
    ORIBI_DOOR_FULL_12,
    ORIBI_DOOR_RESUMED_12,
    ORIBI_DOOR_HANDSHAKES,
};

enum oribi_door_unshaken {
    ORIBI_DOOR_REFUSED, /* an alert was sent or came */
    ORIBI_DOOR_PLAIN,   /* HTTP without TLS */
    ORIBI_DOOR_LEFT,    /* the client has gone */
    ORIBI_DOOR_LATE,    /* head_timeout */
    ORIBI_DOOR_UNSHAKEN,
};

struct oribi_door_slot {
    /* now; written by the door once a turn */
    _Atomic uint32_t clients[ORIBI_DOOR_CLIENTS];
    _Atomic uint32_t states[ORIBI_SLOT_CONN_STATES]; /* the same by what they do */
    _Atomic uint32_t streams;                        /* of HTTP/2, without an answer or with an unfinished one */
    _Atomic uint32_t calls_out;                      /* requests that workers have */
    _Atomic uint32_t queue_len;                      /* whole requests that wait for a worker … */
    _Atomic int64_t queue_oldest_us;                 /* … and since when the oldest does; 0: none */
    _Atomic int64_t expires_s; /* when the first of its certificates expires, seconds since 1970; 0: it has none */
    /* written by the supervisor: no other server has the door's addresses, which may end when the supervisor dies */
    _Atomic uint32_t sole;

    /* Counters: all of 64 bits, from here to the end. First those that a worker's slot has, too, under the same names:
     * what the door has done itself, and what no worker counts. */
    _Atomic uint64_t uncalled_count; /* answers of the door's own: files, fixed answers, health, errors */
    _Atomic uint64_t connection_count;
    _Atomic uint64_t status_class[6];
    _Atomic uint64_t method_count[ORIBI_SLOT_METHODS];
    _Atomic uint64_t refusals[ORIBI_REFUSALS];
    _Atomic uint64_t timeouts[ORIBI_TIMEOUT_CLASSES];
    _Atomic uint64_t shed_count;
    _Atomic uint64_t gone_count;
    _Atomic uint64_t evicted_count;
    _Atomic uint64_t passed_count; /* requests given to the hand-off queue, each with a new channel */
    /* … and those that only doors have */
    _Atomic uint64_t handshakes[ORIBI_DOOR_HANDSHAKES];
    _Atomic uint64_t unshaken[ORIBI_DOOR_UNSHAKEN];
    _Atomic uint64_t requests[2]; /* over HTTP/1.1, over HTTP/2 */
    _Atomic uint64_t site_count;  /* of uncalled_count: what the options have it answer */
    _Atomic uint64_t call_count;  /* requests given to workers … */
    _Atomic uint64_t again_count; /* … and of these, those that were given to another after the first has died */
    _Atomic uint64_t reset_count; /* streams that ended by a reset of either side */
    _Atomic uint64_t bytes_in;    /* from clients, without what TLS adds */
    _Atomic uint64_t bytes_out;
    char apart[128]; /* slots of two doors share no cache line */
};

enum {
    ORIBI_DOOR_COUNTERS = (offsetof(struct oribi_door_slot, bytes_out) + sizeof(uint64_t) -
                           offsetof(struct oribi_door_slot, uncalled_count)) /
                          sizeof(uint64_t),
};

/* Adds n to a counter of the door's own slot. */
void oribi_door_slot_count(_Atomic uint64_t *counter, uint64_t n);

/* Adds the counters of a slot to `sums`, and to `workers` (oribi_slot_fold()) those that a worker's slot has, too. For
 * every reader, also while the door writes. */
void oribi_door_slot_fold(uint64_t sums[ORIBI_DOOR_COUNTERS], uint64_t workers[ORIBI_SLOT_COUNTERS],
                          const struct oribi_door_slot *slot);

/* Gives the sums their names: writes them to the counters of `slot`, which is no door's, and clears its rest. */
void oribi_door_slot_unfold(const uint64_t sums[ORIBI_DOOR_COUNTERS], struct oribi_door_slot *slot);

/* The slot's door has ended: nothing of now is left. */
void oribi_door_slot_ended(struct oribi_door_slot *slot);

/* Its connections. */
uint32_t oribi_door_slot_open(const struct oribi_door_slot *slot);

#endif
