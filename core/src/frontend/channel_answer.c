/* Answers that come on channels; see the header. Reading order: bytes are read (oribi__channel_read()), looked at
 * (take_lent(), take_copied()) and told to the call's client (take_head(), take_body()), up to the end (finish()). */
#include "frontend/channel_answer.h"
#include "frontend/channel.h"
#include "frontend/channel_private.h"
#include "frontend/count.h"
#include "frontend/dispatch.h"
#include "frontend/events.h"
#include "frontend/frontend.h"
#include "frontend/local.h"
#include "frontend/untaken.h"
#include "frontend/upstream_request.h"

#include "oribi/base/error.h"
#include "oribi/base/os/os.h"
#include "oribi/worker/local/local_thread.h"

#include <string.h>

enum {
    READS_MAX = 16, /* a turn */
    TRIES_MAX = 2,
    HEAD_COPY = ORIBI__CHANNEL_SCRATCH_BYTES - ORIBI__ANSWER_FILE_PIECE_BYTES, /* of an answer, for its head */
};

_Static_assert((int)ORIBI_RING_RECORD_MAX <= (int)ORIBI__CHANNEL_SCRATCH_BYTES, "a record that is lent can be copied");

static void take_lent(struct oribi__channel *channel, char *p, size_t n);
static void take_file(struct oribi__channel *channel, struct oribi_channel_file *file);
static void take_copied(struct oribi__channel *channel, char *p, size_t n);
static void finish(struct oribi__channel *channel);

static bool goes_again(struct oribi__upstream_request *call)
{
    if (call->tries >= TRIES_MAX)
        return false;
    call->tries++;
    call->of_local = false;
    oribi__dispatch_add(call, true);
    return true;
}

/* The worker has closed its end, or is dead. */
void oribi__channel_ended(struct oribi__channel *channel)
{
    struct oribi__upstream_request *call = channel->call;
    bool whole = call && channel->state == ORIBI__CHANNEL_BODY && channel->framing == ORIBI_FRAMING_CLOSE;
    bool answered = channel->answered;
    bool unread = call && channel->ring && oribi_channel_ring_unread(channel->ring);
    if (call && !answered && !channel->local) /* dead, most likely: its other channels end one after another */
        oribi__dispatch_shun(channel->frontend, channel->owner);
    oribi__channel_close(channel);
    if (!call)
        return;
    if (whole) {
        call->state = ORIBI__CALL_ENDED;
        if (call->of_local)
            oribi__count_local(call, call->status);
        call->ops->more(call, oribi_slice(NULL, 0), true);
    } else if (answered || !(call->safe || unread) || !goes_again(call)) {
        oribi__upstream_failed(call, 502, ORIBI_REFUSAL_OTHER, "the worker ended in the call");
    }
}

/* The system did not let the file of its answer in. */
static void lost_file(struct oribi__channel *channel)
{
    struct oribi__upstream_request *call = channel->call;
    struct oribi__frontend *frontend = channel->frontend;
    frontend->answer_files->paused_until_ms = frontend->reactor.now_ms + ORIBI__ANSWER_FILES_PAUSE_MS;
    oribi__channel_close(channel);
    if (call->begun || !call->safe || !goes_again(call))
        oribi__upstream_failed(call, 502, ORIBI_REFUSAL_OTHER, "no descriptor for the file of an answer");
}

static bool may_read(const struct oribi__channel *channel)
{
    if (channel->watch.fd < 0 || channel->state == ORIBI__CHANNEL_ABANDONED)
        return false;
    return (channel->watch.ready & ORIBI_READ) || (channel->ring && oribi_channel_ring_waits(channel->ring));
}

static ssize_t read_some(struct oribi__channel *channel, char **p)
{
    bool told = channel->watch.ready & ORIBI_READ;
    if (channel->ring && channel->call)
        return oribi_channel_ring_borrow(channel->ring, p, ORIBI__CHANNEL_READ_BYTES, told);
    if (channel->ring) /* nothing was asked: what comes ends the channel */
        return oribi_channel_ring_read(channel->ring, *p, ORIBI__CHANNEL_READ_BYTES, told);
    return oribi_os_read(channel->watch.fd, *p, ORIBI__CHANNEL_READ_BYTES);
}

static struct oribi_channel_file taken_file(const struct oribi__channel *channel)
{
    struct oribi_channel_file file = channel->ring->file;
    channel->ring->file.fd = -1;
    return file;
}

static void post_read(struct oribi__channel *channel)
{
    struct oribi__channels *channels = channel->frontend->channels;
    if (channel->posted)
        return;
    channel->posted = true;
    channel->posted_next = channels->posted;
    channels->posted = channel;
}

