/* Channels: requests on their way to workers, and the wake-ups that follow them. */
#include "frontend/channel.h"
#include "frontend/channel_private.h"
#include "frontend/frontend.h"
#include "frontend/upstream_request.h"

#include "oribi/base/error.h"
#include "oribi/base/os/os.h"

#include <sys/socket.h>

enum {
    VECS_MAX = 4,
    GATHERED_MAX = 32, /* requests that share a wake-up, and for how long the first may wait for the others */
    GATHER_US = 50,
};

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

void oribi__channel_take_files(struct oribi__channel *channel)
{
    const struct oribi__frontend *frontend = channel->frontend;
    const struct oribi__answer_files *files = frontend->answer_files;
    bool takes = files->count < ORIBI__ANSWER_FILES_MAX && frontend->reactor.now_ms >= files->paused_until_ms;
    oribi_channel_ring_take_files(channel->ring, takes);
}

static void wake(struct oribi__channel *channel)
{
    const struct oribi_scoreboard *board = &channel->frontend->config->board;
    channel->unwoken = false;
    oribi_channel_ring_wake(channel->ring, board, &board->channels[channel->number],
                            channel->frontend->channels->last_woken);
}

static void wake_all(struct oribi__channels *channels)
{
    for (uint32_t i = 0; i < channels->unwoken_count; i++)
        wake(channels->unwoken[i]);
    channels->unwoken_count = 0;
}

void oribi__channels_wake(struct oribi__frontend *frontend)
{
    struct oribi__channels *channels = frontend->channels;
    struct oribi_reactor *reactor = &frontend->reactor;
    if (channels->unwoken_count == 0)
        return;
    if (channels->unwoken_count < GATHERED_MAX && reactor->now_us - channels->unwoken_us < GATHER_US &&
        oribi_reactor_look(reactor) > 0)
        return;
    wake_all(channels);
}

void oribi__channel_forget_unwoken(struct oribi__channel *channel)
{
    struct oribi__channels *channels = channel->frontend->channels;
    uint32_t i = 0;
    if (!channel->unwoken)
        return;
    while (channels->unwoken[i] != channel)
        i++;
    channels->unwoken[i] = channels->unwoken[--channels->unwoken_count];
    channel->unwoken = false;
}

/* False: the request goes by the socket. Else *code is 0, or the channel is of no use. */
static bool send_by_ring(struct oribi__channel *channel, const struct iovec *vec, size_t count, ssize_t *code)
{
    struct oribi__channels *channels = channel->frontend->channels;
    bool broken;
    *code = 0;
    oribi__channel_take_files(channel);
    if (oribi_channel_ring_request(channel->ring, vec, count, (size_t)oribi_vec_len(vec, count), &broken)) {
        if (channel->unwoken) /* its last request of this turn has been answered already */
            return true;
        if (channels->unwoken_count == ORIBI__CHANNEL_UNWOKEN_MAX)
            wake_all(channels);
        if (channels->unwoken_count == 0)
            channels->unwoken_us = channel->frontend->reactor.now_us;
        channels->unwoken[channels->unwoken_count++] = channel;
        channel->unwoken = true;
        return true;
    }
    oribi__channel_forget_unwoken(channel); /* its bytes wake the worker, and a wake-up may not come between them */
    *code = broken ? ORIBI_EBAD : 0;
    return broken;
}

bool oribi__channel_send_request(struct oribi__channel *channel, const struct oribi__upstream_request *call)
{
    struct iovec vec[VECS_MAX];
    size_t count = request_vec(call, vec);
    ssize_t sent = 0;
    if (channel->ring && send_by_ring(channel, vec, count, &sent))
        return sent == 0;
    sent = oribi_os_send_vec(channel->watch.fd, vec, count);
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

bool oribi__channel_send_rest(struct oribi__channel *channel)
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

void oribi__channel_finish(struct oribi__channel *channel)
{
    channel->finished = true;
    if (!channel->unsent.len)
        (void)shutdown(channel->watch.fd, SHUT_WR); /* fails only if the worker is gone, which is told elsewhere */
}
