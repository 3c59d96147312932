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
    struct oribi_supervisor *supervisor = self;
    char byte = (char)number;
    if (only_wakes(number) && atomic_exchange(&supervisor->wakes_up, true))
        return;
    if (write(supervisor->signal_fds[1], &byte, 1) < 0 && only_wakes(number))
        atomic_store(&supervisor->wakes_up, false); /* full: then there is enough to wake us */
}

/* --- events --- */

/* Records come from processes that run application code: a pid that stands for a group, for all processes, for init
 * or for the supervisor is a lie, and a signal to it would reach other processes. -1 reports a fork that failed. */
static bool names_a_process(const struct oribi_supervisor *supervisor, const struct oribi_message *message)
{
    if (message->kind == ORIBI_MESSAGE_WORKER_FORKED && message->pid == -1)
        return true;
    return message->pid > 1 && message->pid != supervisor->pid;
}

/* Takes `passed`. False when the message is no event. */
static bool message_event(struct oribi_supervisor *supervisor, struct oribi_message *message, int passed,
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
        oribi__announced_message(supervisor, message, passed);
        return false;
    case ORIBI_MESSAGE_FILES:
        oribi__watch_message(supervisor, passed);
        return false;
    case ORIBI_MESSAGE_MOLD_PROMOTED:
        if (!oribi__mold_promoted(supervisor, message, passed))
            return false;
        break;
    case ORIBI_MESSAGE_ENDED:
        oribi_os_close(passed);
        return oribi__reaper_reported(supervisor, message, event);
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
        oribi__announced_ready(supervisor, event);
    return true;
}

static void feed(struct oribi_supervisor *supervisor, const struct oribi_policy_event *event)
{
    oribi_policy_feed(&supervisor->policy, event, oribi_clock_ms());
}

/* The event that follows from a byte of the pipe; false: none does. A stop that is asked for once stands behind the
 * signals that came before it. */
static bool signal_event(struct oribi_supervisor *supervisor, char byte, struct oribi_policy_event *event)
{
    if (byte == STOP_ONCE) {
        *event = (struct oribi_policy_event){.type = ORIBI_EVENT_STOP};
        return !supervisor->policy.stopping && !supervisor->policy.stop_at;
    }
    if (supervisor->context.prefork)
        return oribi__prefork_signal(supervisor, byte, event);
    if (oribi__terminal_interrupt(supervisor->context.options, &supervisor->policy, &supervisor->context.board, byte,
                                  event))
        return true;
    return oribi__signal_event(oribi__signal_effect(byte, ORIBI__IN_SUPERVISOR), event);
}

bool oribi__supervisor_signalled(struct oribi_supervisor *supervisor, struct oribi_policy_event *event)
{
    char byte;
    while (oribi_os_read(supervisor->signal_fds[0], &byte, 1) == 1) {
        if (only_wakes(byte))
            atomic_store(&supervisor->wakes_up, false); /* before the look for what it was about */
        if (signal_event(supervisor, byte, event))
            return true;
    }
    return false;
}

static bool next_signal(struct oribi_supervisor *supervisor)
{
    struct oribi_policy_event event;
    if (!oribi__supervisor_signalled(supervisor, &event))
        return false;
    feed(supervisor, &event);
    return true;
}

static bool next_message(struct oribi_supervisor *supervisor)
{
    struct oribi_message message;
    struct oribi_policy_event event;
    int passed;
    int got;
    while ((got = oribi_message_receive(supervisor->message_fd, &message, &passed)) == 1 || got == ORIBI_EBAD) {
        if (got != 1 || !names_a_process(supervisor, &message)) {
            oribi_log(ORIBI_LOG_WARN, "dropped a message that no process of this version sends");
            if (got == 1)
                oribi_os_close(passed);
            continue;
        }
        if (!message_event(supervisor, &message, passed, &event))
            continue;
        feed(supervisor, &event);
        return true;
    }
    return false;
}

/* The policy hears of a death after all messages that the process wrote before it died: the report of a fork comes from
 * the process whose end made the worker ours. So the messages are read once more after the kernel has named the dead
 * process, and it is reaped when there are none. */
static bool next_death(struct oribi_supervisor *supervisor)
{
    int status;
    pid_t pid = oribi_process_ended();
    if (pid <= 0)
        return false;
    if (next_message(supervisor))
        return true;
    if (oribi_process_reap(pid, false, &status) != pid)
        return false;
    if (oribi__frontends_ended(supervisor, pid, status))
        return true;
    oribi__mold_socket_close(supervisor, pid);
    feed(supervisor, &(struct oribi_policy_event){.type = ORIBI_EVENT_EXITED, .pid = pid, .status = status});
    return true;
}

