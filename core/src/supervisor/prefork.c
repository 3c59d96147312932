/* The supervisor as a library: which options it has, what its signals mean, and the few calls that a manager has
 * beyond a server's. Reading order: oribi__prefork_signal, oribi__prefork_resume, then the calls. */
#include "oribi/supervisor/prefork.h"

#include "supervisor/context.h"
#include "supervisor/control_socket.h"
#include "supervisor/module.h"
#include "supervisor/manager.h"
#include "supervisor/notify.h"
#include "supervisor/start.h"
#include "oribi/config/options_names.h"
#include "oribi/observe/observe.h"
#include "oribi/policy/signal_table.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/limits.h"
#include "oribi/base/log.h"
#include "oribi/base/os/os.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct oribi__prefork {
    struct oribi_prefork prefork;
    struct oribi_policy_action spawn; /* between ORIBI_SUPERVISOR_FORK_WORKER and oribi_supervisor_worker_forked() */
    bool can_outlive_thread;          /* the fork is not the main thread's: its end must not stop the worker */
    bool paused;                      /* a trapped signal has ended the loop */
    bool ending;                      /* that signal is one that asks a program to end */
    bool resume_asked;                /* the program begins its loop again */
    bool release_asked;               /* the program waits for its workers' end, so that molds may go */
    int trapped;                      /* signal that take reports once all actions are carried out; 0: none */
    int pending;                      /* signal that was trapped while paused; 0: none */
    int reraise; /* signal that is not trapped, and is raised again when all workers have ended; 0: none */
};

/* --- options --- */

static const char *const known[] = {
    "workers",
    "spawn_interval",
    "err_respawn_interval",
    "shutdown_timeout",
    "boot_timeout",
    "roll_max_unavailable",
    "requests_max",
    "requests_jitter",
    "memory_max",
    "age_max",
    "daemonize",
    "pid_file",
    "user",
    "group",
    "control",
    "error_log",
    "quiet",
    "verbose",
};

static const struct {
    const char *name;
    const char *option;
} own_names[] = {{"jobs_max", "requests_max"}, {"jobs_jitter", "requests_jitter"}};

/* Values that differ from the server's, from the weakest source, so that whatever the program says stands. */
static const char *const defaults[][2] = {
    {"workers", "10"}, {"shutdown_timeout", "0"}, {"quiet", "on"}, {"call_timeout", "0"}, {"access_log", "off"},
};

void oribi_prefork_defaults(struct oribi_options *options)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    options->ignores_environment = true;
    for (size_t i = 0; i < sizeof(defaults) / sizeof(defaults[0]); i++) {
        int code = oribi_options_set_from(options, ORIBI_FROM_DEFAULT, defaults[i][0], defaults[i][1], error);
        assert(code == 0); /* our own values */
        (void)code;
    }
}

int oribi_prefork_set(struct oribi_options *options, const char *name, const char *value, char *error)
{
    const char *given = name;
    for (size_t i = 0; i < sizeof(own_names) / sizeof(own_names[0]); i++)
        if (strcmp(name, own_names[i].name) == 0)
            name = own_names[i].option;
    struct oribi__option_name found = oribi__options_resolve(name);
    if (!found.option && !found.alias) {
        int code = oribi__options_unknown(options->lang, name, error);
        return oribi__options_resembles(options->lang, name) ? code : 1;
    }
    for (size_t i = 0; found.option && i < sizeof(known) / sizeof(known[0]); i++)
        if (strcmp(found.option->name, known[i]) == 0)
            return oribi_options_set(options, name, value, error);
    return oribi__refuse(error, "%.60s is an option of the server: it has no meaning here", given);
}

/* --- traps --- */

