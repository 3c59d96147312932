/* placement - which worker has a connection: what goes into the hand-off queue and when some is taken out of it; what a
 * worker knows of its siblings (siblings.c), and when it leaves the connections to one of them (make_way.c). The
 * rules are told in doc/internals/placement.md. Nothing here allocates memory, because at the hard deadline of a
 * call it runs in a signal handler. */
#ifndef ORIBI_WORKER_PLACEMENT_PLACEMENT_H
#define ORIBI_WORKER_PLACEMENT_PLACEMENT_H

#include "oribi/event/conn.h"
#include "oribi/event/loop.h"
#include "oribi/config/options.h"
#include "oribi/worker/placement/handoff.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct oribi_worker;

enum {
    ORIBI_HANDOFF_BUF_BYTES = ORIBI_HANDOFF_BYTES_MAX + 2048,
    ORIBI__STARVED_LOOK_MS = 1000, /* between two looks whether there are descriptors again */
};

/* --- make_way.c ---
 *
 * Where all workers share one processor and calls compute, the connections gather at one of them: a sibling adds
 * nothing then, and each change between two processes costs both what their caches and those of their libraries hold.
 * doc/internals/placement.md tells the rule. */

enum { ORIBI__AWAY_MS = 10 }; /* how long a worker that has made way leaves the hand-off queue alone */

/* A member of struct oribi__placement; of the reactor's owner. */
struct oribi__way {
    bool one_cpu;  /* several workers, and one processor for them; else nothing of this happens */
    bool computes; /* calls are short here, and have not waited for anything lately */
    int64_t looked_us;
    int64_t away_until_us;  /* 0: the hand-off queue is watched */
    int64_t waits;          /* of the thread, at the last look */
    uint64_t calls;         /* at the last look */
    uint64_t sibling_calls; /* calls, at the last look, of the sibling for which way would be made */
};

/* --- placement.c --- */

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
    int64_t evened_us;                        /* when our queue was last compared with the others' */
    uint32_t last_woken[ORIBI_FRONTENDS_MAX]; /* each frontend's word when we woke it last (channel_ring.h) */
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
void oribi__lend_channel(const struct oribi_worker *worker, struct oribi_conn *conn);

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

/* --- siblings.c ---
 *
 * A worker's knowledge of the others, from the scoreboard: who is idle, who serves, who holds how many connections; and
 * sleeping until one of them is idle. Nothing here allocates memory. */

/* Siblings that sleep in their event loop; of those with several threads, how many are free there beyond our own
 * free ones. Counts no further than `wanted`, and reads the slots of those only that are not passed by. */
uint32_t oribi__idle_siblings(const struct oribi_worker *worker, uint32_t wanted);

/* Lets siblings pass by our slot while we are in a call that is expected to be long, or is. Short calls leave it as it
 * is: a store at each begin and end would take the line from all others that have their byte there, for nothing. With
 * the reactor. */
void oribi__skip(struct oribi_worker *worker, bool skip);

/* True while another worker serves and will go on to. */
bool oribi__has_siblings(const struct oribi_worker *worker);

/* True if this worker holds more connections than the others do on average times eighths / 8, and one more, while one
 * of them is idle. */
bool oribi__holds_more_than(const struct oribi_worker *worker, uint32_t eighths);

/* True if an idle sibling may hold one more connection. */
bool oribi__has_room_elsewhere(const struct oribi_worker *worker);

/* oribi__idle_waiter_sleep(): a helper that has no sibling to give to sleeps until one may be idle, for timeout_ms at
 * most. oribi__idle_waiter_wake(): a worker that becomes idle wakes one such helper; that helper wakes the next when
 * it needs no sibling. A wake-up that is lost costs the time-out. */
void oribi__idle_waiter_sleep(struct oribi_worker *worker, int timeout_ms);
void oribi__idle_waiter_wake(const struct oribi_worker *worker);

/* How many more so many requests, which wait here, are than wait at a sibling on average and some more: one for each
 * sibling at most. */
uint32_t oribi__queue_surplus(const struct oribi_worker *worker, uint32_t waiting);

/* Since when the oldest request waits that siblings have; 0: none. Reads every slot. */
int64_t oribi__oldest_elsewhere_us(const struct oribi_worker *worker);

/* True where requests stay with the worker that has accepted them, though it has siblings, and more wait here than
 * there: then newcomers come one at a time. */
bool oribi__holds_newcomers_back(const struct oribi_worker *worker);

/* All are busy: how many of so many requests that wait here are to go to siblings where fewer wait, none while as many
 * are on their way. What was passed on in vain comes back at the end of the call, as the oldest. */
uint32_t oribi__evened_out(struct oribi_worker *worker, uint32_t waiting);

/* --- make_way.c --- */

/* Finds out whether this worker may ever have to make way. For its beginning. */
void oribi__way_init(struct oribi_worker *worker);

/* Looks every 50 ms, in a turn: a worker whose calls compute passes all that it can to a sibling before it whose calls
 * do so too and that gets on with them. */
void oribi__make_way(struct oribi_worker *worker);

#endif