void oribi__channel_read(struct oribi__channel *channel)
{
    struct oribi__frontend *frontend = channel->frontend;
    if (channel->ring && channel->ring->lends) {
        post_read(channel);
        return;
    }
    for (int i = 0; i < READS_MAX && may_read(channel); i++) {
        if (channel->call && channel->call->blocked)
            return;
        char *p = frontend->channels->scratch;
        ssize_t n = read_some(channel, &p);
        if (n == ORIBI_AGAIN) {
            channel->watch.ready &= (uint8_t)~ORIBI_READ;
            return;
        }
        if (n == ORIBI_CHANNEL_HAS_FILE && channel->call) {
            struct oribi_channel_file file = taken_file(channel);
            take_file(channel, &file);
            continue;
        }
        if (n == ORIBI_CHANNEL_LOST_FILE && channel->call) {
            lost_file(channel);
            return;
        }
        if (n <= 0 || !channel->call) { /* or nothing was asked */
            oribi__channel_ended(channel);
            return;
        }
        if (channel->ring && channel->ring->by_socket)
            channel->watch.ready |= ORIBI_READ; /* told of it or not: the ring has led there */
        if ((size_t)n < ORIBI__CHANNEL_READ_BYTES && !(channel->watch.ready & ORIBI_HANGUP)) /* see epoll(7) */
            channel->watch.ready &= (uint8_t)~ORIBI_READ;
        if (channel->local)
            oribi__frontend_local_heard(channel);
        channel->answered = true;
        if (channel->ring && channel->ring->lends)
            take_lent(channel, p, (size_t)n);
        else
            take_copied(channel, p, (size_t)n);
    }
    if (may_read(channel))
        post_read(channel); /* readiness is told once: a worker that has written all causes no other event */
}

static bool has_come(const struct oribi__channel *channel)
{
    return oribi_channel_ring_waits(channel->ring) && !(channel->call && channel->call->blocked);
}

int oribi__channels_wait(const struct oribi__frontend *frontend)
{
    int count = 0;
    for (const struct oribi__channel *channel = frontend->channels->out_first; channel; channel = channel->next)
        count += has_come(channel);
    return count;
}

void oribi__channels_turn(struct oribi__frontend *frontend)
{
    struct oribi__channel *next_out;
    for (struct oribi__channel *out = frontend->channels->out_first; out; out = next_out) {
        next_out = out->next;
        if (has_come(out))
            post_read(out);
        else if (!out->taken)
            oribi__untaken_look(out);
    }
    struct oribi__channel *channel = frontend->channels->posted;
    frontend->channels->posted = NULL;
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
        if (__builtin_expect(call->wants_events, 0) && oribi__events_accepts(call, answer))
            oribi__events_begin(call, answer);
        else
            call->ops->begin(call, answer, body, last);
    } else if (body.n || last) {
        call->ops->more(call, body, last);
    }
}

/* The answer is whole: the channel is free again before the client hears of it, so that the next request can go out. */
static void finish(struct oribi__channel *channel)
{
    struct oribi__upstream_request *call = channel->call;
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
    oribi__channel_rest(channel);
}

static void switch_protocols(struct oribi__channel *channel, struct oribi_answer *answer, struct oribi_slice rest)
{
    struct oribi__upstream_request *call = channel->call;
    if (!call->upgrades || !call->ops->tunnel) {
        break_off(channel, "101 for a request that asks for no upgrade");
        return;
    }
    if (channel->ring && !oribi_channel_ring_left(channel->ring)) {
        break_off(channel, "101 of a worker that keeps the socket");
        return;
    }
    call->begun = true;
    call->ops->tunnel(call, answer, rest);
}

/* The answer's status and framing are known; its body begins with these bytes. */
static void take_answer(struct oribi__channel *channel, struct oribi_answer *answer, char *body, size_t n)
{
    struct oribi__upstream_request *call = channel->call;
    channel->state = ORIBI__CHANNEL_BODY;
    channel->framing = (uint8_t)answer->framing;
    channel->closes = answer->closes;
    channel->left = answer->content_length;
    call->status = (uint16_t)answer->status;
    call->tail.len = 0; /* the request's: from now on it is the answer's */
    take_body(channel, body, n, answer);
}

static ssize_t read_head(const struct oribi__channel *channel, char *p, size_t n, struct oribi_answer *answer)
{
    struct oribi_header *headers = channel->frontend->channels->headers;
    *answer = (struct oribi_answer){.headers = headers, .room = ORIBI_RESPONSE_FIELDS_MAX};
    return oribi_answer_head(p, n, channel->call->is_head, answer);
}

