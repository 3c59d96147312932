/* All that this room knows of the server: a view of what others have, which it only reads, and its own states. A
 * supervisor has one, whose handlers and timers its dispatcher calls. A feature that is off has none. */
#ifndef ORIBI_OBSERVE_VIEW_H
#define ORIBI_OBSERVE_VIEW_H

#include "oribi/event/dispatcher.h"
#include "oribi/observe/agent.h"
#include "oribi/observe/context.h"
#include "oribi/observe/footprint.h"
#include "oribi/observe/frontend_set.h"
#include "oribi/observe/history.h"
#include "oribi/observe/inherited_totals.h"
#include "oribi/observe/stacks.h"
#include "oribi/observe/status_listener.h"
#include "oribi/observe/totals.h"
#include "oribi/policy/policy.h"

#include <stdint.h>

/* Borrowed, all of it, for as long as the states below are used. */
struct oribi__view {
    const struct oribi__process_context *context;
    const struct oribi_policy *policy;
    const struct oribi__frontend_set *frontends;
    const int *predecessor_fd; /* -1: no predecessor has the addresses any more */
    const char *version;       /* of the program; "": it has not told it */
    const char *restart_file;  /* path of the file whose touch reloads; "": none */
};

struct oribi__observe {
    struct oribi__view view;
    struct oribi_dispatcher *dispatcher; /* borrowed */
    /* the supervisor's; both are called from handlers, with the owner; NULL: it has no ears for that */
    void *owner;
    void (*report)(void *owner, const struct oribi_policy_event *event); /* borrows the event */
    void (*stacks_found)(void *owner);                                   /* the open question is answered (stacks.h) */
    int64_t started_ms; /* when the server began, oribi_clock_ms() and oribi_clock_wall_ms() */
    int64_t started_wall_ms;
    struct oribi__status_listener status;
    struct oribi__agent agent;
    struct oribi__totals totals;
    struct oribi__history_readings history;
    struct oribi__footprints footprints;
    struct oribi__inherited_totals inherited;
    struct oribi_timer export_totals;
    struct oribi__stacks stacks;
};

#endif
