/* The supervisor's shell: turns what the system reports into events for the decisions (supervisor.c) and carries their actions out. Reading
 * order: oribi_host_take, next_event, carry_out, then create and destroy. What only molds and workers do is in mold.c and seat.c. */
#include "server/host_private.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/log.h"
#include "oribi/base/mem.h"
#include "oribi/server/signals.h"

#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
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

int oribi__open_logs(struct oribi__ties *ties, char *error)
{
    const struct oribi_options *options = ties->options;
    enum oribi_log_level level = options->quiet ? ORIBI_LOG_WARN : options->verbose ? ORIBI_LOG_DEBUG : ORIBI_LOG_INFO;
    oribi_log_init(STDERR_FILENO, level);
    bool off = !options->access_log || strcmp(options->access_log, "off") == 0;
    if (!off) {
        int code = oribi_access_log_open(options->access_log, options->access_log_format, &ties->access_log, error);
        if (code < 0)
            return code;
    }
    if (!is_file(options->error_log) || oribi_log_open(options->error_log) == 0)
        return 0;
    (void)snprintf(error, ORIBI_OPTIONS_ERROR_CAP, "error_log: cannot open %.150s: %s", options->error_log,
                   oribi_os_error_text());
    if (ties->access_log)
        oribi_access_log_close(ties->access_log);
    return ORIBI_ESYS;
}

void oribi__reopen_logs(struct oribi__ties *ties)
{
    char error[ORIBI_OPTIONS_ERROR_CAP];
    if (oribi_log_reopen() < 0)
        oribi_log(ORIBI_LOG_ERROR, "error_log: cannot be reopened, going on with the old file: %s", oribi_os_error_text());
    if (ties->access_log && oribi_access_log_reopen(ties->access_log, error) < 0)
        oribi_log(ORIBI_LOG_ERROR, "%s", error);
}

/* Files that we make as root must be open to the workers when they reopen them. */
static void hand_over_file(const char *path, uid_t uid, gid_t gid)
{
    struct stat file;
    if (is_file(path) && stat(path, &file) == 0 && S_ISREG(file.st_mode) && chown(path, uid, gid) < 0)
        oribi_log(ORIBI_LOG_WARN, "%s cannot be given to the workers' user", path);
}

static void hand_over_logs(struct oribi_host *host)
{
    const struct oribi_options *options = host->ties.options;
    char error[ORIBI_OPTIONS_ERROR_CAP];
    uid_t uid;
    gid_t gid;
    if (geteuid() != 0 || (!options->user && !options->group) ||
        oribi_process_find_user(options->user, options->group, &uid, &gid, error) < 0)
        return;
    hand_over_file(options->error_log, uid, gid);
    if (host->ties.access_log)
        hand_over_file(options->access_log, uid, gid);
}

/* --- signals --- */

static void on_signal(void *self, int number)
{
    struct oribi_host *host = self;
    char byte = (char)number;
    (void)!write(host->signal_fds[1], &byte, 1); /* full: then there is enough to wake us */
}

/* One signal's event. False when it is none of ours to act on. */
static bool signal_event(struct oribi_host *host, int number, struct oribi_event *event)
{
    switch (number) {
    case SIGTERM:
    case SIGQUIT:
        *event = (struct oribi_event){.type = ORIBI_EVENT_STOP};
        return true;
    case SIGINT:
        *event = (struct oribi_event){.type = ORIBI_EVENT_STOP_NOW};
        return true;
    case SIGTTIN:
    case SIGTTOU:
        *event = (struct oribi_event){.type = ORIBI_EVENT_RESIZE, .delta = number == SIGTTIN ? 1 : -1};
        return true;
    case SIGUSR1:
        *event = (struct oribi_event){.type = ORIBI_EVENT_REOPEN};
        return true;
    case SIGWINCH:
        if (oribi_process_has_terminal())
            return false; /* the window was resized */
        *event = (struct oribi_event){.type = ORIBI_EVENT_WINCH};
        return true;
    case SIGHUP:
        if (!oribi_process_terminal_gone())
            return false;
        *event = (struct oribi_event){.type = ORIBI_EVENT_STOP};
        return true;
    default: /* CHLD: the dead are looked for anyway; 0: oribi_host_wake() */
        return false;
    }
}

