/* Clients of the control socket; see control_socket.h. Reading order: opening, replies, commands, handlers. The
 * client's side is control_client.c. */
#include "supervisor/control_socket.h"

#include "supervisor/acme.h"
#include "supervisor/context.h"
#include "supervisor/frontends.h"
#include "supervisor/manager.h"
#include "supervisor/events.h"
#include "supervisor/upgrade.h"
#include "oribi/observe/observe.h"
#include "oribi/supervisor/control_client.h"
#include "oribi/supervisor/publish.h"
#include "oribi/worker/frontend_protocol.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/log.h"
#include "oribi/base/os/os.h"
#include "oribi/config/listen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    BACKLOG = 16,
    ANSWER_CAP = 512,
    REPLY_BYTES_MAX = 8 * 1024 * 1024, /* that a client has not read; all that the longest reply of a full server is */
    DEFERRED_LOOK_MS = 10,
    /* A worker in a long call sees only after the call that it is to leave. It accepts no connection before. */
    DEFERRED_MS_MAX = 1000,
};

/* FREE ─ accepted ─► ASKS ─ a line ─► WAITS ─ the command is done ─► LEAVES ─ all was read, or time is over ─► FREE */
enum state { FREE, ASKS, WAITS, LEAVES };

struct client {
    struct oribi__context *context;
    enum state state;
    enum oribi__command command; /* that it waits for */
    bool later;                  /* that was under way already when it asked */
    int fd;                      /* -1: no client */
    struct oribi_watcher watcher;
    struct oribi_timer until; /* closed then: ASKS, LEAVES */
    struct oribi_buf reply;   /* its rest, from `sent` on */
    size_t sent;
    size_t len;
    char line[ORIBI__CONTROL_LINE_CAP];
};

/* A good reply to a reload or an upgrade that is done, while old workers still accept connections. */
struct deferred {
    enum oribi__command command; /* RELOAD, UPGRADE; NONE: no reply is deferred */
    struct oribi_timer look;     /* at the old workers, again */
    int64_t until;               /* then the reply is sent whatever they do */
    char text[160];
};

struct oribi__control {
    int fd; /* listens; -1: none */
    struct oribi_watcher watcher;
    char path[ORIBI__CONTROL_PATH_CAP]; /* of its file; "": none */
    struct oribi_socket_file file;      /* so that a successor's under the same name stays */
    struct client clients[ORIBI__CONTROL_CLIENTS_MAX];
    struct deferred deferred;
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
    struct oribi__control *control = context->control;
    const char *path = control->path;
    struct sockaddr_un where;
    struct oribi_socket_file file;
    if (!path[0])
        return 0;
    if (!oribi__control_address(path, &where))
        return complain(path, "too long for a socket", error);
    int code = clear_path(path, replace, error);
    if (code < 0)
        return code;
    int fd = oribi_listen_unix(path, 0177, NULL, BACKLOG, &file);
    if (fd < 0)
        return complain(path, oribi_os_error_text(), error);
    oribi_dispatcher_forget(&context->dispatcher, &control->watcher);
    oribi_os_close(control->fd);
    control->fd = fd;
    if (oribi_dispatcher_watch(&context->dispatcher, &control->watcher, fd, ORIBI_READ) < 0)
        return complain(path, oribi_os_error_text(), error);
    control->file = file;
    return 0;
}

/* Servers that nobody gave a place serve without one as well: no /tmp, or none that can be written. */
static void begin_in_folder(struct oribi__context *context, bool is_successor)
{
    struct oribi__control *control = context->control;
    char error[ORIBI_ERROR_TEXT_CAP];
    const char *inherited = is_successor ? getenv("ORIBI_CONTROL_PATH") : NULL;
    int code = 0;
    if (inherited && *inherited)
        (void)snprintf(control->path, sizeof(control->path), "%s", inherited); /* the predecessor's own text */
    else
        code = oribi__control_place(ORIBI__CONTROL_ROOT, context->process.options, control->path);
    if (code < 0)
        (void)snprintf(error, sizeof(error), "control: %s", oribi_os_error_text());
    else
        code = oribi__control_open(context, is_successor, error);
    if (code < 0) {
        oribi_log(ORIBI_LOG_WARN, "%s; ctl cannot find this server (--control PATH names another place)", error);
        control->path[0] = '\0';
    }
}

