/* The supervisor's shell: turns what the system reports into events for the policy (policy.c); supervisor_actions.c
 * carries the actions out. Reading order: oribi_supervisor_take, next_event, what makes an event of
 * what. Beginning and end are in start.c. */
#include "supervisor/reaper.h"
#include "oribi/policy/signal_table.h"
#include "supervisor/supervisor_private.h"
#include "oribi/develop/terminal.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/log.h"
#include "oribi/supervisor/prefork.h"
#include "oribi/supervisor/sd_notify.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* --- signals: signal_table.h has what follows from each --- */

enum { STOP_ONCE = 127 }; /* among the numbers of signals: oribi_supervisor_stop() */

/* Number 0 is oribi_supervisor_wake(). */
static bool only_wakes(int number)
{
    return number == 0 || oribi__signal_effect(number, ORIBI__IN_SUPERVISOR) == ORIBI__LOOKS;
}

/* One byte that only wakes is enough: while no turn reads (a manager that does something else for a day), the others
 * would leave no room for a stop. */
void oribi__supervisor_signal(void *self, int number)
{
    struct oribi__context *context = self;
    char byte = (char)number;
    if (only_wakes(number) && atomic_exchange(&context->wakes_up, true))
        return;
    if (write(context->signal_fds[1], &byte, 1) < 0 && only_wakes(number))
        atomic_store(&context->wakes_up, false); /* full: then there is enough to wake us */
}

/* --- events --- */

/* Records come from processes that run application code: a pid that stands for a group, for all processes, for init
 * or for the supervisor is a lie, and a signal to it would reach other processes. -1 reports a fork that failed. */
static bool names_a_process(const struct oribi__context *context, const struct oribi_message *message)
{
    if (message->kind == ORIBI_MESSAGE_WORKER_FORKED && message->pid == -1)
        return true;
    return message->pid > 1 && message->pid != context->pid;
}

/* Takes `passed`. False when the message is no event. */
static bool message_event(struct oribi__context *context, struct oribi_message *message, int passed,
                          struct oribi_policy_event *event)
{
    static const enum oribi_policy_event_type types[] = {
        [ORIBI_MESSAGE_MOLD_READY] = ORIBI_EVENT_MOLD_READY,
        [ORIBI_MESSAGE_MOLD_FAILED] = ORIBI_EVENT_MOLD_FAILED,
        [ORIBI_MESSAGE_WORKER_FORKED] = ORIBI_EVENT_WORKER_FORKED,
        [ORIBI_MESSAGE_WORKER_READY] = ORIBI_EVENT_WORKER_READY,
        [ORIBI_MESSAGE_WORKER_FAILED] = ORIBI_EVENT_WORKER_FAILED,
        [ORIBI_MESSAGE_WORKER_LEAVING] = ORIBI_EVENT_WORKER_LEAVING,
        [ORIBI_MESSAGE_MOLD_PROMOTED] = ORIBI_EVENT_MOLD_PROMOTED,
        [ORIBI_MESSAGE_MOLD_AT] = ORIBI_EVENT_MOLD_AT,
    };
    switch (message->kind) {
    case ORIBI_MESSAGE_MOLD_OPTIONS:
    case ORIBI_MESSAGE_MOLD_LISTENER:
    case ORIBI_MESSAGE_MOLD_DIFFERING:
    case ORIBI_MESSAGE_MOLD_RESTART_FILE:
    case ORIBI_MESSAGE_MOLD_LOCAL:
        oribi__announced_message(context, message, passed);
        return false;
    case ORIBI_MESSAGE_FILES:
        oribi__watch_message(context, passed);
        return false;
    case ORIBI_MESSAGE_MOLD_PROMOTED:
        if (!oribi__mold_promoted(context, message, passed))
            return false;
        break;
    case ORIBI_MESSAGE_ENDED:
        oribi_os_close(passed);
        return oribi__reaper_reported(context, message, event);
    default:
        oribi_os_close(passed);
        if (message->kind != ORIBI_MESSAGE_MOLD_AT &&
            (message->kind < ORIBI_MESSAGE_MOLD_READY || message->kind > ORIBI_MESSAGE_WORKER_LEAVING))
            return false;
    }
    *event = (struct oribi_policy_event){.type = types[message->kind],
                                         .pid = message->pid,
                                         .generation = message->generation,
                                         .slot = message->slot,
                                         .ticket = message->ticket,
                                         .text = message->text};
    if (message->kind == ORIBI_MESSAGE_MOLD_READY)
        oribi__announced_ready(context, event);
    return true;
}

