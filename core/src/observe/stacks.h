/* stacks - where every call under way stands: the supervisor asks all workers at once, and waits for none of them. A
 * worker that has not answered in time is told of as far as the kernel and the scoreboard know it. Text for people and
 * JSON; one question at a time, which all who ask meanwhile share. */
#ifndef ORIBI_OBSERVE_STACKS_H
#define ORIBI_OBSERVE_STACKS_H

#include "oribi/base/buf.h"
#include "oribi/event/timers.h"

#include <stdbool.h>
#include <stdint.h>

struct oribi__observe;

enum {
    ORIBI__STACKS_MS = 90,     /* for which workers have time to answer; what is left of 100 ms is ours */
    ORIBI__STACKS_LOOK_MS = 2, /* between two looks whether all have answered */
};

/* All-zero: nothing was asked yet. */
struct oribi__stacks {
    uint32_t number; /* of the question asked last; 0: none */
    bool open;       /* it is not answered yet */
    int64_t until;   /* when it is taken for answered */
    struct oribi_timer look;
    struct oribi_buf text; /* the answer to it, kept until the next one */
    struct oribi_buf json; /* the answer as JSON */
};

/* Is that one answered? Then `text` and `json` have what was found, or a later answer. */
bool oribi__stacks_answered(const struct oribi__observe *observe, uint32_t number);

void oribi__stacks_close(struct oribi__observe *observe);

#endif
