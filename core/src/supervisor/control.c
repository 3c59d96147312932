/* The control socket: a few clients at a time, a line each, a reply each. A command that takes time gets its reply when
 * it is done, and a good one to a reload or an upgrade is deferred until no old worker accepts connections any more.
 * Reading order: opening, replies, commands, turns. The client's side is control_client.c. */
#include "oribi/supervisor/control.h"
#include "oribi/supervisor/control_client.h"
#include "supervisor/supervisor_private.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/log.h"
#include "oribi/config/listen.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    PATIENCE_MS = 5000,
    BACKLOG = 16,
    ANSWER_CAP = 512,
    DEFERRED_LOOK_MS = 10,
    /* A worker in a long call sees only after the call that it is to leave. It accepts no connection before. */
    DEFERRED_MS_MAX = 1000,
};

/* --- opening --- */

static int complain(const char *path, const char *what, char *error)
{
    (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "control: %.110s: %s", path, what);
    return ORIBI_ESYS;
}

/* A socket file behind which no server answers is stale; `replace` takes over from a predecessor that does answer. */
static int clear_path(const char *path, bool replace, char *error)
{
    const char *why = NULL;
    int code = oribi_listen_clear(path, replace, &why);
    return code < 0 ? complain(path, code == ORIBI_ELIMIT ? "belongs to a running server" : why, error) : 0;
}

int oribi__control_open(struct oribi__context *context, bool replace, char *error)
{
    struct oribi__control *control = &context->control;
    const char *path = control->path;
    struct sockaddr_un where;
    struct oribi_socket_file file;
    if (!oribi__control_address(path, &where))
        return complain(path, "too long for a socket", error);
    int code = clear_path(path, replace, error);
    if (code < 0)
        return code;
    int fd = oribi_listen_unix(path, 0177, BACKLOG, &file);
    if (fd < 0)
        return complain(path, oribi_os_error_text(), error);
    oribi_os_close(control->fd);
    control->fd = fd;
    control->file = file;
    return 0;
}

/* Servers that nobody gave a place serve without one as well: no /tmp, or none that can be written. */
static void begin_in_folder(struct oribi__context *context, bool is_successor)
{
    struct oribi__control *control = &context->control;
    char error[ORIBI_ERROR_TEXT_CAP];
    const char *inherited = is_successor ? getenv("ORIBI_CONTROL_PATH") : NULL;
    int code = 0;
    if (inherited && *inherited)
        (void)snprintf(control->path, sizeof(control->path), "%s", inherited); /* the predecessor's own text */
    else
        code = oribi__control_place(ORIBI__CONTROL_ROOT, context->process.options, control->path);
    if (code < 0)
        (void)snprintf(error, sizeof(error), "%s", oribi_os_error_text());
    else
        code = oribi__control_open(context, is_successor, error);
    if (code < 0) {
        oribi_log(ORIBI_LOG_DEBUG, "ctl cannot find this server by its folder: %s", error);
        control->path[0] = '\0';
    }
}

int oribi__control_begin(struct oribi__context *context, char *error)
{
    struct oribi__control *control = &context->control;
    const char *path = context->process.options->control;
    bool is_successor = context->upgrade.predecessor_fd >= 0;
    if (!path && !context->process.prefork)
        begin_in_folder(context, is_successor);
    (void)unsetenv("ORIBI_CONTROL_PATH"); /* fails for names with `=` only */
    if (!path || strcmp(path, "none") == 0)
        return 0;
    if (strlen(path) >= sizeof(control->path))
        return complain(path, "too long for a socket", error);
    (void)snprintf(control->path, sizeof(control->path), "%s", path); /* fits */
    return oribi__control_open(context, is_successor, error);
}

void oribi__control_close(struct oribi__context *context, bool unlink_path)
{
    struct oribi__control *control = &context->control;
    if (control->fd >= 0 && unlink_path)
        oribi_listen_unlink(control->path, &control->file);
    oribi_os_close(control->fd);
    control->fd = -1;
    for (uint32_t i = 0; i < ORIBI__CLIENTS_MAX; i++) {
        oribi_os_close(control->clients[i].fd);
        control->clients[i].fd = -1;
    }
}

/* --- answering --- */

static void drop(struct oribi__client *client)
{
    oribi_os_close(client->fd);
    *client = (struct oribi__client){.fd = -1};
}

/* The answer fits into the socket's buffer, or the client reads while we write; one that does neither loses the
 * rest. */
static void send_all(int fd, const char *p, size_t n)
{
    int64_t end = oribi_clock_ms() + 100;
    while (n > 0 && oribi_clock_ms() < end) {
        ssize_t sent = send(fd, p, n, MSG_NOSIGNAL);
        if (sent < 0 && oribi_os_fail() != ORIBI_AGAIN)
            return;
        p += sent > 0 ? sent : 0;
        n -= sent > 0 ? (size_t)sent : 0;
    }
}

