/* An upgrade: a successor is started beside this supervisor on the same listeners, and this one ends when the
 * successor's workers serve. The successor writes to a pipe whose write end it finds in its environment:
 *
 *   ORIBI_UPGRADE      "fd": write "1" there when all workers serve
 *   ORIBI_UPGRADE_WHY  set: write "E", a line and a NUL there before failing; "2": the predecessor also knows "S", a
 *                      command to stop, and "N", to stop now, which the successor was given and which mean both
 *   ORIBI_UPGRADE_WORKERS  "asked configured": workers asked for by ctl or a signal, and by the configuration
 *   ORIBI_CONTROL_PATH  where the control socket is that the predecessor's options do not name
 *
 * Counters go to the successor by totals.h. */
#ifndef ORIBI_SUPERVISOR_UPGRADE_H
#define ORIBI_SUPERVISOR_UPGRADE_H

#include "oribi/policy/policy.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct oribi__context;

struct oribi__upgrade {
    /* in a successor */
    int predecessor_fd;        /* write end of the pipe; -1: no successor, or the predecessor knows */
    bool predecessor_asks_why; /* a line about a failure is welcome there */
    bool predecessor_stops;    /* a command to stop is welcome there, too */
    /* workers that an operator has asked the predecessor for, and those of its configuration; 0: nothing was asked */
    uint32_t workers;
    uint32_t workers_before;
    bool stop_handed; /* one was handed on: the predecessor must not leave its listeners to this server */
    /* in a predecessor */
    int successor_fd;     /* read end of the pipe; -1: no successor is starting */
    char stop;            /* 'S', 'N': a command to stop came by the successor; 0: none did */
    bool failure_follows; /* what comes now is the line about the failure */
    char why[256];        /* that line; "": none came */
    size_t why_len;
    bool why_known; /* the line is complete: later failures follow from the first */
};

/* Starts the successor, and gives UPGRADE_STARTED: its pid, or -1 and why not. The pid file is renamed to make room. */
struct oribi_policy_event oribi__upgrade_start(struct oribi__context *context);

/* Reads what the successor has written. True when its workers serve. */
bool oribi__upgrade_ready(struct oribi__context *context);

/* The successor has failed: reads what it has written before its end, so that `upgrade.why` is complete, and takes pid
 * file and control socket back. */
void oribi__upgrade_failed(struct oribi__context *context);

/* In a starting supervisor: finds out whether it is a successor, and clears the environment of that. */
void oribi__upgrade_inherit(struct oribi__context *context);

/* In a successor, else nothing: tells the predecessor why this start may fail (borrows text). */
void oribi__upgrade_tell(struct oribi__context *context, const char *text);

/* In a successor: hands a command of `ctl stop` on to the predecessor, which still serves and would go on without a
 * successor; it stops, and this successor with it. False where there is none, or it is one that does not know this. */
bool oribi__upgrade_hand_stop(struct oribi__context *context, bool now);

/* In a predecessor: true when such a command has come, which is in `event`. Behind oribi__upgrade_ready(). */
bool oribi__upgrade_stop(struct oribi__context *context, struct oribi_policy_event *event);

/* In a successor that does not stop, else nothing: tells the predecessor to leave once all workers serve. One of
 * several would take more capacity away than it brings. */
void oribi__upgrade_relieve(struct oribi__context *context);

#endif
