/* Calls that run on without their client.
 *
 * A client may give up its request at any time, a worker that has begun the call ends it when it can. Until then the
 * channel stays in a list of the frontend, without a call, and counts as out; a stream of HTTP/2 that was reset counts
 * against the left_max of its connection as long. */

#include "frontend/frontend_private.h"

#include <stdatomic.h>
#include <sys/socket.h>

void oribi__channel_unlink_abandoned(struct oribi__channel *channel)
{
    *(channel->prev ? &channel->prev->next : &channel->frontend->left_first) = channel->next;
    if (channel->next)
        channel->next->prev = channel->prev;
    channel->prev = channel->next = NULL;
    oribi__channel_uncount(channel);
    if (channel->left_by)
        oribi__h2_left_ended(channel->left_by);
    channel->left_by = NULL;
}

/* The worker says whose a channel is until it has closed its end; one that has died, or has been replaced, says no
 * more. The pid is at least that of the worker that has written the owner, by the acquire of oribi__channel_owner();
 * that another follows on it may be seen later, at the next look. */
static bool runs_on(const struct oribi__channel *channel)
{
    const struct oribi_slot *slot = &channel->frontend->config->board.slots[channel->owner - 1u];
    return oribi__channel_owner(channel) == channel->owner &&
           atomic_load_explicit(&slot->pid, memory_order_relaxed) == channel->left_pid;
}

void oribi__channel_abandon(struct oribi__channel *channel)
{
    struct oribi__frontend *frontend = channel->frontend;
    /* local content is no worker, and has begun nothing that matters; a frontend that gives up asks no worker again */
    if (channel->local || frontend->gives_up) {
        oribi__channel_close(channel);
        return;
    }
    (void)shutdown(channel->watch.fd, SHUT_RDWR); /* fails only if the worker is gone */
    oribi__channel_uncount(channel);
    oribi__channel_count(channel); /* it may have been taken out of the hand-off queue since */
    if (!channel->owner) {         /* whoever takes it there sees that its client has gone, and does not begin */
        oribi__channel_close(channel);
        return;
    }
    channel->left_pid =
        atomic_load_explicit(&frontend->config->board.slots[channel->owner - 1u].pid, memory_order_relaxed);
    channel->call->channel = NULL;
    channel->call = NULL;
    channel->state = ORIBI__CHANNEL_ABANDONED;
    channel->next = frontend->left_first;
    if (frontend->left_first)
        frontend->left_first->prev = channel;
    frontend->left_first = channel;
    oribi_buf_deinit(&channel->unsent);
    oribi_buf_deinit(&channel->read);
    oribi_loop_interest(frontend->reactor.loop, &channel->watch, ORIBI_READ);
}

void oribi__channel_look(struct oribi__channel *channel)
{
    if (!runs_on(channel))
        oribi__channel_close(channel);
}

void oribi__channels_look(struct oribi__frontend *frontend)
{
    struct oribi__channel *next;
    for (struct oribi__channel *channel = frontend->left_first; channel; channel = next) {
        next = channel->next;
        oribi__channel_look(channel);
    }
}

void oribi__channels_forget(struct oribi__frontend *frontend, const struct oribi_h2 *h2)
{
    for (struct oribi__channel *channel = frontend->left_first; channel; channel = channel->next)
        if (channel->left_by && channel->left_by->h2 == h2)
            channel->left_by = NULL;
}

void oribi__channels_close_abandoned(struct oribi__frontend *frontend)
{
    while (frontend->left_first)
        oribi__channel_close(frontend->left_first);
}
