/* One process that serves alone. Reading order: oribi__single_begin; attend, the housekeeping thread's loop, and
 * happened, what follows from an event; a reload; oribi__single_end. */
#include "supervisor/single.h"

#include "supervisor/actions.h"
#include "supervisor/context.h"
#include "supervisor/control_socket.h"
#include "supervisor/module.h"
#include "supervisor/generation.h"
#include "supervisor/events.h"
#include "supervisor/mold.h"
#include "supervisor/notify.h"
#include "supervisor/server_pid.h"
#include "supervisor/start.h"
#include "supervisor/watched.h"
#include "oribi/base/buf.h"
#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/log.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/base/os/os_process.h"
#include "oribi/base/signals.h"
#include "oribi/config/listener.h"
#include "oribi/config/options.h"
#include "oribi/develop/terminal.h"
#include "oribi/develop/watch.h"
#include "oribi/observe/observe.h"
#include "oribi/policy/policy.h"
#include "oribi/worker/logs/access_log.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LOOK_MS = 20 }; /* between two looks whether a trial has ended: children are the application's to reap */

/* Over an exec. TTIN and TTOU, which a supervisor counts workers by, would stop the process. */
static const int held[] = {SIGHUP, SIGUSR1, SIGUSR2, SIGTTIN, SIGTTOU};

enum { HELD = sizeof(held) / sizeof(held[0]) };

enum { RELOAD_MS = 1500 }; /* in development; idle connections are given a second (worker_private.h) */

/* A reload's new program, started beside this one to see whether it loads. */
struct oribi__trial {
    pid_t pid; /* 0: there is none */
    bool ready;
    bool late;
    int64_t until;           /* INT64_MAX: no bound */
    struct oribi_timer look; /* whether it has ended */
    char why[ORIBI_POLICY_WHY_CAP];
};

struct oribi_single {
    struct oribi_supervisor *supervisor;
    struct oribi__context *context; /* of the supervisor */
    struct oribi_link *link;
    struct oribi_listeners listeners; /* the worker's descriptors of them */
    struct oribi_handoff handoff;     /* likewise */
    pthread_t housekeeping;
    pthread_mutex_t lock; /* of is_up, which the housekeeping thread sets and the worker waits for */
    pthread_cond_t came_up;
    bool is_up;
    uint32_t generation;
    char *folder;                /* of the start, before the application has loaded */
    _Atomic bool attended;       /* the housekeeping thread runs */
    _Atomic bool leaving;        /* the housekeeping thread is to end */
    _Atomic bool failed;         /* the worker could not begin */
    _Atomic bool restarts;       /* the program is started anew when the worker has ended */
    _Atomic bool stopped_lately; /* since the housekeeping thread has ended */
    /* the housekeeping thread's */
    struct oribi__trial trial;
    bool posted; /* another reload was asked for during the trial */
    struct oribi_timer boot_late;
    struct oribi_timer stop_begins; /* drain_delay is over */
    struct oribi_timer cut_now;     /* the second of Ctrl-C is over */
    struct oribi_timer drain_late;  /* what is left is cut */
};

static int64_t after_ms(int64_t ms)
{
    return ms > 0 ? oribi_clock_ms() + ms : INT64_MAX;
}

static const struct oribi_options *options_of(const struct oribi_single *single)
{
    return single->context->process.options;
}

static struct oribi_slot *slot_of(const struct oribi_single *single)
{
    return &single->context->process.board.slots[0];
}

/* --- signals --- */

void oribi__single_signal(struct oribi_single *single, int number)
{
    if (atomic_load(&single->attended))
        oribi__signals_send(single->context, number);
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
    oribi__link_let_go(single->link);
    oribi__supervisor_let_go(single->supervisor);
}

/* --- the end without the language --- */

/* Sockets may have relative names, and the application may have changed the working directory. */
static void enter_folder(const char *folder)
{
    char ignored[ORIBI_ERROR_TEXT_CAP]; /* where it is gone, so are they */
    (void)oribi_process_enter_dir(folder, ignored);
}

static void remove_files(struct oribi_single *single)
{
    struct oribi__context *context = single->context;
    enter_folder(single->folder);
    oribi_listeners_unlink(context->process.listeners);
    oribi__control_stopped(context);
    oribi__control_close(context, true);
    oribi__observe_close(context->observe, true);
    oribi__server_pid_remove(context);
}

/* As a supervisor ends after it has killed its workers. */
static _Noreturn void cut(struct oribi_single *single, int code)
{
    remove_files(single);
    oribi_log_drain(ORIBI_LOG_DRAIN_MS);
    _exit(code);
}

