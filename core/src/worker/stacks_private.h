/* The worker's side of oribi/worker/stacks.h. */
#ifndef ORIBI_WORKER_STACKS_PRIVATE_H
#define ORIBI_WORKER_STACKS_PRIVATE_H

#include "oribi/worker/stacks.h"

#include <stdbool.h>

struct oribi_worker;

/* This worker's part of the scoreboard's mapping, emptied; NULL for one without a supervisor. */
struct oribi_stacks *oribi__stacks_open(const struct oribi_worker *worker);

/* By the helper, without the reactor: answers a question that is not answered yet. */
void oribi__stacks_answer(struct oribi_worker *worker);

/* The helper begins, and ends (false). */
void oribi__stacks_helper(struct oribi_stacks *stacks, bool is_there);

static inline bool oribi__stacks_asked(const struct oribi_stacks *stacks)
{
    return stacks && atomic_load_explicit(&stacks->asked, memory_order_acquire) !=
                         atomic_load_explicit(&stacks->answered, memory_order_relaxed);
}

#endif
