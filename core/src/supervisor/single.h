/* A server of one process (`single`): it owns the listeners, has loaded the application and is the worker. Nothing is
 * forked, so that it works where a fork is a trap (macOS, once Objective-C was initialised), under a debugger, and for
 * who wants one process.
 *
 *   the program's threads                      the housekeeping thread, a thread in C
 *   LOAD, OPEN, RUN: the one worker            what a supervisor's loop does beside its processes: signals, control
 *        │    ▲                                socket, status and agent listener, watched files, deadlines
 *        │    └── drain, reopen ──────────────────┤
 *        └─────── files, ready, failed ──────────►│
 *
 * The housekeeping thread knows nothing of the language, and answers while every call is stuck. Between
 * oribi__single_begin() and oribi__single_leave() the supervisor's state is its own; the worker has descriptors of its
 * own of listeners and hand-off queue, as a forked one would, so that each side closes what it has.
 *
 * Signals are those of a supervisor (signal_table.h). A stop drains the worker, the second one ends the process at
 * once; so does the end of shutdown_timeout. A reload and an upgrade are the same here (single_restart.c):
 *
 *   HUP ──► a trial: the command, started as a mold is, that loads the application and ends
 *             │ fails: one line in the log, and this process goes on as it is
 *             ▼
 *           the worker drains, its listeners stay open ──► hooks ──► exec(2) of the command under this pid
 *
 * Connections that come meanwhile wait in the listeners' backlog. HUP, USR1, USR2, TTIN and TTOU are held back over the
 * exec, since the new program has no handlers at first; in Ruby, which unblocks them when it begins, those of this
 * moment are ignored. The new program finds in its environment:
 *
 *   ORIBI_SINGLE   "generation descriptor", that of the watched files
 *   ORIBI_LISTEN   the listening sockets (listener.h) */
#ifndef ORIBI_SUPERVISOR_SINGLE_H
#define ORIBI_SUPERVISOR_SINGLE_H

#include "supervisor/supervisor.h"

#include <stdbool.h>
#include <stddef.h>

struct oribi_link;
struct oribi_single;

/* Variables of the environment that the exec of such a server has left. */
struct oribi__arrival {
    unsigned generation; /* 0: there was no such exec */
    int watched_fd;      /* the files that were watched (watch.h); -1: none */
};

/* In any process of ours, before and after its handlers are installed: reads that and clears the environment of it, and
 * what was held back reaches the process again. */
struct oribi__arrival oribi__single_arrive(void);
void oribi__single_arrived(const struct oribi__arrival *arrival);

/* Makes the calling process such a server. Gives it, and its worker's child
 * (mold.h), which lives as long as the process. 0 or as oribi_supervisor_create(), which it calls. */
int oribi__single_begin(const struct oribi_supervisor_setup *setup, const struct oribi__arrival *arrival,
                        struct oribi_single **out, struct oribi_link **child, char *error);

/* As if the process had got this signal. Async-signal-safe. */
void oribi__single_signal(struct oribi_single *single, int number);

/* Asks for a graceful stop, once. Async-signal-safe. */
void oribi__single_stop(struct oribi_single *single);

/* The worker is open and has said so: waits until the housekeeping thread has heard of that, and of all that was told
 * before, such as files to watch. */
void oribi__single_await_up(struct oribi_single *single);

/* The worker has left RUN because the program is to be started anew. */
bool oribi__single_restarts(const struct oribi_single *single);

/* The worker has ended or could not begin (`failed`): ends the housekeeping thread. Gives the exit code. */
int oribi__single_leave(struct oribi_single *single, bool failed);

/* After that and the worker's end: starts the program anew under this pid, where it is to be; else, and where that
 * fails, removes what is ours and closes it. */
void oribi__single_end(struct oribi_single *single);

#endif