/* --- what follows from an event --- */

/* In development a stream or a debugger's prompt must not keep the new code away. */
static void drain(struct oribi_single *single, enum oribi_stop_word word)
{
    const struct oribi_options *options = options_of(single);
    int64_t left_ms = options->shutdown_timeout_ms ? options->shutdown_timeout_ms + ORIBI_KILL_MS : 0;
    if (word == ORIBI_STOP_TOLD && options->dev && (!left_ms || left_ms > RELOAD_MS))
        left_ms = RELOAD_MS;
    atomic_store(&slot_of(single)->stop_soon, word);
    oribi_dispatcher_arm(&single->context->dispatcher, &single->drain_late, after_ms(left_ms));
    single->context->policy.records[0].state = ORIBI_RECORD_STOPPING;
    oribi_link_signal(single->link, SIGTERM);
}

/* --- a trial --- */

static void look_again(struct oribi_single *single)
{
    oribi_dispatcher_arm(&single->context->dispatcher, &single->trial.look, oribi_clock_ms() + LOOK_MS);
}

static void end_trial(struct oribi_single *single)
{
    int status;
    if (!single->trial.pid)
        return;
    (void)kill(single->trial.pid, SIGKILL);
    (void)oribi_process_reap(single->trial.pid, true, &status); /* fails where the application has reaped it */
    oribi__mold_socket_close(single->context, single->trial.pid);
    oribi_dispatcher_arm(&single->context->dispatcher, &single->trial.look, INT64_MAX);
    single->trial.pid = 0;
    single->context->policy.next_generation = 0;
}

static void tell_reloaded(struct oribi_single *single, int code, const char *text)
{
    oribi__control_answer(single->context, ORIBI__COMMAND_RELOAD, code, text);
    oribi__control_answer(single->context, ORIBI__COMMAND_UPGRADE, code, text);
}

static void reload_failed(struct oribi_single *single, const char *why)
{
    char text[sizeof(single->trial.why) + 32];
    struct oribi__context *context = single->context;
    (void)snprintf(text, sizeof(text), "reload failed: %.*s", (int)strcspn(why, "\n"), why); /* cut: a line */
    context->policy.next_generation = 0;
    oribi__totals_reloaded(&context->observe->totals, true, oribi_clock_ms());
    oribi_log(ORIBI_LOG_ERROR, "%s; generation %u goes on", text, single->generation);
    tell_reloaded(single, 1, text + strlen("reload failed: "));
    oribi__notify(context, ORIBI__READY_NOTICE, NULL);
}

static void reload(struct oribi_single *single)
{
    struct oribi__context *context = single->context;
    struct oribi_policy_event event;
    bool booting = !context->policy.up;
    if (context->policy.stopping || context->policy.stop_at || atomic_load(&single->restarts))
        return; /* what comes next is new already */
    if (booting || single->trial.pid) {
        single->posted = true;
        return;
    }
    single->posted = false;
    oribi__totals_reloading(&context->observe->totals, oribi_clock_ms());
    oribi__notify(context, ORIBI__RELOADING_NOTICE, NULL);
    oribi_log(ORIBI_LOG_INFO, "reload: generation %u is tried in a process of its own", single->generation + 1);
    single->trial =
        (struct oribi__trial){.until = after_ms(options_of(single)->boot_timeout_ms), .look = single->trial.look};
    context->policy.next_generation = single->generation + 1;
    (void)oribi__start_mold(context, single->generation + 1, true, &event);
    single->trial.pid = event.pid > 0 ? event.pid : 0;
    if (single->trial.pid)
        look_again(single);
    else
        reload_failed(single, event.text ? event.text : "no process could be started");
}

static void trial_look(void *owner)
{
    struct oribi_single *single = owner;
    struct oribi__trial *trial = &single->trial;
    struct oribi__context *context = single->context;
    char text[96];
    int status;
    if (trial->ready && oribi__mold_has_socket(context, trial->pid)) {
        oribi__mold_socket_close(context, trial->pid); /* its order to leave */
        trial->until = after_ms(ORIBI_MOLD_STOP_MS);
    }
    if (oribi_clock_ms() >= trial->until) {
        trial->late = !trial->ready;
        (void)kill(trial->pid, SIGKILL);
        trial->until = INT64_MAX;
    }
    if (oribi_process_reap(trial->pid, false, &status) == 0) {
        look_again(single);
        return;
    }
    oribi__mold_socket_close(context, trial->pid);
    trial->pid = 0;
    context->policy.next_generation = 0;
    if (!trial->ready) {
        reload_failed(single, trial->late     ? "boot_timeout has passed"
                              : trial->why[0] ? trial->why
                                              : "the new program ended before it had loaded the application");
        if (single->posted)
            reload(single);
        return;
    }
    (void)snprintf(text, sizeof(text), "generation %u, pid %ld", single->generation + 1, (long)context->pid);
    oribi_log(ORIBI_LOG_INFO, "reload: it loads; this process finishes its requests and becomes generation %u",
              single->generation + 1);
    tell_reloaded(single, 0, text);
    atomic_store(&single->restarts, true);
    drain(single, ORIBI_STOP_TOLD);
}

