/* The supervisor's beginning and end: log files, pipes, the daemon's detachment. */
#include "supervisor/supervisor_private.h"
#include "supervisor/process_private.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/log.h"
#include "oribi/base/mem.h"
#include "oribi/supervisor/sd_notify.h"
#include "oribi/base/signals.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    WORKERS_SPARE = 8,      /* TTIN may add this many, or as many again as were asked for, whichever is more */
    DAEMON_TEXT_CAP = 4096, /* first lines of a daemon that its starter shows */
};

/* --- log files --- */

static bool is_file(const char *path)
{
    return path && path[0] && strcmp(path, "-") != 0;
}

enum oribi_log_level oribi__log_level(const struct oribi_options *options)
{
    return options->quiet ? ORIBI_LOG_WARN : options->verbose ? ORIBI_LOG_DEBUG : ORIBI_LOG_INFO;
}

/* Only root makes files for others. NULL: files belong to this process's user. */
static const struct oribi_log_owner *log_owner(struct oribi__process_context *context)
{
    const struct oribi_options *options = context->options;
    char error[ORIBI_ERROR_TEXT_CAP];
    struct oribi_log_owner *owner = &context->log_owner;
    if (geteuid() != 0 || (!options->user && !options->group) ||
        oribi_process_find_user(options->user, options->group, &owner->uid, &owner->gid, error) < 0)
        return NULL;
    owner->user = oribi_process_user_name(owner->uid, context->log_user, sizeof(context->log_user));
    return owner;
}

int oribi__open_logs(struct oribi__process_context *context, char *error)
{
    const struct oribi_options *options = context->options;
    oribi_os_fill_standard_streams(); /* before anything looks where they lead */
    oribi_log_init(STDERR_FILENO, oribi__log_level(options));
    oribi_log_set_json(options->error_log_format && strcmp(options->error_log_format, "json") == 0);
    const struct oribi_log_owner *owner = log_owner(context);
    bool off = !options->access_log || strcmp(options->access_log, "off") == 0;
    if (!off) {
        int code =
            oribi_access_log_open(options->access_log, options->access_log_format, owner, &context->access_log, error);
        if (code < 0)
            return code;
        oribi_access_log_choose(context->access_log, &options->access_log_skip, options->access_log_sample);
    }
    if (!is_file(options->error_log) || oribi_log_open(options->error_log, owner) == 0)
        return 0;
    (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "error_log: cannot open %.120s: %s", options->error_log,
                   oribi_os_error_text());
    if (context->access_log)
        oribi_access_log_close(context->access_log);
    context->access_log = NULL;
    return ORIBI_ESYS;
}

void oribi__reopen_logs(struct oribi__process_context *context)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    const struct oribi_log_owner *owner = log_owner(context);
    if (oribi_log_reopen(owner) < 0)
        oribi_log(ORIBI_LOG_ERROR, "error_log: cannot be reopened, going on with the old file: %s",
                  oribi_os_error_text());
    if (context->access_log && oribi_access_log_reopen(context->access_log, owner, error) < 0)
        oribi_log(ORIBI_LOG_ERROR, "%s, going on with the old file", error);
}

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
    if (level == ORIBI_LOG_ERROR)
        oribi__upgrade_tell(context, text);
    /* The starter shows why the daemon did not come up, wherever the log goes. */
    if (context->starter.fds[1] >= 0 && level == ORIBI_LOG_ERROR) {
        (void)oribi_os_write(context->starter.fds[1], text,
                             strnlen(text, DAEMON_TEXT_CAP / 4)); /* the starter may be gone */
        (void)oribi_os_write(context->starter.fds[1], "\n", 1);
    }
}

/* --- daemon --- */

void oribi__release_starter(struct oribi__context *context, int code)
{
    if (context->starter.fds[1] < 0)
        return;
    const char last[2] = {'\0', (char)code};
    (void)oribi_os_write(context->starter.fds[1], last, sizeof(last)); /* it may have been killed meanwhile */
    oribi_os_close(context->starter.fds[1]);
    context->starter.fds[1] = -1;
}

static void point_at_null(int fd, int flags)
{
    int null_fd = open("/dev/null", flags | O_CLOEXEC);
    if (null_fd >= 0 && dup2(null_fd, fd) < 0)
        oribi_log(ORIBI_LOG_WARN, "a standard stream could not be closed");
    if (null_fd != fd)
        oribi_os_close(null_fd);
}

