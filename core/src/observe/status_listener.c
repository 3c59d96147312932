/* Connections of the status listener. What is answered is in status_answer.c. Reading order: one client, the
 * turn. */
#include "oribi/observe/status_listener.h"

#include "oribi/observe/view.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ACCEPTS_MAX = ORIBI__STATUS_CLIENTS_MAX /* of one turn */ };

void oribi__status_init(struct oribi__status_listener *status)
{
    oribi__side_init(&status->side, "status");
    for (uint32_t i = 0; i < ORIBI__STATUS_CLIENTS_MAX; i++)
        status->clients[i].fd = -1;
}

int oribi__status_open(struct oribi__observe *observe, char *error)
{
    if (!observe->view.context->options->status)
        return 0;
    oribi__history_begin(observe);
    return oribi__side_open(observe, &observe->status.side, observe->view.context->options->status, error);
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
static bool serve(struct oribi__observe *observe, struct oribi__status_client *client, bool may_answer)
{
    bool answered = false;
    if (client->out.len == 0 && !client->unread)
        read_more(client);
    if (client->fd >= 0 && client->asked)
        client->unread = oribi__stacks_answered(observe, client->asked);
    if (client->fd >= 0 && client->unread && may_answer) {
        client->unread = false;
        observe->status.asked = client->asked;
        answered = oribi__status_answer(observe, client->in.p, client->in.len, &client->out);
        client->asked = answered ? 0 : observe->status.asked;
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

void oribi__status_turn(struct oribi__observe *observe)
{
    struct oribi__status_listener *status = &observe->status;
    bool answered = false;
    oribi__side_turn(observe, &status->side);
    if (status->side.fd < 0)
        return;
    for (uint32_t i = 0; i < ORIBI__STATUS_CLIENTS_MAX; i++)
        if (status->clients[i].fd >= 0)
            answered = serve(observe, &status->clients[i], !answered) || answered;
    for (uint32_t i = 0; i < ACCEPTS_MAX; i++) {
        struct oribi__status_client *client = place_for_newcomer(status);
        int fd;
        if (!client || oribi_os_accept(status->side.fd, &fd, NULL, NULL) < 0)
            return;
        if (client->fd >= 0)
            drop(client);
        *client = (struct oribi__status_client){.fd = fd, .until = oribi_clock_ms() + ORIBI__STATUS_MS};
        answered = serve(observe, client, !answered) || answered;
    }
}

size_t oribi__status_fds(const struct oribi__observe *observe, int *fds, int *out_fds, size_t *out_count)
{
    const struct oribi__status_listener *status = &observe->status;
    size_t count = 0;
    *out_count = 0;
    fds[count++] = status->side.fd;
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

int64_t oribi__status_deadline(const struct oribi__observe *observe)
{
    const struct oribi__status_listener *status = &observe->status;
    int64_t at = oribi__side_deadline(&status->side);
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

void oribi__status_close(struct oribi__observe *observe, bool unlink_path)
{
    struct oribi__status_listener *status = &observe->status;
    for (uint32_t i = 0; i < ORIBI__STATUS_CLIENTS_MAX; i++)
        if (status->clients[i].fd >= 0)
            drop(&status->clients[i]);
    oribi__side_close(&status->side, unlink_path);
    oribi__history_end(observe);
    oribi__footprints_end(observe);
}
