/* Answers on channels: each is read and handed to its call's client as it comes. */
#include "frontend/frontend_private.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/os/os.h"

#include <string.h>

enum { READS_MAX = 16, AVERAGE_US_MAX = 1000 * 1000, SHUNNED_MS = 500, TRIES_MAX = 2 };

static void take_bytes(struct oribi__channel *channel, char *p, size_t n);
static void finish(struct oribi__channel *channel);

/* The worker has closed its end, or is dead. */
void oribi__channel_ended(struct oribi__channel *channel)
{
    struct oribi__upstream_request *call = channel->call;
    bool whole = call && channel->state == ORIBI__CHANNEL_BODY && channel->framing == ORIBI_FRAMING_CLOSE;
    bool answered = channel->answered;
    if (call && !answered && !channel->local) /* dead, most likely: its other channels end one after another */
        channel->frontend->shunned_until_ms[channel->owner] = channel->frontend->reactor.now_ms + SHUNNED_MS;
    oribi__channel_close(channel);
    if (!call)
        return;
    if (whole) {
        call->state = ORIBI__CALL_ENDED;
        if (call->of_local)
            oribi__count_local(call, call->status);
        call->ops->more(call, oribi_slice(NULL, 0), true);
    } else if (!answered && call->safe && call->tries < TRIES_MAX) {
        call->tries++;
        call->of_local = false;
        oribi__dispatch_add(call, true);
    } else {
        oribi__upstream_failed(call, 502, ORIBI_REFUSAL_OTHER, "the worker ended in the call");
    }
}

void oribi__channel_read(struct oribi__channel *channel)
{
    struct oribi__frontend *frontend = channel->frontend;
    if (channel->state == ORIBI__CHANNEL_ABANDONED)
        return;
    for (int i = 0; i < READS_MAX && channel->watch.fd >= 0 && (channel->watch.ready & ORIBI_READ); i++) {
        if (channel->call && channel->call->blocked)
            return;
        ssize_t n = oribi_os_read(channel->watch.fd, frontend->scratch, ORIBI__FRONTEND_SCRATCH_BYTES);
        if (n == ORIBI_AGAIN) {
            channel->watch.ready &= (uint8_t)~ORIBI_READ;
            return;
        }
        if (n <= 0 || !channel->call) { /* or nothing was asked */
            oribi__channel_ended(channel);
            return;
        }
        if ((size_t)n < ORIBI__FRONTEND_SCRATCH_BYTES && !(channel->watch.ready & ORIBI_HANGUP))
            channel->watch.ready &= (uint8_t)~ORIBI_READ;
        if (channel->local)
            oribi__frontend_local_heard(channel);
        channel->answered = true;
        take_bytes(channel, frontend->scratch, (size_t)n);
    }
    if (channel->watch.fd < 0 || channel->posted || !(channel->watch.ready & ORIBI_READ))
        return;
    channel->posted = true; /* readiness is told once: a worker that has written all causes no other event */
    channel->posted_next = frontend->posted_channels;
    frontend->posted_channels = channel;
}

void oribi__channels_turn(struct oribi__frontend *frontend)
{
    struct oribi__channel *channel = frontend->posted_channels;
    frontend->posted_channels = NULL;
    while (channel) {
        struct oribi__channel *next = channel->posted_next;
        channel->posted = false;
        oribi__channel_read(channel); /* not, where it has been closed */
        channel = next;
    }
}

static void break_off(struct oribi__channel *channel, const char *reason)
{
    struct oribi__upstream_request *call = channel->call;
    oribi__channel_close(channel);
    oribi__upstream_failed(call, 502, ORIBI_REFUSAL_OTHER, reason);
}

/* Bytes of a body go to the client; the first ones with `answer`, else that is NULL. */
static void take_body(struct oribi__channel *channel, char *p, size_t n, struct oribi_answer *answer)
{
    struct oribi__upstream_request *call = channel->call;
    struct oribi_slice body = oribi_slice(p, n);
    bool last = false;
    size_t used = n;
    switch (channel->framing) {
    case ORIBI_FRAMING_LENGTH:
        if ((int64_t)n > channel->left)
            used = body.n = (size_t)channel->left;
        channel->left -= (int64_t)body.n;
        last = channel->left == 0;
        break;
    case ORIBI_FRAMING_CHUNKED:
        if (oribi_chunked_decode(&channel->chunked, &channel->frontend->answer_limits, p, &body.n, &used) < 0) {
            break_off(channel, channel->chunked.reason);
            return;
        }
        last = channel->chunked.done;
        break;
    case ORIBI_FRAMING_CLOSE:
        break;
    default:
        used = body.n = 0;
        last = true;
    }
    if (used < n) { /* more than was asked for */
        channel->closes = true;
        if (!last) {
            break_off(channel, "bytes behind an answer");
            return;
        }
    }
    if (last)
        finish(channel);
    if (answer) {
        call->begun = true;
        call->ops->begin(call, answer, body, last);
    } else if (body.n || last) {
        call->ops->more(call, body, last);
    }
}