/* The logs' copies of the streams let go of the terminal as well. */
static void logs_follow_streams(struct oribi__context *context)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    if (!is_file(context->process.options->error_log))
        oribi_log_init(STDERR_FILENO, oribi__log_level(context->process.options));
    if (oribi_access_log_follow_stdout(context->process.access_log, error) < 0)
        oribi_log(ORIBI_LOG_WARN, "%s", error);
}

/* The streams are let go of at once, so that molds and workers never hold the terminal; why a start fails
 * goes through the pipe. */
void oribi_supervisor_daemon_enter(struct oribi_supervisor *supervisor)
{
    struct oribi__context *context = &supervisor->context;
    oribi__children_ours(false);
    context->pid = getpid();
    context->process.supervisor = context->pid;
    oribi_os_close(context->starter.fds[0]);
    context->starter.fds[0] = -1;
    oribi_signals_install(oribi__supervisor_signal, context, 1);
    (void)setsid(); /* fails only for a group leader, which a fresh child is not */
    point_at_null(STDIN_FILENO, O_RDONLY);
    if (is_file(context->process.options->error_log)) {
        (void)dup2(STDERR_FILENO, STDOUT_FILENO); /* both are open: it cannot fail */
    } else {
        point_at_null(STDOUT_FILENO, O_WRONLY);
        point_at_null(STDERR_FILENO, O_WRONLY);
    }
    logs_follow_streams(context);
}

/* The daemon tells its first lines, a NUL and its exit code; nothing more when it died. INT and TERM end the starter as
 * any command. */
void oribi__starter_enter(struct oribi_supervisor *supervisor, pid_t pid)
{
    struct oribi__context *context = &supervisor->context;
    oribi_signals_uninstall();
    oribi__children_ours(false);
    oribi_os_close(context->starter.fds[1]);
    context->starter.fds[1] = -1;
    context->starter.text = oribi_mem_alloc(1, DAEMON_TEXT_CAP); /* lives as long as the process */
    if (pid < 0) {
        (void)oribi_os_fail();
        context->starter.len =
            (size_t)snprintf(context->starter.text, DAEMON_TEXT_CAP, "cannot fork: %s", oribi_os_error_text());
        context->starter.heard = true;
    }
}

void oribi__starter_wait(const struct oribi_supervisor *supervisor, int64_t ms)
{
    const struct oribi__context *context = &supervisor->context;
    oribi_process_poll(&context->starter.fds[0], 1, ms);
}

/* Line by line, as other errors are printed. */
static void print_lines(const struct oribi__context *context, size_t said)
{
    for (size_t at = 0; at < said;) {
        size_t end = at;
        while (end < said && context->starter.text[end] != '\n')
            end++;
        (void)dprintf(STDERR_FILENO, "%s: %.*s\n", context->process.program, (int)(end - at),
                      context->starter.text + at);
        at = end + 1;
    }
}

int oribi__starter_take(struct oribi_supervisor *supervisor)
{
    struct oribi__context *context = &supervisor->context;
    ssize_t n = 1;
    while (n > 0 && !context->starter.heard && context->starter.len < DAEMON_TEXT_CAP) {
        n = oribi_os_read(context->starter.fds[0], context->starter.text + context->starter.len,
                          DAEMON_TEXT_CAP - context->starter.len);
        context->starter.len += n > 0 ? (size_t)n : 0;
        context->starter.heard = context->starter.len >= 2 && context->starter.text[context->starter.len - 2] == '\0';
    }
    if (n == ORIBI_AGAIN)
        return -1;
    size_t said = strnlen(context->starter.text, context->starter.len);
    print_lines(context, said);
    return said + 1 < context->starter.len ? (unsigned char)context->starter.text[said + 1] : 1;
}

/* --- life --- */

static void no_descriptors(struct oribi__context *context)
{
    context->process.handoff = (struct oribi_handoff){-1, -1};
    context->process.message_fd = context->process.life_fd = context->process.board.fd = context->message_fd =
        context->life_write_fd = -1;
    context->signal_fds[0] = context->signal_fds[1] = context->starter.fds[0] = context->starter.fds[1] = -1;
    context->next_mold.fds[0] = context->next_mold.fds[1] = context->pid_file.fd = -1;
    context->upgrade.predecessor_fd = context->upgrade.successor_fd = context->control.fd = -1;
    context->watch.os.fd = context->restart_file.watch.os.fd = -1;
    for (uint32_t i = 0; i < ORIBI_MOLDS_MAX; i++)
        context->molds[i].fd = -1;
    for (uint32_t i = 0; i < ORIBI__CLIENTS_MAX; i++)
        context->control.clients[i].fd = -1;
    context->process.app.fd = -1;
    oribi__frontends_init(&context->frontends);
    oribi__observe_init(&context->observe);
}