/* --- a new program under this pid --- */

/* For files that change while the application is loaded anew: they load it once more. -1: nothing is watched, or there
 * is no memory for it. */
static int export_watch(struct oribi_single *single)
{
    struct oribi_buf files = {0};
    int fd = -1;
    oribi__watched_export(single->context, &files);
    if (files.len > 0 && oribi_process_shared_memory(files.len, &fd) == 0 &&
        pwrite(fd, files.p, files.len, 0) != (ssize_t)files.len) {
        oribi_os_close(fd);
        fd = -1;
    }
    oribi_buf_deinit(&files);
    return fd;
}

/* The program has ended: what it has not waited for, the next one knows nothing of. */
static void reap_all(void)
{
    int status;
    while (oribi_process_reap(-1, false, &status) > 0)
        continue;
}

/* Returns where it cannot be started. */
static void become(struct oribi_single *single)
{
    struct oribi__context *context = single->context;
    char listen[ORIBI_INHERITED_TEXT_CAP + 16];
    char generation[32];
    int keep[ORIBI_LISTENERS_MAX + 1];
    int watched = export_watch(single);
    sigset_t all;
    size_t count = oribi__listeners_to_keep(context, listen, sizeof(listen), keep);
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
                     (char *)"ORIBI_INBOX=",
                     (char *)"ORIBI_UPGRADE_WORKERS=",
                     (char *)"ORIBI_TOTALS=",
                     (char *)"ORIBI_CONTROL_PATH=",
                     NULL};
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, NULL);
    reap_all();
    oribi__control_close(context, true);
    oribi__observe_close(context->observe, true);
    oribi__server_pid_leave(context);
    oribi_log_drain(ORIBI_LOG_DRAIN_MS);
    oribi_start_become(&context->start, extra, keep, count, held, HELD);
    oribi_log(ORIBI_LOG_ERROR, "the program cannot be started anew: %s", oribi_os_error_text());
}

static void stop(struct oribi_single *single)
{
    struct oribi__context *context = single->context;
    context->policy.stop_at = 0;
    context->policy.stopping = true;
    oribi_dispatcher_arm(&context->dispatcher, &single->stop_begins, INT64_MAX);
    atomic_store(&single->restarts, false);
    end_trial(single);
    oribi__notify(context, ORIBI__STOPPING_NOTICE, NULL);
    oribi__control_stopping(context);
    if (!context->policy.up)
        cut(single, 0);
    oribi__end_listening(context, false);
    drain(single, ORIBI_STOP_LAST);
}

/* With drain_delay it is announced first. */
static void stop_soon(struct oribi_single *single, int64_t hurry_ms)
{
    struct oribi__context *context = single->context;
    struct oribi_policy *policy = &context->policy;
    int64_t delay_ms = options_of(single)->drain_delay_ms;
    if (policy->stopping || policy->stop_at) {
        oribi_log(ORIBI_LOG_INFO, "stopping now");
        cut(single, 0);
    }
    if (hurry_ms) {
        policy->hurry_at = oribi_clock_ms() + hurry_ms;
        oribi_dispatcher_arm(&context->dispatcher, &single->cut_now, policy->hurry_at);
    }
    oribi_log(ORIBI_LOG_INFO, "stopping");
    if (hurry_ms || delay_ms == 0 || !policy->up) {
        stop(single);
        return;
    }
    policy->stop_at = oribi_clock_ms() + delay_ms;
    oribi_dispatcher_arm(&context->dispatcher, &single->stop_begins, policy->stop_at);
    atomic_store(&slot_of(single)->stop_soon, ORIBI_STOP_SOON);
    oribi__notify(context, ORIBI__STOPPING_NOTICE, NULL);
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
        oribi_link_signal(single->link, SIGUSR1);
        break;
    default: /* there is one worker */
        break;
    }
}

/* --- what makes an event of what --- */