/* A worker has gone that no process reaps for us: its reaper may have reported since. If not, both are gone, which a
 * kill is the likeliest reason for. */
static bool next_missing(struct oribi_supervisor *supervisor)
{
    pid_t pid = oribi__reaper_missing(supervisor);
    if (pid <= 0)
        return false;
    if (!next_message(supervisor))
        feed(supervisor, &(struct oribi_policy_event){.type = ORIBI_EVENT_EXITED, .pid = pid, .status = SIGKILL});
    return true;
}

/* A manager is its own mold, which is ready as soon as it is started. */
static bool next_own(struct oribi_supervisor *supervisor)
{
    struct oribi_policy_event event;
    if (!oribi__events_pop(&supervisor->events, &event))
        return false;
    feed(supervisor, &event);
    if (event.type == ORIBI_EVENT_MOLD_STARTED && event.pid == supervisor->pid)
        oribi__follow(supervisor, &(struct oribi_policy_event){.type = ORIBI_EVENT_MOLD_READY, .pid = event.pid});
    return true;
}

static bool next_event(struct oribi_supervisor *supervisor)
{
    struct oribi_policy_event event;
    if (next_own(supervisor))
        return true;
    if (supervisor->manager.trapped)
        return false; /* the language hears of it before anything else happens */
    if (next_message(supervisor) || next_signal(supervisor) || next_death(supervisor) || next_missing(supervisor))
        return true;
    if (supervisor->policy.frontends_end && !oribi__frontends_left(supervisor)) {
        feed(supervisor, &(struct oribi_policy_event){.type = ORIBI_EVENT_FRONTENDS_ENDED});
        return true;
    }
    if (oribi__upgrade_ready(supervisor)) {
        feed(supervisor, &(struct oribi_policy_event){.type = ORIBI_EVENT_UPGRADE_READY});
        return true;
    }
    if (oribi__upgrade_stop(supervisor, &event)) {
        feed(supervisor, &event);
        return true;
    }
    if (oribi__watch_event(supervisor, &event) || oribi__restart_event(supervisor, &event)) {
        feed(supervisor, &event);
        return true;
    }
    if (oribi__control_turn(supervisor, &event)) {
        if (!supervisor->context.prefork || oribi__prefork_command(supervisor, &event))
            feed(supervisor, &event);
        return true;
    }
    if (supervisor->manager.resume_asked && oribi__prefork_resume(supervisor, &event)) {
        feed(supervisor, &event);
        return true;
    }
    if (supervisor->manager.release_asked) {
        supervisor->manager.release_asked = false;
        feed(supervisor, &(struct oribi_policy_event){.type = ORIBI_EVENT_RELEASE_MOLDS, .pid = supervisor->pid});
        return true;
    }
    return oribi_dispatcher_next(&supervisor->dispatcher);
}

/* As long as this loop turns, the service manager hears of it. */
static void pat_watchdog(struct oribi_supervisor *supervisor)
{
    int64_t now_ms = oribi_clock_ms();
    if (!supervisor->watchdog_ms || now_ms < supervisor->watchdog_at)
        return;
    supervisor->watchdog_at = now_ms + supervisor->watchdog_ms;
    (void)oribi_sd_watchdog(); /* a lost one is followed by another in time */
}

static void begin_watches(struct oribi_supervisor *supervisor)
{
    char path[ORIBI__RESTART_PATH_CAP];
    if (supervisor->context.options->dev && !supervisor->context.prefork)
        oribi__watch_begin(&supervisor->watch, &supervisor->context.options->watch);
    if (supervisor->context.prefork)
        return;
    oribi__restart_path(supervisor->context.options, path);
    oribi__restart_watch(&supervisor->restart_file, path);
}

int oribi__supervisor_begin_alone(struct oribi_supervisor *supervisor, char *error)
{
    supervisor->begun = true;
    supervisor->reapers_look_at = INT64_MAX;
    int code = supervisor->pid_file.fd >= 0 ? oribi_pid_file_write(&supervisor->pid_file, error) : 0;
    if (code < 0)
        return code;
    begin_watches(supervisor);
    oribi__boot_log_begin(supervisor);
    return 0;
}