/* --- carrying out --- */

static struct oribi__mold_socket *socket_of(struct oribi_host *host, int32_t pid)
{
    for (uint32_t i = 0; i < ORIBI_MOLDS_MAX; i++)
        if (host->molds[i].fd >= 0 && host->molds[i].pid == pid)
            return &host->molds[i];
    return NULL;
}

static void close_socket_of(struct oribi_host *host, int32_t pid)
{
    struct oribi__mold_socket *mold = socket_of(host, pid);
    if (!mold)
        return;
    oribi_os_close(mold->fd);
    *mold = (struct oribi__mold_socket){.fd = -1};
}

static void mold_started(struct oribi_host *host, pid_t pid)
{
    host->has_started = true;
    host->started = (struct oribi_event){.type = ORIBI_EVENT_MOLD_STARTED,
                                         .generation = host->next_generation,
                                         .pid = pid < 0 ? -1 : pid,
                                         .text = pid < 0 ? oribi_os_error_text() : NULL};
    oribi_os_close(host->next_mold_fds[1]);
    for (uint32_t i = 0; pid >= 0 && i < ORIBI_MOLDS_MAX; i++) {
        if (host->molds[i].fd >= 0)
            continue;
        host->molds[i] = (struct oribi__mold_socket){.pid = pid, .fd = host->next_mold_fds[0]};
        host->next_mold_fds[0] = -1;
        break;
    }
    oribi_os_close(host->next_mold_fds[0]); /* -1 when it has found its place */
    host->next_mold_fds[0] = host->next_mold_fds[1] = -1;
}

static bool start_mold(struct oribi_host *host, const struct oribi_action *action)
{
    host->next_generation = action->generation;
    if (oribi_message_pair(host->next_mold_fds) < 0) {
        host->next_mold_fds[0] = host->next_mold_fds[1] = -1;
        mold_started(host, -1);
        return false;
    }
    host->action = (struct oribi_host_action){.type = ORIBI_HOST_FORK_MOLD};
    return true;
}

/* Nobody writes to the slot now: its last worker was reaped, the next is not forked. */
static void spawn(struct oribi_host *host, const struct oribi_action *action)
{
    struct oribi_slot *slot = &host->ties.board.slots[action->slot];
    memset(slot, 0, sizeof(*slot));
    atomic_store(&slot->generation, action->generation);
    atomic_store(&slot->state, ORIBI_SLOT_STARTING);
    struct oribi_message message = {.kind = ORIBI_MESSAGE_SPAWN,
                                    .generation = action->generation,
                                    .slot = action->slot,
                                    .ticket = action->ticket};
    struct oribi__mold_socket *mold = socket_of(host, action->pid);
    if (!mold || oribi_message_send(mold->fd, &message, 0) < 0)
        oribi_log(ORIBI_LOG_DEBUG, "mold (pid %d) takes no commands", action->pid); /* its end or boot_timeout settles it */
}

static bool hook(struct oribi_host *host, const char *name, const struct oribi_action *action)
{
    (void)snprintf(host->reason, sizeof(host->reason), "%s", action->text ? action->text : ""); /* reasons are short */
    host->action = (struct oribi_host_action){.type = ORIBI_HOST_HOOK,
                                              .hook = name,
                                              .reason = host->reason,
                                              .pid = action->pid,
                                              .status = action->status};
    return true;
}

static bool worker_exited(struct oribi_host *host, const struct oribi_action *action)
{
    struct oribi_slot *slot = &host->ties.board.slots[action->slot];
    atomic_store(&slot->call_deadline_us, 0);
    atomic_store(&slot->call_started_us, 0);
    atomic_store(&slot->pid, 0);
    atomic_store(&slot->state, ORIBI_SLOT_EMPTY); /* siblings must not take it for an idle one */
    return hook(host, "on_worker_exit", action);
}

