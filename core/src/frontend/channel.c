/* A channel: one end of a socket pair whose other end a worker has. One call at a time: the request goes out here, and
 * channel_answer.c reads the answer. */
#include "frontend/frontend_private.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>

enum { SEND_BUFFER_BYTES = 512 * 1024, VECS_MAX = 4 };

static void on_ready(void *self, struct oribi_watch *watch);

/* --- numbers --- */

int oribi__channels_init(struct oribi__frontend *frontend)
{
    const struct oribi_frontend_config *config = frontend->config;
    frontend->free_numbers = oribi_mem_try_alloc(config->channel_count, sizeof(*frontend->free_numbers));
    frontend->out = oribi_mem_try_alloc(config->board.count + 1, sizeof(*frontend->out));
    frontend->ended_us = oribi_mem_try_alloc(config->board.count + 1, sizeof(*frontend->ended_us));
    frontend->average_us = oribi_mem_try_alloc(config->board.count + 1, sizeof(*frontend->average_us));
    frontend->shunned_until_ms = oribi_mem_try_alloc(config->board.count + 1, sizeof(*frontend->shunned_until_ms));
    frontend->scratch = oribi_mem_try_alloc(1, ORIBI__FRONTEND_SCRATCH_BYTES);
    frontend->text = oribi_mem_try_alloc(1, ORIBI_RESPONSE_HEAD_BYTES_MAX);
    if (!frontend->free_numbers || !frontend->out || !frontend->ended_us || !frontend->average_us ||
        !frontend->shunned_until_ms || !frontend->scratch || !frontend->text)
        return ORIBI_ENOMEM;
    memset(frontend->average_us, 0xff, (config->board.count + 1) * sizeof(*frontend->average_us));
    for (uint32_t i = 0; i < config->channel_count; i++) /* the lowest is lent first */
        frontend->free_numbers[i] = (uint16_t)(config->channel_first + config->channel_count - 1 - i);
    frontend->free_number_count = config->channel_count;
    oribi_limits_init(&frontend->answer_limits);
    frontend->answer_limits.body_bytes_max = INT64_MAX;
    frontend->answer_limits.fields_max = ORIBI_FIELDS_CAP;
    return 0;
}

void oribi__channels_close_idle(struct oribi__frontend *frontend)
{
    while (frontend->idle_first)
        oribi__channel_close(frontend->idle_first);
    oribi__channels_close_abandoned(frontend);
    oribi__frontend_local_close_idle(frontend);
}

void oribi__channels_deinit(struct oribi__frontend *frontend)
{
    oribi__channels_turn(frontend);
    oribi__channels_free_closed(frontend);
    oribi_mem_free(frontend->free_numbers);
    oribi_mem_free(frontend->out);
    oribi_mem_free(frontend->ended_us);
    oribi_mem_free(frontend->average_us);
    oribi_mem_free(frontend->shunned_until_ms);
    oribi_mem_free(frontend->scratch);
    oribi_mem_free(frontend->text);
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

void oribi__channel_count(struct oribi__channel *channel)
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
        frontend->out[channel->owner]++;
    else
        frontend->out_waiting++;
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
        frontend->out[channel->owner]--;
    else
        frontend->out_waiting--;
    channel->owner = 0;
    frontend->calls_out--;
}

/* --- life --- */

struct oribi__channel *oribi__channel_open(struct oribi__frontend *frontend, struct oribi__frontend_local *local,
                                           int *far_fd)
{
    int fds[2];
    bool may = local || frontend->free_number_count > 0;
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
        channel->number = frontend->free_numbers[--frontend->free_number_count];
        /* No worker knows the number yet: it travels with the descriptor, whose socket orders what stands before. */
        atomic_store_explicit(&frontend->config->board.channels[channel->number], 0, memory_order_relaxed);
    }
    channel->state = ORIBI__CHANNEL_CLOSED; /* in no list */
    frontend->channel_count++;
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
    *(channel->prev ? &channel->prev->next : &frontend->idle_first) = channel->next;
    *(channel->next ? &channel->next->prev : &frontend->idle_last) = channel->prev;
    channel->prev = channel->next = NULL;
    frontend->idle_count--;
}

int oribi__channel_release(struct oribi__channel *channel)
{
    struct oribi__frontend *frontend = channel->frontend;
    if (channel->state == ORIBI__CHANNEL_IDLE)
        unlink_idle(channel);
    else if (channel->state == ORIBI__CHANNEL_ABANDONED)
        oribi__channel_unlink_abandoned(channel);
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
        frontend->free_numbers[frontend->free_number_count++] = channel->number;
    frontend->channel_count--;
    oribi_buf_deinit(&channel->unsent);
    oribi_buf_deinit(&channel->read);
    oribi_buf_deinit(&channel->chunked.trailers);
    channel->next = frontend->closed_channels;
    frontend->closed_channels = channel;
    return fd;
}