/* Begins the workers' part, once there are frontends or none are wanted. */
static void begin_workers(struct oribi_supervisor *supervisor)
{
    if (oribi_os_adopts_orphans() && oribi_os_become_subreaper() < 0)
        oribi_log(ORIBI_LOG_WARN, "cannot become the parent of orphaned workers (PR_SET_CHILD_SUBREAPER): %s",
                  oribi_os_error_text());
    begin_watches(supervisor);
    supervisor->policy.config.frontends = supervisor->frontends.set.count > 0;
    feed(supervisor, &(struct oribi_policy_event){.type = ORIBI_EVENT_START});
}

static void begin_failed(struct oribi_supervisor *supervisor, const char *error)
{
    oribi__log_text(supervisor, ORIBI_LOG_ERROR, error);
    oribi__upgrade_tell(supervisor, error);
    oribi__release_starter(supervisor, 1);
    supervisor->action = (struct oribi_supervisor_action){.type = ORIBI_SUPERVISOR_EXIT, .exit_code = 1};
}

static bool begin(struct oribi_supervisor *supervisor)
{
    if (supervisor->daemonize) {
        supervisor->daemonize = false;
        supervisor->action = (struct oribi_supervisor_action){.type = ORIBI_SUPERVISOR_FORK_DAEMON};
        oribi__children_ours(true);
        return true;
    }
    supervisor->begun = true;
    oribi_log_identify(-1, 1); /* the first generation */
    char error[ORIBI_ERROR_TEXT_CAP];
    if (supervisor->pid_file.fd >= 0 && oribi_pid_file_write(&supervisor->pid_file, error) < 0) {
        oribi__log_text(supervisor, ORIBI_LOG_ERROR, error);
        oribi__release_starter(supervisor, 1);
        supervisor->action = (struct oribi_supervisor_action){.type = ORIBI_SUPERVISOR_EXIT, .exit_code = 1};
        return true;
    }
    oribi__boot_log_begin(supervisor);
    if (oribi__frontends_begin(supervisor, error) < 0) {
        begin_failed(supervisor, error);
        return true;
    }
    if (!supervisor->frontends.beginning)
        begin_workers(supervisor);
    return false;
}

void oribi__follow(struct oribi_supervisor *supervisor, const struct oribi_policy_event *event)
{
    bool pushed = oribi__events_push(&supervisor->events, event);
    assert(pushed); /* a process that the policy never hears of would be lost */
    (void)pushed;
}

/* Actions that an event has queued in the policy are carried out first, since feeding wants an empty queue there.
 * Before the policy takes a further step it hears how the last action went. */
static bool next_action(struct oribi_supervisor *supervisor, struct oribi_policy_action *action)
{
    if (supervisor->events.count > 0 && supervisor->policy.queue_len == 0)
        return false;
    return oribi_policy_next(&supervisor->policy, oribi_clock_ms(), action);
}

/* Carries out what is to be done now. True when the language has its part in supervisor->action. */
static bool act(struct oribi_supervisor *supervisor)
{
    struct oribi_policy_action action;
    struct oribi_policy_event event;
    while (next_action(supervisor, &action)) {
        if (oribi__carry_out(supervisor, &action, &event))
            oribi__follow(supervisor, &event);
        if (supervisor->action.type == ORIBI_SUPERVISOR_NONE)
            continue;
        oribi__children_ours(supervisor->action.type == ORIBI_SUPERVISOR_FORK_MOLD);
        return true;
    }
    return false;
}

void oribi__supervisor_turns(struct oribi_supervisor *supervisor)
{
    oribi__listening_turn(supervisor);
    oribi__control_deferred_turn(supervisor);
    pat_watchdog(supervisor);
    oribi__notify_turn(supervisor);
    oribi_log_flush();
}

