/* The process that has loaded the application and forks workers when the supervisor says so, and the start of those workers.
 *
 *   int run_mold(struct oribi_mold *mold)
 *   {
 *       const struct oribi_options *options = oribi_mold_options(mold);
 *       if (options->preload) {
 *           load the application; run the warm-up requests;
 *           if (that raised) {
 *               oribi_mold_failed(mold, text, text_len);           // the supervisor prints it; one line, then the backtrace if one helps
 *               return 1;
 *           }
 *       }
 *       oribi_mold_ready(mold);
 *       for (;;) {
 *           switch (oribi_mold_take(mold)) {
 *           case ORIBI_MOLD_NONE:
 *               without_vm_lock(oribi_mold_wait, mold);            // unblock function: oribi_mold_wake
 *               break;
 *           case ORIBI_MOLD_SPAWN:
 *               run_hook("before_fork");
 *               oribi_mold_before_fork(mold);                      // holds signals back until the child has its own handlers
 *               pid = fork();                                      // the language's own fork, twice
 *               if (pid == 0) {
 *                   pid = fork();
 *                   if (pid == 0)
 *                       return run_worker(mold);
 *                   oribi_mold_intermediate(mold, pid);            // also when that fork failed
 *                   _exit(0);                                      // no at_exit, no END blocks, no destructors
 *               }
 *               oribi_mold_after_fork(mold, pid);                  // also when fork failed; waits for the intermediate process
 *               break;
 *           case ORIBI_MOLD_EXIT:                                  // told to, or the supervisor is gone
 *               oribi_mold_destroy(mold);
 *               return 0;
 *           }
 *       }
 *   }
 *
 *   int run_worker(struct oribi_mold *mold)
 *   {
 *       struct oribi_seat *seat = oribi_seat_enter(mold);          // takes mold; signals wait for us from here on
 *       run_hook("after_fork");
 *       if (!options->preload)
 *           load the application;
 *       oribi_seat_setup(seat, &setup);                            // options, listeners, slot, access log, life_fd
 *       oribi_worker_create(&setup, &worker);
 *       if (any of that raised or failed) {
 *           oribi_seat_failed(seat, text, text_len);
 *           _exit(1);
 *       }
 *       oribi_seat_ready(seat, worker);                            // TERM and QUIT reach the worker, the supervisor counts us
 *       run_hook("after_worker_ready");
 *       the pull loop of worker.h, with one line more at the top of each round:
 *           if (oribi_seat_due(seat) && oribi_seat_turn(seat) == ORIBI_SEAT_FORK_MOLD)   // next to nothing when there is nothing
 *               if (become_mold(seat)) leave the loop, and run what follows oribi_mold_ready() in run_mold();
 *       run_hook("before_worker_exit");
 *       oribi_seat_leave(seat);                                    // handlers no longer touch the worker
 *       oribi_worker_destroy(worker);
 *       exit(0);                                                   // or _exit: as the language thinks right
 *   }
 *
 *   bool become_mold(struct oribi_seat *seat)                      // refork_after: true in the new mold, which keeps the loaded application
 *   {
 *       run_hook("before_refork");                                 // in the warm worker: close what a fork must not share
 *       oribi_seat_before_fork(seat);
 *       pid = fork();
 *       if (pid == 0) {
 *           pid = fork();
 *           if (pid == 0) {
 *               mold = oribi_seat_promote(seat);                   // takes seat; NULL: no descriptors, end the process with code 1
 *               return true;                                       // not oribi_mold_ready(): the supervisor has been told
 *           }
 *           _exit(0);
 *       }
 *       oribi_seat_after_fork(seat, pid);
 *       return false;                                              // the worker serves on until it is replaced
 *   }
 *
 * A loop that is no HTTP worker (Oribi::Prefork) gives NULL for the worker, watches oribi_seat_stopping() and, if it can, oribi_seat_wake_fd().
 *
 * Signals in a worker: TERM and QUIT drain, INT ends the process in the handler, USR1 reopens the logs, USR2 asks for a mold, HUP, WINCH, TTIN
 * and TTOU do nothing, PIPE is ignored. In a mold: INT, TERM and QUIT end it (workers live on), the others do nothing. Children that the application
 * forks or starts get the actions back that were there before us: at exec the default, by POSIX; after a plain fork by the
 * handler itself, which looks at the pid. */
#ifndef ORIBI_SERVER_MOLD_H
#define ORIBI_SERVER_MOLD_H

#include "oribi/server/host.h"
#include "oribi/server/scoreboard.h"
#include "oribi/server/worker.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct oribi_mold;

enum { ORIBI_FAILURE_TEXT_MAX = 3072 }; /* longer reasons are cut */

/* In the child forked at ORIBI_HOST_FORK_MOLD: takes host, closes what belongs to the supervisor alone, switches user and group if asked
 * for. Gives the mold. 0, or ORIBI_ESYS / ORIBI_EINVAL with one line in `error`, which the supervisor has then been told as well. */
int oribi_mold_enter(struct oribi_host *host, struct oribi_mold **out, char *error);

/* True in a command that a supervisor started to become its next mold. */
bool oribi_mold_inherited(void);

