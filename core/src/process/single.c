/* One process that serves alone. Reading order: oribi__single_begin; attend, the attendant's loop, with what makes an
 * event of what; happened, what follows from it; the trial of a reload; become; oribi__single_end. */
#include "process/single.h"

#include "process/mold.h"
#include "process/signal_table.h"
#include "process/supervisor_private.h"
#include "process/terminal.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/log.h"
#include "oribi/base/mem.h"
#include "oribi/base/os_thread.h"
#include "oribi/base/signals.h"
#include "oribi/config/inherited.h"
#include "oribi/process/sd_notify.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LOOK_MS = 20 }; /* between two looks at a trial that is about to end */

/* A reload's new program, started beside this one to see whether it loads. */
struct trial {
    pid_t pid; /* 0: there is none */
    bool ready;
    bool late;
    int64_t until; /* INT64_MAX: no bound */
    char why[ORIBI_POLICY_WHY_CAP];
};

struct oribi_single {
    struct oribi_supervisor *supervisor;
    struct oribi_child *child;
    struct oribi_listeners listeners; /* the worker's descriptors of them */
    struct oribi_handoff handoff;     /* likewise */
    pthread_t attendant;
    uint32_t generation;
    _Atomic bool attended;       /* the attendant runs */
    _Atomic bool leaving;        /* … and is to end */
    _Atomic bool failed;         /* … because the worker could not begin */
    _Atomic bool restarts;       /* the program is started anew when the worker has ended */
    _Atomic bool stopped_lately; /* since the attendant has ended */
    /* the attendant's */
    struct trial trial;
    bool again;          /* another reload was asked for during the trial */
    int64_t boot_until;  /* INT64_MAX: no bound; likewise: */
    int64_t drain_until; /* when what is left is cut */
};

static const int held[] = {SIGHUP, SIGUSR1, SIGUSR2}; /* over an exec */

enum { HELD = sizeof(held) / sizeof(held[0]) };

static int64_t in_ms(int64_t ms)
{
    return ms > 0 ? oribi_clock_ms() + ms : INT64_MAX;
}

static const struct oribi_options *options_of(const struct oribi_single *single)
{
    return single->supervisor->ties.options;
}

static struct oribi_slot *slot_of(const struct oribi_single *single)
{
    return &single->supervisor->ties.board.slots[0];
}

/* --- signals --- */

void oribi__single_signal(struct oribi_single *single, int number)
{
    if (atomic_load(&single->attended))
        oribi__supervisor_signal(single->supervisor, number);
    else if (number == SIGTERM || number == SIGQUIT || number == SIGINT)
        atomic_store(&single->stopped_lately, true);
}

static void on_signal(void *self, int number)
{
    oribi__single_signal(self, number);
}

void oribi__single_stop(struct oribi_single *single)
{
    if (atomic_load(&single->attended))
        oribi_supervisor_stop(single->supervisor);
}

/* In a child that the application has forked. */
static void let_go(void *owner)
{
    struct oribi_single *single = owner;
    oribi__child_let_go(single->child);
    oribi__supervisor_let_go(single->supervisor);
}

/* --- the end without the language --- */

static void remove_files(struct oribi_single *single)
{
    struct oribi_supervisor *supervisor = single->supervisor;
    oribi_listeners_unlink(supervisor->ties.listeners);
    oribi__control_stopped(supervisor);
    oribi__control_close(supervisor, true);
    oribi__agent_close(supervisor, true);
    oribi__status_close(supervisor, true);
    oribi_pid_file_remove(&supervisor->pid_file);
}

/* As a supervisor ends after it has killed its workers. */
static _Noreturn void cut(struct oribi_single *single, int code)
{
    remove_files(single);
    oribi_log_drain(ORIBI_LOG_DRAIN_MS);
    _exit(code);
}

/* --- a new program under this pid --- */

