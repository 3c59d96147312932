/* Connections of the status listener. What is answered is in status_answer.c. Reading order: client_ready, newcomer. */
#include "observe/status_listener.h"

#include "observe/state.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/os/os.h"

#include <sys/socket.h>

/* --- one client --- */

static void drop(struct oribi__status_client *client)
{
    oribi_dispatcher_forget(client->observe->dispatcher, &client->watcher);
    oribi_dispatcher_arm(client->observe->dispatcher, &client->until, INT64_MAX);
    oribi_os_close(client->fd);
    oribi_buf_deinit(&client->in);
    oribi_buf_deinit(&client->out);
    *client = (struct oribi__status_client){.fd = -1};
}

/* Waits for room in the socket while bytes are left, else for what the client does. */
static void watch(struct oribi__status_client *client)
{
    uint8_t interest = client->out.len > 0 ? ORIBI_WRITE : ORIBI_READ;
    if (oribi_dispatcher_watch(client->observe->dispatcher, &client->watcher, client->fd, interest) < 0)
        drop(client);
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

/* Makes the answer, unless it is too early for that. */
static void try_answer(struct oribi__status_client *client)
{
    if (!oribi__status_answer(client->observe, client->in.p, client->in.len, &client->asked, &client->wanted,
                              &client->out))
        return;
    client->asked = 0;
    oribi_buf_deinit(&client->in);
    if (client->out.len > 0)
        send_rest(client);
    else
        drop(client); /* memory is out */
}

/* One read. The bytes after the request are dropped. */
static void read_more(struct oribi__status_client *client)
{
    char rest[1024];
    bool is_whole = client->ended || client->asked;
    size_t most = client->wanted ? client->wanted : ORIBI__STATUS_HEAD_BYTES_MAX + 1;
    char *room = is_whole ? rest : oribi_buf_try_reserve(&client->in, most - client->in.len);
    if (!room) {
        drop(client);
        return;
    }
    size_t cap = is_whole ? sizeof(rest) : most - client->in.len;
    ssize_t n = oribi_os_read(client->fd, room, cap);
    if (n == ORIBI_AGAIN)
        return;
    if (n <= 0) {
        drop(client);
    } else if (!is_whole) {
        client->in.len += (size_t)n;
        try_answer(client);
    }
}

static void client_ready(void *owner, uint8_t ready)
{
    struct oribi__status_client *client = owner;
    if (client->out.len > 0)
        send_rest(client);
    else
        read_more(client);
    if (client->fd >= 0)
        watch(client);
}

static void give_up(void *owner)
{
    drop(owner);
}

void oribi__status_stacks(struct oribi__observe *observe)
{
    for (uint32_t i = 0; i < ORIBI__STATUS_CLIENTS_MAX; i++) {
        struct oribi__status_client *client = &observe->state->status.clients[i];
        if (client->fd < 0 || !client->asked)
            continue;
        try_answer(client);
        if (client->fd >= 0)
            watch(client);
    }
}

/* --- newcomers --- */

/* A free place, or that of the oldest client, which is dropped. NULL: the oldest client's request has come meanwhile
 * and was answered, so that the place is left to it until the next call. */
static struct oribi__status_client *place_for_newcomer(struct oribi__status_listener *status)
{
    struct oribi__status_client *oldest = &status->clients[0];
    for (uint32_t i = 0; i < ORIBI__STATUS_CLIENTS_MAX; i++) {
        struct oribi__status_client *client = &status->clients[i];
        if (client->fd < 0)
            return client;
        if (oribi_timer_at(&client->until) < oribi_timer_at(&oldest->until))
            oldest = client;
    }
    if (!oldest->ended && !oldest->asked && oldest->out.len == 0) {
        client_ready(oldest, ORIBI_READ);
        if (oldest->fd >= 0 && (oldest->ended || oldest->asked || oldest->out.len > 0))
            return NULL;
    }
    if (oldest->fd >= 0)
        drop(oldest);
    return oldest;
}

/* Its request is mostly there already. */
static void newcomer(void *owner, uint8_t ready)
{
    struct oribi__observe *observe = owner;
    int fd;
    struct oribi__status_client *client = place_for_newcomer(&observe->state->status);
    if (!client || !oribi__side_accept(&observe->state->status.side, &fd))
        return;
    *client = (struct oribi__status_client){
        .observe = observe,
        .fd = fd,
        .watcher = {.ready = client_ready, .owner = client},
        .until = {.expired = give_up, .owner = client},
    };
    oribi_dispatcher_arm(observe->dispatcher, &client->until, oribi_clock_ms() + ORIBI__STATUS_MS);
    client_ready(client, ORIBI_READ);
}

/* --- beginning and end --- */

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
    return oribi__side_open(observe, &observe->state->status.side, observe->view.context->options->status, newcomer,
                            error);
}

void oribi__status_let_go(struct oribi__status_listener *status)
{
    for (uint32_t i = 0; i < ORIBI__STATUS_CLIENTS_MAX; i++) {
        oribi_os_close(status->clients[i].fd);
        status->clients[i].fd = -1;
    }
    oribi__side_let_go(&status->side);
}

void oribi__status_close(struct oribi__observe *observe, bool unlink_path)
{
    for (uint32_t i = 0; i < ORIBI__STATUS_CLIENTS_MAX; i++)
        if (observe->state->status.clients[i].fd >= 0)
            drop(&observe->state->status.clients[i]);
    oribi__side_close(&observe->state->status.side, unlink_path);
}
