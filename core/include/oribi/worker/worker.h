/* The pull interface: a language runtime takes requests from the core; the core never calls into it.
 *
 *   for (;;) {
 *       req = oribi_worker_take(worker);            // one reactor turn, never blocks
 *       if (!req) {
 *           if (oribi_worker_done(worker)) break;   // told to stop, and drained
 *           without_vm_lock(oribi_worker_wait_for); // blocks; oribi_worker_wake() ends it
 *           continue;
 *       }
 *       ... answer it (req.h)
 *   }
 */
#ifndef ORIBI_WORKER_WORKER_H
#define ORIBI_WORKER_WORKER_H

#include "oribi/config/listener.h"
#include "oribi/config/options.h"
#include "oribi/worker/logs/access_log.h"
#include "oribi/worker/placement/handoff.h"
#include "oribi/worker/placement/scoreboard.h"

#include <stdbool.h>

struct oribi_worker;
struct oribi_req;
struct oribi_warmup;

struct oribi_worker_setup {
    const struct oribi_options *options;  /* borrowed for the worker's life */
    struct oribi_listeners *listeners;    /* borrowed; the worker never shuts them down, only stops watching */
    struct oribi_slot *slot;              /* of this worker on the scoreboard, or NULL */
    const struct oribi_scoreboard *board; /* all slots, to see whether a sibling is idle; NULL: it has no siblings */
    /* of a local_thread, in a frontend: those that health tells of; else NULL */
    const struct oribi_scoreboard *workers;
    /* borrowed; the hand-off queue shared with the workers on the board, or NULL: none */
    const struct oribi_handoff *handoff;
    struct oribi_access_log *access_log; /* borrowed, or NULL: off */
    /* raised in the calling thread when call_timeout passes, once a call, and when its client has gone; 0: none. The
     * runtime's handler throws, if oribi_thread_overdue() or oribi_thread_take_gone() */
    int deadline_signal;
    /* borrowed: what else the process needs to be open, for what it tells its supervisor; 0: none */
    int report_fd;
    bool shares_heap; /* others use the core's memory too, so that what a worker gives back cannot be counted */
    int life_fd;      /* reaches EOF when the supervisor dies: then drain and end; -1: none */
};

/* How many descriptors a worker with these options wants to be allowed. */
uint64_t oribi_worker_descriptors(const struct oribi_options *options);

/* Gives a worker owned by the calling process and thread. 0, ORIBI_ENOMEM or ORIBI_ESYS. Call after fork. */
int oribi_worker_create(const struct oribi_worker_setup *setup, struct oribi_worker **out);

enum { ORIBI_FRAMES_MAX = 20 };

/* Writes where the call of a thread (0 without several) stands in its language, innermost first, at most
 * ORIBI_FRAMES_MAX frames, each a line that ends with a newline; returns the length. Called in a signal handler on the
 * call's own thread, which may be anywhere in the runtime, or from another thread while that one waits in the kernel or
 * takes no signals; 0 where the runtime cannot be read from there. The call may go on. So it only reads, runs no code
 * of the runtime, takes no memory and no lock. A fault in it leaves it there: what it has written is not used. */
typedef size_t (*oribi_frames_fn)(void *self, uint32_t thread, bool own_thread, char *dst, size_t cap);
void oribi_worker_show_frames(struct oribi_worker *worker, oribi_frames_fn fn, void *self);

/* Figures that a language's garbage collector gives of its process; 0: it does not have the figure. */
struct oribi_gc {
    uint64_t count;        /* runs since the process's beginning, those before its fork included */
    uint64_t us;           /* time that these runs took */
    uint64_t live_objects; /* now */
    uint64_t heap_pages;   /* now */
};

/* True when oribi_worker_note_gc() is wanted: once a second while calls are made, and once after the last; never
 * without the option `status`. Then it is false until the next second. Cheap; for the thread that has the VM lock. */
bool oribi_worker_gc_due(struct oribi_worker *worker);

/* Writes what is new since the last time to the slot's counters, and live_objects and heap_pages as they are. The first
 * time counts nothing: what a process has collected before it became a worker is no worker's. One thread at a time;
 * needs neither the reactor nor a clock. Does nothing without the option `status`, and in a child that the application
 * forked. For when a worker begins, when it ends, and whenever oribi_worker_gc_due() says so. */
void oribi_worker_note_gc(struct oribi_worker *worker, const struct oribi_gc *now);