struct oribi__context *oribi__supervisor_context(struct oribi_supervisor *supervisor)
{
    return &supervisor->context;
}

static void report(void *owner, const struct oribi_policy_event *event)
{
    oribi__follow(owner, event);
}

static void stacks_found(void *owner)
{
    oribi__control_stacks(owner);
}

void oribi__supervisor_show(struct oribi__context *context)
{
    context->observe.dispatcher = &context->dispatcher;
    context->observe.owner = context;
    context->observe.report = report;
    context->observe.stacks_found = stacks_found;
    context->observe.view = (struct oribi__view){
        .context = &context->process,
        .policy = &context->policy,
        .frontends = &context->frontends.set,
        .predecessor_fd = &context->upgrade.predecessor_fd,
        .version = context->boot_log.version,
        .restart_file = context->restart_file.path,
    };
}

static void close_own(struct oribi__context *context, int keep_fd)
{
    const int fds[] = {context->message_fd,           context->life_write_fd,    context->signal_fds[0],
                       context->signal_fds[1],        context->starter.fds[0],   context->starter.fds[1],
                       context->next_mold.fds[0],     context->next_mold.fds[1], context->upgrade.predecessor_fd,
                       context->upgrade.successor_fd, context->watch.os.fd,      context->restart_file.watch.os.fd};
    for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
        if (fds[i] != keep_fd)
            oribi_os_close(fds[i]);
    for (uint32_t i = 0; i < ORIBI_MOLDS_MAX; i++)
        oribi_os_close(context->molds[i].fd);
    oribi_start_free(&context->start);
    oribi_mem_free(context->pid_path);
    context->pid_path = NULL;
    oribi_buf_deinit(&context->boot_log.options);
    oribi_buf_deinit(&context->boot_log.next_options);
}

/* In a child of a hook, or of a manager's own code. */
void oribi__supervisor_let_go(void *owner)
{
    struct oribi__context *context = owner;
    int *fds[] = {&context->message_fd,
                  &context->life_write_fd,
                  &context->signal_fds[0],
                  &context->signal_fds[1],
                  &context->starter.fds[0],
                  &context->starter.fds[1],
                  &context->upgrade.predecessor_fd,
                  &context->upgrade.successor_fd,
                  &context->watch.os.fd,
                  &context->restart_file.watch.os.fd,
                  &context->pid_file.fd};
    oribi__process_context_close(&context->process, true);
    for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
        oribi__close(fds[i]);
    for (uint32_t i = 0; i < ORIBI_MOLDS_MAX; i++)
        oribi__close(&context->molds[i].fd);
    oribi__frontends_close(context, true);
    oribi__control_close(context, false);
    oribi__observe_let_go(&context->observe);
}

void oribi__supervisor_forget(struct oribi_supervisor *supervisor, int keep_fd)
{
    struct oribi__context *context = &supervisor->context;
    oribi__children_let_go(NULL, NULL);
    close_own(context, keep_fd);
    oribi__frontends_close(context, true);
    oribi__control_close(context, false);
    oribi__observe_close(&context->observe, false);
    oribi__observe_deinit(&context->observe);
    oribi_pid_file_forget(&context->pid_file);
    oribi_dispatcher_deinit(&context->dispatcher);
    if (context->process.listeners != &context->no_listeners)
        oribi_mem_free(supervisor); /* else the mold goes on using the empty list in it */
}

static int open_pipes(struct oribi__context *context)
{
    int fds[2];
    if (oribi_message_pair(fds) < 0)
        return ORIBI_ESYS;
    context->message_fd = fds[0];
    context->process.message_fd = fds[1];
    if (oribi_os_pipe(fds) < 0)
        return ORIBI_ESYS;
    context->process.life_fd = fds[0];
    context->life_write_fd = fds[1];
    if (oribi_os_pipe(context->signal_fds) < 0)
        return ORIBI_ESYS;
    if (context->daemonize && oribi_os_pipe(context->starter.fds) < 0)
        return ORIBI_ESYS;
    return 0;
}

static uint32_t workers_ceiling(const struct oribi_options *options)
{
    uint32_t spare = options->workers > WORKERS_SPARE ? options->workers : WORKERS_SPARE;
    return options->workers + spare < ORIBI_WORKERS_MAX ? options->workers + spare : ORIBI_WORKERS_MAX;
}

