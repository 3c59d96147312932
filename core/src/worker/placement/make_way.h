/* make_way - where all workers share one processor and calls compute, the connections gather at one of them: a sibling
 * adds nothing then, and each change between two processes costs both what their caches and those of their libraries
 * hold. doc/internals/placement.md tells the rule. */
#ifndef ORIBI_WORKER_PLACEMENT_MAKE_WAY_H
#define ORIBI_WORKER_PLACEMENT_MAKE_WAY_H

#include <stdbool.h>
#include <stdint.h>

struct oribi_worker;

enum { ORIBI__AWAY_MS = 10 }; /* how long a worker that has made way leaves the hand-off queue alone */

/* A member of struct oribi__placement; of the reactor's owner. */
struct oribi__way {
    bool one_cpu;  /* several workers, and one processor for them; else nothing of this happens */
    bool computes; /* calls are short here, and have not waited for anything lately */
    int64_t looked_us;
    int64_t away_until_us;  /* 0: the hand-off queue is watched */
    int64_t waits;          /* of the thread, at the last look */
    uint64_t calls;         /* at the last look */
    uint64_t sibling_calls; /* calls, at the last look, of the sibling for which way would be made */
};

/* Finds out whether this worker may ever have to make way. For its beginning. */
void oribi__way_init(struct oribi_worker *worker);

/* Looks every 50 ms, in a turn: a worker whose calls compute passes all that it can to a sibling before it whose calls
 * do so too and that gets on with them. */
void oribi__make_way(struct oribi_worker *worker);

#endif
