/* The worker's second thread, which turns the reactor while a call is long; and how long calls are. Bindings see
 * nothing of it but the option `helper`. doc/internals/placement.md has the drawing of who owns the reactor when. */
#ifndef ORIBI_WORKER_PLACEMENT_HELPER_H
#define ORIBI_WORKER_PLACEMENT_HELPER_H

#include <stdbool.h>
#include <stdint.h>

struct oribi_worker;

/* Starts the helper thread, or wakes it when it has parked, because calls are long here. By the own thread. Without
 * effect when the option is off or the system gives no thread. */
void oribi_helper_need(struct oribi_worker *worker);

/* True while the thread exists and sleeps until it is needed. */
bool oribi_helper_parked(const struct oribi_worker *worker);

/* True if oribi_helper_need() would do something: the thread is parked, or was not needed yet. */
bool oribi_helper_asleep(const struct oribi_worker *worker);

/* Ends the thread and waits for it. By the own thread, which has the reactor. */
void oribi_helper_stop(struct oribi_worker *worker);

/* In a forked child, where the thread does not exist: closes its descriptor. */
void oribi_helper_forget(struct oribi_worker *worker);

/* Ends the helper's sleep, of which oribi__bursts_look() was told, for one look. There is one. */
void oribi__helper_wake(struct oribi_worker *worker);

/* The end of a helper's step: gives the reactor back, or to the own thread where that waits for it. */
void oribi__helper_give_back(struct oribi_worker *worker);

/* --- how long calls are: the helper is told when a call begins and ends --- */

enum {
    ORIBI_LONG_US = 1000, /* a call longer than this is worth a helper */
    ORIBI_PASS_US = 300,  /* calls longer than this on average are worth a hand-off, which costs about 15 */
};

/* How long calls are; a member of struct oribi_worker, of the reactor's owner. */
struct oribi__call_lengths {
    int64_t average_us;    /* of the last ten calls or so */
    int64_t long_until_us; /* until when a call may turn out long, as far as this worker and its siblings know */
    int64_t looked_us;     /* when the siblings were last asked */
};

/* The application begins to run, or has run for `us`: the helper is woken where that is long or may become so. With
 * the reactor. */
void oribi__call_begins(struct oribi_worker *worker, int64_t now_us);
void oribi__call_took(struct oribi_worker *worker, int64_t us, int64_t now_us);

/* True if calls are long on average. With the reactor. */
bool oribi__are_calls_long(const struct oribi_worker *worker);

/* A call was long: notes it on the scoreboard, where it outlives the worker. Async-signal-safe. */
void oribi__note_long(struct oribi_worker *worker, int64_t now_us);

#endif
