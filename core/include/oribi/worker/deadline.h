/* Calls that take too long. The handler of a private signal ends them, on the thread of the call; the helper sends the
 * signal, or the supervisor when there is no helper. So the client of a call that hangs in code which never returns is
 * answered as well. doc/internals/placement.md has the times. */
#ifndef ORIBI_WORKER_DEADLINE_H
#define ORIBI_WORKER_DEADLINE_H

#include <stdbool.h>
#include <stdint.h>

struct oribi_worker;

enum {
    ORIBI_DEADLINE_HARD_MS = 2000,    /* after the deadline: the worker answers, passes its connections on and ends */
    ORIBI_DEADLINE_REPEAT_MS = 100,   /* between two signals */
    ORIBI_DEADLINE_TAKEOVER_MS = 300, /* after that: the helper does it for a thread that takes no signals */
    /* with several threads: for so long the worker's other calls may go on */
    ORIBI_DEADLINE_OTHERS_MS = 1000,
    ORIBI_DEADLINE_JUMP_MS = 3000,  /* if two looks are further apart, the machine or this process stood still */
    ORIBI_EXIT_CALL_DEADLINE = 124, /* a worker's exit code after it (the one timeout(1) has) */
};

/* Installs the handler of the private signal for this process's worker. Without effect where the system has no
 * signal to spare. */
void oribi_deadline_install(struct oribi_worker *worker);

/* By the helper, as long as a call is long: notes the time. If the helper could not do so for ORIBI_DEADLINE_JUMP_MS,
 * deadlines are put off by the time that it missed. */
void oribi_deadline_seen(struct oribi_worker *worker, int64_t now_us);

/* By the helper: the same, and sends the signals that are due. Returns in how many ms the next may be. */
int64_t oribi_deadline_look(struct oribi_worker *worker, int64_t now_us);

#endif
