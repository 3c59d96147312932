/* The supervisor's shell: turns what the system reports into events for the decisions (supervisor.c) and carries
 * their actions out (supervisor_actions.c). Reading order: oribi_supervisor_take, next_event, what makes an event of
 * what. Beginning and end are in start.c. */
#include "process/supervisor_private.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/log.h"
#include "oribi/process/prefork.h"
#include "oribi/process/sd_notify.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    MEASURE_MS = 1000,   /* between two looks at the memory of a part of the workers */
    MEASURE_ROUNDS = 10, /* so many looks see all of them */
    PASSED_OVER_MAX = 3, /* so many looks in a row leave a worker alone because it is in a call */
};

/* --- signals --- */

/* Nothing but a reason to look: the dead are looked for anyway, and 0 is oribi_supervisor_wake(). */
static bool only_wakes(int number)
{
    return number == 0 || number == SIGCHLD;
}

/* One byte that only wakes is enough: while nobody reads (a manager that does something else for a day), the others
 * would leave no room for a stop. */
void oribi__supervisor_signal(void *self, int number)
{
    struct oribi_supervisor *supervisor = self;
    char byte = (char)number;
    if (only_wakes(number) && atomic_exchange(&supervisor->wake_told, true))
        return;
    if (write(supervisor->signal_fds[1], &byte, 1) < 0 && only_wakes(number))
        atomic_store(&supervisor->wake_told, false); /* full: then there is enough to wake us */
}

/* One signal's event. False when it is none of ours to act on. */
static bool signal_event(int number, struct oribi_policy_event *event)
{
    *event = (struct oribi_policy_event){.type = ORIBI_EVENT_TICK};
    switch (number) {
    case SIGTERM:
    case SIGQUIT:
        event->type = ORIBI_EVENT_STOP;
        return true;
    case SIGINT:
        event->type = ORIBI_EVENT_STOP_NOW;
        return true;
    case SIGTTIN:
    case SIGTTOU:
        event->type = ORIBI_EVENT_RESIZE;
        event->delta = number == SIGTTIN ? 1 : -1;
        return true;
    case SIGUSR1:
        event->type = ORIBI_EVENT_REOPEN;
        return true;
    case SIGUSR2:
        event->type = ORIBI_EVENT_UPGRADE;
        return true;
    case SIGWINCH: /* also sent to whoever runs in a terminal whose window is resized */
        event->type = ORIBI_EVENT_WINCH;
        return !oribi_process_has_terminal();
    case SIGHUP: /* also sent when the terminal goes away */
        event->type = oribi_process_terminal_gone() ? ORIBI_EVENT_STOP : ORIBI_EVENT_RELOAD;
        return true;
    default: /* CHLD: the dead are looked for anyway; 0: oribi_supervisor_wake() */
        return false;
    }
}

/* --- events --- */

/* Records come from processes that run application code: a pid that stands for a group, for everybody, for init or
 * for ourselves is a lie, and a signal to it would strike others. -1 is how a fork that failed is told. */
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
    };
    switch (message->kind) {
    case ORIBI_MESSAGE_MOLD_OPTIONS:
    case ORIBI_MESSAGE_MOLD_LISTENER:
        oribi__generation_announced(supervisor, message, passed);
        return false;
    case ORIBI_MESSAGE_MOLD_PROMOTED:
        if (!oribi__mold_promoted(supervisor, message, passed))
            return false;
        break;
    default:
        oribi_os_close(passed);
        if (message->kind < ORIBI_MESSAGE_MOLD_READY || message->kind > ORIBI_MESSAGE_WORKER_LEAVING)
            return false;
    }
    *event = (struct oribi_policy_event){.type = types[message->kind],
                                         .pid = message->pid,
                                         .generation = message->generation,
                                         .slot = message->slot,
                                         .ticket = message->ticket,
                                         .text = message->text};
    if (message->kind == ORIBI_MESSAGE_MOLD_READY)
        oribi__generation_ready(supervisor, event);
    return true;
}

static void feed(struct oribi_supervisor *supervisor, const struct oribi_policy_event *event)
{
    oribi_policy_feed(&supervisor->policy, event, oribi_clock_ms());
}

static bool next_signal(struct oribi_supervisor *supervisor)
{
    char byte;
    struct oribi_policy_event event;
    while (oribi_os_read(supervisor->signal_fds[0], &byte, 1) == 1) {
        if (only_wakes(byte))
            atomic_store(&supervisor->wake_told, false); /* before anybody looks for what it was about */
        if (!(supervisor->ties.prefork ? oribi__prefork_signal(supervisor, byte, &event) : signal_event(byte, &event)))
            continue;
        feed(supervisor, &event);
        return true;
    }
    return false;
}

