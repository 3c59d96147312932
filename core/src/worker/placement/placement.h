/* placement - which worker has a connection: what goes into the hand-off queue and when some is taken out of it. The
 * rules are told in doc/internals/placement.md. Nothing here allocates memory, because at the hard deadline of a
 * call it runs in a signal handler. */
#ifndef ORIBI_WORKER_PLACEMENT_PLACEMENT_H
#define ORIBI_WORKER_PLACEMENT_PLACEMENT_H

#include "oribi/event/conn.h"
#include "oribi/event/loop.h"
#include "oribi/worker/placement/handoff.h"
#include "worker/placement/make_way.h"
#include "worker/placement/siblings.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct oribi_worker;

enum {
    ORIBI_HANDOFF_BUF_BYTES = ORIBI_HANDOFF_BYTES_MAX + 2048,
    ORIBI__STARVED_LOOK_MS = 1000, /* between two looks whether there are descriptors again */
};

/* A member of struct oribi_worker; touched with the reactor. */
struct oribi__placement {
    struct oribi_handoff queue; /* -1, -1: none */
    struct oribi_watch watch;   /* of the queue */
    bool watched;
    bool ready;               /* messages wait in the queue */
    bool starved;             /* no descriptors to spare: the queue is left alone */
    atomic_bool expects_long; /* calls take ORIBI_EXPECT_US and more on average; a hint for the helper */
    bool skipped;             /* what oribi__skip() has told last */
    bool wants_room;          /* the last that was to go into the queue found no room */
    bool queue_full;          /* connections are left that go into the queue as soon as there is room */
    bool kept;                /* in its last step the helper could not pass on all requests that waited */
    char *buf;                /* ORIBI_HANDOFF_BUF_BYTES, NULL without a queue */
    int64_t ready_us;         /* since when messages wait there that we leave to others; 0: none */
    struct oribi__way way;
    int64_t evened_us;   /* when our queue was last compared with the others' */
    int64_t balanced_us; /* when our connections were last compared with the others' for the sake of short calls */
};

/* True while a request behind a call of that age is best left to whichever worker is free first, though none is
 * idle. */
bool oribi__waits_for_any(const struct oribi_worker *worker, int64_t age_us);

/* True while newcomers are let in during the call, though no limit and no file asks for it: it is long, and what they
 * ask for gets its place behind all that waits. Asked by the helper, with the reactor. */
bool oribi__queues_newcomers(const struct oribi_worker *worker);

/* Puts complete requests into the hand-off queue, the oldest first but for the first `keep`, one for each idle
 * sibling, all of them if oribi__waits_for_any(). With `keep` and no idle sibling some go where more wait here than
 * there. Returns how many went. */
uint32_t oribi__pass_on(struct oribi_worker *worker, uint32_t keep);

/* True if what is queued behind the next request is better passed on: calls are long on average, or too many
 * connections are here for short ones too. */
bool oribi__should_pass(struct oribi_worker *worker);

/* Tells a channel's frontend that we close our end of it: what runs there for a client that has gone has ended. */
void oribi__disown_channel(const struct oribi_worker *worker, uint16_t number);

/* The application gets a descriptor of this channel of ours, and may write there at any time: no other request may come
 * on it. To be called before it has the descriptor. */
void oribi__lend_channel(const struct oribi_worker *worker, uint16_t number);

/* Puts one connection into the hand-off queue. False: it stays. */
bool oribi__pass_conn(struct oribi_worker *worker, struct oribi_conn *conn);

/* True while the connections or messages that wait for us since ready_us (0: just now) are better left to the sibling
 * that the kernel has woken for them. */
bool oribi__leave_to_sleepers(const struct oribi_worker *worker, int64_t ready_us);

/* Passes a connection just accepted on: to a sibling that sleeps, when we hold more than our share of them; a complete
 * request behind others to whichever worker is free first, when calls are worth it. */
void oribi__share(struct oribi_worker *worker, struct oribi_conn *conn);

/* Passes a connection just accepted on to a sibling that sleeps and has room for it, when we have none left. True
 * when it has gone. */
bool oribi__share_beyond(struct oribi_worker *worker, struct oribi_conn *conn);

/* Takes one request (and connections without one) out of the hand-off queue. Without two descriptors to spare it
 * leaves the queue to the others, until oribi__look_for_descriptors() finds that there are some again. */
void oribi__handoff_turn(struct oribi_worker *worker);
void oribi__look_for_descriptors(struct oribi_worker *worker);

/* During a call: takes the first request there if it has waited longer than queue_time_max, so that it is refused. */
void oribi__take_late(struct oribi_worker *worker);

/* While retiring: all connections on which no answer is under way go into the hand-off queue, queued requests in
 * their order. What cannot travel is answered 503. False: the queue is full, and some are left. */
bool oribi__pass_all(struct oribi_worker *worker);

/* Waits a moment for room in the hand-off queue, `ms` at most. */
void oribi__await_room(const struct oribi_worker *worker, int64_t ms);

/* While stopping: idle connections go to the siblings. False when no sibling is there to take them. */
bool oribi__pass_idle(struct oribi_worker *worker);

/* The listener that a message or a channel head names: by its index, or where that is another one's since a reload by
 * its hash; else the first one. */
const struct oribi_listener *oribi__listener_by(const struct oribi_worker *worker, uint32_t index, uint32_t hash);

void oribi__handoff_watch(struct oribi_worker *worker, bool on);

/* Takes the accept sources (listeners, hand-off queue, wake descriptor) out of the loop while the own thread is in a
 * long call; and puts them back. */
void oribi__accept_sources_close(struct oribi_worker *worker);
void oribi__accept_sources_open(struct oribi_worker *worker);

#endif
