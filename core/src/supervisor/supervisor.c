/* The supervisor's turn: an event, the policy, its actions. Modules (module.h) tell of events, actions.c carries
 * actions out; beginning and end are in start.c. Reading order: oribi_supervisor_take and what it calls. */
#include "supervisor/supervisor.h"

#include "supervisor/actions.h"
#include "supervisor/start.h"
#include "supervisor/events.h"
#include "supervisor/module.h"
#include "supervisor/frontends.h"
#include "supervisor/generation.h"
#include "supervisor/manager.h"
#include "supervisor/process_private.h"
#include "supervisor/supervisor_state.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/log.h"
#include "oribi/base/os/os.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { HANDLERS_MAX = 256 }; /* in a turn, whatever else is ready: the language has its part, too */

void oribi__happened(struct oribi__context *context, const struct oribi_policy_event *event)
{
    bool pushed = oribi__events_push(&context->events, event);
    assert(pushed); /* a process that the policy never hears of would be lost */
    (void)pushed;
}

/* Carries out what is to be done now. True when the language has its part in context->action. Actions that an event has
 * queued in the policy come first, since feeding wants an empty queue there. Before the policy takes a further step it
 * hears how the last action went. */
static bool act(struct oribi__context *context)
{
    struct oribi_policy *policy = &context->policy;
    struct oribi_policy_action action;
    while (context->action.type == ORIBI_SUPERVISOR_NONE && (context->events.count == 0 || policy->queue_len > 0) &&
           oribi_policy_next(policy, oribi_clock_ms(), &action))
        oribi__carry_out(context, &action);
    oribi__children_ours(context->action.type == ORIBI_SUPERVISOR_FORK_MOLD ||
                         context->action.type == ORIBI_SUPERVISOR_FORK_DAEMON);
    return context->action.type != ORIBI_SUPERVISOR_NONE;
}

/* A manager is its own mold, which is ready as soon as it is started. */
static void feed(struct oribi__context *context, const struct oribi_policy_event *event)
{
    bool own_mold = event->type == ORIBI_EVENT_MOLD_STARTED && event->pid == context->pid;
    oribi_policy_feed(&context->policy, event, oribi_clock_ms());
    if (own_mold)
        oribi__happened(context, &(struct oribi_policy_event){.type = ORIBI_EVENT_MOLD_READY, .pid = context->pid});
}

/* Tells the policy of one event, or calls one handler, which may tell of some. False: nothing happens now. */
static bool take_event(struct oribi__context *context, int *handlers)
{
    struct oribi_policy_event event;
    if (oribi__events_pop(&context->events, &event)) {
        feed(context, &event);
        return true;
    }
    if (oribi__prefork_trapped(context))
        return false; /* the language hears of it before anything else happens */
    if (++*handlers <= HANDLERS_MAX && oribi_dispatcher_next(&context->dispatcher))
        return true;
    return oribi__modules_settle(context);
}

static void begin(struct oribi_supervisor *supervisor)
{
    struct oribi__context *context = &supervisor->context;
    char error[ORIBI_ERROR_TEXT_CAP];
    if (oribi__daemon_wanted(context)) {
        oribi__daemon_made(context);
        context->action = (struct oribi_supervisor_action){.type = ORIBI_SUPERVISOR_FORK_DAEMON};
        return;
    }
    supervisor->begun = true;
    oribi_log_identify(-1, 1); /* the first generation */
    if (oribi__begin_in_place(context, error) < 0) {
        oribi__serve_not(context, error);
        return;
    }
    oribi__deaths_begin(context);
    oribi__frontends_start(context);
}

const struct oribi_supervisor_action *oribi_supervisor_take(struct oribi_supervisor *supervisor)
{
    struct oribi__context *context = &supervisor->context;
    int handlers = 0;
    assert(context->pid == getpid());
    assert(!oribi__mold_is_starting(context)); /* oribi_supervisor_forked() answers ORIBI_SUPERVISOR_FORK_MOLD */
    context->action = (struct oribi_supervisor_action){.type = ORIBI_SUPERVISOR_NONE};
    if (!supervisor->begun)
        begin(supervisor);
    do {
        if (act(context))
            return &context->action;
    } while (take_event(context, &handlers));
    int trapped = oribi__prefork_take_trapped(context);
    if (trapped)
        context->action = (struct oribi_supervisor_action){.type = ORIBI_SUPERVISOR_TRAPPED, .signal = trapped};
    return &context->action;
}

void oribi_supervisor_wait_for(struct oribi_supervisor *supervisor, int64_t ms)
{
    struct oribi__context *context = &supervisor->context;
    int64_t now_ms = oribi_clock_ms();
    int64_t at = oribi_policy_deadline(&context->policy, now_ms);
    if (ms >= 0)
        at = oribi_earlier(at, now_ms + ms);
    oribi_dispatcher_wait(&context->dispatcher, at == INT64_MAX ? -1 : at > now_ms ? at - now_ms : 0);
}

void oribi_supervisor_wake(struct oribi_supervisor *supervisor)
{
    oribi__signals_send(&supervisor->context, 0);
}

void oribi_supervisor_stop(struct oribi_supervisor *supervisor)
{
    oribi__signals_stop_once(&supervisor->context);
}

bool oribi_supervisor_handed_over(const struct oribi_supervisor *supervisor)
{
    return supervisor->context.policy.handed_over;
}

void oribi_supervisor_forked(struct oribi_supervisor *supervisor, pid_t pid)
{
    if (pid < 0)
        (void)oribi_os_fail(); /* keeps the reason's words */
    oribi__children_ours(false);
    struct oribi_policy_event event = oribi__mold_started(&supervisor->context, pid);
    oribi__happened(&supervisor->context, &event);
}

/* --- the daemon and its starter --- */

void oribi_supervisor_daemon_enter(struct oribi_supervisor *supervisor)
{
    oribi__daemon_enter(&supervisor->context);
}

void oribi__starter_enter(struct oribi_supervisor *supervisor, pid_t pid)
{
    oribi__daemon_starter(&supervisor->context, pid);
}

void oribi__starter_wait(const struct oribi_supervisor *supervisor, int64_t ms)
{
    oribi__daemon_await(&supervisor->context, ms);
}

int oribi__starter_take(struct oribi_supervisor *supervisor)
{
    return oribi__daemon_said(&supervisor->context);
}

/* --- the title --- */

size_t oribi_supervisor_title(struct oribi_supervisor *supervisor, char *dst, size_t cap)
{
    char title[sizeof(supervisor->title)];
    const struct oribi_policy *policy = &supervisor->context.policy;
    const char *doing = policy->stopping          ? ", stopping"
                        : policy->stop_at         ? ", about to stop"
                        : policy->next_generation ? ", loading the next generation"
                        : policy->rolling         ? ", replacing workers"
                        : policy->upgrade_pid     ? ", starting a successor"
                                                  : "";
    (void)snprintf(title, sizeof(title), "%s supervisor, generation %u, %u worker%s%s",
                   supervisor->context.process.program, policy->generation, oribi_policy_serving(policy),
                   oribi_log_plural(oribi_policy_serving(policy)), doing); /* cut when longer: still a title */
    return oribi__title_changed(title, supervisor->title, sizeof(supervisor->title), dst, cap);
}
