/* How the policy's actions are carried out. Reading order: oribi__carry_out at the end, then what
 * it calls. */
#include "supervisor/actions.h"

#include "supervisor/announced.h"
#include "supervisor/logs.h"
#include "supervisor/context.h"
#include "supervisor/control_socket.h"
#include "supervisor/start.h"
#include "supervisor/frontends.h"
#include "supervisor/generation.h"
#include "supervisor/manager.h"
#include "supervisor/notify.h"
#include "supervisor/events.h"
#include "supervisor/upgrade.h"
#include "oribi/develop/terminal.h"
#include "oribi/observe/observe.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/log.h"
#include "oribi/base/os/os.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

struct oribi__steps {
    bool waits; /* the reply to a reload that is done, until its frontends have what it has changed */
    char text[192];
    char reason[256]; /* of the hook that the language runs next */
};

/* The length of calls is the application's doing, not the worker's: the next one starts with a helper at hand.
 * A call that ended with its worker was long if it had run for long: only the supervisor can note that. */
static void clear_slot(const struct oribi_scoreboard *board, struct oribi_slot *slot)
{
    int64_t now_us = oribi_clock_us();
    int64_t started_us = atomic_load(&slot->call_started_us);
    int64_t long_call_us =
        started_us && now_us - started_us >= ORIBI_EXPECT_US ? now_us : atomic_load(&slot->long_call_us);
    memset(slot, 0, offsetof(struct oribi_slot, is_idle_waiter)); /* what follows is other workers' too */
    atomic_store(&slot->long_call_us, long_call_us);
    oribi_scoreboard_skip(board, slot, true); /* until a worker there is idle */
}

/* No process writes to the slot now: its last worker was reaped, the next is not forked. A manager is its own mold, so
 * that its language forks the worker. */
static void spawn(struct oribi__context *context, const struct oribi_policy_action *action)
{
    struct oribi_slot *slot = &context->process.board.slots[action->slot];
    clear_slot(&context->process.board, slot);
    atomic_store(&slot->generation, action->generation);
    atomic_store(&slot->state, ORIBI_SLOT_STARTING);
    atomic_store(&slot->stop_soon, context->policy.frontends_end  ? ORIBI_STOP_FRONTENDS
                                   : context->policy.stop_at != 0 ? ORIBI_STOP_SOON
                                                                  : ORIBI_STOP_NONE);
    if (action->pid == context->pid) {
        oribi__prefork_spawn(context, action);
        return;
    }
    struct oribi_message message = {
        .kind = ORIBI_MESSAGE_SPAWN, .generation = action->generation, .slot = action->slot, .ticket = action->ticket};
    if (!oribi__mold_send(context, action->pid, &message))
        oribi_log(ORIBI_LOG_DEBUG, "mold (pid %d) takes no commands",
                  action->pid); /* its end or boot_timeout settles it */
}

/* A manager is its own mold, which ends without a process ending. */
static void stop_mold(struct oribi__context *context, int32_t pid)
{
    oribi__mold_socket_close(context, pid);
    if (pid == context->pid)
        oribi__happened(context, &(struct oribi_policy_event){.type = ORIBI_EVENT_EXITED, .pid = pid});
}

static void hook(struct oribi__context *context, const char *name, const struct oribi_policy_action *action)
{
    /* reasons are short */
    (void)snprintf(context->steps->reason, sizeof(context->steps->reason), "%s", action->text ? action->text : "");
    context->action = (struct oribi_supervisor_action){.type = ORIBI_SUPERVISOR_HOOK,
                                                       .hook = name,
                                                       .reason = context->steps->reason,
                                                       .pid = action->pid,
                                                       .status = action->status,
                                                       .index = action->slot};
}

static void worker_exited(struct oribi__context *context, const struct oribi_policy_action *action)
{
    struct oribi_slot *slot = &context->process.board.slots[action->slot];
    oribi__totals_exit(&context->observe->totals, slot, action->text ? action->text : "");
    oribi_scoreboard_forget_idle_waiter(&context->process.board, slot);
    oribi_metric_store_worker_ended(&context->process.app.view,
                                    oribi_metric_store_worker(&context->process.app.view, (int32_t)action->slot));
    clear_slot(&context->process.board, slot); /* siblings must not see an idle worker there */
    oribi_handoff_notify(&context->process.handoff);
    hook(context, "on_worker_exit", action);
}

