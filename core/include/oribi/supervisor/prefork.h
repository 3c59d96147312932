/* The supervisor as a library: any program becomes the manager of workers that it forks itself. The machine is that
 * of a server (process.h) with another policy, which oribi_process_setup.manager switches on:
 *
 *   - The manager is its own mold: HOOK before_fork, FORK worker, HOOK after_fork; one fork, of whatever the program is
 *     at that moment.
 *   - A trapped signal is the step TRAPPED: the program's start returns. Workers live on; oribi_process_resume() begins
 *     a new generation.
 *   - HUP, when it is not trapped, reloads as ever: the program is started anew, and where it would become a manager it
 *     becomes a mold.
 *   - A worker gets one step, RUN, and is reported as ready before it. jobs.h has what its loop asks and reports.
 *
 *   int start(struct oribi_process *p)          // made by oribi_process_create(), or resumed after TRAPPED
 *   {
 *       for (;;) {
 *           step = oribi_process_take(p);
 *           switch (step->type) {
 *           case ORIBI_STEP_WAIT:    oribi_process_wait(p, -1);
 *           case ORIBI_STEP_FORK:    oribi_process_forked(p, fork());
 *           case ORIBI_STEP_HOOK:    before_fork(), after_fork(step->pid), on_child_reap(step->pid, step->status)
 *           case ORIBI_STEP_RUN:     return the worker's loop(p);        // take is not called again in this process
 *           case ORIBI_STEP_TRAPPED: return step->signal;                // p stays: resume it, or wait and destroy it
 *           case ORIBI_STEP_DONE:    return;                     // after oribi_process_await_workers()
 *           case ORIBI_STEP_EXIT:    if (step->at_once) _exit(step->code);
 *                                    oribi_process_destroy(p);
 *                                    if (step->signal) raise(step->signal);
 *                                    return;
 *           }
 *       }
 *   } */
#ifndef ORIBI_SUPERVISOR_PREFORK_H
#define ORIBI_SUPERVISOR_PREFORK_H

#include "oribi/supervisor/process.h"
#include "oribi/base/signals.h"

enum { ORIBI_TRAPS_MAX = 32 };

struct oribi_trap {
    int signal;
    int send; /* to the workers; 0: nothing */
    int64_t interval_ms;
};

struct oribi_prefork {
    struct oribi_trap traps[ORIBI_TRAPS_MAX];
    uint32_t trap_count;
    uint64_t left; /* bit n - 1: signal n is the program's own */
};

/* --- options: those that mean something without HTTP, and jobs_max and jobs_jitter for requests_max and
 * requests_jitter --- */

/* After oribi_options_init(): a library's defaults (ten workers, no deadline for a stop, quiet). */
void oribi_prefork_defaults(struct oribi_options *options);

/* As oribi_options_set(). An option of the server that has no meaning here is refused with a reason. 1, with `error`:
 * no option has such a name or nearly such a name. The libraries that this one succeeds keep such settings for the
 * program, and heed none of them. */
int oribi_prefork_set(struct oribi_options *options, const char *name, const char *value, char *error);

/* Adds a trap: at `signal` the loop ends, after `send` (0: nothing) was sent to the workers, one each interval_ms. 0,
 * or ORIBI_EINVAL with `error` for a signal that cannot be trapped, a second trap for one, or too many. */
int oribi_prefork_trap(struct oribi_prefork *prefork, int signal, int send, int64_t interval_ms, char *error);

/* Adds a trap by names ("TERM", "SIGTERM", "15"), `send` NULL or "" for nothing. ORIBI_EINVAL also for a name that no
 * signal has. Borrows the texts. */
int oribi_prefork_trap_named(struct oribi_prefork *prefork, const char *signal, const char *send, int64_t interval_ms,
                             char *error);

/* A signal that the program handles itself is left to it, unless it is trapped. */
void oribi_prefork_leave(struct oribi_prefork *prefork, int signal);

/* --- the manager --- */

/* After TRAPPED: workers are forked again, of a new generation, as those there are leave. A trapped signal that came
 * meanwhile is the next step. */
void oribi_process_resume(struct oribi_process *p);

/* After TRAPPED: the steps go on until neither a worker nor the mold of a reload is left, or until `ms` milliseconds
 * have passed (0: no bound; < 0: they have), and then comes DONE. A second TERM, QUIT or INT meanwhile ends the workers
 * at once. */
void oribi_process_await_workers(struct oribi_process *p, int64_t ms);

/* The options that the supervisor acts on have changed. */
void oribi_process_configure(struct oribi_process *p);

/* Sends a signal to every worker, and says to how many. */
uint32_t oribi_process_signal_all(struct oribi_process *p, int signal);

/* Worker processes there are, of all generations. 0 in a process that is no manager. */
uint32_t oribi_process_workers(const struct oribi_process *p);

#endif