static void answer(struct oribi__client *client, bool done, const char *text)
{
    char line[ANSWER_CAP];
    int n = snprintf(line, sizeof(line) - 1, "%s%s%s", done ? "ok" : "error", *text ? " " : "", text);
    size_t len = n > 0 && (size_t)n < sizeof(line) - 1 ? (size_t)n : sizeof(line) - 2;
    line[len++] = '\n';
    send_all(client->fd, line, len);
    drop(client);
}

static void answer_those(struct oribi__context *context, enum oribi__command command, bool first, bool later, int code,
                         const char *text)
{
    for (uint32_t i = 0; i < ORIBI__CLIENTS_MAX; i++) {
        struct oribi__client *client = &context->control.clients[i];
        if (client->fd >= 0 && client->command == command && (client->later ? later : first))
            answer(client, code == 0, text ? text : "");
    }
}

void oribi__control_answer(struct oribi__context *context, enum oribi__command command, int code, const char *text)
{
    answer_those(context, command, true, true, code, text);
}

/* Replies to the clients that asked before the command began; the next one is for the others. */
void oribi__control_answer_first(struct oribi__context *context, enum oribi__command command, int code,
                                 const char *text)
{
    answer_those(context, command, true, false, code, text);
    for (uint32_t i = 0; i < ORIBI__CLIENTS_MAX; i++)
        if (context->control.clients[i].command == command)
            context->control.clients[i].later = false;
}

/* --- deferred replies --- */

/* A worker that is to drain accepts connections until it has seen so. After an upgrade all workers are old. */
static bool old_worker_accepts(const struct oribi__context *context)
{
    bool upgrade = context->control.deferred.command == ORIBI__COMMAND_UPGRADE;
    for (uint32_t i = 0; i < context->policy.slot_count; i++) {
        uint32_t state = atomic_load_explicit(&context->process.board.slots[i].state, memory_order_acquire);
        enum oribi_worker_record_state record = context->policy.records[i].state;
        bool old = record == ORIBI_RECORD_STOPPING || (record == ORIBI_RECORD_SERVING && upgrade);
        if (old && (state == ORIBI_SLOT_IDLE || state == ORIBI_SLOT_BUSY))
            return true;
    }
    return false;
}

static void answer_deferred(struct oribi__context *context)
{
    struct oribi__deferred_reply *deferred = &context->control.deferred;
    enum oribi__command command = deferred->command;
    deferred->command = ORIBI__COMMAND_NONE;
    if (command != ORIBI__COMMAND_NONE)
        oribi__control_answer(context, command, 0, deferred->text);
}

/* The client may connect with the reply in hand, and is to find the new code. The workers of a manager accept no
 * connections of ours, so its replies are not put off. */
static void defer(struct oribi__context *context, enum oribi__command command, const char *text)
{
    struct oribi__deferred_reply *deferred = &context->control.deferred;
    answer_deferred(context);
    deferred->command = command;
    (void)snprintf(deferred->text, sizeof(deferred->text), "%s", text); /* fits */
    deferred->look_at = oribi_clock_ms();                               /* the first look follows in this turn */
    deferred->until = deferred->look_at + (context->process.prefork ? 0 : DEFERRED_MS_MAX);
}

void oribi__control_deferred_turn(struct oribi__context *context)
{
    struct oribi__deferred_reply *deferred = &context->control.deferred;
    int64_t now_ms = oribi_clock_ms();
    if (deferred->command == ORIBI__COMMAND_NONE || now_ms < deferred->look_at)
        return;
    if (now_ms < deferred->until && old_worker_accepts(context))
        deferred->look_at = now_ms + DEFERRED_LOOK_MS;
    else
        answer_deferred(context);
}

/* Another reload may have begun already: a client that asked during this one waits for that. */
void oribi__control_reloaded(struct oribi__context *context, int code, const char *text)
{
    answer_deferred(context);
    if (context->policy.next_generation)
        oribi__control_answer_first(context, ORIBI__COMMAND_RELOAD, code, text);
    else if (code)
        oribi__control_answer(context, ORIBI__COMMAND_RELOAD, code, text);
    else
        defer(context, ORIBI__COMMAND_RELOAD, text);
}

void oribi__control_upgraded(struct oribi__context *context, int code, const char *text)
{
    if (code)
        oribi__control_answer(context, ORIBI__COMMAND_UPGRADE, code, text);
    else
        defer(context, ORIBI__COMMAND_UPGRADE, text);
}

/* The reply is for clients that have asked too soon or too late, not for one that waits for an upgrade under way. */
void oribi__control_upgrade_refused(struct oribi__context *context, const char *text)
{
    answer_those(context, ORIBI__COMMAND_UPGRADE, !context->policy.upgrade_pid, true, 1, text);
}