static void feed(struct oribi__context *context, const struct oribi_policy_event *event)
{
    oribi_policy_feed(&context->policy, event, oribi_clock_ms());
}

/* The event that follows from a byte of the pipe; false: none does. A stop that is asked for once stands behind the
 * signals that came before it. */
static bool signal_event(struct oribi__context *context, char byte, struct oribi_policy_event *event)
{
    if (byte == STOP_ONCE) {
        *event = (struct oribi_policy_event){.type = ORIBI_EVENT_STOP};
        return !context->policy.stopping && !context->policy.stop_at;
    }
    if (context->process.prefork)
        return oribi__prefork_signal(context, byte, event);
    if (oribi__terminal_interrupt(context->process.options, &context->policy, &context->process.board, byte, event))
        return true;
    return oribi__signal_event(oribi__signal_effect(byte, ORIBI__IN_SUPERVISOR), event);
}

bool oribi__supervisor_signalled(struct oribi__context *context, struct oribi_policy_event *event)
{
    char byte;
    while (oribi_os_read(context->signal_fds[0], &byte, 1) == 1) {
        if (only_wakes(byte))
            atomic_store(&context->wakes_up, false); /* before the look for what it was about */
        if (signal_event(context, byte, event))
            return true;
    }
    return false;
}

static bool next_signal(struct oribi__context *context)
{
    struct oribi_policy_event event;
    if (!oribi__supervisor_signalled(context, &event))
        return false;
    feed(context, &event);
    return true;
}

static bool next_message(struct oribi__context *context)
{
    struct oribi_message message;
    struct oribi_policy_event event;
    int passed;
    int got;
    while ((got = oribi_message_receive(context->message_fd, &message, &passed)) == 1 || got == ORIBI_EBAD) {
        if (got != 1 || !names_a_process(context, &message)) {
            oribi_log(ORIBI_LOG_WARN, "dropped a message that no process of this version sends");
            if (got == 1)
                oribi_os_close(passed);
            continue;
        }
        if (!message_event(context, &message, passed, &event))
            continue;
        feed(context, &event);
        return true;
    }
    return false;
}

/* The policy hears of a death after all messages that the process wrote before it died: the report of a fork comes from
 * the process whose end made the worker ours. So the messages are read once more after the kernel has named the dead
 * process, and it is reaped when there are none. */
static bool next_death(struct oribi__context *context)
{
    int status;
    pid_t pid = oribi_process_ended();
    if (pid <= 0)
        return false;
    if (next_message(context))
        return true;
    if (oribi_process_reap(pid, false, &status) != pid)
        return false;
    if (oribi__frontends_ended(context, pid, status))
        return true;
    oribi__mold_socket_close(context, pid);
    feed(context, &(struct oribi_policy_event){.type = ORIBI_EVENT_EXITED, .pid = pid, .status = status});
    return true;
}

/* A worker has gone that no process reaps for us: its reaper may have reported since. If not, both are gone, which a
 * kill is the likeliest reason for. */
static bool next_missing(struct oribi__context *context)
{
    pid_t pid = oribi__reaper_missing(context);
    if (pid <= 0)
        return false;
    if (!next_message(context))
        feed(context, &(struct oribi_policy_event){.type = ORIBI_EVENT_EXITED, .pid = pid, .status = SIGKILL});
    return true;
}