static size_t name_listener(const struct oribi_listener *item, bool more, char *dst, size_t cap)
{
    const char *shown = oribi_listener_shown(item);
    bool is_tls = strncmp(shown, "tls://", 6) == 0;
    return (size_t)snprintf(dst, cap, "%s%s%s", more ? ", " : "listening on ", shown,
                            item->frontend && !is_tls ? " (frontend)" : "");
}

static void log_start_line(struct oribi__context *context)
{
    char line[1024] = "";
    size_t n = 0;
    const struct oribi_listeners *listeners = context->process.listeners;
    for (uint32_t i = 0; i < listeners->count && n < sizeof(line); i++)
        n += name_listener(&listeners->items[i], i > 0, line + n, sizeof(line) - n);
    oribi__boot_log_say(context);
    oribi__boot_log_up(context, line);
    oribi__notify(context, ORIBI__READY_NOTICE, line);
}

/* Unicorn's and Pitchfork's timeout is the application's, Rhebok's and ours the client's: a user who has
 * moved a file should know. */
static void log_timeout_hint(const struct oribi_options *options)
{
    char value[32];
    const struct oribi_option *call_timeout = oribi_options_find("call_timeout");
    if (options->lang != ORIBI_LANG_RUBY || !options->timeout_named ||
        oribi_options_source(options, call_timeout) != ORIBI_FROM_DEFAULT)
        return;
    (void)oribi_options_get(options, call_timeout, value, sizeof(value)); /* a time is short */
    oribi_log(ORIBI_LOG_INFO,
              "timeout is how long the server waits for a client; how long a call may take is call_timeout, %s now",
              value);
}

void oribi__log_up(struct oribi__context *context)
{
    log_start_line(context);
    log_timeout_hint(context->process.options);
    oribi__terminal_up(context->process.options, context->process.listeners);
}

static void up(struct oribi__context *context, const struct oribi_policy_action *action)
{
    oribi__log_up(context);
    oribi__daemon_release(context, 0);
    hook(context, "server_ready", action);
}

/* A bad pair keeps nothing from going on, and is named in the answer. */
static void reply_to_reload(struct oribi__context *context)
{
    struct oribi__steps *reply = context->steps;
    char text[ORIBI_ERROR_TEXT_CAP + sizeof(reply->text) + 64];
    const char *refusal = oribi__frontends_refusal(context);
    bool refused = refusal[0];
    if (!reply->waits)
        return;
    reply->waits = false;
    (void)snprintf(text, sizeof(text), "%s%s%s%s", reply->text, refused ? "; certificates: " : "", refusal,
                   refused ? ": the current ones stay in use" : ""); /* fits */
    oribi__control_reloaded(context, refused, text);
    oribi__frontends_forget_refusal(context);
}

void oribi__reload_settled(struct oribi__context *context)
{
    if (!oribi__frontends_settle(context))
        reply_to_reload(context);
}

static void reloaded(struct oribi__context *context, const struct oribi_policy_action *action)
{
    struct oribi__steps *reply = context->steps;
    char text[sizeof(reply->text)];
    reply_to_reload(context);
    oribi__totals_reloaded(&context->observe->totals, action->code != 0, oribi_clock_ms());
    oribi__announced_drop(context); /* no generation is being loaded any more, whichever way this one ended */
    (void)snprintf(text, sizeof(text), "generation %u, %u worker%s", action->generation,
                   oribi_policy_serving(&context->policy),
                   oribi_log_plural(oribi_policy_serving(&context->policy))); /* fits */
    if (context->policy.up && !context->policy.stopping)
        oribi__notify(context, ORIBI__READY_NOTICE, text);
    if (action->code) {
        oribi__control_reloaded(context, action->code, action->text);
        return;
    }
    reply->waits = true;
    memcpy(reply->text, text, sizeof(text));
    oribi__reload_settled(context);
}

