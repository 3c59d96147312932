/* The room observe as a module: what the supervisor shows to it, and hears from it. */
#include "supervisor/acme.h"
#include "supervisor/context.h"
#include "supervisor/logs.h"
#include "supervisor/control_socket.h"
#include "supervisor/frontends.h"
#include "supervisor/upgrade.h"
#include "supervisor/watched.h"
#include "oribi/observe/observe.h"

#include "oribi/base/clock.h"

struct oribi__observing {
    struct oribi__observe observe;
};

static void report(void *owner, const struct oribi_policy_event *event)
{
    oribi__happened(owner, event);
}

static void stacks_found(void *owner)
{
    oribi__control_stacks(owner);
}

static void init(struct oribi__context *context)
{
    struct oribi__observe *observe = &context->observing->observe;
    context->observe = observe;
    observe->dispatcher = &context->dispatcher;
    observe->owner = context;
    observe->report = report;
    observe->stacks_found = stacks_found;
    observe->started_ms = oribi_clock_ms();
    observe->started_wall_ms = oribi_clock_wall_ms();
    observe->view = (struct oribi__view){
        .context = &context->process,
        .policy = &context->policy,
        .frontends = oribi__frontends_set(context),
        .acme = oribi__acme_set(context),
        .predecessor_fd = oribi__upgrade_predecessor_fd(context),
        .version = oribi__boot_log_version(context),
        .restart_file = oribi__restart_file_path(context),
    };
    oribi__observe_init(observe);
}

static int begin(struct oribi__context *context, char *error)
{
    return oribi__observe_open(context->observe, error);
}

static void let_go(struct oribi__context *context)
{
    oribi__observe_let_go(context->observe);
}

static void forget(struct oribi__context *context)
{
    oribi__observe_close(context->observe, false);
    oribi__observe_deinit(context->observe);
}

static void end(struct oribi__context *context)
{
    oribi__inherited_totals_close(&context->observe->inherited);
    oribi__observe_close(context->observe, true);
    oribi__observe_deinit(context->observe);
}

const struct oribi__module oribi__observing_module = {
    .bytes = sizeof(struct oribi__observing),
    .init = init,
    .begin = begin,
    .let_go = let_go,
    .forget = forget,
    .end = end,
};
