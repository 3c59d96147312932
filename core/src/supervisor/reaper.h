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

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Processes of this kind that a mold has forked. */
struct oribi__reapers {
    pid_t *pids;
    uint32_t count;
    uint32_t cap;
};

/* In the intermediate, whose signals are held back: closes all descriptors but message_fd, with the null device
 * for standard streams; waits for the end of its
 * child, and reports it. */
void oribi__reaper_keep(int message_fd, pid_t pid);

/* In the mold: notes one more, and reaps those that have ended. */
void oribi__reapers_add(struct oribi__reapers *reapers, pid_t pid);
void oribi__reapers_free(struct oribi__reapers *reapers);

#endif