static void log_text(struct oribi_host *host, enum oribi_log_level level, const char *text)
{
    const char *newline = strchr(text, '\n');
    if (newline) {
        char head[256];
        (void)snprintf(head, sizeof(head), "%.*s", (int)(newline - text), text); /* cut when longer: still a line */
        oribi_log_block(level, head, newline + 1, (uint32_t)strlen(newline + 1));
    } else {
        oribi_log(level, "%s", text);
    }
    /* Whoever waits for us to come up sees why we did not, wherever the log goes. */
    if (host->daemon_fds[1] >= 0 && level == ORIBI_LOG_ERROR) {
        (void)oribi_os_write(host->daemon_fds[1], text, strnlen(text, DAEMON_TEXT_CAP / 4)); /* nobody may listen any more */
        (void)oribi_os_write(host->daemon_fds[1], "\n", 1);
    }
}

static void release_starter(struct oribi_host *host, int code)
{
    if (host->daemon_fds[1] < 0)
        return;
    const char last[2] = {'\0', (char)code};
    (void)oribi_os_write(host->daemon_fds[1], last, sizeof(last)); /* it may have been killed meanwhile */
    oribi_os_close(host->daemon_fds[1]);
    host->daemon_fds[1] = -1;
}

static void log_start_line(struct oribi_host *host)
{
    char line[1024] = "";
    size_t n = 0;
    const struct oribi_listeners *listeners = host->ties.listeners;
    for (uint32_t i = 0; i < listeners->count && n < sizeof(line); i++)
        n += (size_t)snprintf(line + n, sizeof(line) - n, "%s%s", i ? ", " : "listening on ", listeners->items[i].text);
    oribi_log(ORIBI_LOG_INFO, "%s, %u workers, pid %d", listeners->count ? line : "started", host->sup.target, host->pid);
}

static bool carry_out(struct oribi_host *host, const struct oribi_action *action)
{
    switch (action->type) {
    case ORIBI_ACTION_LOG:
        log_text(host, action->level, action->text);
        return false;
    case ORIBI_ACTION_START_MOLD:
        return start_mold(host, action);
    case ORIBI_ACTION_STOP_MOLD:
        close_socket_of(host, action->pid);
        return false;
    case ORIBI_ACTION_SPAWN:
        spawn(host, action);
        return false;
    case ORIBI_ACTION_SIGNAL:
        (void)kill(action->pid, action->signal); /* a child that we have not reaped: the pid is its own */
        return false;
    case ORIBI_ACTION_UP:
        log_start_line(host);
        release_starter(host, 0);
        return hook(host, "server_ready", action);
    case ORIBI_ACTION_WORKER_EXIT:
        return worker_exited(host, action);
    case ORIBI_ACTION_REOPEN:
        oribi__reopen_logs(&host->ties);
        hand_over_logs(host);
        return false;
    case ORIBI_ACTION_STOPPING:
        oribi_listeners_close(host->ties.listeners, true); /* with the workers' copies gone, newcomers are refused, not kept waiting */
        return false;
    case ORIBI_ACTION_EXIT:
        if (action->text)
            log_text(host, ORIBI_LOG_ERROR, action->text);
        release_starter(host, action->code);
        host->action = (struct oribi_host_action){.type = ORIBI_HOST_EXIT, .exit_code = action->code};
        return true;
    }
    return false;
}

/* --- events --- */