static bool next_message(struct oribi_supervisor *supervisor)
{
    struct oribi_message message;
    struct oribi_policy_event event;
    int passed;
    int got;
    while ((got = oribi_message_receive(supervisor->message_fd, &message, &passed)) == 1 || got == ORIBI_EBAD) {
        if (got != 1 || !names_a_process(supervisor, &message)) {
            oribi_log(ORIBI_LOG_WARN, "a message that is none of this version's was dropped");
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

/* A death is told only after all messages: whoever wrote one before it died (the report of a fork comes from the
 * process whose end made the worker ours) must be heard first, so the messages are read once more after waitpid(2)
 * has told us. */
static bool next_death(struct oribi_supervisor *supervisor)
{
    if (supervisor->has_dead) {
        supervisor->has_dead = false;
        oribi__mold_socket_close(supervisor, supervisor->dead.pid);
        feed(supervisor, &supervisor->dead);
        return true;
    }
    int status;
    pid_t pid = oribi_process_reap(-1, false, &status);
    if (pid <= 0)
        return false;
    supervisor->has_dead = true;
    supervisor->dead = (struct oribi_policy_event){.type = ORIBI_EVENT_EXITED, .pid = pid, .status = status};
    return true;
}

/* Reading a process's memory map makes it wait if it wants to change the map just then, so a worker in a call is
 * passed over; but one that is always found in a call must not grow for ever. One that has not said yet whether it
 * is in a job might be struck in the middle of it. */
static bool may_be_measured(struct oribi_supervisor *supervisor, uint32_t i)
{
    const struct oribi_worker_record *record = &supervisor->policy.records[i];
    uint32_t state = atomic_load(&supervisor->ties.board.slots[i].state);
    if (record->state != ORIBI_RECORD_SERVING || record->retire ||
        (supervisor->ties.prefork && state == ORIBI_SLOT_STARTING))
        return false;
    if (state == ORIBI_SLOT_BUSY && supervisor->passed_over[i]++ < PASSED_OVER_MAX)
        return false;
    supervisor->passed_over[i] = 0;
    return true;
}

/* A part of the workers at a time, in turn. */
static bool next_measure(struct oribi_supervisor *supervisor)
{
    struct oribi_policy *policy = &supervisor->policy;
    int64_t now_ms = oribi_clock_ms();
    if (!policy->config.memory_max || policy->stopping)
        return false;
    if (now_ms - supervisor->measured_at >= MEASURE_MS) {
        supervisor->measured_at = now_ms;
        supervisor->measure_left = oribi_policy_serving(policy) / MEASURE_ROUNDS + 1;
        supervisor->measure_looks = policy->slot_count;
    }
    while (supervisor->measure_left > 0 && supervisor->measure_looks > 0) {
        uint32_t i = supervisor->measure_next++ % policy->slot_count;
        supervisor->measure_looks--;
        if (!may_be_measured(supervisor, i))
            continue;
        supervisor->measure_left--;
        feed(supervisor, &(struct oribi_policy_event){.type = ORIBI_EVENT_MEASURED,
                                                      .slot = i,
                                                      .ticket = policy->records[i].ticket,
                                                      .bytes = oribi_process_memory(policy->records[i].pid)});
        return true;
    }
    return false;
}

static bool next_event(struct oribi_supervisor *supervisor)
{
    struct oribi_policy_event event;
    if (supervisor->has_started) {
        event = supervisor->started;
        /* loaded as it is */
        supervisor->has_started = event.type == ORIBI_EVENT_MOLD_STARTED && event.pid == supervisor->pid;
        supervisor->started.type = ORIBI_EVENT_MOLD_READY;
        feed(supervisor, &event);
        return true;
    }
    if (supervisor->trapped)
        return false; /* the language hears of it before anything else happens */
    if (next_message(supervisor) || next_signal(supervisor) || next_death(supervisor))
        return true;
    if (oribi__successor_ready(supervisor)) {
        feed(supervisor, &(struct oribi_policy_event){.type = ORIBI_EVENT_UPGRADE_READY});
        return true;
    }
    if (oribi__control_turn(supervisor, &event)) {
        if (!supervisor->ties.prefork || oribi__prefork_command(supervisor, &event))
            feed(supervisor, &event);
        return true;
    }
    if (supervisor->resume_asked && oribi__prefork_resume(supervisor, &event)) {
        feed(supervisor, &event);
        return true;
    }
    return next_measure(supervisor);
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

/* A predecessor leaves when all our workers serve: with one of several it would take more away than we bring. */
static void relieve_predecessor(struct oribi_supervisor *supervisor)
{
    if (supervisor->upgrade_fd < 0 || !supervisor->policy.up ||
        oribi_policy_serving(&supervisor->policy) < supervisor->policy.target)
        return;
    (void)oribi_os_write(supervisor->upgrade_fd, "1", 1); /* one that is gone needs no word */
    oribi_os_close(supervisor->upgrade_fd);
    supervisor->upgrade_fd = -1;
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
    char error[ORIBI_ERROR_TEXT_CAP];
    if (supervisor->pid_file.fd >= 0 && oribi_pid_file_write(&supervisor->pid_file, error) < 0) {
        oribi__log_text(supervisor, ORIBI_LOG_ERROR, error);
        oribi__release_starter(supervisor, 1);
        supervisor->action = (struct oribi_supervisor_action){.type = ORIBI_SUPERVISOR_EXIT, .exit_code = 1};
        return true;
    }
    if (oribi_os_become_subreaper() < 0)
        oribi_log(ORIBI_LOG_WARN, "workers cannot become our children: %s", oribi_os_error_text());
    feed(supervisor, &(struct oribi_policy_event){.type = ORIBI_EVENT_START});
    return false;
}

/* How an action went that started a process is told before the next one begins: there is room for one such word.
 * What an event has queued is carried out first all the same, since feeding wants an empty queue; none of them
 * starts two. */
static bool next_action(struct oribi_supervisor *supervisor, struct oribi_policy_action *action)
{
    if (supervisor->has_started && supervisor->policy.queue_len == 0)
        return false;
    return oribi_policy_next(&supervisor->policy, oribi_clock_ms(), action);
}

const struct oribi_supervisor_action *oribi_supervisor_take(struct oribi_supervisor *supervisor)
{
    assert(supervisor->pid == getpid());
    assert(supervisor->next_mold_fds[0] < 0); /* oribi_supervisor_forked() answers ORIBI_SUPERVISOR_FORK_MOLD */
    supervisor->action = (struct oribi_supervisor_action){.type = ORIBI_SUPERVISOR_NONE};
    if (!supervisor->begun && begin(supervisor))
        return &supervisor->action;
    do {
        struct oribi_policy_action action;
        while (next_action(supervisor, &action))
            if (oribi__carry_out(supervisor, &action)) {
                oribi__children_ours(supervisor->action.type == ORIBI_SUPERVISOR_FORK_MOLD);
                return &supervisor->action;
            }
    } while (next_event(supervisor));
    relieve_predecessor(supervisor);
    oribi__listening_turn(supervisor);
    oribi__deferred_reply_turn(supervisor);
    pat_watchdog(supervisor);
    oribi_log_flush();
    supervisor->action = (struct oribi_supervisor_action){
        .type = supervisor->trapped ? ORIBI_SUPERVISOR_TRAPPED : ORIBI_SUPERVISOR_NONE, .signal = supervisor->trapped};
    supervisor->trapped = 0;
    return &supervisor->action;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

void oribi_supervisor_wait_for(struct oribi_supervisor *supervisor, int64_t ms)
{
    int64_t now_ms = oribi_clock_ms();
    int64_t at = earlier(oribi_policy_deadline(&supervisor->policy, now_ms), oribi__control_deadline(supervisor));
    if (supervisor->watchdog_ms)
        at = earlier(at, supervisor->watchdog_at);
    if (supervisor->listen_look_at)
        at = earlier(at, supervisor->listen_look_at);
    if (supervisor->deferred_look_at)
        at = earlier(at, supervisor->deferred_look_at);
    if (supervisor->policy.config.memory_max && !supervisor->policy.stopping)
        at = earlier(at, supervisor->measured_at + MEASURE_MS);
    if (ms >= 0)
        at = earlier(at, now_ms + ms);
    if (oribi_log_waits())
        at = earlier(at, now_ms + ORIBI_LOG_RETRY_MS);
    int fds[ORIBI_POLL_MAX] = {supervisor->signal_fds[0], supervisor->message_fd, supervisor->successor_fd};
    size_t count = 3 + oribi__control_fds(supervisor, fds + 3);
    oribi_process_poll(fds, count, at == INT64_MAX ? -1 : at > now_ms ? at - now_ms : 0);
}

void oribi_supervisor_wake(struct oribi_supervisor *supervisor)
{
    oribi__supervisor_signal(supervisor, 0);
}

void oribi_supervisor_forked(struct oribi_supervisor *supervisor, pid_t pid)
{
    if (pid < 0)
        (void)oribi_os_fail(); /* keeps the reason's words */
    oribi__children_ours(false);
    oribi__mold_started(supervisor, pid);
}

/* --- title --- */

size_t oribi__title_changed(const char *title, char *last, size_t last_cap, char *dst, size_t cap)
{
    if (strncmp(title, last, last_cap) == 0)
        return 0;
    (void)snprintf(last, last_cap, "%s", title);
    int n = snprintf(dst, cap, "%s", title);
    return n > 0 && (size_t)n < cap ? (size_t)n : cap - 1;
}

size_t oribi_supervisor_title(struct oribi_supervisor *supervisor, char *dst, size_t cap)
{
    char title[sizeof(supervisor->title)];
    const struct oribi_policy *policy = &supervisor->policy;
    const char *doing = policy->stopping          ? ", stopping"
                        : policy->stop_at         ? ", about to stop"
                        : policy->next_generation ? ", loading the next generation"
                        : policy->rolling         ? ", replacing workers"
                        : policy->upgrade_pid     ? ", starting a successor"
                                                  : "";
    (void)snprintf(title, sizeof(title), "%s supervisor, generation %u, %u worker%s%s", supervisor->ties.program,
                   policy->generation, oribi_policy_serving(policy), oribi_log_plural(oribi_policy_serving(policy)),
                   doing); /* cut when longer: still a title */
    return oribi__title_changed(title, supervisor->title, sizeof(supervisor->title), dst, cap);
}