/* Heads, of which interim ones may come first. */
static void take_head(struct oribi__channel *channel, char *p, size_t n)
{
    struct oribi__upstream_request *call = channel->call;
    while (n > 0) {
        struct oribi_answer answer;
        ssize_t len = read_head(channel, p, n, &answer);
        if (len == ORIBI_AGAIN)
            break;
        if (len < 0) {
            break_off(channel, answer.reason);
            return;
        }
        p += len;
        n -= (size_t)len;
        if (answer.switches) {
            switch_protocols(channel, &answer, oribi_slice(p, n));
            return;
        }
        if (answer.status >= 200) {
            take_answer(channel, &answer, p, n);
            return;
        }
        if (channel->local && answer.status == ORIBI_LOCAL_PASSED) {
            oribi__frontend_local_passed(channel);
            return;
        }
        call->ops->interim(call, &answer);
        if (channel->call != call)
            return;
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

/* The rest of the answer comes from this file, which is taken. The channel is free before that. */
static void take_file(struct oribi__channel *channel, struct oribi_channel_file *file)
{
    struct oribi__upstream_request *call = channel->call;
    const char *fault = !call->ops->reads_file || call->accepted || call->stream ? "a file for a call of another kind"
                        : channel->state != ORIBI__CHANNEL_BODY                  ? "a file without a head"
                        : channel->framing != ORIBI_FRAMING_LENGTH ? "a file of an answer without a length"
                                                                   : oribi__answer_file_fault(file, channel->left);
    if (fault) {
        oribi_os_close(file->fd);
        break_off(channel, fault);
        return;
    }
    finish(channel);
    oribi__answer_file_begin(call, file);
}

/* Bytes of our own. Where a file follows on a head, its first piece goes with that to the client. */
static void take_copied(struct oribi__channel *channel, char *p, size_t n)
{
    struct oribi__upstream_request *call = channel->call;
    if (channel->state != ORIBI__CHANNEL_HEAD || !channel->ring || n > HEAD_COPY ||
        !oribi_channel_ring_file_waits(channel->ring)) {
        take_bytes(channel, p, n);
        return;
    }
    ssize_t code = oribi_channel_ring_read(channel->ring, NULL, 0, false);
    if (code != ORIBI_CHANNEL_HAS_FILE) {
        (code == ORIBI_CHANNEL_LOST_FILE ? lost_file : oribi__channel_ended)(channel);
        return;
    }
    struct oribi_channel_file file = taken_file(channel);
    ssize_t got = 0;
    if (oribi_os_is_regular(file.fd))
        got = oribi__answer_file_read(&file, p + n, ORIBI__ANSWER_FILE_PIECE_BYTES);
    call->from_file = file.length > 0;
    take_bytes(channel, p, n + (got > 0 ? (size_t)got : 0));
    if (channel->call == call && channel->answered) /* else it may be another that has the same memory */
        take_file(channel, &file);
    else
        oribi_os_close(file.fd);
}

/* Copies the head and takes it, with the bytes behind it where they lie. False: they are not of a body alone, or they
 * are to be looked into. */
static bool take_head_alone(struct oribi__channel *channel, char *p, size_t n)
{
    struct oribi_answer answer;
    char *copy = channel->frontend->channels->scratch;
    size_t copied = n < HEAD_COPY ? n : HEAD_COPY;
    if (channel->read.len > 0)
        return false;
    memcpy(copy, p, copied);
    ssize_t len = read_head(channel, copy, copied, &answer);
    if (len <= 0 || answer.switches || answer.status < 200 || answer.framing == ORIBI_FRAMING_CHUNKED)
        return false;
    take_answer(channel, &answer, p + len, n - (size_t)len);
    return true;
}

/* Bytes in the ring's memory, which the worker may change at any moment: what is looked at is copied before, and bytes
 * of a body for clients of requests go from there into records or into memory of ours. */
static void take_lent(struct oribi__channel *channel, char *p, size_t n)
{
    char *copy = channel->frontend->channels->scratch;
    struct oribi_channel_ring *ring = channel->ring;
    const struct oribi__upstream_request *call = channel->call;
    bool looks = call->offers || call->wants_events || !call->ops->reads_file;
    if (!looks && channel->state == ORIBI__CHANNEL_BODY && channel->framing != ORIBI_FRAMING_CHUNKED) {
        take_body(channel, p, n, NULL);
    } else if (looks || channel->state != ORIBI__CHANNEL_HEAD || !take_head_alone(channel, p, n)) {
        memcpy(copy, p, n);
        take_bytes(channel, copy, n);
    }
    oribi_channel_ring_return(ring); /* whose channel may have gone meanwhile */
}
