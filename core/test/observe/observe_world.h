/* A server as the room `observe` sees it, without a supervisor: slots and no processes, a dispatcher that a test moves
 * on by hand. Begin each test with world_begin(); everything is in `world`. */
#ifndef ORIBI_TEST_OBSERVE_OBSERVE_WORLD_H
#define ORIBI_TEST_OBSERVE_OBSERVE_WORLD_H

#include "oribi/config/listener.h"
#include "oribi/config/options.h"
#include "observe/state.h"

#include <stdbool.h>
#include <stdint.h>

struct world {
    struct oribi__observe observe;
    struct oribi__process_context context;
    struct oribi_policy policy;
    struct oribi_options options;
    struct oribi_listeners listeners;
    struct oribi__frontend_set frontends;
    struct oribi__acme_set acme; /* none at first */
    struct oribi_dispatcher dispatcher;
    int predecessor_fd;
    /* reported by the room */
    uint32_t reports;
    struct oribi_policy_event report;
    uint32_t stacks_found;
};

extern struct world *world;

/* Makes a world of its own with options as they are without a command line, and makes it `world`. */
struct world *world_begin(uint32_t workers, uint32_t slots);

/* Ends it, with all that the room has open; fails when a watcher or timer is left behind. `world` is NULL then. */
void world_end(struct world *which);

/* Calls all handlers that there is something for. */
void world_turn(struct world *which);

/* Does so after the timer's time has come. */
void world_expire(struct world *which, struct oribi_timer *timer);

#endif