static int begin(struct oribi__context *context, char *error)
{
    struct oribi__control *control = context->control;
    const char *path = context->process.options->control;
    bool is_successor = oribi__upgrade_is_successor(context);
    if (!path && context->kind->serves)
        begin_in_folder(context, is_successor);
    (void)unsetenv("ORIBI_CONTROL_PATH"); /* fails for names with `=` only */
    if (!path || strcmp(path, "none") == 0)
        return 0;
    if (strlen(path) >= sizeof(control->path))
        return complain(path, "too long for a socket", error);
    (void)snprintf(control->path, sizeof(control->path), "%s", path); /* fits */
    return oribi__control_open(context, is_successor, error);
}

const char *oribi__control_path(const struct oribi__context *context)
{
    return context->control->path;
}

/* --- answering --- */

static void drop(struct client *client)
{
    oribi_dispatcher_forget(&client->context->dispatcher, &client->watcher);
    oribi_dispatcher_arm(&client->context->dispatcher, &client->until, INT64_MAX);
    oribi__close(&client->fd);
    oribi_buf_deinit(&client->reply);
    client->state = FREE;
    client->command = ORIBI__COMMAND_NONE;
    client->sent = client->len = 0;
}

/* Sends what the socket takes. */
static void send_some(struct client *client)
{
    while (client->sent < client->reply.len) {
        ssize_t n = send(client->fd, client->reply.p + client->sent, client->reply.len - client->sent, MSG_NOSIGNAL);
        if (n < 0 && oribi_os_fail() == ORIBI_AGAIN)
            return;
        if (n <= 0)
            break;
        client->sent += (size_t)n;
    }
    drop(client);
}

/* Sends the reply, and closes the client when that has gone out. A rest that is too long is lost. */
static void reply(struct client *client)
{
    struct oribi_dispatcher *dispatcher = &client->context->dispatcher;
    client->state = LEAVES;
    client->command = ORIBI__COMMAND_NONE;
    send_some(client);
    if (client->state != LEAVES)
        return;
    if (client->reply.len - client->sent > REPLY_BYTES_MAX ||
        oribi_dispatcher_watch(dispatcher, &client->watcher, client->fd, ORIBI_WRITE) < 0)
        drop(client);
    else
        oribi_dispatcher_arm(dispatcher, &client->until, oribi_clock_ms() + ORIBI__CONTROL_REPLY_MS);
}

/* Without memory for it the client hears nothing: the server goes on. */
static void put_reply(struct client *client, struct oribi_slice text)
{
    if (oribi_buf_try_append(&client->reply, text.p, text.n) == 0)
        return;
    oribi_log(ORIBI_LOG_ERROR, "out of memory: a reply of ctl is not sent");
    client->reply.len = client->sent;
}

static void answer(struct client *client, bool done, const char *text)
{
    char line[ANSWER_CAP];
    int n = snprintf(line, sizeof(line) - 1, "%s%s%s", done ? "ok" : "error", *text ? " " : "", text);
    size_t len = n > 0 && (size_t)n < sizeof(line) - 1 ? (size_t)n : sizeof(line) - 2;
    line[len++] = '\n';
    put_reply(client, oribi_slice(line, len));
    reply(client);
}

static void answer_long(struct client *client, const struct oribi_buf *text)
{
    put_reply(client, ORIBI_SLICE("ok\n"));
    put_reply(client, oribi_slice(text->p, text->len));
    reply(client);
}

/* With the option acme, what there is of each of its certificates. */
static void answer_certificates(struct client *client, const char *text)
{
    struct oribi_buf out = {0};
    oribi_buf_print(&out, "%s\n", text);
    oribi__acme_table(client->context, &out);
    answer_long(client, &out);
    oribi_buf_deinit(&out);
}

