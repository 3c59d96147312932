/* The supervisor as a library: any program becomes the manager of workers that it forks itself. No listeners, no requests; the decisions, the
 * shell around them and the workers' ties are those of the server (host.h, mold.h), with these differences:
 *
 *   - The manager is its own mold: workers are forked straight from it, in whatever state the program is at that moment.
 *   - The manager's loop ends at a trapped signal and can be entered again; workers live on meanwhile.
 *   - HUP, when it is not trapped, reloads as ever: the program is started anew, becomes a mold where it would become a manager, and its
 *     workers replace those there are.
 *
 *   int start(struct oribi_host *host)                         // created with setup.prefork; resumed if this is not the first time
 *   {
 *       for (;;) {
 *           action = oribi_host_take(host);
 *           switch (action->type) {
 *           case ORIBI_HOST_NONE:         oribi_host_wait_for(host, -1);
 *           case ORIBI_HOST_FORK_WORKER:
 *               before_fork(); oribi_host_before_fork(host);
 *               pid = fork();
 *               if (pid == 0) { seat = oribi_seat_enter_host(host); oribi_seat_begin(seat); return the worker's loop(seat); }
 *               oribi_host_worker_forked(host, pid);
 *           case ORIBI_HOST_HOOK:         on_child_reap() for "on_worker_exit"
 *           case ORIBI_HOST_FORK_DAEMON:  as in host.h
 *           case ORIBI_HOST_TRAPPED:      return action->signal;  // host stays: oribi_host_resume(), or wait and destroy
 *           case ORIBI_HOST_EXIT:         oribi_host_destroy(host); if (action->signal) raise(action->signal);
 *           }
 *       }
 *   }
 *
 * A worker that never asks whether it is to stop is ended by TERM, QUIT and INT in the ordinary way of its language. From oribi_seat_heed() on
 * TERM and QUIT only ask, and the loop ends between two jobs. */
#ifndef ORIBI_SERVER_PREFORK_H
#define ORIBI_SERVER_PREFORK_H

#include "oribi/server/host.h"
#include "oribi/server/mold.h"
#include "oribi/server/signals.h"

/* --- options: those of options.h that mean something without HTTP, and jobs_max and jobs_jitter for requests_max and requests_jitter --- */

/* After oribi_options_init(): a library's defaults (ten workers, no deadline for a stop, quiet). */
void oribi_prefork_defaults(struct oribi_options *options);

/* As oribi_options_set(). An option of the server that has no meaning here is refused with a reason. */
int oribi_prefork_set(struct oribi_options *options, const char *name, const char *value, char *error);

/* --- the manager --- */

/* Adds a trap: at `signal` the loop ends, after `send` (0: nothing) was sent to the workers, one each interval_ms. 0, or ORIBI_EINVAL with
 * `error` for a signal that cannot be trapped, a second trap for one, or too many. */
int oribi_prefork_trap(struct oribi_prefork *prefork, int signal, int send, int64_t interval_ms, char *error);

/* A signal that the program handles itself is left to it, unless it is trapped. */
void oribi_prefork_leave(struct oribi_prefork *prefork, int signal);

/* Blocks as oribi_host_wait(), at most so many milliseconds; < 0: no bound. */
void oribi_host_wait_for(struct oribi_host *host, int64_t ms);

/* Around the fork of ORIBI_HOST_FORK_WORKER, in the parent. `pid` is fork's result; < 0 with errno. */
void oribi_host_before_fork(struct oribi_host *host);
void oribi_host_worker_forked(struct oribi_host *host, pid_t pid);

/* After ORIBI_HOST_TRAPPED: workers are forked again, of a new generation, as those there are leave. A trapped signal that came meanwhile is
 * the next action. */
void oribi_host_resume(struct oribi_host *host);

/* The options that the supervisor acts on have changed. */
void oribi_host_configure(struct oribi_host *host);

/* Sends a signal to every worker, and says to how many. */
uint32_t oribi_host_signal_all(struct oribi_host *host, int signal);

/* Processes there are, of all generations. */
uint32_t oribi_host_workers(const struct oribi_host *host);

/* --- a worker --- */

/* In the child: takes host, becomes the user that the options name. Gives the seat; NULL with `error`: end the process with code 1. */
struct oribi_seat *oribi_seat_enter_host(struct oribi_host *host, char *error);

/* Tells the supervisor that the worker is up; for a seat of oribi_seat_enter() too. */
void oribi_seat_begin(struct oribi_seat *seat);

/* From here on TERM and QUIT only ask. */
void oribi_seat_heed(struct oribi_seat *seat);

/* Is this worker to end? Does what else signals have asked for, so call it between jobs. */
bool oribi_seat_asked(struct oribi_seat *seat);

/* Around a job. `text` is shown in status while it lasts; borrowed. After jobs_max of them the worker is asked to end. */
void oribi_seat_job_begin(struct oribi_seat *seat, const char *text, size_t len);
void oribi_seat_job_end(struct oribi_seat *seat);

/* What the process title should say now, as oribi_seat_title(): at most about once a second and when a job that it told of is over. `rest`: the
 * worker has nothing to do, so that it costs nobody anything to be exact. */
size_t oribi_seat_job_title(struct oribi_seat *seat, bool rest, char *dst, size_t cap);

#endif
