/* accept - the listeners of a worker: when it watches them, how many connections it takes, what it does when
 * connections_max or descriptors are used up, and how it leaves a listener that ends; and the requests that are refused
 * because too many wait (overload.c). */
#ifndef ORIBI_WORKER_PLACEMENT_ACCEPT_H
#define ORIBI_WORKER_PLACEMENT_ACCEPT_H

#include "oribi/config/listener.h"
#include "oribi/config/options.h"
#include "oribi/event/loop.h"

#include <stdbool.h>
#include <stdint.h>

struct oribi_worker;
struct oribi__exchange;
struct oribi_head;

struct oribi__listener_watch {
    struct oribi_watch watch; /* first: its handler has no other pointer */
    const struct oribi_listener *listener;
    bool ready;  /* connections wait */
    bool over;   /* no client can connect any more; see oribi__last_call() */
    bool closed; /* our copy; see oribi__listener_watches_quit() */
};

/* A member of struct oribi_worker; touched with the reactor. */
struct oribi__acceptor {
    struct oribi__listener_watch *watches;
    uint32_t watch_count;
    bool open;                /* the loop watches the listeners */
    bool last_call;           /* connections may still come out of a listener that ends */
    bool take_due;            /* oribi__listener_watches_take() is due, once there is a sibling */
    bool rotate_due;          /* a newcomer went to a sibling: oribi__listener_watches_rotate() is due */
    uint32_t registered_seen; /* reactor.registered_count at the last rotation */
    uint64_t calls_seen;      /* worker.request_count when newcomers last waited while all workers were busy */
    int64_t ready_us;         /* since when connections wait there that we leave to others; 0: none */
    int64_t pause_until_ms;   /* accepting is paused: descriptors are out */
};

void oribi__listener_watches_open(struct oribi_worker *worker);

/* Watches them again if the worker has room, and accepting is not paused. */
void oribi__listener_watches_restore(struct oribi_worker *worker);

/* For good: accepts the connections that wait there now. */
void oribi__listener_watches_close(struct oribi_worker *worker);

/* Accepts the connections that wait now, of listeners that are not watched any more. */
void oribi__listener_watches_take(struct oribi_worker *worker);

/* For a while: leaves the connections that wait to the siblings. */
void oribi__listener_watches_unwatch(struct oribi_worker *worker);

/* Accepts the connections that wait at listeners that no worker will serve after us, and closes our copies of all
 * listeners, so that a next server can have the address while our calls go on. For workers whose supervisor is gone.
 * Also called by the helper. */
void oribi__listener_watches_quit(struct oribi_worker *worker);

/* Moves the worker to the end of the kernel's queue of sleepers, see oribi_loop_rotate(). The next poll reports the
 * connections that wait now. */
void oribi__listener_watches_rotate(struct oribi_worker *worker);

/* Accepts what one turn may take. */
void oribi__accept_turn(struct oribi_worker *worker);

/* While the own thread is in a call: accepts what would otherwise wait for its end. True when more may wait. */
bool oribi__accept_in_call(struct oribi_worker *worker);

/* True when that would take what waits at the listeners now. */
bool oribi__wants_newcomers_in_call(const struct oribi_worker *worker);

/* While the server ends: accepts the connections made before. True as long as more may come. Also called by the
 * helper. */
bool oribi__last_call(struct oribi_worker *worker);

/* Closes the connection that has rested longest, when there are more than connections_max. True: one was closed. */
bool oribi__make_room(struct oribi_worker *worker);

/* In how many ms the worker must look at its listeners again although no event comes; -1: not before an event. */
int64_t oribi__accept_wait_ms(const struct oribi_worker *worker);

/* --- overload.c ---
 *
 * Requests that are refused at once because too many wait, or because they have waited too long, and
 * requests whose client has gone. */

enum { ORIBI__RETRY_AFTER_S = 1 }; /* what 503 for overload says */

/* True with queue_max or queue_time_max: requests are refused that wait too long or are too many. */
static inline bool oribi__limits_waiting(const struct oribi_options *options)
{
    return options->queue_max > 0 || options->queue_time_max_ms > 0;
}

/* Answers 503 to the newest requests beyond queue_max and to the oldest beyond queue_time_max. */
void oribi__shed(struct oribi_worker *worker);

/* Looks at a request just popped: false when it was refused (it has waited too long) or dropped (its client has
 * gone), and is over. Sets queue_us. */
bool oribi__admit(struct oribi_worker *worker, struct oribi__exchange *exchange, int64_t now_us);

/* How long the proxy in front had a request by its X-Request-Start, until it was complete here, at this time of the
 * wall clock; -1 when no field says so. */
int64_t oribi__upstream_us(const struct oribi_head *head, int64_t complete_wall_us);

#endif
