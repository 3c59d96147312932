/* The server's frontends, as those read them who show the server: their processes, and the slots in which they count
 * (worker/frontend_slot.h). The supervisor fills it. */
#ifndef ORIBI_OBSERVE_FRONTEND_SET_H
#define ORIBI_OBSERVE_FRONTEND_SET_H

#include "oribi/config/options.h"
#include "oribi/worker/frontend_slot.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct oribi__frontend_process {
    pid_t pid; /* 0: none */
    bool ready;
};

struct oribi__frontend_set {
    uint32_t count; /* 0: none are wanted */
    const struct oribi__frontend_process *processes[ORIBI_FRONTENDS_MAX];
    struct oribi_frontend_slot *slots; /* mapped; NULL: no frontends, or no memory for that */
};

/* State of a frontend: "serving", "starting", or "stopped": by a signal or a tracer. */
const char *oribi__frontend_state(const struct oribi__frontend_process *process);

/* How many of them are serving. Looks into /proc for each. */
uint32_t oribi__frontends_serving(const struct oribi__frontend_set *frontends);

/* Wanted, and none is serving. */
bool oribi__frontends_missing(const struct oribi__frontend_set *frontends);

/* Adds what the frontends have counted: to `sums` all, to `workers` what counts as workers' does. */
void oribi__frontends_fold(const struct oribi__frontend_set *frontends, uint64_t sums[ORIBI_FRONTEND_COUNTERS],
                           uint64_t workers[ORIBI_SLOT_COUNTERS]);

/* Counters of a frontend; NULL: not known. */
const struct oribi_frontend_slot *oribi__frontends_slot(const struct oribi__frontend_set *frontends, uint32_t i);

/* Connections that frontends have, and requests that wait in them, the oldest since *oldest_us (0: none). */
uint32_t oribi__frontends_open(const struct oribi__frontend_set *frontends);
uint32_t oribi__frontends_waiting(const struct oribi__frontend_set *frontends, int64_t *oldest_us);

/* Adds the connections by what they do. */
void oribi__frontends_add_connections(const struct oribi__frontend_set *frontends,
                                      uint64_t sums[ORIBI_SLOT_CONN_STATES]);

#endif
