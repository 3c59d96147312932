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

void oribi__log_text(struct oribi_supervisor *supervisor, enum oribi_log_level level, const char *text)
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
        oribi__upgrade_tell(supervisor, text);
    /* The starter shows why the daemon did not come up, wherever the log goes. */
    if (supervisor->starter.fds[1] >= 0 && level == ORIBI_LOG_ERROR) {
        (void)oribi_os_write(supervisor->starter.fds[1], text,
                             strnlen(text, DAEMON_TEXT_CAP / 4)); /* the starter may be gone */
        (void)oribi_os_write(supervisor->starter.fds[1], "\n", 1);
    }
}

/* --- daemon --- */

void oribi__release_starter(struct oribi_supervisor *supervisor, int code)
{
    if (supervisor->starter.fds[1] < 0)
        return;
    const char last[2] = {'\0', (char)code};
    (void)oribi_os_write(supervisor->starter.fds[1], last, sizeof(last)); /* it may have been killed meanwhile */
    oribi_os_close(supervisor->starter.fds[1]);
    supervisor->starter.fds[1] = -1;
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
static void logs_follow_streams(struct oribi_supervisor *supervisor)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    if (!is_file(supervisor->context.options->error_log))
        oribi_log_init(STDERR_FILENO, oribi__log_level(supervisor->context.options));
    if (oribi_access_log_follow_stdout(supervisor->context.access_log, error) < 0)
        oribi_log(ORIBI_LOG_WARN, "%s", error);
}

/* The streams are let go of at once, so that molds and workers never hold the terminal; why a start fails
 * goes through the pipe. */
void oribi_supervisor_daemon_enter(struct oribi_supervisor *supervisor)
{
    oribi__children_ours(false);
    supervisor->pid = getpid();
    supervisor->context.supervisor = supervisor->pid;
    oribi_os_close(supervisor->starter.fds[0]);
    supervisor->starter.fds[0] = -1;
    oribi_signals_install(oribi__supervisor_signal, supervisor, 1);
    (void)setsid(); /* fails only for a group leader, which a fresh child is not */
    point_at_null(STDIN_FILENO, O_RDONLY);
    if (is_file(supervisor->context.options->error_log)) {
        (void)dup2(STDERR_FILENO, STDOUT_FILENO); /* both are open: it cannot fail */
    } else {
        point_at_null(STDOUT_FILENO, O_WRONLY);
        point_at_null(STDERR_FILENO, O_WRONLY);
    }
    logs_follow_streams(supervisor);
}

/* The daemon tells its first lines, a NUL and its exit code; nothing more when it died. INT and TERM end the starter as
 * any command. */
void oribi__starter_enter(struct oribi_supervisor *supervisor, pid_t pid)
{
    oribi_signals_uninstall();
    oribi__children_ours(false);
    oribi_os_close(supervisor->starter.fds[1]);
    supervisor->starter.fds[1] = -1;
    supervisor->starter.text = oribi_mem_alloc(1, DAEMON_TEXT_CAP); /* lives as long as the process */
    if (pid < 0) {
        (void)oribi_os_fail();
        supervisor->starter.len =
            (size_t)snprintf(supervisor->starter.text, DAEMON_TEXT_CAP, "cannot fork: %s", oribi_os_error_text());
        supervisor->starter.heard = true;
    }
}

void oribi__starter_wait(const struct oribi_supervisor *supervisor, int64_t ms)
{
    oribi_process_poll(&supervisor->starter.fds[0], 1, ms);
}

/* Line by line, as other errors are printed. */
static void print_lines(const struct oribi_supervisor *supervisor, size_t said)
{
    for (size_t at = 0; at < said;) {
        size_t end = at;
        while (end < said && supervisor->starter.text[end] != '\n')
            end++;
        (void)dprintf(STDERR_FILENO, "%s: %.*s\n", supervisor->context.program, (int)(end - at),
                      supervisor->starter.text + at);
        at = end + 1;
    }
}

