/* A supervisor's beginning and end, and what is common to both kinds of servers. Reading order:
 * oribi_supervisor_create, oribi__begin_in_place, oribi__serve, oribi_supervisor_destroy. */
#include "supervisor/start.h"

#include "supervisor/logs.h"
#include "supervisor/control_socket.h"
#include "supervisor/events.h"
#include "supervisor/module.h"
#include "supervisor/frontends.h"
#include "supervisor/actions.h"
#include "supervisor/manager.h"
#include "supervisor/server_pid.h"
#include "supervisor/supervisor_state.h"
#include "supervisor/upgrade.h"
#include "oribi/supervisor/frontend_text.h"
#include "supervisor/watched.h"
#include "oribi/develop/terminal.h"
#include "oribi/observe/observe.h"
#include "oribi/policy/signal_table.h"
#include "oribi/supervisor/prefork.h"
#include "oribi/worker/app_metrics.h"
#include "oribi/worker/inbox.h"
#include "oribi/worker/logs/access_log.h"

#include "oribi/base/error.h"
#include "oribi/base/limits.h"
#include "oribi/base/log.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/base/signals.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { WORKERS_SPARE = 8 }; /* TTIN may add this many, or as many again as were asked for, whichever is more */

/* --- a server proper --- */

static uint32_t workers_ceiling(const struct oribi_options *options)
{
    uint32_t spare = options->workers > WORKERS_SPARE ? options->workers : WORKERS_SPARE;
    return options->workers + spare < ORIBI_WORKERS_MAX ? options->workers + spare : ORIBI_WORKERS_MAX;
}

static bool server_signal(struct oribi__context *context, int number, struct oribi_policy_event *event)
{
    return oribi__terminal_interrupt(context->process.options, &context->policy, &context->process.board, number,
                                     event) ||
           oribi__signal_event(oribi__signal_effect(number, ORIBI__IN_SUPERVISOR), event);
}

static bool any_command(struct oribi__context *context, struct oribi_policy_event *event)
{
    return true;
}

static void leave_signals(const struct oribi__context *context)
{
    oribi_signals_end(context->action.exit_code);
}

const struct oribi__kind oribi__server = {
    .serves = true,
    .workers_max = workers_ceiling,
    .signal = server_signal,
    .command = any_command,
    .leave_signals = leave_signals,
};

void oribi__ask_policy(struct oribi__context *context, const struct oribi_policy_event *event)
{
    struct oribi_policy_event asked = *event;
    if (context->kind->command(context, &asked))
        oribi__happened(context, &asked);
}

/* --- both --- */

void oribi__log_text(struct oribi__context *context, enum oribi_log_level level, const char *text)
{
    const char *newline = strchr(text, '\n');
    if (newline) {
        char head[256];
        (void)snprintf(head, sizeof(head), "%.*s", (int)(newline - text), text); /* cut when longer: still a line */
        oribi_log_block(level, head, newline + 1, (uint32_t)strlen(newline + 1));
    } else {
        oribi_log(level, "%s", text);
    }
    if (level != ORIBI_LOG_ERROR)
        return;
    oribi__upgrade_tell(context, text);
    oribi__daemon_tell(context, text); /* it shows why the daemon did not come up, wherever the log goes */
}

void oribi__policy_config(const struct oribi__context *context, const struct oribi_options *options,
                          uint32_t workers_max, struct oribi_policy_config *config)
{
    *config = (struct oribi_policy_config){
        .workers = options->workers,
        .workers_max = workers_max,
        .roll_max = options->roll_max_unavailable,
        .boot_timeout_ms = options->boot_timeout_ms,
        .shutdown_timeout_ms = options->shutdown_timeout_ms,
        .reload_waits = options->dev && context->kind->serves,
        .patient = !context->kind->serves,
        .spawn_interval_ms = options->spawn_interval_ms,
        .err_respawn_interval_ms = options->err_respawn_interval_ms,
        .call_timeout_ms = options->call_timeout_ms,
        .drain_delay_ms = options->drain_delay_ms,
        .age_max_ms = options->age_max_ms,
        .memory_max = options->memory_max,
        .refork_after = options->refork_after,
        .no_reopen = context->process.usr1_foreign,
        .is_init = getpid() == 1,
        .deadline_signal = oribi_os_private_signal(),
        .watch = options->call_timeout_ms > 0 || options->age_max_ms > 0 || options->memory_max > 0 ||
                 options->refork_after > 0,
    };
}