static bool message_event(struct oribi_host *host, struct oribi_message *message, struct oribi_event *event)
{
    static const enum oribi_event_type types[] = {
        [ORIBI_MESSAGE_MOLD_READY] = ORIBI_EVENT_MOLD_READY,
        [ORIBI_MESSAGE_MOLD_FAILED] = ORIBI_EVENT_MOLD_FAILED,
        [ORIBI_MESSAGE_WORKER_FORKED] = ORIBI_EVENT_WORKER_FORKED,
        [ORIBI_MESSAGE_WORKER_READY] = ORIBI_EVENT_WORKER_READY,
        [ORIBI_MESSAGE_WORKER_FAILED] = ORIBI_EVENT_WORKER_FAILED,
        [ORIBI_MESSAGE_WORKER_LEAVING] = ORIBI_EVENT_WORKER_LEAVING,
    };
    if (message->kind < ORIBI_MESSAGE_MOLD_READY || message->kind > ORIBI_MESSAGE_WORKER_LEAVING)
        return false;
    *event = (struct oribi_event){.type = types[message->kind],
                                  .pid = message->pid,
                                  .generation = message->generation,
                                  .slot = message->slot,
                                  .ticket = message->ticket,
                                  .text = message->text};
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
        if (!signal_event(host, byte, &event))
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
    int got;
    while ((got = oribi_message_receive(host->message_fd, &message)) == 1 || got == ORIBI_EBAD) {
        if (got != 1 || !message_event(host, &message, &event)) {
            oribi_log(ORIBI_LOG_WARN, "a message that is none of this version's was dropped");
            continue;
        }
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
        close_socket_of(host, host->dead.pid);
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

static bool next_event(struct oribi_host *host)
{
    if (host->has_started) {
        host->has_started = false;
        feed(host, &host->started);
        return true;
    }
    return next_signal(host) || next_message(host) || next_death(host);
}

static bool begin(struct oribi_host *host)
{
    if (host->daemonize) {
        host->daemonize = false;
        host->action = (struct oribi_host_action){.type = ORIBI_HOST_FORK_DAEMON};
        return true;
    }
    host->begun = true;
    char error[ORIBI_OPTIONS_ERROR_CAP];
    if (host->pid_file.fd >= 0 && oribi_pid_file_write(&host->pid_file, error) < 0) {
        log_text(host, ORIBI_LOG_ERROR, error);
        release_starter(host, 1);
        host->action = (struct oribi_host_action){.type = ORIBI_HOST_EXIT, .exit_code = 1};
        return true;
    }
    if (oribi_os_become_subreaper() < 0)
        oribi_log(ORIBI_LOG_WARN, "workers cannot become our children: %s", oribi_os_error_text());
    feed(host, &(struct oribi_event){.type = ORIBI_EVENT_START});
    return false;
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
        while (oribi_supervisor_next(&host->sup, oribi_clock_ms(), &action))
            if (carry_out(host, &action))
                return &host->action;
    } while (next_event(host));
    return &host->action;
}

void oribi_host_wait(struct oribi_host *host)
{
    int64_t now_ms = oribi_clock_ms();
    int64_t deadline_ms = oribi_supervisor_deadline(&host->sup, now_ms);
    const int fds[] = {host->signal_fds[0], host->message_fd};
    oribi_process_poll(fds, 2, deadline_ms == INT64_MAX ? -1 : deadline_ms - now_ms);
}

void oribi_host_wake(struct oribi_host *host)
{
    on_signal(host, 0);
}

void oribi_host_forked(struct oribi_host *host, pid_t pid)
{
    if (pid < 0)
        (void)oribi_os_fail(); /* keeps the reason's words */
    mold_started(host, pid);
}

/* --- daemon --- */

static void point_at_null(int fd, int flags)
{
    int null_fd = open("/dev/null", flags | O_CLOEXEC);
    if (null_fd >= 0 && dup2(null_fd, fd) < 0)
        oribi_log(ORIBI_LOG_WARN, "a standard stream could not be closed");
    if (null_fd != fd)
        oribi_os_close(null_fd);
}

/* The streams are let go of at once, so that molds and workers never hold the terminal; why a start fails is told through the pipe. */
void oribi_host_daemon_enter(struct oribi_host *host)
{
    host->pid = getpid();
    oribi_os_close(host->daemon_fds[0]);
    host->daemon_fds[0] = -1;
    oribi_signals_install(on_signal, host, 1);
    (void)setsid(); /* fails only for a group leader, which a fresh child is not */
    point_at_null(STDIN_FILENO, O_RDONLY);
    if (is_file(host->ties.options->error_log))
        (void)dup2(STDERR_FILENO, STDOUT_FILENO); /* both are open: it cannot fail */
    else
        point_at_null(STDERR_FILENO, O_WRONLY), point_at_null(STDOUT_FILENO, O_WRONLY);
}

/* The daemon's first lines, a NUL and its exit code; nothing more when it died. */
int oribi_host_daemon_wait(struct oribi_host *host, pid_t pid)
{
    char text[DAEMON_TEXT_CAP];
    size_t len = 0;
    ssize_t n = 1;
    oribi_signals_uninstall(); /* INT and TERM end us as any command */
    oribi_os_close(host->daemon_fds[1]);
    if (pid < 0) {
        (void)oribi_os_fail();
        (void)dprintf(STDERR_FILENO, "%s: cannot fork: %s\n", host->ties.program, oribi_os_error_text());
        return 1;
    }
    while (n > 0 && len < sizeof(text) && !(len >= 2 && text[len - 2] == '\0')) {
        n = oribi_os_read(host->daemon_fds[0], text + len, sizeof(text) - len);
        len += n > 0 ? (size_t)n : 0;
    }
    size_t said = strnlen(text, len);
    for (size_t at = 0; at < said;) { /* line by line, as other mistakes are told */
        size_t end = at + strcspn(text + at, "\n");
        if (end > said)
            end = said;
        (void)dprintf(STDERR_FILENO, "%s: %.*s\n", host->ties.program, (int)(end - at), text + at);
        at = end + 1;
    }
    return said + 1 < len ? (unsigned char)text[said + 1] : 1;
}

/* --- life --- */

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
    (void)snprintf(title, sizeof(title), "%s supervisor, generation %u, %u workers%s", host->ties.program,
                   host->sup.generation, oribi_supervisor_serving(&host->sup), host->sup.stopping ? ", stopping" : "");
    return oribi__title_changed(title, host->title, sizeof(host->title), dst, cap);
}