/* A manager is its own mold, which is ready as soon as it is started. */
static bool next_own(struct oribi__context *context)
{
    struct oribi_policy_event event;
    if (!oribi__events_pop(&context->events, &event))
        return false;
    feed(context, &event);
    if (event.type == ORIBI_EVENT_MOLD_STARTED && event.pid == context->pid)
        oribi__follow(context, &(struct oribi_policy_event){.type = ORIBI_EVENT_MOLD_READY, .pid = event.pid});
    return true;
}

static bool next_event(struct oribi__context *context)
{
    struct oribi_policy_event event;
    if (next_own(context))
        return true;
    if (context->manager.trapped)
        return false; /* the language hears of it before anything else happens */
    if (next_message(context) || next_signal(context) || next_death(context) || next_missing(context))
        return true;
    if (context->policy.frontends_end && !oribi__frontends_left(context)) {
        feed(context, &(struct oribi_policy_event){.type = ORIBI_EVENT_FRONTENDS_ENDED});
        return true;
    }
    if (oribi__upgrade_ready(context)) {
        feed(context, &(struct oribi_policy_event){.type = ORIBI_EVENT_UPGRADE_READY});
        return true;
    }
    if (oribi__upgrade_stop(context, &event)) {
        feed(context, &event);
        return true;
    }
    if (oribi__watch_event(context, &event) || oribi__restart_event(context, &event)) {
        feed(context, &event);
        return true;
    }
    if (oribi__control_turn(context, &event)) {
        if (!context->process.prefork || oribi__prefork_command(context, &event))
            feed(context, &event);
        return true;
    }
    if (context->manager.resume_asked && oribi__prefork_resume(context, &event)) {
        feed(context, &event);
        return true;
    }
    if (context->manager.release_asked) {
        context->manager.release_asked = false;
        feed(context, &(struct oribi_policy_event){.type = ORIBI_EVENT_RELEASE_MOLDS, .pid = context->pid});
        return true;
    }
    return oribi_dispatcher_next(&context->dispatcher);
}

/* As long as this loop turns, the service manager hears of it. */
static void pat_watchdog(struct oribi__context *context)
{
    int64_t now_ms = oribi_clock_ms();
    if (!context->watchdog_ms || now_ms < context->watchdog_at)
        return;
    context->watchdog_at = now_ms + context->watchdog_ms;
    (void)oribi_sd_watchdog(); /* a lost one is followed by another in time */
}

static void begin_watches(struct oribi__context *context)
{
    char path[ORIBI__RESTART_PATH_CAP];
    if (context->process.options->dev && !context->process.prefork)
        oribi__watch_begin(&context->watch, &context->process.options->watch);
    if (context->process.prefork)
        return;
    oribi__restart_path(context->process.options, path);
    oribi__restart_watch(&context->restart_file, path);
}

int oribi__supervisor_begin_alone(struct oribi__context *context, char *error)
{
    context->begun = true;
    context->reapers_look_at = INT64_MAX;
    int code = context->pid_file.fd >= 0 ? oribi_pid_file_write(&context->pid_file, error) : 0;
    if (code < 0)
        return code;
    begin_watches(context);
    oribi__boot_log_begin(context);
    return 0;
}

/* Begins the workers' part, once there are frontends or none are wanted. */
static void begin_workers(struct oribi__context *context)
{
    if (oribi_os_adopts_orphans() && oribi_os_become_subreaper() < 0)
        oribi_log(ORIBI_LOG_WARN, "cannot become the parent of orphaned workers (PR_SET_CHILD_SUBREAPER): %s",
                  oribi_os_error_text());
    begin_watches(context);
    context->policy.config.frontends = context->frontends.set.count > 0;
    feed(context, &(struct oribi_policy_event){.type = ORIBI_EVENT_START});
}