void oribi__channel_close(struct oribi__channel *channel)
{
    if (channel->watch.fd >= 0)
        oribi_os_close(oribi__channel_release(channel));
}

void oribi__channels_free_closed(struct oribi__frontend *frontend)
{
    struct oribi__channel **at = &frontend->closed_channels;
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

static size_t request_vec(const struct oribi__upstream_request *call, struct iovec vec[VECS_MAX])
{
    size_t count = 0;
    vec[count++] = (struct iovec){call->head.p, call->head.len};
    if (call->chunk_len)
        vec[count++] = (struct iovec){(void *)call->chunk, call->chunk_len};
    if (call->body.n)
        vec[count++] = (struct iovec){(void *)call->body.p, call->body.n};
    if (call->tail.len)
        vec[count++] = (struct iovec){call->tail.p, call->tail.len};
    return count;
}

/* Sends the request; the part that the socket does not take is copied to channel->unsent. */
static bool send_request(struct oribi__channel *channel, const struct oribi__upstream_request *call)
{
    struct iovec vec[VECS_MAX];
    size_t count = request_vec(call, vec);
    ssize_t sent = oribi_os_send_vec(channel->watch.fd, vec, count);
    if (sent < 0 && sent != ORIBI_AGAIN)
        return false;
    size_t skip = sent > 0 ? (size_t)sent : 0;
    for (size_t i = 0; i < count; i++) {
        size_t done = skip < vec[i].iov_len ? skip : vec[i].iov_len;
        skip -= done;
        if (done < vec[i].iov_len &&
            oribi_buf_try_append(&channel->unsent, (char *)vec[i].iov_base + done, vec[i].iov_len - done) < 0)
            return false;
    }
    if (channel->unsent.len)
        oribi_loop_interest(channel->frontend->reactor.loop, &channel->watch, ORIBI_READ | ORIBI_WRITE);
    return true;
}

static bool send_rest(struct oribi__channel *channel)
{
    while (channel->unsent.len) {
        struct iovec vec = {channel->unsent.p, channel->unsent.len};
        ssize_t sent = oribi_os_send_vec(channel->watch.fd, &vec, 1);
        if (sent == ORIBI_AGAIN) {
            channel->watch.ready &= (uint8_t)~ORIBI_WRITE;
            return true;
        }
        if (sent < 0)
            return false;
        oribi_buf_consume(&channel->unsent, (size_t)sent);
    }
    oribi_buf_deinit(&channel->unsent);
    oribi_loop_interest(channel->frontend->reactor.loop, &channel->watch, ORIBI_READ);
    if (channel->finished)
        oribi__channel_finish(channel);
    return true;
}

bool oribi__channel_call(struct oribi__channel *channel, struct oribi__upstream_request *call, bool send)
{
    if (send && !send_request(channel, call)) {
        oribi__channel_close(channel);
        return false;
    }
    if (channel->state == ORIBI__CHANNEL_IDLE)
        unlink_idle(channel);
    channel->state = ORIBI__CHANNEL_HEAD;
    channel->call = call;
    channel->answered = false;
    channel->sent_us = oribi_clock_us();
    call->channel = channel;
    call->state = ORIBI__CALL_OUT;
    if (!channel->local) {
        oribi_frontend_slot_count(&channel->frontend->slot->call_count, 1);
        oribi_frontend_slot_count(&channel->frontend->slot->posted_count, call->tries > 0);
    }
    oribi__channel_count(channel);
    if (call->finished)
        oribi__channel_finish(channel);
    return true;
}

void oribi__channel_finish(struct oribi__channel *channel)
{
    channel->finished = true;
    if (!channel->unsent.len)
        (void)shutdown(channel->watch.fd, SHUT_WR); /* fails only if the worker is gone, which is told elsewhere */
}

static void on_ready(void *self, struct oribi_watch *watch)
{
    struct oribi__channel *channel = (struct oribi__channel *)watch;
    if (watch->fd < 0)
        return;
    if (channel->state == ORIBI__CHANNEL_ABANDONED)
        oribi__channel_look(channel);
    else if (channel->unsent.len && (watch->ready & ORIBI_WRITE) && !send_rest(channel))
        oribi__channel_ended(channel);
    else
        oribi__channel_read(channel);
}