/* A file that has changed while the application is loaded again changes it once more. -1: nothing is watched, or there is
 * no memory for it. */
static int export_watch(struct oribi_single *single)
{
    struct oribi_buf files = {0};
    int fd = -1;
    oribi__watch_export(&single->supervisor->watch, &files);
    if (files.len > 0 && oribi_process_shared_memory(files.len, &fd) == 0 &&
        pwrite(fd, files.p, files.len, 0) != (ssize_t)files.len) {
        oribi_os_close(fd);
        fd = -1;
    }
    oribi_buf_deinit(&files);
    return fd;
}

static void import_watch(struct oribi_single *single, int fd)
{
    size_t bytes;
    char *files = NULL;
    if (fd >= 0 && oribi_process_shared_memory_size(fd, &bytes) == 0 && bytes <= ORIBI__WATCH_LIST_BYTES_MAX)
        files = oribi_mem_try_alloc(bytes ? bytes : 1, 1);
    if (files && pread(fd, files, bytes, 0) == (ssize_t)bytes)
        oribi__watch_import(&single->supervisor->watch, files, bytes);
    oribi_mem_free(files);
}

/* Returns where it cannot be started. */
static void become(struct oribi_single *single)
{
    struct oribi_supervisor *supervisor = single->supervisor;
    char listen[ORIBI_INHERITED_TEXT_CAP + 16];
    char generation[32];
    int keep[ORIBI_LISTENERS_MAX + 1];
    int watched = export_watch(single);
    sigset_t all;
    size_t count = oribi__listeners_to_keep(supervisor, listen, sizeof(listen), keep);
    (void)snprintf(generation, sizeof(generation), "ORIBI_SINGLE=%u %d", single->generation + 1, watched); /* fits */
    if (watched >= 0)
        keep[count++] = watched;
    char *extra[] = {listen,
                     generation,
                     (char *)"LISTEN_FDS=",
                     (char *)"LISTEN_PID=",
                     (char *)"ORIBI_MOLD=",
                     (char *)"ORIBI_METRICS=",
                     (char *)"ORIBI_UPGRADE=",
                     (char *)"ORIBI_TOTALS=",
                     (char *)"ORIBI_CONTROL_PATH=",
                     NULL};
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, NULL);
    oribi__control_close(supervisor, true);
    oribi__agent_close(supervisor, true);
    oribi__status_close(supervisor, true);
    oribi_pid_file_forget(&supervisor->pid_file);
    oribi_log_drain(ORIBI_LOG_DRAIN_MS);
    oribi_start_become(&supervisor->start, extra, keep, count, held, HELD);
    oribi_log(ORIBI_LOG_ERROR, "the program cannot be started anew: %s", oribi_os_error_text());
}

/* --- what follows from an event --- */

static void drain(struct oribi_single *single, enum oribi_stop_word word)
{
    const struct oribi_options *options = options_of(single);
    bool waits = word == ORIBI_STOP_TOLD && options->dev;
    atomic_store(&slot_of(single)->stop_soon, word);
    single->drain_until =
        waits || !options->shutdown_timeout_ms ? INT64_MAX : in_ms(options->shutdown_timeout_ms + ORIBI_KILL_MS);
    single->supervisor->policy.records[0].state = ORIBI_RECORD_STOPPING;
    oribi_child_signal(single->child, SIGTERM);
}

static void end_trial(struct oribi_single *single)
{
    int status;
    if (!single->trial.pid)
        return;
    (void)kill(single->trial.pid, SIGKILL);
    (void)oribi_process_reap(single->trial.pid, true, &status); /* fails where the application has reaped it */
    oribi__mold_socket_close(single->supervisor, single->trial.pid);
    single->trial.pid = 0;
    single->supervisor->policy.next_generation = 0;
}