void oribi__supervisor_config(const struct oribi_options *options, uint32_t workers_max, bool prefork,
                              struct oribi_policy_config *config)
{
    *config = (struct oribi_policy_config){
        .workers = options->workers,
        .workers_max = workers_max,
        .roll_max = options->roll_max_unavailable,
        .boot_timeout_ms = options->boot_timeout_ms,
        .shutdown_timeout_ms = options->shutdown_timeout_ms,
        .reload_waits = options->dev && !prefork,
        .patient = prefork,
        .spawn_interval_ms = options->spawn_interval_ms,
        .err_respawn_interval_ms = options->err_respawn_interval_ms,
        .call_timeout_ms = options->call_timeout_ms,
        .drain_delay_ms = options->drain_delay_ms,
        .age_max_ms = options->age_max_ms,
        .memory_max = options->memory_max,
        .refork_after = options->refork_after,
        .is_init = getpid() == 1,
        .deadline_signal = oribi_os_private_signal(),
        .watch = options->call_timeout_ms > 0 || options->age_max_ms > 0 || options->memory_max > 0 ||
                 options->refork_after > 0,
    };
}

/* A successor that never served leaves the socket files to its predecessor, who goes on, but for those that it has
 * opened itself. */
void oribi__close_listeners(struct oribi__context *context, bool unlink_paths)
{
    struct oribi_listeners *listeners = context->process.listeners;
    for (uint32_t i = 0; context->upgrade.predecessor_fd >= 0 && i < listeners->count; i++) {
        if (listeners->items[i].fresh)
            continue;
        oribi_mem_free(listeners->items[i].path);
        listeners->items[i].path = NULL;
    }
    oribi_listeners_close(listeners, unlink_paths);
}

static int fail(struct oribi_supervisor *supervisor, int code, const char *what, char *error)
{
    struct oribi__context *context = &supervisor->context;
    if (what)
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "%s: %s", what, oribi_os_error_text());
    oribi__upgrade_tell(context, error);
    oribi__close_listeners(context, true);
    oribi__inherited_totals_close(&context->observe.inherited);
    close_own(context, -1);
    oribi_os_close(context->process.message_fd);
    oribi_os_close(context->process.life_fd);
    oribi_handoff_close(&context->process.handoff);
    oribi__frontends_close(context, false);
    oribi__control_close(context, true);
    oribi__observe_close(&context->observe, true);
    oribi__observe_deinit(&context->observe);
    oribi_pid_file_remove(&context->pid_file);
    if (context->process.access_log)
        oribi_access_log_close(context->process.access_log);
    oribi_dispatcher_deinit(&context->dispatcher);
    oribi_scoreboard_destroy(&context->process.board);
    oribi__app_store_destroy(&context->process.app);
    oribi_mem_free(supervisor);
    return code;
}

/* Opens files and addresses that the operator may have wrong, in the order in which it does the least harm. */
static int open_named(struct oribi__context *context, char *error)
{
    const struct oribi_options *options = context->process.options;
    int code = oribi_process_check_user(options->user, options->group, error);
    if (code == 0)
        code = oribi__frontends_check_user(options, error);
    if (code == 0)
        code = oribi_options_check_files(options, error);
    if (code == 0 && options->pid_file) {
        code = oribi_pid_file_lock(&context->pid_file, options->pid_file, error);
        if (code == 0) {
            const char *name = oribi_pid_file_name(&context->pid_file);
            size_t n = strlen(name) + 1;
            context->pid_path = oribi_mem_alloc(n, 1);
            memcpy(context->pid_path, name, n);
        }
    }
    if (code == 0)
        code = oribi__control_begin(context, error);
    if (code == 0)
        code = oribi__open_logs(&context->process, error);
    if (code == 0)
        code = oribi__observe_open(&context->observe, error);
    if (code == 0)
        oribi_options_warn_of_files(options);
    return code;
}

