/* Channels: their numbers, lists and ends. One call at a time goes out on each: channel_request.c sends its request,
 * channel_answer.c reads its answer.
 *
 * A client may give up its request at any time, a worker that has begun the call ends it when it can. Until then the
 * channel stays in a list of abandoned ones, without a call, and counts as out; a stream of HTTP/2 that was reset also
 * counts against the left_max of its connection. */
#include "frontend/channel.h"
#include "frontend/channel_answer.h"
#include "frontend/channel_private.h"
#include "frontend/dispatch.h"
#include "frontend/frontend.h"
#include "frontend/local.h"
#include "frontend/streams_h2.h"
#include "frontend/upstream_request.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>

enum { SEND_BUFFER_BYTES = 512 * 1024 };

static void on_ready(void *self, struct oribi_watch *watch);
static void unlink_abandoned(struct oribi__channel *channel);
static void close_abandoned(struct oribi__frontend *frontend);

/* --- numbers --- */

int oribi__channels_init(struct oribi__frontend *frontend)
{
    const struct oribi_frontend_config *config = frontend->config;
    struct oribi__channels *channels = frontend->channels;
    channels->free_numbers = oribi_mem_try_alloc(config->channel_count, sizeof(*channels->free_numbers));
    channels->scratch = oribi_mem_try_alloc(1, ORIBI__CHANNEL_SCRATCH_BYTES);
    channels->last_woken = oribi_mem_try_alloc(config->board.count + 1u, sizeof(*channels->last_woken));
    if (!channels->free_numbers || !channels->scratch || !channels->last_woken)
        return ORIBI_ENOMEM;
    for (uint32_t i = 0; i < config->channel_count; i++) /* the lowest is lent first */
        channels->free_numbers[i] = (uint16_t)(config->channel_first + config->channel_count - 1 - i);
    channels->free_number_count = config->channel_count;
    return 0;
}

void oribi__channels_close_idle(struct oribi__frontend *frontend)
{
    while (frontend->channels->idle_first)
        oribi__channel_close(frontend->channels->idle_first);
    close_abandoned(frontend);
    oribi__frontend_local_close_idle(frontend);
}

void oribi__channels_deinit(struct oribi__frontend *frontend)
{
    assert(!frontend->channels->out_first && frontend->channels->untaken_count == 0);
    oribi__channels_turn(frontend);
    oribi__channels_free_closed(frontend);
    oribi_mem_free(frontend->channels->free_numbers);
    oribi_mem_free(frontend->channels->scratch);
    oribi_mem_free(frontend->channels->last_woken);
}

/* --- who has it --- */

/* Partner: the release stores of placement.c, behind which the worker's pid stands in its slot (runs_on()). */
static uint16_t read_place(const struct oribi__channel *channel)
{
    return atomic_load_explicit(&channel->frontend->config->board.channels[channel->number], memory_order_acquire);
}

uint16_t oribi__channel_owner(const struct oribi__channel *channel)
{
    return (uint16_t)(read_place(channel) & ~ORIBI_CHANNEL_LENT);
}

bool oribi__channel_is_lent(const struct oribi__channel *channel)
{
    return !channel->local && (read_place(channel) & ORIBI_CHANNEL_LENT);
}

/* Counts its call for the worker that has it. */
static void count(struct oribi__channel *channel)
{
    struct oribi__frontend *frontend = channel->frontend;
    if (channel->local) {
        oribi__frontend_local_begins(channel);
        return;
    }
    channel->owner = oribi__channel_owner(channel);
    if (channel->owner > frontend->config->board.count)
        channel->owner = 0;
    if (channel->owner)
        frontend->dispatch->workers[channel->owner].out++;
    else
        frontend->dispatch->out_waiting++;
    frontend->calls_out++;
}

void oribi__channel_uncount(struct oribi__channel *channel)
{
    struct oribi__frontend *frontend = channel->frontend;
    if (channel->local) {
        oribi__frontend_local_ends(channel);
        return;
    }
    if (channel->owner)
        frontend->dispatch->workers[channel->owner].out--;
    else
        frontend->dispatch->out_waiting--;
    channel->owner = 0;
    frontend->calls_out--;
}

/* --- life --- */