/* Closes every connection and frees the worker. In a child forked by the application it only closes descriptors. */
void oribi_worker_destroy(struct oribi_worker *worker);

/* One reactor turn: events, timeouts, accepts; returns the oldest complete request, or NULL when none is ready.
 * Never blocks. */
struct oribi_req *oribi_worker_take(struct oribi_worker *worker);

/* Blocks until something happened (an event, a deadline, oribi_worker_wake()) or `ms` have passed; < 0: no bound. May
 * return sooner. Touches no request. Safe without the VM lock. */
void oribi_worker_wait_for(struct oribi_worker *worker, int64_t ms);

/* Ends a current or the next oribi_worker_wait_for(), and a current oribi_reply_wait() of a worker of one thread
 * (of several: oribi_thread_wake()). Async-signal-safe and thread-safe. */
void oribi_worker_wake(struct oribi_worker *worker);

/* Starts a graceful stop: the worker accepts no more, answers say Connection: close, idle connections go to the
 * siblings or, where there are none, are closed after a grace of a second. When shutdown_timeout has passed (where the
 * server goes on: oribi_options_finish_ms()) the worker is done, whatever is still open. Async-signal-safe. */
void oribi_worker_stop(struct oribi_worker *worker);

/* Starts a graceful stop as oribi_worker_stop(), because of a signal. A signal to the whole process group may reach the
 * worker before its supervisor: until the supervisor has said (in the slot) whether the listeners end, at most for the
 * grace, the worker stays to accept what still comes out of them. */
void oribi_worker_stop_signalled(struct oribi_worker *worker);

/* The worker ends with the call that it is in: it begins no other. Connections and requests that it holds, those
 * behind the one that is called too, go into the hand-off queue, for its siblings or for the worker that replaces
 * it; so answers need not say Connection: close. Without a hand-off queue, or when a stop has begun, this is
 * oribi_worker_stop(). Own thread, in a call or between. */
void oribi_worker_retire(struct oribi_worker *worker);

/* True when the worker was told to stop (or its supervisor is gone, or requests_max is reached) and has nothing left to
 * do or no time left; and in a child that the application forked. */
bool oribi_worker_done(const struct oribi_worker *worker);

/* True from oribi_worker_stop() or oribi_worker_retire() on, or once the slot says that the supervisor stops it. */
bool oribi_worker_stopping(const struct oribi_worker *worker);

/* Closes every descriptor of the worker in a child that the application forked, so that the child keeps no client
 * waiting and steals no event. Done by itself at every fork(2) of the owner (pthread_atfork); for runtimes that fork
 * past it. */
void oribi_worker_abandon(struct oribi_worker *worker);

/* True in such a child: answer nothing there, end the process as its language does. */
bool oribi_worker_abandoned(const struct oribi_worker *worker);

/* Requests answered since create. */
uint64_t oribi_worker_request_count(const struct oribi_worker *worker);

/* --- warmup.c ---
 *
 * Requests that a freshly loaded application must answer before any client's: the option `warmup`. They go through a
 * worker in the mold itself, as later requests go through theirs, and the workers that are forked afterwards share what
 * they have built up.
 *
 *   between loading the application and the answer to LOAD (process.h), if options->warmup.count > 0:
 *       oribi_worker_create(&(struct oribi_worker_setup){.options = options, .life_fd = -1}, &worker);
 *       oribi_warmup_begin(worker, oribi_process_listeners(p), &warmup);
 *       the pull loop; it ends when all have been answered
 *       code = oribi_warmup_end(warmup, error);                     // < 0: oribi_process_failed(p, …)
 *       oribi_worker_destroy(worker);
 */

/* Sends `GET target` to the worker for each target of its options, as HTTP/1.0 on connections of their own, answered
 * one after the other in that order. Borrows worker and listeners (the first one's host and port are the server's
 * name; may be NULL) until the end; starts a thread that reads the answers. Gives the warm-up. 0, ORIBI_ENOMEM or
 * ORIBI_ESYS. */
int oribi_warmup_begin(struct oribi_worker *worker, const struct oribi_listeners *listeners, struct oribi_warmup **out);

/* After the loop: takes the warm-up, joins the thread. 0 if every answer had a status below 500, else ORIBI_EAPP
 * with one line in `error` (ORIBI_ERROR_TEXT_CAP) about the first that had not. */
int oribi_warmup_end(struct oribi_warmup *warmup, char *error);

#endif