static void answer_those(struct oribi__context *context, enum oribi__command command, bool first, bool later, int code,
                         const char *text)
{
    for (uint32_t i = 0; i < ORIBI__CONTROL_CLIENTS_MAX; i++) {
        struct client *client = &context->control->clients[i];
        if (client->state != WAITS || client->command != command || !(client->later ? later : first))
            continue;
        if (code == 0 && command == ORIBI__COMMAND_CERTIFICATES && oribi__acme_set(context)->count > 0)
            answer_certificates(client, text ? text : "");
        else
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
    for (uint32_t i = 0; i < ORIBI__CONTROL_CLIENTS_MAX; i++)
        if (context->control->clients[i].command == command)
            context->control->clients[i].later = false;
}

/* --- deferred replies --- */

/* A worker that is to drain accepts connections until it has seen so. After an upgrade all workers are old. */
static bool old_worker_accepts(const struct oribi__context *context)
{
    bool upgrade = context->control->deferred.command == ORIBI__COMMAND_UPGRADE;
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
    struct deferred *deferred = &context->control->deferred;
    enum oribi__command command = deferred->command;
    deferred->command = ORIBI__COMMAND_NONE;
    oribi_dispatcher_arm(&context->dispatcher, &deferred->look, INT64_MAX);
    if (command != ORIBI__COMMAND_NONE)
        oribi__control_answer(context, command, 0, deferred->text);
}

static void look_at_workers(void *owner)
{
    struct oribi__context *context = owner;
    struct deferred *deferred = &context->control->deferred;
    int64_t now_ms = oribi_clock_ms();
    if (now_ms < deferred->until && old_worker_accepts(context))
        oribi_dispatcher_arm(&context->dispatcher, &deferred->look, now_ms + DEFERRED_LOOK_MS);
    else
        answer_deferred(context);
}

/* The client may connect with the reply in hand, and is to find the new code. The workers of a manager accept no
 * connections of ours, so its replies are not put off. */
static void defer(struct oribi__context *context, enum oribi__command command, const char *text)
{
    struct deferred *deferred = &context->control->deferred;
    answer_deferred(context);
    deferred->command = command;
    (void)snprintf(deferred->text, sizeof(deferred->text), "%s", text); /* fits */
    deferred->until = oribi_clock_ms() + (context->kind->serves ? DEFERRED_MS_MAX : 0);
    oribi_dispatcher_arm(&context->dispatcher, &deferred->look, 0);
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
    if (context->control->deferred.command == ORIBI__COMMAND_RELOAD)
        answer_deferred(context);
    oribi__control_answer(context, ORIBI__COMMAND_RELOAD, 1, "the server stops");
    oribi__control_answer(context, ORIBI__COMMAND_CERTIFICATES, 1, "the server stops");
    if (context->control->deferred.command == ORIBI__COMMAND_NONE)
        oribi__control_answer(context, ORIBI__COMMAND_UPGRADE, 1, "the server stops");
}

void oribi__control_stopped(struct oribi__context *context)
{
    answer_deferred(context);
    oribi__control_answer(context, ORIBI__COMMAND_STOP, 0, "stopped");
}

/* --- commands --- */

static void answer_status(struct oribi__context *context, struct client *client, const char *line)
{
    struct oribi_buf out = {0};
    if (strcmp(line, "top") == 0)
        oribi__top_answer(context->observe, &out);
    else if (strcmp(line, "status json") == 0)
        oribi__status_json(context->observe, &out, false);
    else
        oribi__status_text(context->observe, &out);
    answer_long(client, &out);
    oribi_buf_deinit(&out);
}

/* The client gets the inbox itself, and publishes as often as it likes. */
static void answer_publisher(struct oribi__context *context, struct client *client)
{
    static const char ok[] = "ok\n";
    if (context->process.inbox_fd < 0) {
        answer(client, false, ORIBI__PUBLISH_NEEDS);
        return;
    }
    (void)oribi__frontend_message_send(client->fd, ORIBI_SLICE(ok), context->process.inbox_fd); /* it may be gone */
    drop(client);
}

/* The line says "stacks" or "stacks json". */
void oribi__control_stacks(struct oribi__context *context)
{
    for (uint32_t i = 0; i < ORIBI__CONTROL_CLIENTS_MAX; i++) {
        struct client *client = &context->control->clients[i];
        if (client->state == WAITS && client->command == ORIBI__COMMAND_STACKS)
            answer_long(client, oribi__stacks_answer_to(context->observe, client->line[6] != 0));
    }
}

/* The line says "sockets" or "sockets json". */
void oribi__control_sockets(struct oribi__context *context, const struct oribi_buf *text, const struct oribi_buf *json)
{
    for (uint32_t i = 0; i < ORIBI__CONTROL_CLIENTS_MAX; i++) {
        struct client *client = &context->control->clients[i];
        if (client->state == WAITS && client->command == ORIBI__COMMAND_SOCKETS)
            answer_long(client, client->line[7] != 0 ? json : text);
    }
}

/* "+2", "-1" are changes, "4" is the number itself. */
static void resize(struct oribi__context *context, struct client *client, const char *text)
{
    char *end;
    long number = strtol(text, &end, 10);
    uint32_t most = context->policy.config.workers_max;
    bool relative = *text == '+' || *text == '-';
    if (end == text || *end || number > ORIBI_WORKERS_MAX || number < -ORIBI_WORKERS_MAX) {
        answer(client, false, "workers takes +N, -N or N");
        return;
    }
    long target = relative ? (long)context->policy.target + number : number;
    if (target < 1 || target > (long)most) {
        char line[80];
        (void)snprintf(line, sizeof(line), "workers: from 1 to %u", most); /* fits */
        answer(client, false, line);
        return;
    }
    char line[64];
    (void)snprintf(line, sizeof(line), "%ld worker%s, were %u", target, oribi_log_plural((uint64_t)target),
                   context->policy.target); /* fits */
    int32_t delta = (int32_t)(target - (long)context->policy.target);
    answer(client, true, line);
    if (delta != 0)
        oribi__happened(context, &(struct oribi_policy_event){.type = ORIBI_EVENT_RESIZE, .delta = delta});
}

/* The hook of a first certificate comes before TLS, and must not fail then. */
static void renew_certificates(struct oribi__context *context, struct client *client)
{
    if (!oribi__frontends_any(context)) {
        answer(client, true, "no address speaks TLS: no certificate is read");
        return;
    }
    client->command = ORIBI__COMMAND_CERTIFICATES;
    client->later = oribi__frontends_renewing(context);
    if (!oribi__acme_look(context)) /* the files are read when they have been looked at */
        oribi__frontends_certificates(context);
}

static void order_certificates(struct oribi__context *context, struct client *client)
{
    char text[ANSWER_CAP];
    bool asks = oribi__acme_renew(context, text, sizeof(text));
    answer(client, asks, text);
}

/* The client waits for the end of `what`, which the event asks for. */
static void ask(struct oribi__context *context, struct client *client, enum oribi__command what, bool later,
                enum oribi_policy_event_type type)
{
    client->command = what;
    client->later = later;
    oribi__ask_policy(context, &(struct oribi_policy_event){.type = type});
}

static bool is_one_of(const char *line, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(line, *words) == 0)
            return true;
    return false;
}