static void begin_failed(struct oribi__context *context, const char *error)
{
    oribi__log_text(context, ORIBI_LOG_ERROR, error);
    oribi__upgrade_tell(context, error);
    oribi__release_starter(context, 1);
    context->action = (struct oribi_supervisor_action){.type = ORIBI_SUPERVISOR_EXIT, .exit_code = 1};
}

static bool begin(struct oribi__context *context)
{
    if (context->daemonize) {
        context->daemonize = false;
        context->action = (struct oribi_supervisor_action){.type = ORIBI_SUPERVISOR_FORK_DAEMON};
        oribi__children_ours(true);
        return true;
    }
    context->begun = true;
    oribi_log_identify(-1, 1); /* the first generation */
    char error[ORIBI_ERROR_TEXT_CAP];
    if (context->pid_file.fd >= 0 && oribi_pid_file_write(&context->pid_file, error) < 0) {
        oribi__log_text(context, ORIBI_LOG_ERROR, error);
        oribi__release_starter(context, 1);
        context->action = (struct oribi_supervisor_action){.type = ORIBI_SUPERVISOR_EXIT, .exit_code = 1};
        return true;
    }
    oribi__boot_log_begin(context);
    if (oribi__frontends_begin(context, error) < 0) {
        begin_failed(context, error);
        return true;
    }
    if (!context->frontends.beginning)
        begin_workers(context);
    return false;
}

void oribi__follow(struct oribi__context *context, const struct oribi_policy_event *event)
{
    bool pushed = oribi__events_push(&context->events, event);
    assert(pushed); /* a process that the policy never hears of would be lost */
    (void)pushed;
}

/* Actions that an event has queued in the policy are carried out first, since feeding wants an empty queue there.
 * Before the policy takes a further step it hears how the last action went. */
static bool next_action(struct oribi__context *context, struct oribi_policy_action *action)
{
    if (context->events.count > 0 && context->policy.queue_len == 0)
        return false;
    return oribi_policy_next(&context->policy, oribi_clock_ms(), action);
}

/* Carries out what is to be done now. True when the language has its part in supervisor->action. */
static bool act(struct oribi__context *context)
{
    struct oribi_policy_action action;
    struct oribi_policy_event event;
    while (next_action(context, &action)) {
        if (oribi__carry_out(context, &action, &event))
            oribi__follow(context, &event);
        if (context->action.type == ORIBI_SUPERVISOR_NONE)
            continue;
        oribi__children_ours(context->action.type == ORIBI_SUPERVISOR_FORK_MOLD);
        return true;
    }
    return false;
}

void oribi__supervisor_turns(struct oribi__context *context)
{
    oribi__listening_turn(context);
    oribi__control_deferred_turn(context);
    pat_watchdog(context);
    oribi__notify_turn(context);
    oribi_log_flush();
}

/* Until all frontends are ready nothing serves; but ctl and signals are heard. True when the action is there. */
static bool begin_frontends(struct oribi__context *context)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    do {
        if (act(context))
            return true;
    } while (next_event(context));
    if (context->policy.stopping) {
        oribi__release_starter(context, 0);
        context->action = (struct oribi_supervisor_action){.type = ORIBI_SUPERVISOR_EXIT};
        return true;
    }
    int code = oribi__frontends_begin_turn(context, error);
    if (code == 0)
        begin_workers(context);
    else if (code != ORIBI_AGAIN)
        begin_failed(context, error);
    else
        oribi__supervisor_turns(context);
    return code != 0;
}
const struct oribi_supervisor_action *oribi_supervisor_take(struct oribi_supervisor *supervisor)
{
    struct oribi__context *context = &supervisor->context;
    assert(context->pid == getpid());
    assert(context->next_mold.fds[0] < 0); /* oribi_supervisor_forked() answers ORIBI_SUPERVISOR_FORK_MOLD */
    context->action = (struct oribi_supervisor_action){.type = ORIBI_SUPERVISOR_NONE};
    if (!context->begun && begin(context))
        return &context->action;
    if (context->frontends.beginning && begin_frontends(context))
        return &context->action;
    do {
        if (act(context))
            return &context->action;
    } while (next_event(context));
    oribi__frontends_turn(context);
    oribi__reload_turn(context, false);
    oribi__upgrade_relieve(context);
    oribi__supervisor_turns(context);
    if (context->manager.trapped)
        context->action =
            (struct oribi_supervisor_action){.type = ORIBI_SUPERVISOR_TRAPPED, .signal = context->manager.trapped};
    context->manager.trapped = 0;
    return &context->action;
}