int oribi_supervisor_create(const struct oribi_supervisor_setup *setup, struct oribi_supervisor **out, char *error)
{
    struct oribi_supervisor *supervisor = oribi_mem_alloc(1, sizeof(*supervisor));
    struct oribi__context *context = &supervisor->context;
    const struct oribi_options *options = setup->options;
    no_descriptors(context);
    oribi__supervisor_show(context);
    if (oribi_dispatcher_init(&context->dispatcher) < 0)
        return fail(supervisor, ORIBI_ENOMEM, "cannot make an event loop", error);
    context->pid = getpid();
    context->observe.started_ms = oribi_clock_ms();
    context->observe.started_wall_ms = oribi_clock_wall_ms();
    context->daemonize = options->daemonize;
    context->process.options = options;
    context->process.listeners = setup->listeners ? setup->listeners : &context->no_listeners;
    context->process.program = setup->program;
    if (setup->version && setup->language && !setup->prefork) {
        (void)snprintf(context->boot_log.version, ORIBI__VERSION_CAP, "%s", setup->version);
        (void)snprintf(context->boot_log.language, ORIBI__LANGUAGE_CAP, "%s", setup->language);
    }
    context->process.supervisor = context->pid;
    context->process.prefork = setup->prefork != NULL;
    context->announced.adopted_from = context->process.listeners->count;
    context->watchdog_ms = oribi_sd_watchdog_ms();
    oribi__upgrade_inherit(context);
    if (oribi_start_record(&context->start, setup->argv, setup->environ_is_known, options->start_dir) < 0)
        return fail(supervisor, ORIBI_ESYS, "cannot read from /proc how this process was started", error);
    if (setup->environ)
        oribi_start_set_environ(&context->start, setup->environ);
    int code = open_named(context, error);
    if (code < 0)
        return fail(supervisor, code, NULL, error);
    if (open_pipes(context) < 0 || oribi_handoff_create(&context->process.handoff) < 0)
        return fail(supervisor, ORIBI_ESYS, "cannot make pipes", error);
    uint32_t workers_max = setup->prefork ? ORIBI_WORKERS_MAX : workers_ceiling(options);
    /* those who leave and those who come */
    if (oribi_scoreboard_create_named(&context->process.board, 2 * workers_max) < 0)
        return fail(supervisor, ORIBI_ENOMEM, "cannot map the scoreboard", error);
    for (uint32_t i = 0; i < context->process.board.count; i++)
        /* none is there */
        oribi_scoreboard_skip(&context->process.board, &context->process.board.slots[i], true);
    if (oribi__app_store_create(&context->process.app, options->metrics_max) < 0)
        return fail(supervisor, ORIBI_ENOMEM, "cannot map the application's metrics", error);
    oribi_app_metrics_enter(&context->process.app.view, 1, ORIBI_METRIC_NOBODY); /* the first mold inherits it */
    if (setup->prefork)
        oribi__prefork_begin(context, setup->prefork);
    struct oribi_policy_config config;
    oribi__supervisor_config(options, workers_max, context->process.prefork, &config);
    config.no_reopen = context->process.usr1_foreign;
    oribi_policy_init(&context->policy, &config, context->process.board.slots, context->process.board.count);
    oribi__observe_configured(&context->observe);
    if (oribi_policy_keep_workers(&context->policy, context->upgrade.workers, context->upgrade.workers_before))
        oribi_log(ORIBI_LOG_INFO, ORIBI_POLICY_WORKERS_KEPT, context->policy.target, config.workers);
    oribi_signals_install(oribi__supervisor_signal, context, 1);
    oribi__children_let_go(oribi__supervisor_let_go, context);
    *out = supervisor;
    return 0;
}

/* A library's program goes on, and what it did before with signals counts again. */
static void leave_signals(const struct oribi__context *context)
{
    if (!context->process.prefork) {
        oribi_signals_end(context->action.exit_code);
        return;
    }
    oribi_signals_uninstall();
    oribi_signals_choose(NULL, 0);
}

void oribi_supervisor_destroy(struct oribi_supervisor *supervisor)
{
    struct oribi__context *context = &supervisor->context;
    leave_signals(context);
    oribi_app_metrics_leave();
    oribi__children_let_go(NULL, NULL);
    oribi__release_starter(context, 1);
    oribi__control_stopped(context);
    oribi__export_totals(&context->observe);
    oribi__inherited_totals_close(&context->observe.inherited);
    oribi__frontends_close(context, false);
    oribi__control_close(context, true);
    oribi__observe_close(&context->observe, true);
    oribi__observe_deinit(&context->observe);
    oribi__watch_end(&context->watch);
    oribi__restart_end(&context->restart_file);
    oribi__close_listeners(context, true);
    close_own(context, -1);
    oribi_os_close(context->process.message_fd);
    oribi_os_close(context->process.life_fd);
    oribi_handoff_close(&context->process.handoff);
    oribi_pid_file_remove(&context->pid_file);
    if (context->process.access_log)
        oribi_access_log_close(context->process.access_log);
    oribi_dispatcher_deinit(&context->dispatcher);
    oribi_scoreboard_destroy(&context->process.board);
    oribi__app_store_destroy(&context->process.app);
    oribi_mem_free(supervisor);
    oribi_log_drain(ORIBI_LOG_DRAIN_MS);
}