int oribi__starter_take(struct oribi_supervisor *supervisor)
{
    ssize_t n = 1;
    while (n > 0 && !supervisor->starter.heard && supervisor->starter.len < DAEMON_TEXT_CAP) {
        n = oribi_os_read(supervisor->starter.fds[0], supervisor->starter.text + supervisor->starter.len,
                          DAEMON_TEXT_CAP - supervisor->starter.len);
        supervisor->starter.len += n > 0 ? (size_t)n : 0;
        supervisor->starter.heard =
            supervisor->starter.len >= 2 && supervisor->starter.text[supervisor->starter.len - 2] == '\0';
    }
    if (n == ORIBI_AGAIN)
        return -1;
    size_t said = strnlen(supervisor->starter.text, supervisor->starter.len);
    print_lines(supervisor, said);
    return said + 1 < supervisor->starter.len ? (unsigned char)supervisor->starter.text[said + 1] : 1;
}

/* --- life --- */

static void no_descriptors(struct oribi_supervisor *supervisor)
{
    supervisor->context.handoff = (struct oribi_handoff){-1, -1};
    supervisor->context.message_fd = supervisor->context.life_fd = supervisor->context.board.fd =
        supervisor->message_fd = supervisor->life_write_fd = -1;
    supervisor->signal_fds[0] = supervisor->signal_fds[1] = supervisor->starter.fds[0] = supervisor->starter.fds[1] =
        -1;
    supervisor->next_mold.fds[0] = supervisor->next_mold.fds[1] = supervisor->pid_file.fd = -1;
    supervisor->upgrade.predecessor_fd = supervisor->upgrade.successor_fd = supervisor->control.fd = -1;
    supervisor->watch.os.fd = supervisor->restart_file.watch.os.fd = -1;
    for (uint32_t i = 0; i < ORIBI_MOLDS_MAX; i++)
        supervisor->molds[i].fd = -1;
    for (uint32_t i = 0; i < ORIBI__CLIENTS_MAX; i++)
        supervisor->control.clients[i].fd = -1;
    supervisor->observe.inherited.to_fd = -1;
    supervisor->context.app.fd = -1;
    oribi__frontends_init(&supervisor->frontends);
    oribi__status_init(&supervisor->observe.status);
    oribi__agent_init(&supervisor->observe.agent);
}

static void report(void *owner, const struct oribi_policy_event *event)
{
    oribi__follow(owner, event);
}

static void stacks_found(void *owner)
{
    oribi__control_stacks(owner);
}

void oribi__supervisor_show(struct oribi_supervisor *supervisor)
{
    supervisor->observe.dispatcher = &supervisor->dispatcher;
    supervisor->observe.owner = supervisor;
    supervisor->observe.report = report;
    supervisor->observe.stacks_found = stacks_found;
    supervisor->observe.view = (struct oribi__view){
        .context = &supervisor->context,
        .policy = &supervisor->policy,
        .frontends = &supervisor->frontends.set,
        .predecessor_fd = &supervisor->upgrade.predecessor_fd,
        .version = supervisor->boot_log.version,
        .restart_file = supervisor->restart_file.path,
    };
}

static void close_own(struct oribi_supervisor *supervisor, int keep_fd)
{
    const int fds[] = {
        supervisor->message_fd,           supervisor->life_write_fd,    supervisor->signal_fds[0],
        supervisor->signal_fds[1],        supervisor->starter.fds[0],   supervisor->starter.fds[1],
        supervisor->next_mold.fds[0],     supervisor->next_mold.fds[1], supervisor->upgrade.predecessor_fd,
        supervisor->upgrade.successor_fd, supervisor->watch.os.fd,      supervisor->restart_file.watch.os.fd};
    for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
        if (fds[i] != keep_fd)
            oribi_os_close(fds[i]);
    for (uint32_t i = 0; i < ORIBI_MOLDS_MAX; i++)
        oribi_os_close(supervisor->molds[i].fd);
    oribi_start_free(&supervisor->start);
    oribi_mem_free(supervisor->pid_path);
    supervisor->pid_path = NULL;
    oribi_buf_deinit(&supervisor->boot_log.options);
    oribi_buf_deinit(&supervisor->boot_log.next_options);
}