int oribi_prefork_trap(struct oribi_prefork *prefork, int number, int send, int64_t interval_ms, char *error)
{
    bool ours = number == SIGCHLD || number == SIGPIPE || number == SIGXFSZ;
    if (number <= 0 || number == SIGKILL || number == SIGSTOP || ours)
        return oribi__refuse(error, "trap_signals: %s cannot be trapped",
                             number > 0 ? oribi_signal_name(number) : "this");
    for (uint32_t i = 0; i < prefork->trap_count; i++)
        if (prefork->traps[i].signal == number)
            return oribi__refuse(error, "trap_signals: %s is there twice", oribi_signal_name(number));
    if (prefork->trap_count == ORIBI_TRAPS_MAX)
        return oribi__refuse(error, "trap_signals: too many");
    prefork->traps[prefork->trap_count++] = (struct oribi_trap){number, send, interval_ms};
    return 0;
}

int oribi_prefork_trap_named(struct oribi_prefork *prefork, const char *signal, const char *send, int64_t interval_ms,
                             char *error)
{
    bool sends = send && send[0];
    int numbers[] = {oribi_signal_number(signal), sends ? oribi_signal_number(send) : 0};
    if (!numbers[0] || (sends && !numbers[1]))
        return oribi__refuse(error, "trap_signals: there is no signal %.60s", numbers[0] ? send : signal);
    return oribi_prefork_trap(prefork, numbers[0], numbers[1], interval_ms, error);
}

void oribi_prefork_leave(struct oribi_prefork *prefork, int number)
{
    if (number > 0 && number <= 64)
        prefork->left |= (uint64_t)1 << (number - 1);
}

static const struct oribi_trap *trap_of(const struct oribi__context *context, int number)
{
    for (uint32_t i = 0; i < context->prefork->prefork.trap_count; i++)
        if (context->prefork->prefork.traps[i].signal == number)
            return &context->prefork->prefork.traps[i];
    return NULL;
}

/* A program that has a handler of its own for a signal keeps it, unless it traps the signal. */
void oribi__prefork_begin(struct oribi__context *context, const struct oribi_prefork *prefork)
{
    if (!prefork)
        return;
    int ours[ORIBI__SIGNALS_MAX];
    int numbers[ORIBI__SIGNALS_MAX + ORIBI_TRAPS_MAX];
    size_t our_count = oribi__signals_handled(ORIBI__IN_MANAGER, ours);
    size_t count = 0;
    context->prefork->prefork = *prefork;
    for (size_t i = 0; i < our_count; i++)
        if (!(prefork->left & (uint64_t)1 << (ours[i] - 1)))
            numbers[count++] = ours[i];
    for (uint32_t i = 0; i < prefork->trap_count; i++)
        numbers[count++] = prefork->traps[i].signal;
    oribi_signals_choose(numbers, count);
    context->process.usr1_foreign = prefork->left & (uint64_t)1 << (SIGUSR1 - 1) || trap_of(context, SIGUSR1);
}

static bool ends(int number)
{
    enum oribi__effect effect = oribi__signal_effect(number, ORIBI__IN_MANAGER);
    return effect == ORIBI__STOPS || effect == ORIBI__STOPS_AT_ONCE;
}

static bool trapped(struct oribi__context *context, const struct oribi_trap *trap, struct oribi_policy_event *event)
{
    context->prefork->trapped = trap->signal;
    context->prefork->paused = true;
    context->prefork->ending = ends(trap->signal);
    if (context->prefork->ending)
        oribi__notify(context, ORIBI__STOPPING_NOTICE, NULL);
    *event = (struct oribi_policy_event){.type = ORIBI_EVENT_PAUSE, .status = trap->send, .bytes = trap->interval_ms};
    return true;
}

/* A signal that is not trapped and asks for an end stops the workers first. It is raised again after that, so that the
 * program ends as it would have without us. */
static bool not_trapped(struct oribi__context *context, int number, struct oribi_policy_event *event)
{
    struct oribi__prefork *manager = context->prefork;
    if (!oribi__signal_event(oribi__signal_effect(number, ORIBI__IN_MANAGER), event))
        return false;
    if (event->type == ORIBI_EVENT_RELOAD)
        return !manager->paused;
    bool stop = event->type == ORIBI_EVENT_STOP || event->type == ORIBI_EVENT_STOP_NOW;
    if (stop && !manager->reraise)
        manager->reraise = number;
    return true;
}