static void stop(struct oribi_single *single)
{
    struct oribi_supervisor *supervisor = single->supervisor;
    supervisor->policy.stop_at = 0;
    supervisor->policy.stopping = true;
    atomic_store(&single->restarts, false);
    end_trial(single);
    oribi__notify(supervisor, ORIBI__STOPPING_NOTICE, NULL);
    oribi__control_stopping(supervisor);
    if (!supervisor->policy.up)
        cut(single, 0);
    oribi__end_listening(supervisor, false);
    drain(single, ORIBI_STOP_LAST);
}

/* With drain_delay it is announced first. */
static void stop_soon(struct oribi_single *single, int64_t hurry_ms)
{
    struct oribi_supervisor *supervisor = single->supervisor;
    struct oribi_policy *policy = &supervisor->policy;
    int64_t delay_ms = options_of(single)->drain_delay_ms;
    if (policy->stopping || policy->stop_at) {
        oribi_log(ORIBI_LOG_INFO, "stopping now");
        cut(single, 0);
    }
    if (hurry_ms)
        policy->hurry_at = oribi_clock_ms() + hurry_ms;
    oribi_log(ORIBI_LOG_INFO, "stopping");
    if (hurry_ms || delay_ms == 0 || !policy->up) {
        stop(single);
        return;
    }
    policy->stop_at = oribi_clock_ms() + delay_ms;
    atomic_store(&slot_of(single)->stop_soon, ORIBI_STOP_SOON);
    oribi__notify(supervisor, ORIBI__STOPPING_NOTICE, NULL);
}

static void tell_reloaded(struct oribi_single *single, int code, const char *text)
{
    oribi__control_answer(single->supervisor, ORIBI__COMMAND_RELOAD, code, text);
    oribi__control_answer(single->supervisor, ORIBI__COMMAND_UPGRADE, code, text);
}

static void reload_failed(struct oribi_single *single, const char *why)
{
    char text[sizeof(single->trial.why) + 32];
    struct oribi_supervisor *supervisor = single->supervisor;
    (void)snprintf(text, sizeof(text), "reload failed: %.*s", (int)strcspn(why, "\n"), why); /* cut: a line */
    supervisor->policy.next_generation = 0;
    oribi__totals_reloaded(&supervisor->totals, true, oribi_clock_ms());
    oribi_log(ORIBI_LOG_ERROR, "%s; generation %u goes on", text, single->generation);
    tell_reloaded(single, 1, text + strlen("reload failed: "));
    oribi__notify(supervisor, ORIBI__READY_NOTICE, NULL);
}

static void reload(struct oribi_single *single)
{
    struct oribi_supervisor *supervisor = single->supervisor;
    struct oribi_policy_event event;
    bool booting = !supervisor->policy.up;
    if (supervisor->policy.stopping || supervisor->policy.stop_at || atomic_load(&single->restarts))
        return; /* what comes next is new already */
    if (booting || single->trial.pid) {
        single->again = true;
        return;
    }
    single->again = false;
    oribi__totals_reloading(&supervisor->totals, oribi_clock_ms());
    oribi__notify(supervisor, ORIBI__RELOADING_NOTICE, NULL);
    oribi_log(ORIBI_LOG_INFO, "reload: generation %u is tried in a process of its own", single->generation + 1);
    single->trial = (struct trial){.until = in_ms(options_of(single)->boot_timeout_ms)};
    supervisor->policy.next_generation = single->generation + 1;
    (void)oribi__start_mold(supervisor, single->generation + 1, true, &event);
    if (event.pid > 0)
        single->trial.pid = event.pid;
    else
        reload_failed(single, event.text ? event.text : "no process could be started");
}