static void no_descriptors(struct oribi_host *host)
{
    host->ties.message_fd = host->ties.life_fd = host->message_fd = host->life_write_fd = -1;
    host->signal_fds[0] = host->signal_fds[1] = host->daemon_fds[0] = host->daemon_fds[1] = -1;
    host->next_mold_fds[0] = host->next_mold_fds[1] = host->pid_file.fd = -1;
    for (uint32_t i = 0; i < ORIBI_MOLDS_MAX; i++)
        host->molds[i].fd = -1;
}

static void close_own(struct oribi_host *host, int keep_fd)
{
    const int fds[] = {host->message_fd,    host->life_write_fd,    host->signal_fds[0],    host->signal_fds[1],
                       host->daemon_fds[0], host->daemon_fds[1],    host->next_mold_fds[0], host->next_mold_fds[1]};
    for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
        if (fds[i] != keep_fd)
            oribi_os_close(fds[i]);
    for (uint32_t i = 0; i < ORIBI_MOLDS_MAX; i++)
        oribi_os_close(host->molds[i].fd);
    oribi_start_free(&host->start);
}

void oribi__host_forget(struct oribi_host *host, int keep_fd)
{
    close_own(host, keep_fd);
    oribi_pid_file_forget(&host->pid_file);
    if (host->ties.listeners != &host->no_listeners)
        oribi_mem_free(host); /* else the mold goes on using the empty list in it */
}

static int pipe_pair(int fds[2])
{
    return pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0 ? oribi_os_fail() : 0;
}

static int open_pipes(struct oribi_host *host)
{
    int fds[2];
    if (oribi_message_pair(fds) < 0)
        return ORIBI_ESYS;
    host->message_fd = fds[0];
    host->ties.message_fd = fds[1];
    if (pipe_pair(fds) < 0)
        return ORIBI_ESYS;
    host->ties.life_fd = fds[0];
    host->life_write_fd = fds[1];
    if (pipe_pair(host->signal_fds) < 0)
        return ORIBI_ESYS;
    if (host->daemonize && (pipe_pair(host->daemon_fds) < 0 || oribi_os_set_nonblock(host->daemon_fds[0], false) < 0))
        return ORIBI_ESYS;
    return 0;
}