static bool prefork_signal(struct oribi__context *context, int number, struct oribi_policy_event *event)
{
    const struct oribi_trap *trap = trap_of(context, number);
    *event = (struct oribi_policy_event){.type = ORIBI_EVENT_TICK};
    if (ends(number) && (context->policy.stopping || (context->prefork->paused && context->prefork->ending))) {
        event->type = ORIBI_EVENT_STOP_NOW; /* the second one */
        return true;
    }
    if (!trap)
        return not_trapped(context, number, event);
    if (!context->prefork->paused)
        return trapped(context, trap, event);
    if (!context->prefork->pending || ends(number))
        context->prefork->pending = number; /* for the next start */
    return false;
}

/* A client's command is the signal that means the same, so that a program hears of it as of the signal. */
static bool prefork_command(struct oribi__context *context, struct oribi_policy_event *event)
{
    switch (event->type) {
    case ORIBI_EVENT_STOP:
        return prefork_signal(context, SIGTERM, event);
    case ORIBI_EVENT_STOP_NOW:
        if (!trap_of(context, SIGINT))
            return prefork_signal(context, SIGINT, event);
        return true;
    case ORIBI_EVENT_RELOAD:
        if (!trap_of(context, SIGHUP) && context->prefork->paused)
            oribi__control_answer(context, ORIBI__COMMAND_RELOAD, 1, "the program does something else just now");
        if (!trap_of(context, SIGHUP))
            return !context->prefork->paused;
        oribi__control_answer(context, ORIBI__COMMAND_RELOAD, 0, "the program was told, as by HUP");
        return prefork_signal(context, SIGHUP, event);
    case ORIBI_EVENT_UPGRADE:
        oribi__control_answer(context, ORIBI__COMMAND_UPGRADE, 1, "this is no server: reload it, or start another one");
        return false;
    default:
        return true;
    }
}

/* A signal that was trapped while the program was busy elsewhere comes first: a stop must not be forgotten because of a
 * new start. */
static bool prefork_resume(struct oribi__context *context, struct oribi_policy_event *event)
{
    context->prefork->resume_asked = false;
    if (context->prefork->pending) {
        const struct oribi_trap *trap = trap_of(context, context->prefork->pending);
        context->prefork->pending = 0;
        return trapped(context, trap, event);
    }
    context->prefork->paused = context->prefork->ending = false;
    *event = (struct oribi_policy_event){.type = ORIBI_EVENT_RESUME};
    return true;
}

int oribi__prefork_trapped(const struct oribi__context *context)
{
    return context->prefork->trapped;
}

int oribi__prefork_take_trapped(struct oribi__context *context)
{
    int trapped = context->prefork->trapped;
    context->prefork->trapped = 0;
    return trapped;
}

int oribi__prefork_reraise(const struct oribi__context *context)
{
    return context->prefork->reraise;
}

void oribi__prefork_spawn(struct oribi__context *context, const struct oribi_policy_action *action)
{
    context->prefork->spawn = *action;
    context->action = (struct oribi_supervisor_action){.type = ORIBI_SUPERVISOR_FORK_WORKER};
}

bool oribi__prefork_spawned(const struct oribi__context *context, struct oribi_policy_action *action)
{
    *action = context->prefork->spawn;
    return !context->prefork->can_outlive_thread;
}

/* The program has done something since it last took a step; signals that came meanwhile come first. */
static void settle(struct oribi__context *context)
{
    struct oribi_policy_event event;
    if (context->prefork->resume_asked && prefork_resume(context, &event)) {
        oribi__happened(context, &event);
    } else if (context->prefork->release_asked) {
        context->prefork->release_asked = false;
        oribi__happened(context, &(struct oribi_policy_event){.type = ORIBI_EVENT_RELEASE_MOLDS, .pid = context->pid});
    }
}

