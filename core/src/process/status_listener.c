/* Connections of the status listener. What is answered is in status_answer.c. Reading order: opening, one client, the
 * turn. */
#include "process/status_listener.h"

#include "process/supervisor_private.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/log.h"
#include "oribi/config/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    BACKLOG = 64,
    ACCEPTS_MAX = ORIBI__STATUS_CLIENTS_MAX, /* of one turn */
    OWNER_ALONE = 0177,                      /* umask of a socket file for which none was asked */
};

void oribi__status_init(struct oribi__status_listener *status)
{
    status->fd = -1;
    for (uint32_t i = 0; i < ORIBI__STATUS_CLIENTS_MAX; i++)
        status->clients[i].fd = -1;
}

/* --- opening --- */

static int complain(const char *address, const char *what, char *error)
{
    (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "status: cannot listen on %.110s: %s", address, what);
    return ORIBI_ESYS;
}

static socklen_t fill_tcp(const struct oribi_address *address, struct sockaddr_storage *where)
{
    const char *host = strcmp(address->name, "localhost") == 0 ? "127.0.0.1" : address->name;
    struct sockaddr_in *v4 = (struct sockaddr_in *)where;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)where;
    if (inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(address->port);
        return sizeof(*v4);
    }
    (void)inet_pton(AF_INET6, host, &v6->sin6_addr); /* oribi_options_finish() has looked at it */
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(address->port);
    return sizeof(*v6);
}

static socklen_t fill_unix(const struct oribi_address *address, struct sockaddr_storage *where)
{
    struct sockaddr_un *un = (struct sockaddr_un *)where;
    un->sun_family = AF_UNIX;
    memcpy(un->sun_path, address->name, strlen(address->name)); /* at most ORIBI_ADDRESS_PATH_MAX */
    return sizeof(*un);
}

/* A socket file on which no server answers is stale. */
static int clear_path(const struct oribi_address *address, char *error)
{
    struct stat entry;
    if (lstat(address->name, &entry) < 0)
        return 0; /* bind() will say what is wrong, if anything */
    if (!S_ISSOCK(entry.st_mode))
        return complain(address->text, "there is a file that is not a socket", error);
    int answers = oribi_os_unix_answers(address->name);
    if (answers < 0)
        return complain(address->text, oribi_os_error_text(), error);
    if (answers)
        return complain(address->text, "address already in use", error);
    (void)unlink(address->name); /* bind() will say what is wrong, if anything */
    return 0;
}

static bool bind_with_umask(int fd, const struct sockaddr_storage *where, socklen_t n, mode_t mask)
{
    mode_t saved = umask(mask); /* of the whole process: no threads yet that create files */
    bool bound = bind(fd, (const struct sockaddr *)where, n) == 0;
    (void)umask(saved);
    return bound;
}