static void upgraded(struct oribi__context *context, const struct oribi_policy_action *action)
{
    char text[512];
    if (action->code) {
        oribi__upgrade_failed(context);
        oribi__inherited_totals_drop(&context->observe->inherited);
        const char *why = oribi__upgrade_why(context);
        /* cut when longer: a hint */
        (void)snprintf(text, sizeof(text), "%.120s%s%s", action->text, why[0] ? ": " : "", why);
    } else {
        (void)snprintf(text, sizeof(text), "pid %d serves", action->pid); /* fits */
        oribi__notify_main_pid(action->pid);
    }
    oribi__control_upgraded(context, action->code, text);
}

/* But to workers that are replaced, which may be in a call and not have seen their word yet. We alone write it. */
static void tell_all(struct oribi__context *context, enum oribi_stop_word told)
{
    for (uint32_t i = 0; i < context->process.board.count; i++) {
        _Atomic uint32_t *word = &context->process.board.slots[i].stop_soon;
        if (atomic_load(word) < ORIBI_STOP_TOLD)
            atomic_store(word, told);
    }
}

static void stop_soon(struct oribi__context *context)
{
    tell_all(context, ORIBI_STOP_SOON);
    oribi__notify(context, ORIBI__STOPPING_NOTICE, NULL);
}

/* The begin of a stop, once. */
static void leave(struct oribi__context *context, bool handed_over)
{
    if (!handed_over)
        oribi__notify(context, ORIBI__STOPPING_NOTICE, NULL); /* else the successor is the service */
    if (handed_over) {
        oribi__export_totals(context->observe);
        oribi__observe_close(context->observe, true); /* the successor waits for the address */
    }
    reply_to_reload(context);
    oribi__control_stopping(context);
}

/* Workers stay, and are replaced, for what frontends have. Their signal may come before the supervisor's, as it goes to
 * a whole group: the word keeps them. */
static void frontends_end(struct oribi__context *context, bool handed_over)
{
    tell_all(context, ORIBI_STOP_FRONTENDS);
    oribi__end_newcomers(context, handed_over);
    (void)oribi__frontends_end(context, handed_over);
    leave(context, handed_over);
}

static void stopping(struct oribi__context *context, bool handed_over)
{
    bool begins = oribi__frontends_end(context, handed_over);
    oribi__frontends_give_up(context);
    oribi__end_listening(context, handed_over);
    if (begins)
        leave(context, handed_over);
}

static void log_memory(struct oribi__context *context, const char *when)
{
    int64_t private_sum = 0;
    int64_t shared_sum = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < context->policy.slot_count; i++) {
        struct oribi_process_shares shares;
        if (context->policy.records[i].state != ORIBI_RECORD_SERVING ||
            !oribi_process_shares(context->policy.records[i].pid, &shares))
            continue;
        private_sum += shares.own_bytes;
        shared_sum += shares.shared_bytes;
        count++;
    }
    if (count > 0)
        oribi_log(ORIBI_LOG_INFO, "memory of a worker %s refork: %lld KB of its own, %lld KB shared (mean of %u)", when,
                  (long long)(private_sum / count / 1024), (long long)(shared_sum / count / 1024), count);
}

static void finish(struct oribi__context *context, const struct oribi_policy_action *action)
{
    if (action->text)
        oribi__log_text(context, ORIBI_LOG_ERROR, action->text);
    oribi__daemon_release(context, action->code);
    oribi__control_stopped(context);
    oribi__reapers_await(context);
    uint32_t refused =
        oribi_handoff_refuse(&context->process.handoff); /* of workers that were killed before they could empty it */
    if (refused)
        oribi_log(ORIBI_LOG_WARN,
                  "%u connections in the hand-off queue were answered 503: no worker was left to take them", refused);
    context->action = (struct oribi_supervisor_action){
        .type = ORIBI_SUPERVISOR_EXIT, .exit_code = action->code, .signal = oribi__prefork_reraise(context)};
}

/* A child that is not reaped still has its pid. But the pid comes from a worker's report, and a worker that has given
 * up rights must not make the supervisor signal a process that the worker could not. */
static void signal_process(pid_t pid, int number)
{
    if (oribi_process_is_below(pid))
        (void)kill(pid, number);
    else
        oribi_log(ORIBI_LOG_DEBUG, "signal %d is not sent to pid %d, which is no process of this server", number,
                  (int)pid);
}