const struct oribi__module oribi__prefork_module = {.bytes = sizeof(struct oribi__prefork), .settle = settle};

/* --- the kind --- */

static uint32_t workers_max(const struct oribi_options *options)
{
    return ORIBI_WORKERS_MAX;
}

/* The program goes on, and what it did before with signals counts again. */
static void leave_signals(const struct oribi__context *context)
{
    oribi_signals_uninstall();
    oribi_signals_choose(NULL, 0);
}

const struct oribi__kind *oribi__kind_of(const struct oribi_prefork *prefork)
{
    return prefork ? &oribi__manager : &oribi__server;
}

const struct oribi__kind oribi__manager = {
    .is_own_mold = true,
    .workers_max = workers_max,
    .signal = prefork_signal,
    .command = prefork_command,
    .leave_signals = leave_signals,
};

/* --- the manager's calls --- */

void oribi_supervisor_resume(struct oribi_supervisor *supervisor)
{
    struct oribi__context *context = oribi__supervisor_context(supervisor);
    context->prefork->resume_asked = context->prefork->paused;
}

void oribi_supervisor_configure(struct oribi_supervisor *supervisor)
{
    struct oribi__context *context = oribi__supervisor_context(supervisor);
    struct oribi_policy *policy = &context->policy;
    uint32_t before = policy->config.workers;
    uint32_t most = policy->config.workers_max;
    oribi__policy_config(context, context->process.options, most, &policy->config);
    oribi__observe_configured(context->observe);
    if (policy->config.workers != before)
        policy->target = policy->config.workers;
}

uint32_t oribi_supervisor_workers(const struct oribi_supervisor *supervisor)
{
    const struct oribi__context *context = oribi__supervisor_context((struct oribi_supervisor *)supervisor);
    return oribi_policy_alive(&context->policy);
}

void oribi_supervisor_release_molds(struct oribi_supervisor *supervisor)
{
    struct oribi__context *context = oribi__supervisor_context(supervisor);
    context->prefork->release_asked = true;
}

uint32_t oribi_supervisor_processes(const struct oribi_supervisor *supervisor)
{
    const struct oribi__context *context = oribi__supervisor_context((struct oribi_supervisor *)supervisor);
    return oribi_policy_alive(&context->policy) + oribi_policy_molds_beside(&context->policy, context->pid);
}

uint32_t oribi_supervisor_signal_all(struct oribi_supervisor *supervisor, int number)
{
    struct oribi__context *context = oribi__supervisor_context(supervisor);
    uint32_t count = 0;
    for (uint32_t i = 0; i < context->policy.slot_count; i++) {
        const struct oribi_worker_record *record = &context->policy.records[i];
        if (!oribi_policy_has_process(&context->policy, i) || !oribi_process_is_below(record->pid) ||
            kill(record->pid, number) < 0)
            continue;
        oribi_policy_signalled(&context->policy, i, number, oribi_clock_ms());
        count++;
    }
    return count;
}

void oribi_supervisor_before_fork(struct oribi_supervisor *supervisor)
{
    struct oribi__context *context = oribi__supervisor_context(supervisor);
    context->prefork->can_outlive_thread = !oribi_os_is_main_thread();
    oribi__children_ours(true);
    oribi_signals_hold();
}

void oribi_supervisor_worker_forked(struct oribi_supervisor *supervisor, pid_t pid)
{
    struct oribi__context *context = oribi__supervisor_context(supervisor);
    if (pid < 0)
        (void)oribi_os_fail(); /* keeps the reason's words */
    oribi__children_ours(false);
    oribi_signals_release();
    oribi__happened(context, &(struct oribi_policy_event){.type = ORIBI_EVENT_WORKER_FORKED,
                                                          .generation = context->prefork->spawn.generation,
                                                          .slot = context->prefork->spawn.slot,
                                                          .ticket = context->prefork->spawn.ticket,
                                                          .pid = pid < 0 ? -1 : pid,
                                                          .text = pid < 0 ? oribi_os_error_text() : NULL});
}