static int open_parsed(struct oribi__status_listener *status, const struct oribi_address *address, bool umask_given,
                       char *error)
{
    struct sockaddr_storage where = {0};
    struct stat entry = {0};
    int on = 1;
    bool is_unix = address->type == ORIBI_ADDRESS_UNIX;
    socklen_t n = is_unix ? fill_unix(address, &where) : fill_tcp(address, &where);
    int code = is_unix ? clear_path(address, error) : 0;
    if (code < 0)
        return code;
    int fd = oribi_os_lift(socket(where.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    bool failed = fd < 0 || (!is_unix && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0) ||
                  !bind_with_umask(fd, &where, n, umask_given ? (mode_t)address->umask : OWNER_ALONE) ||
                  listen(fd, BACKLOG) < 0 || (is_unix && lstat(address->name, &entry) < 0);
    if (failed) {
        (void)oribi_os_fail();
        code = complain(address->text, oribi_os_error_text(), error);
        oribi_os_close(fd);
        return code;
    }
    status->fd = fd;
    status->is_unix = is_unix;
    status->device = (uint64_t)entry.st_dev;
    status->inode = (uint64_t)entry.st_ino;
    return 0;
}

/* With the port that the kernel chose. */
static void log_opened(const struct oribi__status_listener *status, const struct oribi_address *address)
{
    struct sockaddr_storage bound = {0};
    socklen_t n = sizeof(bound);
    char text[ORIBI_ADDRESS_TEXT_CAP];
    (void)snprintf(text, sizeof(text), "%s", address->text);
    if (address->port == 0 && !status->is_unix && getsockname(status->fd, (struct sockaddr *)&bound, &n) == 0) {
        in_port_t port = bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port
                                                     : ((struct sockaddr_in *)&bound)->sin_port;
        (void)oribi_address_format_tcp(address->name, ntohs(port), text, sizeof(text));
    }
    oribi_log(ORIBI_LOG_INFO, "status on %s", text);
}

static int open_now(struct oribi_supervisor *supervisor, char *error)
{
    struct oribi_address address;
    const char *text = supervisor->ties.options->status;
    int code = oribi_address_parse(text, &address, error);
    if (code == 0)
        code = open_parsed(&supervisor->status, &address, strstr(text, "umask=") || strstr(text, "mode="), error);
    if (code == 0)
        log_opened(&supervisor->status, &address);
    return code;
}

int oribi__status_open(struct oribi_supervisor *supervisor, char *error)
{
    if (!supervisor->ties.options->status)
        return 0;
    oribi__history_begin(supervisor);
    if (supervisor->upgrade.predecessor_fd < 0)
        return open_now(supervisor, error);
    supervisor->status.retry_at = oribi_clock_ms() + ORIBI__STATUS_RETRY_MS;
    return 0;
}

/* The predecessor leaves the address when it hears that this server serves. */
static void retry(struct oribi_supervisor *supervisor)
{
    struct oribi__status_listener *status = &supervisor->status;
    char error[ORIBI_ERROR_TEXT_CAP];
    int64_t now_ms = oribi_clock_ms();
    if (now_ms < status->retry_at)
        return;
    status->retry_at = now_ms + ORIBI__STATUS_RETRY_MS;
    if (supervisor->upgrade.predecessor_fd >= 0)
        return;
    if (open_now(supervisor, error) == 0)
        status->retry_at = 0;
    else if (++status->tries == ORIBI__STATUS_TRIES_SAID)
        oribi_log(ORIBI_LOG_ERROR, "%s; trying again until it is free", error);
}

/* --- one client --- */

static void drop(struct oribi__status_client *client)
{
    oribi_os_close(client->fd);
    oribi_buf_deinit(&client->in);
    oribi_buf_deinit(&client->out);
    *client = (struct oribi__status_client){.fd = -1};
}

/* A reset after our close could overtake the answer, so the client closes first, if it does so in time. */
static void send_rest(struct oribi__status_client *client)
{
    struct iovec rest = {client->out.p + client->sent, client->out.len - client->sent};
    ssize_t n = oribi_os_send_vec(client->fd, &rest, 1);
    if (n < 0) {
        if (n != ORIBI_AGAIN)
            drop(client);
        return;
    }
    client->sent += (size_t)n;
    if (client->sent < client->out.len)
        return;
    oribi_buf_deinit(&client->out);
    client->sent = 0;
    client->ended = true;
    (void)shutdown(client->fd, SHUT_WR); /* it may be gone */
}

/* One read a turn. What follows the request is dropped. */
static void read_more(struct oribi__status_client *client)
{
    char rest[1024];
    char *room = client->ended ? rest : oribi_buf_reserve(&client->in, ORIBI__STATUS_HEAD_BYTES_MAX + 1);
    size_t used = client->ended ? 0 : client->in.len;
    size_t cap = client->ended ? sizeof(rest) : ORIBI__STATUS_HEAD_BYTES_MAX + 1 - used;
    ssize_t n = oribi_os_read(client->fd, room, cap);
    if (n == ORIBI_AGAIN)
        return;
    if (n <= 0) {
        drop(client);
        return;
    }
    if (client->ended)
        return;
    client->in.len += (size_t)n;
    client->unread = true;
}

/* `may_answer`: no answer was made in this turn. True when one is made. */
static bool serve(struct oribi_supervisor *supervisor, struct oribi__status_client *client, bool may_answer)
{
    bool answered = false;
    if (client->out.len == 0 && !client->unread)
        read_more(client);
    if (client->fd >= 0 && client->asked)
        client->unread = oribi__stacks_answered(supervisor, client->asked);
    if (client->fd >= 0 && client->unread && may_answer) {
        client->unread = false;
        supervisor->status.asked = client->asked;
        answered = oribi__status_answer(supervisor, client->in.p, client->in.len, &client->out);
        client->asked = answered ? 0 : supervisor->status.asked;
        if (answered)
            oribi_buf_deinit(&client->in);
    }
    if (client->fd >= 0 && client->out.len > 0)
        send_rest(client);
    if (client->fd >= 0 && oribi_clock_ms() >= client->until)
        drop(client);
    return answered;
}

/* --- the turn --- */

/* A free place, or that of the oldest client that has something left to do; NULL: all wait for the server. */
static struct oribi__status_client *place_for_newcomer(struct oribi__status_listener *status)
{
    struct oribi__status_client *oldest = NULL;
    for (uint32_t i = 0; i < ORIBI__STATUS_CLIENTS_MAX; i++) {
        struct oribi__status_client *client = &status->clients[i];
        if (client->fd < 0)
            return client;
        if (!client->unread && (!oldest || client->until < oldest->until))
            oldest = client;
    }
    return oldest;
}

void oribi__status_turn(struct oribi_supervisor *supervisor)
{
    struct oribi__status_listener *status = &supervisor->status;
    bool answered = false;
    if (status->retry_at)
        retry(supervisor);
    if (status->fd < 0)
        return;
    for (uint32_t i = 0; i < ORIBI__STATUS_CLIENTS_MAX; i++)
        if (status->clients[i].fd >= 0)
            answered = serve(supervisor, &status->clients[i], !answered) || answered;
    for (uint32_t i = 0; i < ACCEPTS_MAX; i++) {
        struct oribi__status_client *client = place_for_newcomer(status);
        int fd;
        if (!client || oribi_os_accept(status->fd, &fd, NULL, NULL) < 0)
            return;
        if (client->fd >= 0)
            drop(client);
        *client = (struct oribi__status_client){.fd = fd, .until = oribi_clock_ms() + ORIBI__STATUS_MS};
        answered = serve(supervisor, client, !answered) || answered;
    }
}

size_t oribi__status_fds(const struct oribi_supervisor *supervisor, int *fds, int *out_fds, size_t *out_count)
{
    const struct oribi__status_listener *status = &supervisor->status;
    size_t count = 0;
    *out_count = 0;
    fds[count++] = status->fd;
    for (uint32_t i = 0; i < ORIBI__STATUS_CLIENTS_MAX; i++) {
        const struct oribi__status_client *client = &status->clients[i];
        if (client->fd < 0)
            continue;
        if (client->out.len > 0)
            out_fds[(*out_count)++] = client->fd;
        else
            fds[count++] = client->fd;
    }
    return count;
}

int64_t oribi__status_deadline(const struct oribi_supervisor *supervisor)
{
    const struct oribi__status_listener *status = &supervisor->status;
    int64_t at = status->retry_at ? status->retry_at : INT64_MAX;
    for (uint32_t i = 0; i < ORIBI__STATUS_CLIENTS_MAX; i++) {
        const struct oribi__status_client *client = &status->clients[i];
        if (client->fd < 0)
            continue;
        if (client->unread)
            return 0;
        if (client->until < at)
            at = client->until;
    }
    return at;
}

void oribi__status_close(struct oribi_supervisor *supervisor, bool unlink_path)
{
    struct oribi__status_listener *status = &supervisor->status;
    struct oribi_address address;
    struct stat entry;
    char error[ORIBI_ERROR_TEXT_CAP];
    for (uint32_t i = 0; i < ORIBI__STATUS_CLIENTS_MAX; i++)
        if (status->clients[i].fd >= 0)
            drop(&status->clients[i]);
    if (status->fd >= 0 && status->is_unix && unlink_path &&
        oribi_address_parse(supervisor->ties.options->status, &address, error) == 0 &&
        lstat(address.name, &entry) == 0 && (uint64_t)entry.st_dev == status->device &&
        (uint64_t)entry.st_ino == status->inode)
        (void)unlink(address.name); /* gone is what it is to be */
    oribi_os_close(status->fd);
    status->fd = -1;
    status->retry_at = 0;
    oribi__history_end(supervisor);
    oribi__footprints_end(supervisor);
}