static void up(struct oribi_single *single)
{
    struct oribi__context *context = single->context;
    oribi_dispatcher_arm(&context->dispatcher, &single->boot_late, INT64_MAX);
    context->policy.up = true;
    context->policy.records[0].state = ORIBI_RECORD_SERVING;
    context->policy.records[0].ready_at = oribi_clock_ms();
    oribi__log_up(context);
    if (single->posted)
        reload(single);
    (void)pthread_mutex_lock(&single->lock); /* of the default kind, and not held by this thread: cannot fail */
    single->is_up = true;
    (void)pthread_cond_signal(&single->came_up);
    (void)pthread_mutex_unlock(&single->lock);
}

void oribi__single_await_up(struct oribi_single *single)
{
    (void)pthread_mutex_lock(&single->lock); /* likewise */
    while (!single->is_up)
        (void)pthread_cond_wait(&single->came_up, &single->lock);
    (void)pthread_mutex_unlock(&single->lock);
}

/* The first line, and what follows as a block. */
static void fail(struct oribi_single *single, const char *why)
{
    char text[ORIBI_FAILURE_TEXT_MAX + 64];
    (void)snprintf(text, sizeof(text), "the application did not load: %s", why); /* fits */
    oribi__log_text(single->context, ORIBI_LOG_ERROR, text);
}

static void hear(void *owner, const struct oribi_message *message, int passed)
{
    struct oribi_single *single = owner;
    struct oribi__trial *trial = &single->trial;
    bool ours = message->pid == single->context->pid;
    bool tried = trial->pid && message->pid == trial->pid;
    if (message->kind == ORIBI_MESSAGE_FILES) {
        oribi__watch_message(single->context, passed);
        return;
    }
    oribi_os_close(passed);
    if (message->kind == ORIBI_MESSAGE_MOLD_READY && tried)
        trial->ready = true;
    else if (message->kind == ORIBI_MESSAGE_MOLD_FAILED && tried)
        (void)snprintf(trial->why, sizeof(trial->why), "%.*s", (int)sizeof(trial->why) - 1,
                       message->text); /* cut: a hint */
    else if (message->kind == ORIBI_MESSAGE_WORKER_READY && ours)
        up(single);
    else if (message->kind == ORIBI_MESSAGE_WORKER_FAILED && ours)
        fail(single, message->text);
}

static void boot_late(void *owner)
{
    struct oribi_single *single = owner;
    oribi__log_text(single->context, ORIBI_LOG_ERROR, "the application has not loaded within boot_timeout: giving up");
    cut(single, 1);
}

static void stop_begins(void *owner)
{
    stop(owner);
}

static void cut_now(void *owner)
{
    cut(owner, 0);
}

static void drain_late(void *owner)
{
    struct oribi_single *single = owner;
    char call[ORIBI_SLOT_CALL_TEXT_CAP];
    oribi_slot_call_text(slot_of(single), call);
    oribi_log(ORIBI_LOG_WARN, "shutdown_timeout reached: ending the process%s", call);
    if (atomic_load(&single->restarts))
        become(single);
    cut(single, atomic_load(&single->restarts));
}

/* True when something has happened. */
static bool take_event(struct oribi_single *single)
{
    struct oribi_policy_event event;
    if (oribi__events_pop(&single->context->events, &event)) {
        happened(single, &event);
        return true;
    }
    return oribi_dispatcher_next(&single->context->dispatcher) || oribi__modules_settle(single->context);
}

/* With the signals held back, so that handlers run in the program's threads. */
static void *attend(void *self)
{
    struct oribi_single *single = self;
    oribi_os_thread_name("oribi-housekeep"); /* 15 bytes at most, or Linux leaves the name as it is */
    while (!atomic_load(&single->leaving))
        if (!take_event(single))
            oribi_dispatcher_wait(&single->context->dispatcher, -1);
    oribi__messages_hear_all(single->context);
    return NULL;
}

static void import_watch(struct oribi_single *single, int fd)
{
    size_t bytes;
    char *files = NULL;
    if (fd >= 0 && oribi_process_shared_memory_size(fd, &bytes) == 0 && bytes <= ORIBI__WATCH_LIST_BYTES_MAX)
        files = oribi_mem_try_alloc(bytes ? bytes : 1, 1);
    if (files && pread(fd, files, bytes, 0) == (ssize_t)bytes)
        oribi__watched_import(single->context, files, bytes);
    oribi_mem_free(files);
}

/* --- beginning and end --- */