static void command(struct oribi__context *context, struct client *client)
{
    static const char *const shows[] = {"status", "status json", "top", NULL};
    static const char *const stacks[] = {"stacks", "stacks json", NULL};
    static const char *const sockets[] = {"sockets", "sockets json", NULL};
    const char *line = client->line;
    if (is_one_of(line, shows)) {
        answer_status(context, client, line);
    } else if (is_one_of(line, stacks)) {
        client->command = ORIBI__COMMAND_STACKS;
        (void)oribi__stacks_ask(context->observe); /* one that is open is answered to all */
    } else if (strcmp(line, "publisher") == 0) {
        answer_publisher(context, client);
    } else if (is_one_of(line, sockets)) {
        client->command = ORIBI__COMMAND_SOCKETS;
        oribi__frontend_sockets_ask(context);
    } else if (context->policy.stopping && strncmp(line, "stop", 4) != 0) {
        answer(client, false, "the server stops");
    } else if (strcmp(line, "reload") == 0) {
        answer_deferred(context); /* the deferred reply is for earlier clients, not for this one */
        ask(context, client, ORIBI__COMMAND_RELOAD, context->policy.next_generation || context->policy.rolling,
            ORIBI_EVENT_RELOAD);
    } else if (strcmp(line, "upgrade") == 0) {
        ask(context, client, ORIBI__COMMAND_UPGRADE, context->policy.upgrade_pid != 0, ORIBI_EVENT_UPGRADE);
    } else if (strcmp(line, "stop") == 0 && oribi__upgrade_hand_stop(context, false)) {
        client->command = ORIBI__COMMAND_STOP; /* the predecessor tells this server to stop */
    } else if (strcmp(line, "stop") == 0) {
        ask(context, client, ORIBI__COMMAND_STOP, false, ORIBI_EVENT_STOP);
    } else if (strcmp(line, "stop now") == 0) {
        (void)oribi__upgrade_hand_stop(context, true);
        ask(context, client, ORIBI__COMMAND_STOP, false, ORIBI_EVENT_STOP_NOW);
    } else if (strncmp(line, "workers ", 8) == 0) {
        resize(context, client, line + 8);
    } else if (strcmp(line, "certificates") == 0) {
        renew_certificates(context, client);
    } else if (strcmp(line, "certificates renew") == 0) {
        order_certificates(context, client);
    } else if (strcmp(line, "reopen") == 0) {
        answer(client, true, "log files are reopened");
        oribi__ask_policy(context, &(struct oribi_policy_event){.type = ORIBI_EVENT_REOPEN});
    } else {
        answer(client, false,
               "commands: status, stacks, sockets (all three also with json), top, reload, upgrade, stop, stop now, "
               "workers "
               "+N|-N|N, certificates, certificates renew, reopen");
    }
}

/* --- handlers --- */

