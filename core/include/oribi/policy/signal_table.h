/* Every signal and what follows from it, in each role of a process. The handlers read the table in signal_table.c;
 * doc/internals/supervisor.md says the same to users. */
#ifndef ORIBI_POLICY_SIGNAL_TABLE_H
#define ORIBI_POLICY_SIGNAL_TABLE_H

#include "oribi/policy/policy.h"

#include <stdbool.h>
#include <stddef.h>

enum oribi__effect {
    ORIBI__NOTHING, /* the handler returns at once */
    ORIBI__PROGRAM, /* no handler of ours: the program's own, or the system's default */
    /* supervisor, manager */
    ORIBI__LOOKS, /* a turn, which looks for children that have ended */
    ORIBI__STOPS, /* workers drain; the second one stops at once. A manager then raises the signal again */
    ORIBI__STOPS_AT_ONCE,
    ORIBI__RELOADS, /* a stop where the terminal has gone away, which also sends HUP */
    ORIBI__UPGRADES,
    ORIBI__REOPENS, /* the logs; a supervisor sends it on to molds and workers */
    ORIBI__EMPTIES, /* no workers until the next TTIN or HUP; nothing in a terminal, whose resizing also sends WINCH */
    ORIBI__ADDS,    /* one worker more */
    ORIBI__REMOVES, /* one worker fewer */
    /* mold, worker */
    ORIBI__ENDS,   /* exit: a mold that loads with 1 in the handler, else with 0 in its loop; a worker in the handler */
    ORIBI__DRAINS, /* the worker finishes what it has begun; one that does not serve yet ends in the handler */
    ORIBI__MOLDS,  /* a mold is made of this worker */
    ORIBI__RAISES, /* raised again for the program's handler */
};

enum oribi__signalled {
    ORIBI__IN_SUPERVISOR,
    ORIBI__IN_MOLD,
    ORIBI__IN_WORKER,
    ORIBI__IN_MANAGER,    /* prefork.h; a signal that is trapped ends its loop instead */
    ORIBI__IN_JOB_WORKER, /* a manager's worker; DRAINS counts from oribi_jobs_watch_signals() on, before it RAISES */
    ORIBI__SIGNALLED_ROLES,
};

/* NOTHING for a signal without a row. Async-signal-safe. */
enum oribi__effect oribi__signal_effect(int number, enum oribi__signalled role);

/* The policy's event for an effect in a supervisor or a manager. False when there is none. */
bool oribi__signal_event(enum oribi__effect effect, struct oribi_policy_event *event);

enum { ORIBI__SIGNALS_MAX = 16 };

/* Signals that oribi_signals_choose() is to be given in this role: all that are not the program's. Gives how many
 * `numbers` (room for ORIBI__SIGNALS_MAX) there are. */
size_t oribi__signals_handled(enum oribi__signalled role, int *numbers);

#endif
