/* Channels. One call at a time goes out on each: the request is sent, and its answer is read and handed to the call's
 * client as it comes.
 *
 * A client may give up its request at any time, a worker that has begun the call ends it when it can. Until then the
 * channel stays in a list of abandoned ones, without a call, and counts as out; a stream of HTTP/2 that was reset also
 * counts against the left_max of its connection. */
#include "frontend/channel.h"
#include "frontend/channel_private.h"
#include "frontend/count.h"
#include "frontend/dispatch.h"
#include "frontend/events.h"
#include "frontend/frontend.h"
#include "frontend/local.h"
#include "frontend/streams_h2.h"
#include "frontend/upstream_request.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/worker/local/local_thread.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>

enum {
    SEND_BUFFER_BYTES = 512 * 1024,
    READS_MAX = 16, /* a turn */
    TRIES_MAX = 2,
    HEAD_COPY = ORIBI__CHANNEL_SCRATCH_BYTES - ORIBI__ANSWER_FILE_PIECE_BYTES, /* of an answer, for its head */
};

_Static_assert((int)ORIBI_RING_RECORD_MAX <= (int)ORIBI__CHANNEL_SCRATCH_BYTES, "a record that is lent can be copied");

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

/* An application has had its descriptor, and may write there after its answer: nothing more may be asked on it. */
static bool is_lent(const struct oribi__channel *channel)
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
    channel->prev = NULL;
    channel->next = channels->out_first;
    if (channels->out_first)
        channels->out_first->prev = channel;
    channels->out_first = channel;
}

static void unlink_out(struct oribi__channel *channel)
{
    if (!channel->is_out)
        return;
    *(channel->prev ? &channel->prev->next : &channel->frontend->channels->out_first) = channel->next;
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
    link_out(channel);
    channel->state = ORIBI__CHANNEL_HEAD;
    channel->call = call;
    channel->answered = false;
    channel->taken = !send || !channel->ring;
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

/* --- the answer --- */

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
static void ended(struct oribi__channel *channel)
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
            ended(channel);
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
    for (struct oribi__channel *out = frontend->channels->out_first; out; out = out->next)
        if (has_come(out))
            post_read(out);
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
    struct oribi__frontend *frontend = channel->frontend;
    if (channel->chunked.trailers.len) /* without memory for them the answer goes without */
        (void)oribi_buf_try_append(&call->tail, channel->chunked.trailers.p, channel->chunked.trailers.len);
    call->state = ORIBI__CALL_ENDED;
    if (channel->local)
        oribi__count_local(call, call->status);
    if (channel->closes || channel->finished || channel->unsent.len || (channel->watch.ready & ORIBI_HANGUP) ||
        is_lent(channel)) {
        oribi__channel_close(channel);
        return;
    }
    unlink_out(channel);
    if (channel->ring)
        oribi_channel_ring_next_answer(channel->ring);
    oribi__dispatch_note_end(frontend, oribi__channel_owner(channel));
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
    channel->next = frontend->channels->idle_first;
    *(frontend->channels->idle_first ? &frontend->channels->idle_first->prev : &frontend->channels->idle_last) =
        channel;
    frontend->channels->idle_first = channel;
    frontend->channels->idle_count++;
    oribi__dispatch_idle(channel);
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
        (code == ORIBI_CHANNEL_LOST_FILE ? lost_file : ended)(channel);
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
        ended(channel);
    else
        oribi__channel_read(channel);
}