/* In a child of a hook, or of a manager's own code. */
void oribi__supervisor_let_go(void *owner)
{
    struct oribi_supervisor *supervisor = owner;
    int *fds[] = {&supervisor->message_fd,
                  &supervisor->life_write_fd,
                  &supervisor->signal_fds[0],
                  &supervisor->signal_fds[1],
                  &supervisor->starter.fds[0],
                  &supervisor->starter.fds[1],
                  &supervisor->upgrade.predecessor_fd,
                  &supervisor->upgrade.successor_fd,
                  &supervisor->watch.os.fd,
                  &supervisor->restart_file.watch.os.fd,
                  &supervisor->pid_file.fd};
    oribi__process_context_close(&supervisor->context, true);
    for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
        oribi__close(fds[i]);
    for (uint32_t i = 0; i < ORIBI_MOLDS_MAX; i++)
        oribi__close(&supervisor->molds[i].fd);
    oribi__frontends_close(supervisor, true);
    oribi__control_close(supervisor, false);
    oribi__agent_let_go(&supervisor->observe.agent);
    oribi__status_let_go(&supervisor->observe.status);
}

void oribi__supervisor_forget(struct oribi_supervisor *supervisor, int keep_fd)
{
    oribi__children_let_go(NULL, NULL);
    close_own(supervisor, keep_fd);
    oribi__frontends_close(supervisor, true);
    oribi__control_close(supervisor, false);
    oribi__agent_close(&supervisor->observe, false);
    oribi__status_close(&supervisor->observe, false);
    oribi__stacks_close(&supervisor->observe);
    oribi_pid_file_forget(&supervisor->pid_file);
    oribi_dispatcher_deinit(&supervisor->dispatcher);
    if (supervisor->context.listeners != &supervisor->no_listeners)
        oribi_mem_free(supervisor); /* else the mold goes on using the empty list in it */
}

static int open_pipes(struct oribi_supervisor *supervisor)
{
    int fds[2];
    if (oribi_message_pair(fds) < 0)
        return ORIBI_ESYS;
    supervisor->message_fd = fds[0];
    supervisor->context.message_fd = fds[1];
    if (oribi_os_pipe(fds) < 0)
        return ORIBI_ESYS;
    supervisor->context.life_fd = fds[0];
    supervisor->life_write_fd = fds[1];
    if (oribi_os_pipe(supervisor->signal_fds) < 0)
        return ORIBI_ESYS;
    if (supervisor->daemonize && oribi_os_pipe(supervisor->starter.fds) < 0)
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
void oribi__close_listeners(struct oribi_supervisor *supervisor, bool unlink_paths)
{
    struct oribi_listeners *listeners = supervisor->context.listeners;
    for (uint32_t i = 0; supervisor->upgrade.predecessor_fd >= 0 && i < listeners->count; i++) {
        if (listeners->items[i].fresh)
            continue;
        oribi_mem_free(listeners->items[i].path);
        listeners->items[i].path = NULL;
    }
    oribi_listeners_close(listeners, unlink_paths);
}

static int fail(struct oribi_supervisor *supervisor, int code, const char *what, char *error)
{
    if (what)
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "%s: %s", what, oribi_os_error_text());
    oribi__upgrade_tell(supervisor, error);
    oribi__close_listeners(supervisor, true);
    oribi__inherited_totals_close(&supervisor->observe.inherited);
    close_own(supervisor, -1);
    oribi_os_close(supervisor->context.message_fd);
    oribi_os_close(supervisor->context.life_fd);
    oribi_handoff_close(&supervisor->context.handoff);
    oribi__frontends_close(supervisor, false);
    oribi__control_close(supervisor, true);
    oribi__agent_close(&supervisor->observe, true);
    oribi__status_close(&supervisor->observe, true);
    oribi_pid_file_remove(&supervisor->pid_file);
    if (supervisor->context.access_log)
        oribi_access_log_close(supervisor->context.access_log);
    oribi_dispatcher_deinit(&supervisor->dispatcher);
    oribi_scoreboard_destroy(&supervisor->context.board);
    oribi__app_store_destroy(&supervisor->context.app);
    oribi_mem_free(supervisor);
    return code;
}