struct oribi__context *oribi__supervisor_context(struct oribi_supervisor *supervisor)
{
    return &supervisor->context;
}

const struct oribi__process_context *oribi__supervisor_process(const struct oribi_supervisor *supervisor)
{
    return &supervisor->context.process;
}

/* --- beginning --- */

static int fail(struct oribi_supervisor *supervisor, int code, const char *what, char *error);

/* Opens files and addresses that the operator may have wrong, in the order in which it does the least harm. */
static int begin(struct oribi__context *context, char *error)
{
    const struct oribi_options *options = context->process.options;
    int code = oribi_process_check_user(options->user, options->group, error);
    if (code == 0)
        code = oribi__frontends_check_user(options, error);
    if (code == 0)
        code = oribi_options_check_files(options, error);
    if (code == 0)
        code = oribi__modules_begin(context, error);
    if (code == 0)
        oribi_options_warn_of_files(options);
    return code;
}

static void begin_policy(struct oribi__context *context, uint32_t workers_max)
{
    struct oribi_policy_config config;
    uint32_t workers;
    uint32_t before;
    oribi__policy_config(context, context->process.options, workers_max, &config);
    oribi_policy_init(&context->policy, &config, context->process.board.slots, context->process.board.count);
    oribi__observe_configured(context->observe);
    oribi__upgrade_workers(context, &workers, &before);
    if (oribi_policy_keep_workers(&context->policy, workers, before))
        oribi_log(ORIBI_LOG_INFO, ORIBI_POLICY_WORKERS_KEPT, context->policy.target, config.workers);
}

int oribi_supervisor_create(const struct oribi_supervisor_setup *setup, struct oribi_supervisor **out, char *error)
{
    struct oribi_supervisor *supervisor = oribi_mem_alloc(1, sizeof(*supervisor));
    struct oribi__context *context = &supervisor->context;
    const struct oribi_options *options = setup->options;
    context->process =
        (struct oribi__process_context){.options = options,
                                        .listeners = setup->listeners ? setup->listeners : &supervisor->no_listeners,
                                        .program = setup->program,
                                        .supervisor = getpid(),
                                        .prefork = setup->prefork != NULL,
                                        .handoff = {-1, -1},
                                        .board = {.fd = -1},
                                        .app = {.fd = -1},
                                        .inbox_fd = -1,
                                        .message_fd = -1,
                                        .life_fd = -1};
    context->kind = oribi__kind_of(setup->prefork);
    context->pid = getpid();
    int made = oribi_dispatcher_init(&context->dispatcher);
    oribi__modules_create(context);
    if (made < 0)
        return fail(supervisor, ORIBI_ENOMEM, "cannot make an event loop", error);
    if (setup->version && setup->language && context->kind->serves)
        oribi__boot_log_name(context, setup->version, setup->language);
    if (oribi_start_record(&context->start, setup->argv, setup->environ_is_known, options->start_dir) < 0)
        return fail(supervisor, ORIBI_ESYS, "cannot read from /proc how this process was started", error);
    if (setup->environ)
        oribi_start_set_environ(&context->start, setup->environ);
    if (setup->needed)
        oribi_start_set_needed(&context->start, setup->needed);
    int code = begin(context, error);
    if (code < 0)
        return fail(supervisor, code, NULL, error);
    if (oribi_handoff_create(&context->process.handoff) < 0)
        return fail(supervisor, ORIBI_ESYS, "cannot make pipes", error);
    uint32_t workers_max = context->kind->workers_max(options);
    /* those who leave and those who come */
    if (oribi_scoreboard_create_named(&context->process.board, 2 * workers_max) < 0)
        return fail(supervisor, ORIBI_ENOMEM, "cannot map the scoreboard", error);
    for (uint32_t i = 0; i < context->process.board.count; i++)
        /* none is there */
        oribi_scoreboard_skip(&context->process.board, &context->process.board.slots[i], true);
    if (oribi__app_store_create(&context->process.app, options->metrics_max) < 0)
        return fail(supervisor, ORIBI_ENOMEM, "cannot map the application's metrics", error);
    oribi_app_metrics_enter(&context->process.app.view, 1, ORIBI_METRIC_NOBODY); /* the first mold inherits it */
    oribi_publisher_enter(-1, NULL);
    oribi__prefork_begin(context, setup->prefork);
    begin_policy(context, workers_max);
    oribi__signals_install(context);
    oribi__children_let_go(oribi__supervisor_let_go, supervisor);
    *out = supervisor;
    return 0;
}