struct oribi__channel *oribi__channel_open(struct oribi__frontend *frontend, struct oribi__frontend_local *local,
                                           int *far_fd)
{
    int fds[2];
    bool may = local || frontend->channels->free_number_count > 0;
    struct oribi__channel *channel = may ? oribi_mem_try_alloc(1, sizeof(*channel)) : NULL;
    if (!channel)
        return NULL;
    if (oribi_os_socket_pair(SOCK_STREAM, true, fds) < 0) {
        oribi_mem_free(channel);
        return NULL;
    }
    int size = SEND_BUFFER_BYTES;
    (void)setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)); /* less room means more turns */
    (void)setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    channel->frontend = frontend;
    channel->watch.handler = on_ready;
    if (oribi_loop_add(frontend->reactor.loop, &channel->watch, fds[0], ORIBI_WATCH_PEER, ORIBI_READ) < 0) {
        oribi_os_close(fds[0]);
        oribi_os_close(fds[1]);
        oribi_mem_free(channel);
        return NULL;
    }
    channel->local = local;
    if (!local) {
        channel->number = frontend->channels->free_numbers[--frontend->channels->free_number_count];
        /* No worker knows the number yet: it travels with the descriptor, whose socket orders what stands before. */
        atomic_store_explicit(&frontend->config->board.channels[channel->number], 0, memory_order_relaxed);
        channel->ring = oribi_channel_ring_try_create(fds[0]);
        if (channel->ring)
            oribi__channel_take_files(channel);
    }
    channel->state = ORIBI__CHANNEL_CLOSED; /* in no list */
    frontend->channels->count++;
    *far_fd = fds[1];
    return channel;
}

static void unlink_idle(struct oribi__channel *channel)
{
    struct oribi__frontend *frontend = channel->frontend;
    if (channel->local) {
        oribi__frontend_local_unlink(channel);
        return;
    }
    *(channel->prev ? &channel->prev->next : &frontend->channels->idle_first) = channel->next;
    *(channel->next ? &channel->next->prev : &frontend->channels->idle_last) = channel->prev;
    channel->prev = channel->next = NULL;
    frontend->channels->idle_count--;
}

static void link_out(struct oribi__channel *channel)
{
    struct oribi__channels *channels = channel->frontend->channels;
    if (!channel->ring || channel->is_out)
        return;
    channel->is_out = true;
    channels->untaken_count += !channel->taken;
    channel->prev = NULL;
    channel->next = channels->out_first;
    if (channels->out_first)
        channels->out_first->prev = channel;
    channels->out_first = channel;
}

static void unlink_out(struct oribi__channel *channel)
{
    struct oribi__channels *channels = channel->frontend->channels;
    if (!channel->is_out)
        return;
    channels->untaken_count -= !channel->taken;
    *(channel->prev ? &channel->prev->next : &channels->out_first) = channel->next;
    if (channel->next)
        channel->next->prev = channel->prev;
    channel->prev = channel->next = NULL;
    channel->is_out = false;
}

static void close_ring(struct oribi__channel *channel)
{
    oribi__channel_forget_unwoken(channel); /* the socket's end wakes its worker */
    if (channel->ring)
        oribi_channel_ring_close(channel->ring);
    oribi_channel_ring_destroy(channel->ring); /* take_lent() may still read there */
    channel->ring = NULL;
}

int oribi__channel_release(struct oribi__channel *channel)
{
    struct oribi__frontend *frontend = channel->frontend;
    unlink_out(channel);
    close_ring(channel);
    if (channel->state == ORIBI__CHANNEL_IDLE)
        unlink_idle(channel);
    else if (channel->state == ORIBI__CHANNEL_ABANDONED)
        unlink_abandoned(channel);
    if (channel->call) {
        oribi__channel_uncount(channel);
        channel->call->channel = NULL;
        channel->call = NULL;
    }
    (void)oribi_loop_remove(frontend->reactor.loop, &channel->watch); /* ours */
    int fd = channel->watch.fd;
    channel->watch.fd = -1;
    channel->state = ORIBI__CHANNEL_CLOSED;
    if (!channel->local)
        frontend->channels->free_numbers[frontend->channels->free_number_count++] = channel->number;
    frontend->channels->count--;
    oribi_buf_deinit(&channel->unsent);
    oribi_buf_deinit(&channel->read);
    oribi_buf_deinit(&channel->chunked.trailers);
    channel->next = frontend->channels->closed;
    frontend->channels->closed = channel;
    return fd;
}

void oribi__channel_close(struct oribi__channel *channel)
{
    if (channel->watch.fd >= 0)
        oribi_os_close(oribi__channel_release(channel));
}

void oribi__channels_free_closed(struct oribi__frontend *frontend)
{
    struct oribi__channel **at = &frontend->channels->closed;
    while (*at) {
        struct oribi__channel *channel = *at;
        if (channel->posted) { /* the next oribi__channels_turn() still sees it */
            at = &channel->next;
            continue;
        }
        *at = channel->next;
        oribi_mem_free(channel);
    }
}

/* --- the request --- */

