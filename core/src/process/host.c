/* The supervisor's shell: turns what the system reports into events for the decisions (supervisor.c) and carries their actions out
 * (host_actions.c). Reading order: oribi_host_take, next_event, what makes an event of what. Beginning and end are in host_start.c. */
#include "process/host_private.h"

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

/* Nothing but a reason to look: the dead are looked for anyway, and 0 is oribi_host_wake(). */
static bool only_wakes(int number)
{
    return number == 0 || number == SIGCHLD;
}

/* One byte that only wakes is enough: while nobody reads (a manager that does something else for a day), the others would leave no room for a stop. */
void oribi__host_signal(void *self, int number)
{
    struct oribi_host *host = self;
    char byte = (char)number;
    if (only_wakes(number) && atomic_exchange(&host->wake_told, true))
        return;
    if (write(host->signal_fds[1], &byte, 1) < 0 && only_wakes(number))
        atomic_store(&host->wake_told, false); /* full: then there is enough to wake us */
}

/* One signal's event. False when it is none of ours to act on. */
static bool signal_event(int number, struct oribi_event *event)
{
    *event = (struct oribi_event){.type = ORIBI_EVENT_TICK};
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
    default: /* CHLD: the dead are looked for anyway; 0: oribi_host_wake() */
        return false;
    }
}

/* --- events --- */

/* Records come from processes that run application code: a pid that stands for a group, for everybody, for init or for ourselves is a lie, and a
 * signal to it would strike others. -1 is how a fork that failed is told. */
static bool names_a_process(const struct oribi_host *host, const struct oribi_message *message)
{
    if (message->kind == ORIBI_MESSAGE_WORKER_FORKED && message->pid == -1)
        return true;
    return message->pid > 1 && message->pid != host->pid;
}

/* Takes `passed`. False when the message is no event. */
static bool message_event(struct oribi_host *host, struct oribi_message *message, int passed, struct oribi_event *event)
{
    static const enum oribi_event_type types[] = {
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
        oribi__generation_told(host, message, passed);
        return false;
    case ORIBI_MESSAGE_MOLD_PROMOTED:
        if (!oribi__mold_promoted(host, message, passed))
            return false;
        break;
    default:
        oribi_os_close(passed);
        if (message->kind < ORIBI_MESSAGE_MOLD_READY || message->kind > ORIBI_MESSAGE_WORKER_LEAVING)
            return false;
    }
    *event = (struct oribi_event){.type = types[message->kind],
                                  .pid = message->pid,
                                  .generation = message->generation,
                                  .slot = message->slot,
                                  .ticket = message->ticket,
                                  .text = message->text};
    if (message->kind == ORIBI_MESSAGE_MOLD_READY)
        oribi__generation_ready(host, event);
    return true;
}

static void feed(struct oribi_host *host, const struct oribi_event *event)
{
    oribi_supervisor_feed(&host->sup, event, oribi_clock_ms());
}

static bool next_signal(struct oribi_host *host)
{
    char byte;
    struct oribi_event event;
    while (oribi_os_read(host->signal_fds[0], &byte, 1) == 1) {
        if (only_wakes(byte))
            atomic_store(&host->wake_told, false); /* before anybody looks for what it was about */
        if (!(host->ties.prefork ? oribi__prefork_signal(host, byte, &event) : signal_event(byte, &event)))
            continue;
        feed(host, &event);
        return true;
    }
    return false;
}

static bool next_message(struct oribi_host *host)
{
    struct oribi_message message;
    struct oribi_event event;
    int passed;
    int got;
    while ((got = oribi_message_receive(host->message_fd, &message, &passed)) == 1 || got == ORIBI_EBAD) {
        if (got != 1 || !names_a_process(host, &message)) {
            oribi_log(ORIBI_LOG_WARN, "a message that is none of this version's was dropped");
            if (got == 1)
                oribi_os_close(passed);
            continue;
        }
        if (!message_event(host, &message, passed, &event))
            continue;
        feed(host, &event);
        return true;
    }
    return false;
}

/* A death is told only after all messages: whoever wrote one before it died (the report of a fork comes from the process whose end made the
 * worker ours) must be heard first, so the messages are read once more after waitpid(2) has told us. */
