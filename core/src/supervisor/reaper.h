/* Where no process but init adopts orphans (oribi_os_adopts_orphans()), a worker cannot become its supervisor's child.
 * Then the intermediate process between a mold and its worker stays, as the worker's parent: a reaper, which reports
 * with which status its child has ended. Its title names the worker's pid. So it is with a mold that is made of a
 * worker.
 *
 *   supervisor ──► mold ──FORK──► reaper ──FORK──► worker
 *        ▲                           │ waits        │ ends
 *        └──── ORIBI_MESSAGE_ENDED ◄─┘◄─────────────┘
 *
 * A reaper outlives its mold, as its worker does. It is the mold's child, and is reaped when the mold next forks.
 * Should a reaper be killed, the supervisor finds its worker gone at a look once a second, and does not know how it
 * has ended. */
#ifndef ORIBI_SUPERVISOR_REAPER_H
#define ORIBI_SUPERVISOR_REAPER_H

#include "supervisor/supervisor_private.h"

/* In the intermediate, whose signals are held back: closes all descriptors but message_fd, with the null device
 * for standard streams; waits for the end of its
 * child, and reports it. */
void oribi__reaper_keep(int message_fd, pid_t pid);

/* In the mold: notes one more, and reaps those that have ended. */
void oribi__reapers_add(struct oribi__reapers *reapers, pid_t pid);
void oribi__reapers_free(struct oribi__reapers *reapers);

/* In the supervisor: the report as an event. False: no process of this system sends one. */
bool oribi__reaper_reported(struct oribi__context *context, const struct oribi_message *message,
                            struct oribi_policy_event *event);

/* A process that has gone without a report, looked for once a second; 0: none. It may have been reported since. */
pid_t oribi__reaper_missing(struct oribi__context *context);

/* At the supervisor's end, when all workers have ended: waits until their reapers, which have told it of that, have
 * ended as well; not for long. */
void oribi__reapers_await(struct oribi__context *context);

/* When to look next, by oribi_clock_ms(); INT64_MAX: never. */
int64_t oribi__reaper_deadline(const struct oribi__context *context);

#endif