bool oribi__channel_call(struct oribi__channel *channel, struct oribi__upstream_request *call, bool send)
{
    bool spoke = channel->ring && oribi_channel_ring_waits(channel->ring); /* nobody has asked: as with a socket */
    if (send && (spoke || !oribi__channel_send_request(channel, call))) {
        oribi__channel_close(channel);
        return false;
    }
    if (channel->state == ORIBI__CHANNEL_IDLE)
        unlink_idle(channel);
    channel->taken = !send || !channel->ring;
    link_out(channel);
    channel->state = ORIBI__CHANNEL_HEAD;
    channel->call = call;
    channel->answered = false;
    channel->sent_us = channel->frontend->reactor.now_us;
    call->channel = channel;
    call->state = ORIBI__CALL_OUT;
    if (!channel->local) {
        oribi_frontend_slot_count(&channel->frontend->slot->call_count, 1);
        oribi_frontend_slot_count(&channel->frontend->slot->posted_count, call->tries > 0);
    }
    count(channel);
    if (call->finished)
        oribi__channel_finish(channel);
    return true;
}

/* --- at rest --- */

void oribi__channel_rest(struct oribi__channel *channel)
{
    struct oribi__frontend *frontend = channel->frontend;
    unlink_out(channel);
    if (channel->ring)
        oribi_channel_ring_next_answer(channel->ring);
    oribi__dispatch_note_end(frontend, oribi__channel_owner(channel));
    oribi__channel_uncount(channel);
    channel->call->channel = NULL;
    channel->call = NULL;
    oribi_buf_deinit(&channel->chunked.trailers);
    memset(&channel->chunked, 0, sizeof(channel->chunked));
    channel->state = ORIBI__CHANNEL_IDLE;
    if (channel->local) {
        oribi__frontend_local_idle(channel);
        return;
    }
    channel->prev = NULL;
    channel->next = frontend->channels->idle_first;
    *(frontend->channels->idle_first ? &frontend->channels->idle_first->prev : &frontend->channels->idle_last) =
        channel;
    frontend->channels->idle_first = channel;
    frontend->channels->idle_count++;
    oribi__dispatch_idle(channel);
}

/* --- abandoned ones --- */

static void unlink_abandoned(struct oribi__channel *channel)
{
    *(channel->prev ? &channel->prev->next : &channel->frontend->channels->left_first) = channel->next;
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
    count(channel);        /* it may have been taken out of the hand-off queue since */
    if (!channel->owner) { /* whoever takes it there sees that its client has gone, and does not begin */
        oribi__channel_close(channel);
        return;
    }
    channel->left_pid =
        atomic_load_explicit(&frontend->config->board.slots[channel->owner - 1u].pid, memory_order_relaxed);
    unlink_out(channel);
    close_ring(channel);
    channel->call->channel = NULL;
    channel->call = NULL;
    channel->state = ORIBI__CHANNEL_ABANDONED;
    channel->next = frontend->channels->left_first;
    if (frontend->channels->left_first)
        frontend->channels->left_first->prev = channel;
    frontend->channels->left_first = channel;
    oribi_buf_deinit(&channel->unsent);
    oribi_buf_deinit(&channel->read);
    oribi_loop_interest(frontend->reactor.loop, &channel->watch, ORIBI_READ);
}

/* Closes it if its call has ended. */
static void look(struct oribi__channel *channel)
{
    if (!runs_on(channel))
        oribi__channel_close(channel);
}

void oribi__channels_look(struct oribi__frontend *frontend)
{
    struct oribi__channel *next;
    for (struct oribi__channel *channel = frontend->channels->left_first; channel; channel = next) {
        next = channel->next;
        look(channel);
    }
}

void oribi__channels_forget(struct oribi__frontend *frontend, const struct oribi_h2 *h2)
{
    for (struct oribi__channel *channel = frontend->channels->left_first; channel; channel = channel->next)
        if (channel->left_by && channel->left_by->h2 == h2)
            channel->left_by = NULL;
}

static void close_abandoned(struct oribi__frontend *frontend)
{
    while (frontend->channels->left_first)
        oribi__channel_close(frontend->channels->left_first);
}

/* --- events --- */

static void on_ready(void *self, struct oribi_watch *watch)
{
    struct oribi__channel *channel = (struct oribi__channel *)watch;
    if (watch->fd < 0)
        return;
    if (channel->state == ORIBI__CHANNEL_ABANDONED)
        look(channel);
    else if (channel->unsent.len && (watch->ready & ORIBI_WRITE) && !oribi__channel_send_rest(channel))
        oribi__channel_ended(channel);
    else
        oribi__channel_read(channel);
}