void oribi__control_stopping(struct oribi__context *context)
{
    if (context->control.deferred.command == ORIBI__COMMAND_RELOAD)
        answer_deferred(context);
    oribi__control_answer(context, ORIBI__COMMAND_RELOAD, 1, "the server stops");
    oribi__control_answer(context, ORIBI__COMMAND_CERTIFICATES, 1, "the server stops");
    if (context->control.deferred.command == ORIBI__COMMAND_NONE)
        oribi__control_answer(context, ORIBI__COMMAND_UPGRADE, 1, "the server stops");
}

void oribi__control_stopped(struct oribi__context *context)
{
    answer_deferred(context);
    oribi__control_answer(context, ORIBI__COMMAND_STOP, 0, "stopped");
}

/* --- commands --- */

static void answer_long(struct oribi__client *client, const struct oribi_buf *text)
{
    send_all(client->fd, "ok\n", 3);
    send_all(client->fd, text->p, text->len);
    drop(client);
}

static void answer_status(struct oribi__context *context, struct oribi__client *client, const char *line)
{
    struct oribi_buf out = {0};
    if (strcmp(line, "top") == 0)
        oribi__top_answer(&context->observe, &out);
    else if (strcmp(line, "status json") == 0)
        oribi__status_json(&context->observe, &out, false);
    else
        oribi__status_text(&context->observe, &out);
    answer_long(client, &out);
    oribi_buf_deinit(&out);
}

/* The line says "stacks" or "stacks json". */
void oribi__control_stacks(struct oribi__context *context)
{
    for (uint32_t i = 0; i < ORIBI__CLIENTS_MAX; i++) {
        struct oribi__client *client = &context->control.clients[i];
        if (client->fd >= 0 && client->command == ORIBI__COMMAND_STACKS)
            answer_long(client, oribi__stacks_answer_to(&context->observe, client->line[6] != 0));
    }
}

/* "+2", "-1" are changes, "4" is the number itself. */
static bool resize(struct oribi__context *context, struct oribi__client *client, const char *text,
                   struct oribi_policy_event *event)
{
    char *end;
    long number = strtol(text, &end, 10);
    uint32_t most = context->policy.config.workers_max;
    bool relative = *text == '+' || *text == '-';
    if (end == text || *end || number > ORIBI_WORKERS_MAX || number < -ORIBI_WORKERS_MAX) {
        answer(client, false, "workers takes +N, -N or N");
        return false;
    }
    long target = relative ? (long)context->policy.target + number : number;
    if (target < 1 || target > (long)most) {
        char line[80];
        (void)snprintf(line, sizeof(line), "workers: from 1 to %u", most); /* fits */
        answer(client, false, line);
        return false;
    }
    char line[64];
    (void)snprintf(line, sizeof(line), "%ld worker%s, were %u", target, oribi_log_plural((uint64_t)target),
                   context->policy.target); /* fits */
    *event = (struct oribi_policy_event){.type = ORIBI_EVENT_RESIZE,
                                         .delta = (int32_t)(target - (long)context->policy.target)};
    answer(client, true, line);
    return event->delta != 0;
}

/* The hook of a first certificate comes before TLS, and must not fail then. False: no event follows. */
static bool renew_certificates(struct oribi__context *context, struct oribi__client *client)
{
    if (context->frontends.set.count == 0) {
        answer(client, true, "no address speaks TLS: no certificate is read");
        return false;
    }
    client->command = ORIBI__COMMAND_CERTIFICATES;
    client->later = context->frontends.renewing != ORIBI__RENEWAL_NONE;
    oribi__frontends_certificates(context);
    return false;
}

static bool set_command(struct oribi__client *client, enum oribi__command what, bool later,
                        enum oribi_policy_event_type type, struct oribi_policy_event *event)
{
    client->command = what;
    client->later = later;
    *event = (struct oribi_policy_event){.type = type};
    return true;
}