/* Turns look at these, however the wait ended. */
static void asked(void *owner, uint8_t ready)
{
    (void)owner;
    (void)ready;
}

static void expired(void *owner)
{
    (void)owner;
}

static void ask(struct oribi__context *context, const int *fds, size_t count, size_t place, uint8_t interest)
{
    for (size_t i = 0; i < count; i++) {
        struct oribi_watcher *watcher = &context->asked[place + i];
        watcher->ready = asked;
        if (fds[i] >= 0)
            (void)oribi_dispatcher_watch(&context->dispatcher, watcher, fds[i], interest);
    }
}

void oribi_supervisor_wait_for(struct oribi_supervisor *supervisor, int64_t ms)
{
    struct oribi__context *context = &supervisor->context;
    int64_t now_ms = oribi_clock_ms();
    int64_t at = oribi_earlier(oribi_policy_deadline(&context->policy, now_ms), oribi__control_deadline(context));
    at = oribi_earlier(at, oribi__frontends_deadline(context));
    at = oribi_earlier(at, oribi__reaper_deadline(context));
    bool watches = context->policy.up && !context->policy.stopping; /* else the turn would not look */
    if (watches)
        at = oribi_earlier(at, oribi__watch_deadline(&context->watch));
    at = oribi_earlier(at, oribi__restart_deadline(context));
    if (context->watchdog_ms)
        at = oribi_earlier(at, context->watchdog_at);
    if (context->shutdown.look_at)
        at = oribi_earlier(at, context->shutdown.look_at);
    if (context->waiting_notice.notice != ORIBI__NO_NOTICE)
        at = oribi_earlier(at, context->waiting_notice.at);
    if (ms >= 0)
        at = oribi_earlier(at, now_ms + ms);
    if (oribi_log_waits())
        at = oribi_earlier(at, now_ms + ORIBI_LOG_RETRY_MS);
    int fds[ORIBI_POLL_MAX] = {context->signal_fds[0], context->message_fd, context->upgrade.successor_fd,
                               watches ? oribi__watch_fd(&context->watch) : -1, oribi__restart_fd(context)};
    size_t count = 5 + oribi__control_fds(context, fds + 5);
    count += oribi__frontends_fds(context, fds + count);
    ask(context, fds, count, 0, ORIBI_READ);
    context->asked_at.expired = expired;
    oribi_dispatcher_arm(&context->dispatcher, &context->asked_at, at);
    oribi_dispatcher_wait(&context->dispatcher, -1);
    for (size_t i = 0; i < count; i++)
        oribi_dispatcher_forget(&context->dispatcher, &context->asked[i]);
}

void oribi_supervisor_wake(struct oribi_supervisor *supervisor)
{
    struct oribi__context *context = &supervisor->context;
    oribi__supervisor_signal(context, 0);
}

void oribi_supervisor_stop(struct oribi_supervisor *supervisor)
{
    struct oribi__context *context = &supervisor->context;
    oribi__supervisor_signal(context, STOP_ONCE);
}

void oribi_supervisor_forked(struct oribi_supervisor *supervisor, pid_t pid)
{
    struct oribi__context *context = &supervisor->context;
    if (pid < 0)
        (void)oribi_os_fail(); /* keeps the reason's words */
    oribi__children_ours(false);
    struct oribi_policy_event event = oribi__mold_started(context, pid);
    oribi__follow(context, &event);
}
