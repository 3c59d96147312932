/* An upgrade: a successor is started beside this supervisor on the same listeners, and this one ends when the
 * successor's workers serve. The successor writes to a pipe whose write end it finds in its environment:
 *
 *   ORIBI_UPGRADE      "fd": write "1" there when all workers serve
 *   ORIBI_UPGRADE_WHY  set: write "E", a line and a NUL there before failing; "2": the predecessor also knows "S", a
 *                      command to stop, and "N", to stop now, which the successor was given and which mean both
 *   ORIBI_UPGRADE_WORKERS  "asked configured": workers asked for by ctl or a signal, and by the configuration
 *   ORIBI_INBOX        the inbox of publications (frontend_inbox.h)
 *   ORIBI_CONTROL_PATH  where the control socket is that the predecessor's options do not name
 *
 * A command to stop that comes by the successor is an event of the predecessor; so is that all workers of the successor
 * serve. A successor that does not stop tells so once all its workers serve: one of several would take more capacity
 * away than it brings. Counters go to the successor by totals.h. */
#ifndef ORIBI_SUPERVISOR_UPGRADE_H
#define ORIBI_SUPERVISOR_UPGRADE_H

#include "oribi/policy/policy.h"

#include <stdbool.h>
#include <stdint.h>

struct oribi__context;

/* Starts the successor, and gives UPGRADE_STARTED: its pid, or -1 and why not. The pid file is renamed to make room. */
struct oribi_policy_event oribi__upgrade_start(struct oribi__context *context);

/* The successor has failed: reads what it has written before its end, so that `upgrade.why` is complete, and takes pid
 * file and control socket back. */
void oribi__upgrade_failed(struct oribi__context *context);

/* A line about the failure that the successor has written; "": none came. */
const char *oribi__upgrade_why(const struct oribi__context *context);

/* --- in the successor --- */

/* Does a predecessor serve the addresses, too? */
bool oribi__upgrade_is_successor(const struct oribi__context *context);

/* The predecessor's pipe, -1 when this is no successor, for observe. */
const int *oribi__upgrade_predecessor_fd(const struct oribi__context *context);

/* Workers that an operator has asked the predecessor for, and those of its configuration; 0: nothing was asked. */
void oribi__upgrade_workers(const struct oribi__context *context, uint32_t *workers, uint32_t *before);

/* In a successor, else nothing: tells the predecessor why this start may fail (borrows text). */
void oribi__upgrade_tell(struct oribi__context *context, const char *text);

/* In a successor: hands a command of `ctl stop` on to the predecessor, which still serves and would go on without a
 * successor; it stops, and this successor with it. False where there is none, or it is one that does not know this. */
bool oribi__upgrade_hand_stop(struct oribi__context *context, bool now);

#endif