/* Opens files and addresses that the operator may have wrong, in the order in which it does the least harm. */
static int open_named(struct oribi_supervisor *supervisor, char *error)
{
    const struct oribi_options *options = supervisor->context.options;
    int code = oribi_process_check_user(options->user, options->group, error);
    if (code == 0)
        code = oribi__frontends_check_user(options, error);
    if (code == 0)
        code = oribi_options_check_files(options, error);
    if (code == 0 && options->pid_file) {
        code = oribi_pid_file_lock(&supervisor->pid_file, options->pid_file, error);
        if (code == 0) {
            const char *name = oribi_pid_file_name(&supervisor->pid_file);
            size_t n = strlen(name) + 1;
            supervisor->pid_path = oribi_mem_alloc(n, 1);
            memcpy(supervisor->pid_path, name, n);
        }
    }
    if (code == 0)
        code = oribi__control_begin(supervisor, error);
    if (code == 0)
        code = oribi__open_logs(&supervisor->context, error);
    if (code == 0)
        code = oribi__status_open(&supervisor->observe, error);
    if (code == 0)
        code = oribi__agent_open(&supervisor->observe, error);
    if (code == 0)
        oribi_options_warn_of_files(options);
    return code;
}

int oribi_supervisor_create(const struct oribi_supervisor_setup *setup, struct oribi_supervisor **out, char *error)
{
    struct oribi_supervisor *supervisor = oribi_mem_alloc(1, sizeof(*supervisor));
    const struct oribi_options *options = setup->options;
    no_descriptors(supervisor);
    oribi__supervisor_show(supervisor);
    if (oribi_dispatcher_init(&supervisor->dispatcher) < 0)
        return fail(supervisor, ORIBI_ENOMEM, "cannot make an event loop", error);
    supervisor->pid = getpid();
    supervisor->observe.started_ms = oribi_clock_ms();
    supervisor->observe.started_wall_ms = oribi_clock_wall_ms();
    supervisor->daemonize = options->daemonize;
    supervisor->context.options = options;
    supervisor->context.listeners = setup->listeners ? setup->listeners : &supervisor->no_listeners;
    supervisor->context.program = setup->program;
    if (setup->version && setup->language && !setup->prefork) {
        (void)snprintf(supervisor->boot_log.version, ORIBI__VERSION_CAP, "%s", setup->version);
        (void)snprintf(supervisor->boot_log.language, ORIBI__LANGUAGE_CAP, "%s", setup->language);
    }
    supervisor->context.supervisor = supervisor->pid;
    supervisor->context.prefork = setup->prefork != NULL;
    supervisor->announced.adopted_from = supervisor->context.listeners->count;
    supervisor->watchdog_ms = oribi_sd_watchdog_ms();
    oribi__upgrade_inherit(supervisor);
    if (oribi_start_record(&supervisor->start, setup->argv, setup->environ_is_known, options->start_dir) < 0)
        return fail(supervisor, ORIBI_ESYS, "cannot read from /proc how this process was started", error);
    if (setup->environ)
        oribi_start_set_environ(&supervisor->start, setup->environ);
    int code = open_named(supervisor, error);
    if (code < 0)
        return fail(supervisor, code, NULL, error);
    if (open_pipes(supervisor) < 0 || oribi_handoff_create(&supervisor->context.handoff) < 0)
        return fail(supervisor, ORIBI_ESYS, "cannot make pipes", error);
    uint32_t workers_max = setup->prefork ? ORIBI_WORKERS_MAX : workers_ceiling(options);
    /* those who leave and those who come */
    if (oribi_scoreboard_create_named(&supervisor->context.board, 2 * workers_max) < 0)
        return fail(supervisor, ORIBI_ENOMEM, "cannot map the scoreboard", error);
    for (uint32_t i = 0; i < supervisor->context.board.count; i++)
        /* none is there */
        oribi_scoreboard_skip(&supervisor->context.board, &supervisor->context.board.slots[i], true);
    if (oribi__app_store_create(&supervisor->context.app, options->metrics_max) < 0)
        return fail(supervisor, ORIBI_ENOMEM, "cannot map the application's metrics", error);
    oribi_app_metrics_enter(&supervisor->context.app.view, 1, ORIBI_METRIC_NOBODY); /* the first mold inherits it */
    if (setup->prefork)
        oribi__prefork_begin(supervisor, setup->prefork);
    struct oribi_policy_config config;
    oribi__supervisor_config(options, workers_max, supervisor->context.prefork, &config);
    config.no_reopen = supervisor->context.usr1_foreign;
    oribi_policy_init(&supervisor->policy, &config, supervisor->context.board.slots, supervisor->context.board.count);
    oribi__footprints_configured(&supervisor->observe);
    if (oribi_policy_keep_workers(&supervisor->policy, supervisor->upgrade.workers, supervisor->upgrade.workers_before))
        oribi_log(ORIBI_LOG_INFO, ORIBI_POLICY_WORKERS_KEPT, supervisor->policy.target, config.workers);
    oribi_signals_install(oribi__supervisor_signal, supervisor, 1);
    oribi__children_let_go(oribi__supervisor_let_go, supervisor);
    *out = supervisor;
    return 0;
}