static bool next_death(struct oribi_host *host)
{
    if (host->has_dead) {
        host->has_dead = false;
        oribi__mold_socket_close(host, host->dead.pid);
        feed(host, &host->dead);
        return true;
    }
    int status;
    pid_t pid = oribi_process_reap(-1, false, &status);
    if (pid <= 0)
        return false;
    host->has_dead = true;
    host->dead = (struct oribi_event){.type = ORIBI_EVENT_EXITED, .pid = pid, .status = status};
    return true;
}

/* Reading a process's memory map makes it wait if it wants to change the map just then, so a worker in a call is passed over; but one that is
 * always found in a call must not grow for ever. One that has not said yet whether it is in a job might be struck in the middle of it. */
static bool may_be_measured(struct oribi_host *host, uint32_t i)
{
    const struct oribi_place *place = &host->sup.places[i];
    uint32_t state = atomic_load(&host->ties.board.slots[i].state);
    if (place->state != ORIBI_PLACE_SERVING || place->retire || (host->ties.prefork && state == ORIBI_SLOT_STARTING))
        return false;
    if (state == ORIBI_SLOT_BUSY && host->passed_over[i]++ < PASSED_OVER_MAX)
        return false;
    host->passed_over[i] = 0;
    return true;
}

/* A part of the workers at a time, in turn. */
static bool next_measure(struct oribi_host *host)
{
    struct oribi_supervisor *sup = &host->sup;
    int64_t now_ms = oribi_clock_ms();
    if (!sup->config.memory_max || sup->stopping)
        return false;
    if (now_ms - host->measured_at >= MEASURE_MS) {
        host->measured_at = now_ms;
        host->measure_left = oribi_supervisor_serving(sup) / MEASURE_ROUNDS + 1;
        host->measure_looks = sup->slot_count;
    }
    while (host->measure_left > 0 && host->measure_looks > 0) {
        uint32_t i = host->measure_next++ % sup->slot_count;
        host->measure_looks--;
        if (!may_be_measured(host, i))
            continue;
        host->measure_left--;
        feed(host, &(struct oribi_event){.type = ORIBI_EVENT_MEASURED,
                                         .slot = i,
                                         .ticket = sup->places[i].ticket,
                                         .bytes = oribi_process_memory(sup->places[i].pid)});
        return true;
    }
    return false;
}

static bool next_event(struct oribi_host *host)
{
    struct oribi_event event;
    if (host->has_started) {
        event = host->started;
        host->has_started = event.type == ORIBI_EVENT_MOLD_STARTED && event.pid == host->pid; /* loaded as it is */
        host->started.type = ORIBI_EVENT_MOLD_READY;
        feed(host, &event);
        return true;
    }
    if (host->trapped)
        return false; /* the language hears of it before anything else happens */
    if (next_message(host) || next_signal(host) || next_death(host))
        return true;
    if (oribi__successor_ready(host)) {
        feed(host, &(struct oribi_event){.type = ORIBI_EVENT_UPGRADE_READY});
        return true;
    }
    if (oribi__control_turn(host, &event)) {
        if (!host->ties.prefork || oribi__prefork_wish(host, &event))
            feed(host, &event);
        return true;
    }
    if (host->resume_asked && oribi__prefork_resume(host, &event)) {
        feed(host, &event);
        return true;
    }
    return next_measure(host);
}

/* As long as this loop turns, the service manager hears of it. */
static void pat_watchdog(struct oribi_host *host)
{
    int64_t now_ms = oribi_clock_ms();
    if (!host->watchdog_ms || now_ms < host->watchdog_at)
        return;
    host->watchdog_at = now_ms + host->watchdog_ms;
    (void)oribi_sd_watchdog(); /* a lost one is followed by another in time */
}

/* A predecessor leaves when all our workers serve: with one of several it would take more away than we bring. */
static void relieve_predecessor(struct oribi_host *host)
{
    if (host->upgrade_fd < 0 || !host->sup.up || oribi_supervisor_serving(&host->sup) < host->sup.target)
        return;
    (void)oribi_os_write(host->upgrade_fd, "1", 1); /* one that is gone needs no word */
    oribi_os_close(host->upgrade_fd);
    host->upgrade_fd = -1;
}

