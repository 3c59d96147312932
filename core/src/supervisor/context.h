/* Context of the supervisor: all that its modules (module.h) have in common. A module's own state is known to its
 * source alone. */
#ifndef ORIBI_SUPERVISOR_CONTEXT_H
#define ORIBI_SUPERVISOR_CONTEXT_H

#include "oribi/base/os/os_process.h"
#include "oribi/config/listener.h"
#include "oribi/config/options.h"
#include "oribi/event/dispatcher.h"
#include "oribi/observe/context.h"
#include "oribi/policy/policy.h"
#include "supervisor/module.h"
#include "supervisor/supervisor.h"

struct oribi__kind;
struct oribi__observe;

struct oribi__context {
    struct oribi__process_context process; /* that children keep */
    const struct oribi__kind *kind;        /* manager.h */
    pid_t pid;
    struct oribi_start start; /* of this program, for later generations */
    struct oribi_policy policy;
    struct oribi__events events; /* the policy hears of them before anything else happens */
    struct oribi_dispatcher dispatcher;
    struct oribi_supervisor_action action; /* of the language, next; NONE: there is none */
    struct oribi__observe *observe;        /* of the module in observing.c */
#define ORIBI__STATE(name) struct oribi__##name *name;
    ORIBI__MODULES(ORIBI__STATE)
#undef ORIBI__STATE
};

/* Tells the policy of an event. There is room (events.h): a handler tells one, an action at most one more. Borrows the
 * event. */
void oribi__happened(struct oribi__context *context, const struct oribi_policy_event *event);

#endif