/* How long the call took: of those that waited behind another in the same worker, from that one's end. */
static void note_end(const struct oribi__channel *channel)
{
    struct oribi__frontend *frontend = channel->frontend;
    uint16_t owner = oribi__channel_owner(channel);
    if (owner == 0 || owner > frontend->config->board.count)
        return;
    int64_t now_us = oribi_clock_us();
    int64_t begun_us = channel->sent_us > frontend->ended_us[owner] ? channel->sent_us : frontend->ended_us[owner];
    int64_t took_us = now_us - begun_us < AVERAGE_US_MAX ? now_us - begun_us : AVERAGE_US_MAX;
    uint32_t *average_us = &frontend->average_us[owner];
    *average_us = *average_us == UINT32_MAX ? (uint32_t)took_us : (uint32_t)((*average_us * 7 + took_us) / 8);
    frontend->ended_us[owner] = now_us;
}

/* The answer is whole: the channel is free again before the client hears of it, so that the next request can go out. */
static void finish(struct oribi__channel *channel)
{
    struct oribi__upstream_request *call = channel->call;
    struct oribi__frontend *frontend = channel->frontend;
    if (channel->chunked.trailers.len) /* without memory for them the answer goes without */
        (void)oribi_buf_try_append(&call->tail, channel->chunked.trailers.p, channel->chunked.trailers.len);
    call->state = ORIBI__CALL_ENDED;
    if (channel->local)
        oribi__count_local(call, call->status);
    if (channel->closes || channel->finished || channel->unsent.len || (channel->watch.ready & ORIBI_HANGUP) ||
        oribi__channel_is_lent(channel)) {
        oribi__channel_close(channel);
        return;
    }
    note_end(channel);
    oribi__channel_uncount(channel);
    call->channel = NULL;
    channel->call = NULL;
    oribi_buf_deinit(&channel->chunked.trailers);
    memset(&channel->chunked, 0, sizeof(channel->chunked));
    channel->state = ORIBI__CHANNEL_IDLE;
    if (channel->local) {
        oribi__frontend_local_idle(channel);
        return;
    }
    channel->prev = NULL;
    channel->next = frontend->idle_first;
    *(frontend->idle_first ? &frontend->idle_first->prev : &frontend->idle_last) = channel;
    frontend->idle_first = channel;
    frontend->idle_count++;
    oribi__dispatch_idle(channel);
}

static void switch_protocols(struct oribi__channel *channel, struct oribi_answer *answer, struct oribi_slice rest)
{
    struct oribi__upstream_request *call = channel->call;
    if (!call->upgrades || !call->ops->tunnel) {
        break_off(channel, "101 for a request that asks for no upgrade");
        return;
    }
    call->begun = true;
    call->ops->tunnel(call, answer, rest);
}

/* Heads, of which interim ones may come first. */
static void take_head(struct oribi__channel *channel, char *p, size_t n)
{
    struct oribi__upstream_request *call = channel->call;
    struct oribi__frontend *frontend = channel->frontend;
    while (n > 0) {
        struct oribi_answer answer = {.headers = frontend->headers, .room = ORIBI_RESPONSE_FIELDS_MAX};
        ssize_t len = oribi_answer_head(p, n, call->is_head, &answer);
        if (len == ORIBI_AGAIN)
            break;
        if (len < 0) {
            break_off(channel, answer.reason);
            return;
        }
        char *body = p + len;
        size_t rest = n - (size_t)len;
        if (answer.switches) {
            switch_protocols(channel, &answer, oribi_slice(body, rest));
            return;
        }
        if (answer.status >= 200) {
            channel->state = ORIBI__CHANNEL_BODY;
            channel->framing = (uint8_t)answer.framing;
            channel->closes = answer.closes;
            channel->left = answer.content_length;
            call->status = (uint16_t)answer.status;
            call->tail.len = 0; /* the request's: from now on it is the answer's */
            take_body(channel, body, rest, &answer);
            return;
        }
        if (channel->local && answer.status == ORIBI_LOCAL_PASSED) {
            oribi__frontend_local_passed(channel);
            return;
        }
        call->ops->interim(call, &answer);
        if (channel->call != call)
            return;
        p = body;
        n = rest;
    }
    if (n > 0 && oribi_buf_try_append(&channel->read, p, n) < 0)
        break_off(channel, "out of memory");
}

static void take_bytes(struct oribi__channel *channel, char *p, size_t n)
{
    if (channel->state == ORIBI__CHANNEL_BODY) {
        take_body(channel, p, n, NULL);
    } else if (channel->read.len == 0) {
        take_head(channel, p, n);
    } else if (oribi_buf_try_append(&channel->read, p, n) < 0) {
        break_off(channel, "out of memory");
    } else { /* a head in pieces */
        struct oribi_buf whole = channel->read;
        channel->read = (struct oribi_buf){0};
        take_head(channel, whole.p, whole.len);
        oribi_buf_deinit(&whole);
    }
}