static void happened(struct oribi_single *single, const struct oribi_policy_event *event)
{
    switch (event->type) {
    case ORIBI_EVENT_STOP:
        stop_soon(single, 0);
        break;
    case ORIBI_EVENT_INTERRUPT:
        stop_soon(single, ORIBI_INTERRUPT_MS);
        break;
    case ORIBI_EVENT_STOP_NOW:
        oribi_log(ORIBI_LOG_INFO, "stopping now");
        cut(single, 0);
    case ORIBI_EVENT_RELOAD:
    case ORIBI_EVENT_UPGRADE:
        reload(single);
        break;
    case ORIBI_EVENT_REOPEN:
        oribi_child_signal(single->child, SIGUSR1);
        break;
    default: /* there is one worker */
        break;
    }
}

/* --- the trial --- */

static void trial_turn(struct oribi_single *single)
{
    struct trial *trial = &single->trial;
    struct oribi_supervisor *supervisor = single->supervisor;
    char text[96];
    int status;
    if (!trial->pid)
        return;
    if (trial->ready && oribi__mold_socket_of(supervisor, trial->pid)) {
        oribi__mold_socket_close(supervisor, trial->pid); /* its order to leave */
        trial->until = in_ms(ORIBI_MOLD_STOP_MS);
    }
    if (oribi_clock_ms() >= trial->until) {
        trial->late = !trial->ready;
        (void)kill(trial->pid, SIGKILL);
        trial->until = INT64_MAX;
    }
    if (oribi_process_reap(trial->pid, false, &status) == 0)
        return;
    oribi__mold_socket_close(supervisor, trial->pid);
    trial->pid = 0;
    supervisor->policy.next_generation = 0;
    if (!trial->ready) {
        reload_failed(single, trial->late     ? "boot_timeout has passed"
                              : trial->why[0] ? trial->why
                                              : "the new program ended before it had loaded the application");
        if (single->again)
            reload(single);
        return;
    }
    (void)snprintf(text, sizeof(text), "generation %u, pid %ld", single->generation + 1, (long)supervisor->pid);
    oribi_log(ORIBI_LOG_INFO, "reload: it loads; this process finishes its requests and becomes generation %u",
              single->generation + 1);
    tell_reloaded(single, 0, text);
    atomic_store(&single->restarts, true);
    drain(single, ORIBI_STOP_TOLD);
}

/* --- what makes an event of what --- */

static void up(struct oribi_single *single)
{
    struct oribi_supervisor *supervisor = single->supervisor;
    single->boot_until = INT64_MAX;
    supervisor->policy.up = true;
    supervisor->policy.records[0].state = ORIBI_RECORD_SERVING;
    supervisor->policy.records[0].ready_at = oribi_clock_ms();
    oribi__supervisor_up(supervisor);
    if (single->again)
        reload(single);
}

/* The first line, and what follows as a block. */
static void fail(struct oribi_single *single, const char *why)
{
    char text[ORIBI_FAILURE_TEXT_MAX + 64];
    (void)snprintf(text, sizeof(text), "the application did not load: %s", why); /* fits */
    oribi__log_text(single->supervisor, ORIBI_LOG_ERROR, text);
}

static void hear(struct oribi_single *single, const struct oribi_message *message, int passed)
{
    struct trial *trial = &single->trial;
    bool ours = message->pid == single->supervisor->pid;
    bool tried = trial->pid && message->pid == trial->pid;
    if (message->kind == ORIBI_MESSAGE_FILES) {
        oribi__watch_message(single->supervisor, passed);
        return;
    }
    oribi_os_close(passed);
    if (message->kind == ORIBI_MESSAGE_MOLD_READY && tried)
        trial->ready = true;
    else if (message->kind == ORIBI_MESSAGE_MOLD_FAILED && tried)
        (void)snprintf(trial->why, sizeof(trial->why), "%.*s", (int)sizeof(trial->why) - 1, message->text); /* cut: a hint */
    else if (message->kind == ORIBI_MESSAGE_WORKER_READY && ours)
        up(single);
    else if (message->kind == ORIBI_MESSAGE_WORKER_FAILED && ours)
        fail(single, message->text);
}