static void accepts(void *owner, uint8_t ready)
{
    static const char busy[] = "error not allowed, or too many at a time\n";
    struct oribi__context *context = owner;
    struct oribi_peer peer;
    int fd;
    if (oribi_os_accept(context->control->fd, &fd, NULL, NULL) < 0)
        return;
    bool allowed = oribi_os_peer(fd, &peer) == 0 && (peer.uid == 0 || peer.uid == geteuid());
    for (uint32_t i = 0; allowed && i < ORIBI__CONTROL_CLIENTS_MAX; i++) {
        struct client *client = &context->control->clients[i];
        if (client->state != FREE || oribi_dispatcher_watch(&context->dispatcher, &client->watcher, fd, ORIBI_READ) < 0)
            continue;
        client->fd = fd;
        client->state = ASKS;
        oribi_dispatcher_arm(&context->dispatcher, &client->until, oribi_clock_ms() + ORIBI__CONTROL_LINE_MS);
        return;
    }
    (void)send(fd, busy, sizeof(busy) - 1, MSG_NOSIGNAL); /* it may be gone */
    oribi_os_close(fd);
}

/* A client that waits for its answer may only leave. */
static void waiting_client_reads(struct client *client)
{
    char rest[64];
    ssize_t n = oribi_os_read(client->fd, rest, sizeof(rest));
    if (n <= 0 && n != ORIBI_AGAIN)
        drop(client);
}

static void asking_client_reads(struct client *client)
{
    struct oribi__context *context = client->context;
    if (oribi__signals_take(context) || oribi__deaths_take(context))
        return; /* the client may know of that already, and is heard behind it */
    ssize_t n = oribi_os_read(client->fd, client->line + client->len, sizeof(client->line) - 1 - client->len);
    if (n == ORIBI_AGAIN)
        return;
    if (n <= 0) {
        drop(client);
        return;
    }
    client->len += (size_t)n;
    client->line[client->len] = '\0';
    char *newline = strchr(client->line, '\n');
    if (newline) {
        *newline = '\0';
        client->state = WAITS;
        oribi_dispatcher_arm(&client->context->dispatcher, &client->until, INT64_MAX);
        command(context, client);
    } else if (client->len == sizeof(client->line) - 1) {
        answer(client, false, "too long");
    }
}

static void is_ready(void *owner, uint8_t ready)
{
    struct client *client = owner;
    if (client->state == LEAVES)
        send_some(client);
    else if (client->state == WAITS)
        waiting_client_reads(client);
    else
        asking_client_reads(client);
}

static void is_late(void *owner)
{
    drop(owner);
}

/* --- the module --- */

static void init(struct oribi__context *context)
{
    struct oribi__control *control = context->control;
    control->fd = -1;
    control->watcher = (struct oribi_watcher){.ready = accepts, .owner = context};
    control->deferred.look = (struct oribi_timer){.expired = look_at_workers, .owner = context};
    for (uint32_t i = 0; i < ORIBI__CONTROL_CLIENTS_MAX; i++) {
        struct client *client = &control->clients[i];
        client->context = context;
        client->fd = -1;
        client->watcher = (struct oribi_watcher){.ready = is_ready, .owner = client};
        client->until = (struct oribi_timer){.expired = is_late, .owner = client};
    }
}

void oribi__control_close(struct oribi__context *context, bool unlink_path)
{
    struct oribi__control *control = context->control;
    if (control->fd >= 0 && unlink_path)
        oribi_listen_unlink(control->path, &control->file);
    oribi_dispatcher_forget(&context->dispatcher, &control->watcher);
    oribi__close(&control->fd);
    oribi_dispatcher_arm(&context->dispatcher, &control->deferred.look, INT64_MAX);
    for (uint32_t i = 0; i < ORIBI__CONTROL_CLIENTS_MAX; i++)
        drop(&control->clients[i]);
}

static void let_go(struct oribi__context *context)
{
    oribi__close(&context->control->fd);
    for (uint32_t i = 0; i < ORIBI__CONTROL_CLIENTS_MAX; i++)
        oribi__close(&context->control->clients[i].fd);
}

static void forget(struct oribi__context *context)
{
    for (uint32_t i = 0; i < ORIBI__CONTROL_CLIENTS_MAX; i++)
        oribi_buf_deinit(&context->control->clients[i].reply);
}

static void end(struct oribi__context *context)
{
    oribi__control_close(context, true);
}

const struct oribi__module oribi__control_module = {
    .bytes = sizeof(struct oribi__control),
    .init = init,
    .begin = begin,
    .let_go = let_go,
    .forget = forget,
    .end = end,
};
