/* States of the room's modules: one for each struct oribi__observe. */
#ifndef ORIBI_OBSERVE_STATE_H
#define ORIBI_OBSERVE_STATE_H

#include "observe/agent.h"
#include "observe/footprint.h"
#include "observe/history.h"
#include "observe/stacks.h"
#include "observe/status_listener.h"
#include "oribi/event/dispatcher.h"
#include "oribi/observe/context.h"
#include "oribi/observe/observe.h"
#include "oribi/policy/policy.h"

struct oribi__observe_state {
    struct oribi__status_listener status;
    struct oribi__agent agent;
    struct oribi__history_readings history;
    struct oribi__footprints footprints;
    struct oribi__stacks stacks;
    struct oribi_timer export_totals;
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