/* Before the signal: a worker that a signal stops waits until its slot says what the supervisor wants. */
static void stop_alone(struct oribi__context *context, const struct oribi_policy_action *action)
{
    if (action->signal != SIGTERM && action->signal != SIGQUIT)
        return;
    for (uint32_t i = 0; i < context->policy.slot_count; i++) {
        _Atomic uint32_t *word = &context->process.board.slots[i].stop_soon;
        if (context->policy.records[i].pid == action->pid && atomic_load(word) < ORIBI_STOP_TOLD)
            atomic_store(word, ORIBI_STOP_TOLD); /* we alone write it */
    }
}

static void log_action(struct oribi__context *context, const struct oribi_policy_action *action)
{
    const char *id = action->request_id;
    if (action->level == ORIBI_LOG_INFO)
        oribi__boot_log_say(context);
    if (action->of_worker)
        oribi_log_identify((int)action->slot, action->generation);
    if (id)
        oribi_log_about(oribi_slice(id, strlen(id)), oribi_slice(NULL, 0));
    char members[64];
    oribi__boot_log_members(action, members, sizeof(members));
    if (members[0])
        oribi_log_with(action->level, oribi_slice(members, strlen(members)), "%s", action->text);
    else
        oribi__log_text(context, action->level, action->text);
    oribi_log_about(oribi_slice(NULL, 0), oribi_slice(NULL, 0));
    oribi_log_identify(-1, context->policy.generation);
}

void oribi__carry_out(struct oribi__context *context, const struct oribi_policy_action *action)
{
    struct oribi_policy_event event;
    switch (action->type) {
    case ORIBI_ACTION_LOG:
        log_action(context, action);
        break;
    case ORIBI_ACTION_START_MOLD:
        if (oribi__start_mold(context, action->generation, action->fresh, &event))
            oribi__happened(context, &event);
        break;
    case ORIBI_ACTION_STOP_MOLD:
        stop_mold(context, action->pid);
        break;
    case ORIBI_ACTION_SPAWN:
        spawn(context, action);
        break;
    case ORIBI_ACTION_SIGNAL:
        stop_alone(context, action);
        if (action->pid != context->pid) /* a manager is its own mold, and needs no signal of its own */
            signal_process(action->pid, action->signal);
        break;
    case ORIBI_ACTION_UP:
        up(context, action);
        break;
    case ORIBI_ACTION_WORKER_EXIT:
        worker_exited(context, action);
        break;
    case ORIBI_ACTION_REOPEN:
        oribi__reopen_logs(&context->process);
        oribi__frontends_reopen(context);
        break;
    case ORIBI_ACTION_STOP_SOON:
        stop_soon(context);
        break;
    case ORIBI_ACTION_FRONTENDS_END:
        frontends_end(context, action->code != 0);
        break;
    case ORIBI_ACTION_STOPPING:
        stopping(context, action->code != 0);
        break;
    case ORIBI_ACTION_RELOADING:
        oribi__totals_reloading(&context->observe->totals, oribi_clock_ms());
        oribi__notify(context, ORIBI__RELOADING_NOTICE, NULL);
        hook(context, "before_reload", action);
        break;
    case ORIBI_ACTION_COMMITTED:
        oribi_log_identify(-1, action->generation);
        oribi__announced_commit(context);
        oribi__observe_configured(context->observe);
        oribi__frontends_forget_refusal(context);
        if (oribi__frontends_any(context)) /* a reload has them read anew as well */
            oribi__frontends_certificates(context);
        break;
    case ORIBI_ACTION_RELOADED:
        reloaded(context, action);
        break;
    case ORIBI_ACTION_START_UPGRADE:
        oribi__frontends_note_sole(context, false);
        event = oribi__upgrade_start(context);
        oribi__happened(context, &event);
        break;
    case ORIBI_ACTION_UPGRADED:
        upgraded(context, action);
        break;
    case ORIBI_ACTION_UPGRADE_REFUSED:
        oribi__control_upgrade_refused(context, action->text);
        break;
    case ORIBI_ACTION_REFORK:
        log_memory(context, "before the");
        break;
    case ORIBI_ACTION_REFORKED:
        log_memory(context, "after the");
        break;
    case ORIBI_ACTION_EXIT:
        finish(context, action);
        break;
    }
}

const struct oribi__module oribi__steps_module = {.bytes = sizeof(struct oribi__steps)};