static void hear_all(struct oribi_single *single)
{
    struct oribi_message message;
    int passed;
    int got;
    while ((got = oribi_message_receive(single->supervisor->message_fd, &message, &passed)) == 1 || got == ORIBI_EBAD)
        if (got == 1)
            hear(single, &message, passed);
}

static void deadlines(struct oribi_single *single)
{
    struct oribi_policy *policy = &single->supervisor->policy;
    int64_t now_ms = oribi_clock_ms();
    if (now_ms >= single->boot_until) {
        oribi__log_text(single->supervisor, ORIBI_LOG_ERROR,
                        "the application has not loaded within boot_timeout: giving up");
        cut(single, 1);
    }
    if (policy->stop_at && now_ms >= policy->stop_at)
        stop(single);
    if (policy->hurry_at && now_ms >= policy->hurry_at)
        cut(single, 0);
    if (now_ms < single->drain_until)
        return;
    oribi_log(ORIBI_LOG_WARN, "shutdown_timeout has passed: what is left is cut");
    if (atomic_load(&single->restarts))
        become(single);
    cut(single, atomic_load(&single->restarts));
}

static void turn(struct oribi_single *single)
{
    struct oribi_supervisor *supervisor = single->supervisor;
    struct oribi_policy_event event;
    hear_all(single);
    while (oribi__supervisor_signalled(supervisor, &event))
        happened(single, &event);
    trial_turn(single);
    if (oribi__watch_event(supervisor, &event) || oribi__restart_event(supervisor, &event))
        happened(single, &event);
    while (oribi__control_turn(supervisor, &event))
        happened(single, &event);
    (void)oribi__footprints_turn(supervisor, &event);
    deadlines(single);
    oribi__supervisor_turns(supervisor);
}

/* With the signals held back, so that handlers run in the program's threads. */
static void *attend(void *self)
{
    struct oribi_single *single = self;
    oribi_os_thread_name("attendant");
    while (!atomic_load(&single->leaving)) {
        turn(single);
        int64_t at = single->boot_until < single->drain_until ? single->boot_until : single->drain_until;
        int64_t left = at == INT64_MAX ? -1 : at - oribi_clock_ms();
        if (left < -1)
            left = 0;
        if (single->trial.pid && (left < 0 || left > LOOK_MS))
            left = LOOK_MS;
        if (!atomic_load(&single->leaving))
            oribi_supervisor_wait_for(single->supervisor, left);
    }
    hear_all(single);
    return NULL;
}

/* --- beginning and end --- */

struct oribi__arrival oribi__single_arrive(void)
{
    const char *text = getenv("ORIBI_SINGLE");
    struct oribi__arrival arrival = {.watched_fd = -1};
    if (!text || sscanf(text, "%u %d", &arrival.generation, &arrival.watched_fd) != 2)
        arrival = (struct oribi__arrival){.watched_fd = -1};
    (void)unsetenv("ORIBI_SINGLE"); /* fails for names with `=` only */
    if (arrival.watched_fd >= 0 && oribi_os_set_cloexec(arrival.watched_fd, true) < 0)
        arrival.watched_fd = -1;
    if (arrival.generation)
        oribi_start_arrive(held, HELD, false);
    return arrival;
}

void oribi__single_arrived(const struct oribi__arrival *arrival)
{
    oribi_os_close(arrival->watched_fd);
    if (arrival->generation)
        oribi_start_arrive(held, HELD, true);
}

/* What the status tells: one worker, of this process. */
static void describe(struct oribi_single *single)
{
    struct oribi_policy *policy = &single->supervisor->policy;
    policy->started = true;
    policy->target = 1;
    policy->config.watch = false;
    policy->config.workers_max = 1;
    policy->generation = single->generation;
    policy->records[0] = (struct oribi_worker_record){.state = ORIBI_RECORD_BOOTING,
                                                      .generation = single->generation,
                                                      .ticket = 1,
                                                      .pid = single->supervisor->pid};
    atomic_store(&slot_of(single)->generation, single->generation);
    atomic_store(&slot_of(single)->state, ORIBI_SLOT_STARTING);
}