/* Until all frontends are ready nothing serves; but ctl and signals are heard. True when the action is there. */
static bool begin_frontends(struct oribi_supervisor *supervisor)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    do {
        if (act(supervisor))
            return true;
    } while (next_event(supervisor));
    if (supervisor->policy.stopping) {
        oribi__release_starter(supervisor, 0);
        supervisor->action = (struct oribi_supervisor_action){.type = ORIBI_SUPERVISOR_EXIT};
        return true;
    }
    int code = oribi__frontends_begin_turn(supervisor, error);
    if (code == 0)
        begin_workers(supervisor);
    else if (code != ORIBI_AGAIN)
        begin_failed(supervisor, error);
    else
        oribi__supervisor_turns(supervisor);
    return code != 0;
}
const struct oribi_supervisor_action *oribi_supervisor_take(struct oribi_supervisor *supervisor)
{
    assert(supervisor->pid == getpid());
    assert(supervisor->next_mold.fds[0] < 0); /* oribi_supervisor_forked() answers ORIBI_SUPERVISOR_FORK_MOLD */
    supervisor->action = (struct oribi_supervisor_action){.type = ORIBI_SUPERVISOR_NONE};
    if (!supervisor->begun && begin(supervisor))
        return &supervisor->action;
    if (supervisor->frontends.beginning && begin_frontends(supervisor))
        return &supervisor->action;
    do {
        if (act(supervisor))
            return &supervisor->action;
    } while (next_event(supervisor));
    oribi__frontends_turn(supervisor);
    oribi__reload_turn(supervisor, false);
    oribi__upgrade_relieve(supervisor);
    oribi__supervisor_turns(supervisor);
    if (supervisor->manager.trapped)
        supervisor->action =
            (struct oribi_supervisor_action){.type = ORIBI_SUPERVISOR_TRAPPED, .signal = supervisor->manager.trapped};
    supervisor->manager.trapped = 0;
    return &supervisor->action;
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

static void ask(struct oribi_supervisor *supervisor, const int *fds, size_t count, size_t place, uint8_t interest)
{
    for (size_t i = 0; i < count; i++) {
        struct oribi_watcher *watcher = &supervisor->asked[place + i];
        watcher->ready = asked;
        if (fds[i] >= 0)
            (void)oribi_dispatcher_watch(&supervisor->dispatcher, watcher, fds[i], interest);
    }
}

void oribi_supervisor_wait_for(struct oribi_supervisor *supervisor, int64_t ms)
{
    int64_t now_ms = oribi_clock_ms();
    int64_t at = oribi_earlier(oribi_policy_deadline(&supervisor->policy, now_ms), oribi__control_deadline(supervisor));
    at = oribi_earlier(at, oribi__frontends_deadline(supervisor));
    at = oribi_earlier(at, oribi__reaper_deadline(supervisor));
    bool watches = supervisor->policy.up && !supervisor->policy.stopping; /* else the turn would not look */
    if (watches)
        at = oribi_earlier(at, oribi__watch_deadline(&supervisor->watch));
    at = oribi_earlier(at, oribi__restart_deadline(supervisor));
    if (supervisor->watchdog_ms)
        at = oribi_earlier(at, supervisor->watchdog_at);
    if (supervisor->shutdown.look_at)
        at = oribi_earlier(at, supervisor->shutdown.look_at);
    if (supervisor->waiting_notice.notice != ORIBI__NO_NOTICE)
        at = oribi_earlier(at, supervisor->waiting_notice.at);
    if (ms >= 0)
        at = oribi_earlier(at, now_ms + ms);
    if (oribi_log_waits())
        at = oribi_earlier(at, now_ms + ORIBI_LOG_RETRY_MS);
    int fds[ORIBI_POLL_MAX] = {supervisor->signal_fds[0], supervisor->message_fd, supervisor->upgrade.successor_fd,
                               watches ? oribi__watch_fd(&supervisor->watch) : -1, oribi__restart_fd(supervisor)};
    size_t count = 5 + oribi__control_fds(supervisor, fds + 5);
    count += oribi__frontends_fds(supervisor, fds + count);
    ask(supervisor, fds, count, 0, ORIBI_READ);
    supervisor->asked_at.expired = expired;
    oribi_dispatcher_arm(&supervisor->dispatcher, &supervisor->asked_at, at);
    oribi_dispatcher_wait(&supervisor->dispatcher, -1);
    for (size_t i = 0; i < count; i++)
        oribi_dispatcher_forget(&supervisor->dispatcher, &supervisor->asked[i]);
}

void oribi_supervisor_wake(struct oribi_supervisor *supervisor)
{
    oribi__supervisor_signal(supervisor, 0);
}

void oribi_supervisor_stop(struct oribi_supervisor *supervisor)
{
    oribi__supervisor_signal(supervisor, STOP_ONCE);
}

void oribi_supervisor_forked(struct oribi_supervisor *supervisor, pid_t pid)
{
    if (pid < 0)
        (void)oribi_os_fail(); /* keeps the reason's words */
    oribi__children_ours(false);
    struct oribi_policy_event event = oribi__mold_started(supervisor, pid);
    oribi__follow(supervisor, &event);
}