/* In such a command: the same for it; the supervisor is told of later failures only, so print `error`. Clears the environment variable, so that what the application starts knows nothing of it. */
int oribi_mold_inherit(const struct oribi_host_setup *setup, struct oribi_mold **out, char *error);

const struct oribi_options *oribi_mold_options(const struct oribi_mold *mold);
struct oribi_listeners *oribi_mold_listeners(struct oribi_mold *mold);

/* Tells the supervisor that the application is loaded, or (borrows text) why not: then end the process with code 1. */
void oribi_mold_ready(struct oribi_mold *mold);
void oribi_mold_failed(struct oribi_mold *mold, const char *text, size_t len);

enum oribi_mold_action {
    ORIBI_MOLD_NONE,
    ORIBI_MOLD_SPAWN,
    ORIBI_MOLD_EXIT,
};

/* The next thing to do; never blocks. */
enum oribi_mold_action oribi_mold_take(struct oribi_mold *mold);

/* Blocks until there may be something to take. Safe without the VM lock. */
void oribi_mold_wait(struct oribi_mold *mold);

/* Ends a current or the next oribi_mold_wait(). Async-signal-safe and thread-safe. */
void oribi_mold_wake(struct oribi_mold *mold);

/* Around the two forks of ORIBI_MOLD_SPAWN, see above. `pid` is fork's result; < 0 with errno. */
void oribi_mold_before_fork(struct oribi_mold *mold);
void oribi_mold_intermediate(struct oribi_mold *mold, pid_t pid);
void oribi_mold_after_fork(struct oribi_mold *mold, pid_t pid);

/* What the process title should say ("oribi mold, generation 1"). As oribi_host_title(). */
size_t oribi_mold_title(struct oribi_mold *mold, char *dst, size_t cap);

void oribi_mold_destroy(struct oribi_mold *mold);

/* --- a worker's seat: its place in the scoreboard and its ties to the supervisor --- */

struct oribi_seat;

/* In the grandchild: takes mold, installs a worker's signal handlers. Never fails. */
struct oribi_seat *oribi_seat_enter(struct oribi_mold *mold);

/* Fills in everything oribi_worker_create() wants. All of it lives until the process ends. */
void oribi_seat_setup(struct oribi_seat *seat, struct oribi_worker_setup *setup);

struct oribi_slot *oribi_seat_slot(struct oribi_seat *seat);
struct oribi_listeners *oribi_seat_listeners(struct oribi_seat *seat);
uint32_t oribi_seat_index(const struct oribi_seat *seat); /* 0, 1, 2 … : name of the place, reused by later workers */
uint32_t oribi_seat_generation(const struct oribi_seat *seat); /* 1 at start, one more per reload */
int oribi_seat_life_fd(const struct oribi_seat *seat);         /* at EOF the supervisor is dead; borrowed */

/* Ties the worker (NULL: none) to the signals and tells the supervisor that this worker serves. A stop that came before takes effect now. */
void oribi_seat_ready(struct oribi_seat *seat, struct oribi_worker *worker);

/* Borrows text: why this worker cannot serve. End the process with code 1 after it. */
void oribi_seat_failed(struct oribi_seat *seat, const char *text, size_t len);

/* True when oribi_seat_turn() has something to do. Signals and, for workers that listen, the wait itself end with it, so nothing is late. */
bool oribi_seat_due(const struct oribi_seat *seat);

enum oribi_seat_action {
    ORIBI_SEAT_NONE,
    ORIBI_SEAT_FORK_MOLD, /* see become_mold() above; a host that cannot ignores it */
};

/* Between two requests: does what signals asked for and what must not happen in a handler. */
enum oribi_seat_action oribi_seat_turn(struct oribi_seat *seat);

/* Around the two forks that make a mold of this worker. The listeners are duplicated for it, because the worker closes its own in a child. */
void oribi_seat_before_fork(struct oribi_seat *seat);
void oribi_seat_after_fork(struct oribi_seat *seat, pid_t pid);
struct oribi_mold *oribi_seat_promote(struct oribi_seat *seat);

/* As if the worker had got this signal: for a runtime whose own handlers stand beside the core's. Async-signal-safe. */
void oribi_seat_signal(struct oribi_seat *seat, int number);

/* True from the moment a stop is announced (drain_delay): a readiness check should fail, requests are still welcome. */
bool oribi_seat_stop_soon(const struct oribi_seat *seat);

/* True once the worker was told to stop (TERM, QUIT) or the supervisor is gone. */
bool oribi_seat_stopping(struct oribi_seat *seat);

/* Becomes readable at a signal and at the supervisor's end, for loops of their own; never read from it. Borrowed. */
int oribi_seat_wake_fd(struct oribi_seat *seat);

/* What the process title should say ("oribi worker 2, generation 1, idle, 4711 requests"). As oribi_host_title(); cheap enough once a second. */
size_t oribi_seat_title(struct oribi_seat *seat, char *dst, size_t cap);

/* Unties the worker from the signals: from here on INT ends the process, TERM and QUIT leave it to its own end. Takes seat. */
void oribi_seat_leave(struct oribi_seat *seat);

#endif