static bool begin(struct oribi_host *host)
{
    if (host->daemonize) {
        host->daemonize = false;
        host->action = (struct oribi_host_action){.type = ORIBI_HOST_FORK_DAEMON};
        oribi__children_ours(true);
        return true;
    }
    host->begun = true;
    char error[ORIBI_OPTIONS_ERROR_CAP];
    if (host->pid_file.fd >= 0 && oribi_pid_file_write(&host->pid_file, error) < 0) {
        oribi__log_text(host, ORIBI_LOG_ERROR, error);
        oribi__release_starter(host, 1);
        host->action = (struct oribi_host_action){.type = ORIBI_HOST_EXIT, .exit_code = 1};
        return true;
    }
    if (oribi_os_become_subreaper() < 0)
        oribi_log(ORIBI_LOG_WARN, "workers cannot become our children: %s", oribi_os_error_text());
    feed(host, &(struct oribi_event){.type = ORIBI_EVENT_START});
    return false;
}

/* How an action went that started a process is told before the next one begins: there is room for one such word. What an event has queued is carried
 * out first all the same, since feeding wants an empty queue; none of them starts two. */
static bool next_action(struct oribi_host *host, struct oribi_action *action)
{
    if (host->has_started && host->sup.queue_len == 0)
        return false;
    return oribi_supervisor_next(&host->sup, oribi_clock_ms(), action);
}

const struct oribi_host_action *oribi_host_take(struct oribi_host *host)
{
    assert(host->pid == getpid());
    assert(host->next_mold_fds[0] < 0); /* oribi_host_forked() answers ORIBI_HOST_FORK_MOLD */
    host->action = (struct oribi_host_action){.type = ORIBI_HOST_NONE};
    if (!host->begun && begin(host))
        return &host->action;
    do {
        struct oribi_action action;
        while (next_action(host, &action))
            if (oribi__carry_out(host, &action)) {
                oribi__children_ours(host->action.type == ORIBI_HOST_FORK_MOLD);
                return &host->action;
            }
    } while (next_event(host));
    relieve_predecessor(host);
    oribi__listening_turn(host);
    oribi__kept_answer_turn(host);
    pat_watchdog(host);
    oribi_log_flush();
    host->action = (struct oribi_host_action){.type = host->trapped ? ORIBI_HOST_TRAPPED : ORIBI_HOST_NONE,
                                              .signal = host->trapped};
    host->trapped = 0;
    return &host->action;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

void oribi_host_wait_for(struct oribi_host *host, int64_t ms)
{
    int64_t now_ms = oribi_clock_ms();
    int64_t at = earlier(oribi_supervisor_deadline(&host->sup, now_ms), oribi__control_deadline(host));
    if (host->watchdog_ms)
        at = earlier(at, host->watchdog_at);
    if (host->listen_look_at)
        at = earlier(at, host->listen_look_at);
    if (host->kept_look_at)
        at = earlier(at, host->kept_look_at);
    if (host->sup.config.memory_max && !host->sup.stopping)
        at = earlier(at, host->measured_at + MEASURE_MS);
    if (ms >= 0)
        at = earlier(at, now_ms + ms);
    if (oribi_log_waits())
        at = earlier(at, now_ms + ORIBI_LOG_RETRY_MS);
    int fds[ORIBI_POLL_MAX] = {host->signal_fds[0], host->message_fd, host->successor_fd};
    size_t count = 3 + oribi__control_fds(host, fds + 3);
    oribi_process_poll(fds, count, at == INT64_MAX ? -1 : at > now_ms ? at - now_ms : 0);
}

void oribi_host_wake(struct oribi_host *host)
{
    oribi__host_signal(host, 0);
}

void oribi_host_forked(struct oribi_host *host, pid_t pid)
{
    if (pid < 0)
        (void)oribi_os_fail(); /* keeps the reason's words */
    oribi__children_ours(false);
    oribi__mold_started(host, pid);
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

size_t oribi_host_title(struct oribi_host *host, char *dst, size_t cap)
{
    char title[sizeof(host->title)];
    const struct oribi_supervisor *sup = &host->sup;
    const char *doing = sup->stopping          ? ", stopping"
                        : sup->stop_at         ? ", about to stop"
                        : sup->next_generation ? ", loading the next generation"
                        : sup->rolling         ? ", replacing workers"
                        : sup->upgrade_pid     ? ", starting a successor"
                                               : "";
    (void)snprintf(title, sizeof(title), "%s supervisor, generation %u, %u worker%s%s", host->ties.program,
                   sup->generation, oribi_supervisor_serving(sup), oribi_log_plural(oribi_supervisor_serving(sup)),
                   doing); /* cut when longer: still a title */
    return oribi__title_changed(title, host->title, sizeof(host->title), dst, cap);
}
