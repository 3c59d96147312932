/* Calls that take too long. A private signal to the worker's own thread does everything, sent by the helper, or by
 * the supervisor when there is none; so a worker whose thread hangs in code that never returns is answered for as
 * well. doc/internals/placement.md has the times. */
#ifndef ORIBI_WORKER_DEADLINE_H
#define ORIBI_WORKER_DEADLINE_H

#include <stdbool.h>
#include <stdint.h>

struct oribi_worker;

enum {
    ORIBI_DEADLINE_HARD_MS = 2000,    /* after the deadline: answer, hand on, end */
    ORIBI_DEADLINE_REPEAT_MS = 100,   /* between two signals */
    ORIBI_DEADLINE_TAKEOVER_MS = 300, /* after that: the helper in the place of a thread that takes no signals */
    /* with several threads: what is left of the worker's other calls may take so long */
    ORIBI_DEADLINE_OTHERS_MS = 1000,
    ORIBI_DEADLINE_JUMP_MS = 3000,  /* looks further apart than this: the machine or this process stood still */
    ORIBI_EXIT_CALL_DEADLINE = 124, /* a worker's exit code after it (the one timeout(1) has) */
};

/* Installs the handler of the private signal for this process's worker. Without effect where the system has no
 * signal to spare. */
void oribi_deadline_install(struct oribi_worker *worker);

/* By the helper, as long as a call is long: somebody looks. Where nobody could for a while, the call's deadline is
 * put off for as long. */
void oribi_deadline_seen(struct oribi_worker *worker, int64_t now_us);

/* By the helper: the same, and sends what is due. Returns for how many ms nothing will be. */
int64_t oribi_deadline_look(struct oribi_worker *worker, int64_t now_us);

#endif