static int duplicate(struct oribi_single *single, struct oribi__ties *ties)
{
    single->listeners = *ties->listeners;
    bool all = true;
    for (uint32_t i = 0; i < single->listeners.count; i++) {
        single->listeners.items[i].fd = oribi_os_dup(ties->listeners->items[i].fd);
        all &= single->listeners.items[i].fd >= 0;
    }
    single->handoff.take_fd = oribi_os_dup(ties->handoff.take_fd);
    single->handoff.give_fd = oribi_os_dup(ties->handoff.give_fd);
    ties->listeners = &single->listeners;
    ties->handoff = single->handoff;
    return all && single->handoff.take_fd >= 0 && single->handoff.give_fd >= 0 ? 0 : ORIBI_ESYS;
}

static int start_attendant(struct oribi_single *single)
{
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = pthread_create(&single->attendant, NULL, attend, single);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code ? ORIBI_ESYS : 0;
}

int oribi__single_begin(const struct oribi_supervisor_setup *setup, const struct oribi__arrival *arrival,
                        struct oribi_single **out, struct oribi_child **child, char *error)
{
    struct oribi_supervisor *supervisor;
    sigset_t all;
    sigset_t before;
    int code = oribi_supervisor_create(setup, &supervisor, error);
    if (code < 0)
        return code;
    struct oribi_single *single = oribi_mem_alloc(1, sizeof(*single));
    struct oribi__ties ties = supervisor->ties;
    *single = (struct oribi_single){
        .supervisor = supervisor,
        .generation = arrival->generation ? arrival->generation : 1,
        .drain_until = INT64_MAX};
    single->boot_until = in_ms(setup->options->boot_timeout_ms);
    code = oribi__supervisor_begin_alone(supervisor, error);
    if (code == 0 && (code = duplicate(single, &ties)) < 0)
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "cannot duplicate descriptors: %s", oribi_os_error_text());
    if (code < 0) {
        oribi_supervisor_destroy(supervisor);
        oribi_signals_uninstall();
        return code;
    }
    describe(single);
    import_watch(single, arrival->watched_fd);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* until the handler is ours */
    oribi_signals_hold();                              /* it releases them, as after a fork */
    single->child = oribi_child_enter_single(&ties, single->generation);
    oribi__children_let_go(let_go, single);
    atomic_store(&single->attended, true);
    oribi_signals_install(on_signal, single, 0);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (start_attendant(single) < 0) {
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "cannot start a thread");
        oribi_supervisor_destroy(supervisor);
        oribi_signals_uninstall();
        return ORIBI_ESYS;
    }
    *out = single;
    *child = single->child;
    return 0;
}

bool oribi__single_restarts(const struct oribi_single *single)
{
    return atomic_load(&single->restarts);
}

int oribi__single_leave(struct oribi_single *single, bool failed)
{
    atomic_store(&single->failed, failed);
    atomic_store(&single->leaving, true);
    oribi_supervisor_wake(single->supervisor);
    (void)pthread_join(single->attendant, NULL);
    atomic_store(&single->attended, false);
    oribi_child_leave(single->child);
    single->supervisor->action.exit_code = failed;
    return failed;
}

/* A stop that came since the attendant has ended goes before a new program. */
void oribi__single_end(struct oribi_single *single)
{
    bool failed = atomic_load(&single->failed);
    bool restarts = atomic_load(&single->restarts) && !failed && !atomic_load(&single->stopped_lately);
    if (restarts) {
        if (single->supervisor->ties.access_log)
            oribi_access_log_drain(single->supervisor->ties.access_log, ORIBI_LOG_DRAIN_MS);
        become(single);
        cut(single, 1);
    }
    oribi_supervisor_destroy(single->supervisor);
}