int oribi__begin_in_place(struct oribi__context *context, char *error)
{
    int code = oribi__server_pid_write(context, error);
    if (code == 0)
        oribi__boot_log_begin(context);
    return code;
}

void oribi__serve(struct oribi__context *context)
{
    if (oribi_os_adopts_orphans() && oribi_os_become_subreaper() < 0)
        oribi_log(ORIBI_LOG_WARN, "cannot become the parent of orphaned workers (PR_SET_CHILD_SUBREAPER): %s",
                  oribi_os_error_text());
    oribi__watched_begin(context);
    context->policy.config.frontends = oribi__frontends_any(context);
    oribi__happened(context, &(struct oribi_policy_event){.type = ORIBI_EVENT_START});
}

void oribi__serve_not(struct oribi__context *context, const char *error)
{
    if (error)
        oribi__log_text(context, ORIBI_LOG_ERROR, error);
    oribi__daemon_release(context, error != NULL);
    context->action = (struct oribi_supervisor_action){.type = ORIBI_SUPERVISOR_EXIT, .exit_code = error != NULL};
}

/* --- end --- */

static void close_process(struct oribi__process_context *process)
{
    oribi_os_close(process->message_fd);
    oribi_os_close(process->life_fd);
    oribi_os_close(process->inbox_fd);
    oribi_handoff_close(&process->handoff);
    if (process->access_log)
        oribi_access_log_close(process->access_log);
    oribi_scoreboard_destroy(&process->board);
    oribi__app_store_destroy(&process->app);
}

static void release(struct oribi_supervisor *supervisor)
{
    oribi__close_listeners(&supervisor->context, true);
    oribi__export_totals(supervisor->context.observe); /* before the end of modules whose counters it reads */
    oribi__modules_end(&supervisor->context);
    oribi_start_free(&supervisor->context.start);
    close_process(&supervisor->context.process);
    oribi_dispatcher_deinit(&supervisor->context.dispatcher);
    oribi_mem_free(supervisor);
}

static int fail(struct oribi_supervisor *supervisor, int code, const char *what, char *error)
{
    if (what)
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "%s: %s", what, oribi_os_error_text());
    oribi__upgrade_tell(&supervisor->context, error);
    release(supervisor);
    return code;
}

void oribi_supervisor_destroy(struct oribi_supervisor *supervisor)
{
    struct oribi__context *context = &supervisor->context;
    context->kind->leave_signals(context);
    oribi_app_metrics_leave();
    oribi_publisher_leave();
    oribi__children_let_go(NULL, NULL);
    oribi__daemon_release(context, 1);
    oribi__control_stopped(context);
    release(supervisor);
    oribi_log_drain(ORIBI_LOG_DRAIN_MS);
}

/* --- in children --- */

void oribi__supervisor_let_go(void *owner)
{
    struct oribi_supervisor *supervisor = owner;
    oribi__process_context_close(&supervisor->context.process, true);
    oribi__modules_let_go(&supervisor->context);
}

void oribi__supervisor_forget(struct oribi_supervisor *supervisor)
{
    struct oribi__context *context = &supervisor->context;
    oribi__children_let_go(NULL, NULL);
    oribi__modules_forget(context);
    oribi_start_free(&context->start);
    oribi_dispatcher_deinit(&context->dispatcher);
    if (context->process.listeners != &supervisor->no_listeners)
        oribi_mem_free(supervisor); /* else the mold goes on using the empty list in it */
}