/* A library's program goes on, and what it did before with signals counts again. */
static void leave_signals(const struct oribi_supervisor *supervisor)
{
    if (!supervisor->context.prefork) {
        oribi_signals_end(supervisor->action.exit_code);
        return;
    }
    oribi_signals_uninstall();
    oribi_signals_choose(NULL, 0);
}

void oribi_supervisor_destroy(struct oribi_supervisor *supervisor)
{
    leave_signals(supervisor);
    oribi_app_metrics_leave();
    oribi__children_let_go(NULL, NULL);
    oribi__release_starter(supervisor, 1);
    oribi__control_stopped(supervisor);
    oribi__export_totals(&supervisor->observe);
    oribi__inherited_totals_close(&supervisor->observe.inherited);
    oribi__frontends_close(supervisor, false);
    oribi__control_close(supervisor, true);
    oribi__agent_close(&supervisor->observe, true);
    oribi__status_close(&supervisor->observe, true);
    oribi__stacks_close(&supervisor->observe);
    oribi__watch_end(&supervisor->watch);
    oribi__restart_end(&supervisor->restart_file);
    oribi__close_listeners(supervisor, true);
    close_own(supervisor, -1);
    oribi_os_close(supervisor->context.message_fd);
    oribi_os_close(supervisor->context.life_fd);
    oribi_handoff_close(&supervisor->context.handoff);
    oribi_pid_file_remove(&supervisor->pid_file);
    if (supervisor->context.access_log)
        oribi_access_log_close(supervisor->context.access_log);
    oribi_dispatcher_deinit(&supervisor->dispatcher);
    oribi_scoreboard_destroy(&supervisor->context.board);
    oribi__app_store_destroy(&supervisor->context.app);
    oribi_mem_free(supervisor);
    oribi_log_drain(ORIBI_LOG_DRAIN_MS);
}
