/* Memory that a burst of clients has left. */
#ifndef ORIBI_FRONTEND_SPARE_H
#define ORIBI_FRONTEND_SPARE_H

#include "oribi/event/timers.h"

#include <stdint.h>

struct oribi__frontend;

struct oribi__spare {
    int64_t most;   /* blocks that were in use at a time, since memory was given back */
    int64_t lately; /* likewise since the timer was armed */
    struct oribi_timer look;
};

/* Once a turn. */
void oribi__spare_turn(struct oribi__frontend *frontend);

#endif
