/* The agent's address, its clients and the line that they get. Reading order: the weight, the line, one client,
 * beginning and end. */
#include "observe/agent.h"

#include "observe/state.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/os/os.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* --- the weight --- */

uint32_t oribi__agent_weight_of(const struct oribi__history *history)
{
    double utilisation = 0;
    double waited = 0;
    double ran = 0;
    uint32_t count = 0;
    for (; history && count < ORIBI__AGENT_SAMPLES && count < history->count; count++) {
        const uint32_t *values = history->samples[(history->count - 1 - count) % ORIBI__HISTORY_SAMPLES].values;
        utilisation += values[ORIBI__HISTORY_UTILISATION] / 1000.0;
        if (values[ORIBI__HISTORY_CALLS] == 0 || values[ORIBI__HISTORY_CALL_P50] == ORIBI__HISTORY_NONE ||
            values[ORIBI__HISTORY_QUEUE_P50] == ORIBI__HISTORY_NONE)
            continue;
        waited += (double)values[ORIBI__HISTORY_QUEUE_P50] * values[ORIBI__HISTORY_CALLS];
        ran += (double)values[ORIBI__HISTORY_CALL_P50] * values[ORIBI__HISTORY_CALLS];
    }
    return count == 0 ? 100 : oribi__agent_weight(utilisation / count, waited > 0 ? waited / (waited + ran) : 0);
}

/* --- the line --- */

static size_t put_line(const struct oribi__observe *observe, char line[ORIBI__AGENT_LINE_CAP])
{
    const struct oribi_policy *policy = observe->view.policy;
    int n;
    if (policy->stopping || policy->stop_at)
        n = snprintf(line, ORIBI__AGENT_LINE_CAP, "drain\n");
    else if (!policy->up || oribi_policy_serving(policy) == 0 || oribi__frontends_missing(observe->view.frontends))
        n = snprintf(line, ORIBI__AGENT_LINE_CAP, "maint\n");
    else
        n = snprintf(line, ORIBI__AGENT_LINE_CAP, "up ready %u%%\n",
                     oribi__agent_weight_of(observe->state->history.history));
    return (size_t)n;
}

/* --- one client --- */

static void drop(struct oribi__agent_client *client)
{
    oribi_dispatcher_forget(client->dispatcher, &client->watcher);
    oribi_dispatcher_arm(client->dispatcher, &client->until, INT64_MAX);
    oribi_os_close(client->fd);
    client->fd = -1;
}

/* The bytes that a client sends are of no interest; they must be read all the same, since a close with unread bytes is
 * a reset, which can overtake the line. */
static void hear(void *owner, uint8_t ready)
{
    struct oribi__agent_client *client = owner;
    char rest[256];
    ssize_t n = oribi_os_read(client->fd, rest, sizeof(rest));
    if (n != ORIBI_AGAIN && n <= 0)
        drop(client);
}

static void give_up(void *owner)
{
    drop(owner);
}

/* A free place, or the oldest's. */
static struct oribi__agent_client *place_for_newcomer(struct oribi__agent *agent)
{
    struct oribi__agent_client *found = &agent->clients[0];
    for (uint32_t i = 0; i < ORIBI__AGENT_CLIENTS_MAX && found->fd >= 0; i++)
        if (agent->clients[i].fd < 0 || oribi_timer_at(&agent->clients[i].until) < oribi_timer_at(&found->until))
            found = &agent->clients[i];
    return found;
}

static void tell(struct oribi__observe *observe, struct oribi__agent_client *client, int fd)
{
    char line[ORIBI__AGENT_LINE_CAP];
    struct iovec all = {line, put_line(observe, line)};
    *client = (struct oribi__agent_client){
        .dispatcher = observe->dispatcher,
        .fd = fd,
        .watcher = {.ready = hear, .owner = client},
        .until = {.expired = give_up, .owner = client},
    };
    oribi_dispatcher_arm(observe->dispatcher, &client->until, oribi_clock_ms() + ORIBI__AGENT_MS);
    /* an empty socket takes so much, or its peer is gone */
    if (oribi_os_send_vec(fd, &all, 1) != (ssize_t)all.iov_len ||
        oribi_dispatcher_watch(observe->dispatcher, &client->watcher, fd, ORIBI_READ) < 0)
        drop(client);
    else
        (void)shutdown(fd, SHUT_WR); /* it may be gone */
}

static void newcomer(void *owner, uint8_t ready)
{
    struct oribi__observe *observe = owner;
    int fd;
    if (!oribi__side_accept(&observe->state->agent.side, &fd))
        return;
    struct oribi__agent_client *client = place_for_newcomer(&observe->state->agent);
    if (client->fd >= 0)
        drop(client);
    tell(observe, client, fd);
}

/* --- beginning and end --- */

/* Alike on purpose with status_listener.c: the clients of both have nothing else in common. */

void oribi__agent_init(struct oribi__agent *agent)
{
    oribi__side_init(&agent->side, "agent");
    for (uint32_t i = 0; i < ORIBI__AGENT_CLIENTS_MAX; i++)
        agent->clients[i].fd = -1;
}

int oribi__agent_open(struct oribi__observe *observe, char *error)
{
    if (!observe->view.context->options->agent)
        return 0;
    oribi__history_begin(observe);
    return oribi__side_open(observe, &observe->state->agent.side, observe->view.context->options->agent, newcomer,
                            error);
}

void oribi__agent_let_go(struct oribi__agent *agent)
{
    for (uint32_t i = 0; i < ORIBI__AGENT_CLIENTS_MAX; i++) {
        oribi_os_close(agent->clients[i].fd);
        agent->clients[i].fd = -1;
    }
    oribi__side_let_go(&agent->side);
}

void oribi__agent_close(struct oribi__observe *observe, bool unlink_path)
{
    for (uint32_t i = 0; i < ORIBI__AGENT_CLIENTS_MAX; i++)
        if (observe->state->agent.clients[i].fd >= 0)
            drop(&observe->state->agent.clients[i]);
    oribi__side_close(&observe->state->agent.side, unlink_path);
}