/* For the status: one worker, of this process. */
static void describe(struct oribi_single *single)
{
    struct oribi_policy *policy = &single->context->policy;
    policy->started = true;
    policy->target = 1;
    policy->config.watch = false;
    policy->config.memory_max = 0; /* nobody replaces the one worker */
    policy->config.workers_max = 1;
    policy->generation = single->generation;
    policy->records[0] = (struct oribi_worker_record){
        .state = ORIBI_RECORD_BOOTING, .generation = single->generation, .ticket = 1, .pid = single->context->pid};
    atomic_store(&slot_of(single)->generation, single->generation);
    atomic_store(&slot_of(single)->state, ORIBI_SLOT_STARTING);
}

static int duplicate(struct oribi_single *single, struct oribi__process_context *context)
{
    single->listeners = *context->listeners;
    bool all = true;
    for (uint32_t i = 0; i < single->listeners.count; i++) {
        single->listeners.items[i].fd = oribi_os_dup(context->listeners->items[i].fd);
        all &= single->listeners.items[i].fd >= 0;
    }
    single->handoff.take_fd = oribi_os_dup(context->handoff.take_fd);
    single->handoff.give_fd = oribi_os_dup(context->handoff.give_fd);
    context->listeners = &single->listeners;
    context->handoff = single->handoff;
    return all && single->handoff.take_fd >= 0 && single->handoff.give_fd >= 0 ? 0 : ORIBI_ESYS;
}

static void begin_timers(struct oribi_single *single)
{
    single->boot_late = (struct oribi_timer){.expired = boot_late, .owner = single};
    single->stop_begins = (struct oribi_timer){.expired = stop_begins, .owner = single};
    single->cut_now = (struct oribi_timer){.expired = cut_now, .owner = single};
    single->drain_late = (struct oribi_timer){.expired = drain_late, .owner = single};
    single->trial.look = (struct oribi_timer){.expired = trial_look, .owner = single};
    oribi_dispatcher_arm(&single->context->dispatcher, &single->boot_late,
                         after_ms(options_of(single)->boot_timeout_ms));
}

static int start_housekeeping(struct oribi_single *single)
{
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = pthread_create(&single->housekeeping, NULL, attend, single);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code ? ORIBI_ESYS : 0;
}

int oribi__single_begin(const struct oribi_supervisor_setup *setup, const struct oribi__arrival *arrival,
                        struct oribi_single **out, struct oribi_link **child, char *error)
{
    struct oribi_supervisor *supervisor;
    sigset_t all;
    sigset_t before;
    int code = oribi_supervisor_create(setup, &supervisor, error);
    if (code < 0)
        return code;
    struct oribi_single *single = oribi_mem_alloc(1, sizeof(*single));
    struct oribi__context *context = oribi__supervisor_context(supervisor);
    struct oribi__process_context process = context->process;
    *single = (struct oribi_single){.supervisor = supervisor,
                                    .context = context,
                                    .generation = arrival->generation ? arrival->generation : 1,
                                    .folder = oribi_process_dir()};
    (void)pthread_mutex_init(&single->lock, NULL); /* these cannot fail with the C libraries that we know */
    (void)pthread_cond_init(&single->came_up, NULL);
    begin_timers(single);
    oribi__messages_hear(context, hear, single);
    code = oribi__begin_in_place(context, error);
    if (code == 0)
        oribi__watched_begin(context);
    if (code == 0 && (code = duplicate(single, &process)) < 0)
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
    single->link = oribi__link_new(&process, 0, 1, single->generation);
    oribi__link_alone(single->link);
    oribi__children_let_go(let_go, single);
    atomic_store(&single->attended, true);
    oribi_signals_install(on_signal, single, 0);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (start_housekeeping(single) < 0) {
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "cannot start a thread");
        oribi_supervisor_destroy(supervisor);
        oribi_signals_uninstall();
        return ORIBI_ESYS;
    }
    *out = single;
    *child = single->link;
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
    (void)pthread_join(single->housekeeping, NULL);
    atomic_store(&single->attended, false);
    oribi_link_leave(single->link);
    single->context->action.exit_code = failed;
    return failed;
}

/* A stop that came since the housekeeping thread has ended goes before a new program. */
void oribi__single_end(struct oribi_single *single)
{
    bool failed = atomic_load(&single->failed);
    bool restarts = atomic_load(&single->restarts) && !failed && !atomic_load(&single->stopped_lately);
    if (restarts) {
        if (single->context->process.access_log)
            oribi_access_log_drain(single->context->process.access_log, ORIBI_LOG_DRAIN_MS);
        become(single);
        cut(single, 1);
    }
    char *here = oribi_process_dir(); /* of what the program does at its end */
    enter_folder(single->folder);
    oribi_supervisor_destroy(single->supervisor);
    enter_folder(here);
    oribi_mem_free(here);
}

/* --- in the new program --- */

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
