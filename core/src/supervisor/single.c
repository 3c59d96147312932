/* One process that serves alone. Reading order: oribi__single_begin; attend, the housekeeping thread's loop, with what
 * makes an event of what; happened, what follows from it; oribi__single_end. A reload is in single_restart.c. */
#include "supervisor/single.h"
#include "supervisor/single_private.h"

#include "supervisor/mold.h"
#include "oribi/policy/signal_table.h"
#include "supervisor/supervisor_private.h"
#include "oribi/develop/terminal.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/log.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os_process.h"
#include "oribi/base/signals.h"
#include "oribi/config/listener.h"
#include "oribi/supervisor/sd_notify.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LOOK_MS = 20 }; /* between two looks at a trial that is about to end */

enum { RELOAD_MS = 1500 }; /* in development; idle connections are given a second (worker_private.h) */

/* --- signals --- */

void oribi__single_signal(struct oribi_single *single, int number)
{
    if (atomic_load(&single->attended))
        oribi__supervisor_signal(single->context, number);
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
    oribi__supervisor_let_go(single->context);
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
    oribi__observe_close(&context->observe, true);
    oribi_pid_file_remove(&context->pid_file);
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
void oribi__single_drain(struct oribi_single *single, enum oribi_stop_word word)
{
    const struct oribi_options *options = oribi__single_options(single);
    int64_t left_ms = options->shutdown_timeout_ms ? options->shutdown_timeout_ms + ORIBI_KILL_MS : 0;
    if (word == ORIBI_STOP_TOLD && options->dev && (!left_ms || left_ms > RELOAD_MS))
        left_ms = RELOAD_MS;
    atomic_store(&oribi__single_slot(single)->stop_soon, word);
    single->drain_until = oribi__single_in_ms(left_ms);
    single->context->policy.records[0].state = ORIBI_RECORD_STOPPING;
    oribi_link_signal(single->link, SIGTERM);
}

static void stop(struct oribi_single *single)
{
    struct oribi__context *context = single->context;
    context->policy.stop_at = 0;
    context->policy.stopping = true;
    atomic_store(&single->restarts, false);
    oribi__single_end_trial(single);
    oribi__notify(context, ORIBI__STOPPING_NOTICE, NULL);
    oribi__control_stopping(context);
    if (!context->policy.up)
        cut(single, 0);
    oribi__end_listening(context, false);
    oribi__single_drain(single, ORIBI_STOP_LAST);
}

/* With drain_delay it is announced first. */
static void stop_soon(struct oribi_single *single, int64_t hurry_ms)
{
    struct oribi__context *context = single->context;
    struct oribi_policy *policy = &context->policy;
    int64_t delay_ms = oribi__single_options(single)->drain_delay_ms;
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
    atomic_store(&oribi__single_slot(single)->stop_soon, ORIBI_STOP_SOON);
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
        oribi__single_reload(single);
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
    single->boot_until = INT64_MAX;
    context->policy.up = true;
    context->policy.records[0].state = ORIBI_RECORD_SERVING;
    context->policy.records[0].ready_at = oribi_clock_ms();
    oribi__supervisor_up(context);
    if (single->posted)
        oribi__single_reload(single);
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

static void hear(struct oribi_single *single, const struct oribi_message *message, int passed)
{
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

static void hear_all(struct oribi_single *single)
{
    struct oribi_message message;
    int passed;
    int got;
    while ((got = oribi_message_receive(single->context->message_fd, &message, &passed)) == 1 || got == ORIBI_EBAD)
        if (got == 1)
            hear(single, &message, passed);
}

static void deadlines(struct oribi_single *single)
{
    struct oribi_policy *policy = &single->context->policy;
    int64_t now_ms = oribi_clock_ms();
    if (now_ms >= single->boot_until) {
        oribi__log_text(single->context, ORIBI_LOG_ERROR,
                        "the application has not loaded within boot_timeout: giving up");
        cut(single, 1);
    }
    if (policy->stop_at && now_ms >= policy->stop_at)
        stop(single);
    if (policy->hurry_at && now_ms >= policy->hurry_at)
        cut(single, 0);
    if (now_ms < single->drain_until)
        return;
    oribi_log(ORIBI_LOG_WARN, "its time to finish has passed (shutdown_timeout): what is left is cut");
    if (atomic_load(&single->restarts))
        oribi__single_become(single);
    cut(single, atomic_load(&single->restarts));
}

static void turn(struct oribi_single *single)
{
    struct oribi__context *context = single->context;
    struct oribi_policy_event event;
    hear_all(single);
    while (oribi__supervisor_signalled(context, &event))
        happened(single, &event);
    oribi__single_trial_turn(single);
    if (oribi__watch_event(context, &event) || oribi__restart_event(context, &event))
        happened(single, &event);
    while (oribi__control_turn(context, &event))
        happened(single, &event);
    (void)oribi_dispatcher_next(&context->dispatcher); /* the wait ends at once while there are more */
    deadlines(single);
    oribi__supervisor_turns(context);
}

/* With the signals held back, so that handlers run in the program's threads. */
static void *attend(void *self)
{
    struct oribi_single *single = self;
    oribi_os_thread_name("oribi-housekeep"); /* 15 bytes at most, or Linux leaves the name as it is */
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
    atomic_store(&oribi__single_slot(single)->generation, single->generation);
    atomic_store(&oribi__single_slot(single)->state, ORIBI_SLOT_STARTING);
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
    process.single = true;
    *single = (struct oribi_single){.supervisor = supervisor,
                                    .context = context,
                                    .generation = arrival->generation ? arrival->generation : 1,
                                    .drain_until = INT64_MAX,
                                    .folder = oribi_process_dir()};
    (void)pthread_mutex_init(&single->lock, NULL); /* these cannot fail with the C libraries that we know */
    (void)pthread_cond_init(&single->came_up, NULL);
    single->boot_until = oribi__single_in_ms(setup->options->boot_timeout_ms);
    code = oribi__supervisor_begin_alone(context, error);
    if (code == 0 && (code = duplicate(single, &process)) < 0)
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "cannot duplicate descriptors: %s", oribi_os_error_text());
    if (code < 0) {
        oribi_supervisor_destroy(supervisor);
        oribi_signals_uninstall();
        return code;
    }
    describe(single);
    oribi__single_import_watch(single, arrival->watched_fd);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* until the handler is ours */
    oribi_signals_hold();                              /* it releases them, as after a fork */
    single->link = oribi__link_new(&process, 0, 1, single->generation);
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
        oribi__single_become(single);
        cut(single, 1);
    }
    char *here = oribi_process_dir(); /* of what the program does at its end */
    enter_folder(single->folder);
    oribi_supervisor_destroy(single->supervisor);
    enter_folder(here);
    oribi_mem_free(here);
}