static uint32_t workers_ceiling(const struct oribi_options *options)
{
    uint32_t spare = options->workers > WORKERS_SPARE ? options->workers : WORKERS_SPARE;
    return options->workers + spare < ORIBI_WORKERS_MAX ? options->workers + spare : ORIBI_WORKERS_MAX;
}

static void configure(struct oribi_host *host)
{
    const struct oribi_options *options = host->ties.options;
    struct oribi_supervisor_config config = {
        .workers = options->workers,
        .workers_max = workers_ceiling(options),
        .boot_timeout_ms = options->boot_timeout_ms,
        .shutdown_timeout_ms = options->shutdown_timeout_ms,
        .spawn_interval_ms = options->spawn_interval_ms,
        .err_respawn_interval_ms = options->err_respawn_interval_ms,
        .watch = options->call_timeout_ms > 0,
    };
    oribi_supervisor_init(&host->sup, &config, host->ties.board.slots, host->ties.board.count);
}

static int fail(struct oribi_host *host, int code, const char *what, char *error)
{
    if (what)
        (void)snprintf(error, ORIBI_OPTIONS_ERROR_CAP, "%s: %s", what, oribi_os_error_text());
    close_own(host, -1);
    oribi_os_close(host->ties.message_fd);
    oribi_os_close(host->ties.life_fd);
    oribi_pid_file_remove(&host->pid_file);
    if (host->ties.access_log)
        oribi_access_log_close(host->ties.access_log);
    oribi_mem_free(host);
    return code;
}

int oribi_host_create(const struct oribi_host_setup *setup, struct oribi_host **out, char *error)
{
    struct oribi_host *host = oribi_mem_alloc(1, sizeof(*host));
    const struct oribi_options *options = setup->options;
    uid_t uid;
    gid_t gid;
    no_descriptors(host);
    host->pid = getpid();
    host->daemonize = options->daemonize;
    host->ties.options = options;
    host->ties.listeners = setup->listeners ? setup->listeners : &host->no_listeners;
    host->ties.program = setup->program;
    if (oribi_start_record(&host->start, setup->argv, options->chdir != NULL) < 0)
        return fail(host, ORIBI_ESYS, "cannot learn how this process was started", error);
    int code = oribi_process_find_user(options->user, options->group, &uid, &gid, error);
    if (code == 0 && options->pid_file)
        code = oribi_pid_file_lock(&host->pid_file, options->pid_file, error);
    if (code == 0)
        code = oribi__open_logs(&host->ties, error);
    if (code < 0)
        return fail(host, code, NULL, error);
    if (open_pipes(host) < 0)
        return fail(host, ORIBI_ESYS, "cannot make pipes", error);
    if (oribi_scoreboard_create(&host->ties.board, 2 * workers_ceiling(options)) < 0) /* those who leave and those who come */
        return fail(host, ORIBI_ENOMEM, "cannot map the scoreboard", error);
    configure(host);
    hand_over_logs(host);
    oribi_signals_install(on_signal, host, 1);
    *out = host;
    return 0;
}

void oribi_host_destroy(struct oribi_host *host)
{
    oribi_signals_uninstall();
    release_starter(host, 1);
    if (host->ties.listeners->count > 0)
        oribi_listeners_close(host->ties.listeners, true);
    close_own(host, -1);
    oribi_os_close(host->ties.message_fd);
    oribi_os_close(host->ties.life_fd);
    oribi_pid_file_remove(&host->pid_file);
    if (host->ties.access_log)
        oribi_access_log_close(host->ties.access_log);
    oribi_scoreboard_destroy(&host->ties.board);
    oribi_mem_free(host);
}