static bool command(struct oribi__context *context, struct oribi__client *client, struct oribi_policy_event *event)
{
    const char *line = client->line;
    if (strcmp(line, "status") == 0 || strcmp(line, "status json") == 0 || strcmp(line, "top") == 0) {
        answer_status(context, client, line);
        return false;
    }
    if (strcmp(line, "stacks") == 0 || strcmp(line, "stacks json") == 0) {
        client->command = ORIBI__COMMAND_STACKS;
        (void)oribi__stacks_ask(&context->observe); /* one that is open is answered to all */
        return false;
    }
    if (context->policy.stopping && strncmp(line, "stop", 4) != 0) {
        answer(client, false, "the server stops");
        return false;
    }
    if (strcmp(line, "reload") == 0) {
        answer_deferred(context); /* the deferred reply is for earlier clients, not for this one */
        return set_command(client, ORIBI__COMMAND_RELOAD, context->policy.next_generation || context->policy.rolling,
                           ORIBI_EVENT_RELOAD, event);
    }
    if (strcmp(line, "upgrade") == 0)
        return set_command(client, ORIBI__COMMAND_UPGRADE, context->policy.upgrade_pid != 0, ORIBI_EVENT_UPGRADE,
                           event);
    if (strcmp(line, "stop") == 0 && oribi__upgrade_hand_stop(context, false)) {
        client->command = ORIBI__COMMAND_STOP; /* the predecessor tells this server to stop */
        return false;
    }
    if (strcmp(line, "stop") == 0)
        return set_command(client, ORIBI__COMMAND_STOP, false, ORIBI_EVENT_STOP, event);
    if (strcmp(line, "stop now") == 0) {
        (void)oribi__upgrade_hand_stop(context, true);
        return set_command(client, ORIBI__COMMAND_STOP, false, ORIBI_EVENT_STOP_NOW, event);
    }
    if (strncmp(line, "workers ", 8) == 0)
        return resize(context, client, line + 8, event);
    if (strcmp(line, "certificates") == 0)
        return renew_certificates(context, client);
    if (strcmp(line, "reopen") == 0) {
        *event = (struct oribi_policy_event){.type = ORIBI_EVENT_REOPEN};
        answer(client, true, "log files are reopened");
        return true;
    }
    answer(client, false,
           "commands: status, stacks (both also with json), top, reload, upgrade, stop, stop now, workers +N|-N|N, "
           "certificates, reopen");
    return false;
}

/* --- turns --- */

static void accept_one(struct oribi__context *context, int fd)
{
    struct oribi_peer peer;
    bool allowed = oribi_os_peer(fd, &peer) == 0 && (peer.uid == 0 || peer.uid == geteuid());
    for (uint32_t i = 0; allowed && i < ORIBI__CLIENTS_MAX; i++) {
        struct oribi__client *client = &context->control.clients[i];
        if (client->fd >= 0)
            continue;
        *client = (struct oribi__client){.fd = fd, .until = oribi_clock_ms() + PATIENCE_MS};
        return;
    }
    static const char busy[] = "error not allowed, or too many at a time\n";
    (void)send(fd, busy, sizeof(busy) - 1, MSG_NOSIGNAL); /* it may be gone */
    oribi_os_close(fd);
}

/* True when a whole line is there. A client that waits for its answer may only leave. */
static bool read_line(struct oribi__client *client)
{
    char rest[64];
    bool waits = client->command != ORIBI__COMMAND_NONE;
    char *dst = waits ? rest : client->line + client->len;
    size_t room = waits ? sizeof(rest) : sizeof(client->line) - 1 - client->len;
    ssize_t n = oribi_os_read(client->fd, dst, room);
    if (n == ORIBI_AGAIN || (n > 0 && waits))
        return false;
    if (n <= 0) {
        drop(client);
        return false;
    }
    client->len += (size_t)n;
    client->line[client->len] = '\0';
    char *newline = strchr(client->line, '\n');
    if (newline) {
        *newline = '\0';
        return true;
    }
    if (client->len == sizeof(client->line) - 1)
        answer(client, false, "too long");
    return false;
}

bool oribi__control_turn(struct oribi__context *context, struct oribi_policy_event *event)
{
    struct oribi__control *control = &context->control;
    int fd;
    while (control->fd >= 0 && oribi_os_accept(control->fd, &fd, NULL, NULL) == 0)
        accept_one(context, fd);
    for (uint32_t i = 0; i < ORIBI__CLIENTS_MAX; i++) {
        struct oribi__client *client = &control->clients[i];
        if (client->fd < 0)
            continue;
        if (read_line(client) && command(context, client, event))
            return true;
        if (client->fd >= 0 && client->command == ORIBI__COMMAND_NONE && oribi_clock_ms() >= client->until)
            drop(client);
    }
    return false;
}

size_t oribi__control_fds(const struct oribi__context *context, int *fds)
{
    size_t count = 0;
    fds[count++] = context->control.fd;
    for (uint32_t i = 0; i < ORIBI__CLIENTS_MAX; i++)
        fds[count++] = context->control.clients[i].fd;
    return count;
}

int64_t oribi__control_deadline(const struct oribi__context *context)
{
    const struct oribi__deferred_reply *deferred = &context->control.deferred;
    int64_t at = deferred->command != ORIBI__COMMAND_NONE ? deferred->look_at : INT64_MAX;
    for (uint32_t i = 0; i < ORIBI__CLIENTS_MAX; i++) {
        const struct oribi__client *client = &context->control.clients[i];
        if (client->fd >= 0 && client->command == ORIBI__COMMAND_NONE && client->until < at)
            at = client->until;
    }
    return at;
}
