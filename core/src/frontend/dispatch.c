/* The queue of complete requests, first come, first served, and which worker gets the next one.
 *
 * A request goes out on an idle channel whose worker is free, the channel used last first. Where a worker is free that
 * has no idle channel of ours, and where all workers are busy with what is not ours, the request travels with a new
 * channel through the hand-off queue, in which it waits as other workers' requests do for the first free worker. A
 * frontend has as many requests out as workers have capacity, and as many more as requests of others wait. The rest
 * waits here, where a client that goes takes its request along.
 *
 * The scoreboard is a hint: it may be late. A wrong guess costs a moment, since a worker that is in a call passes the
 * channel on as any connection. */
#include "frontend/dispatch.h"
#include "frontend/channel.h"
#include "frontend/frontend.h"
#include "frontend/untaken.h"
#include "frontend/upstream_request.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/event/body.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

enum {
    SPOOL_BYTES = 48 * 1024, /* a longer body travels through the hand-off queue in a file */
    SHORT_US = 200,          /* of calls may wait in a worker */
    SHORT_CALLS = 32,        /* may wait in a worker, however short they are */
    AVERAGE_US_MAX = 1000 * 1000,
    SHUNNED_MS = 500,
};

/* --- life --- */

int oribi__dispatch_init(struct oribi__frontend *frontend)
{
    struct oribi__dispatch *dispatch = frontend->dispatch;
    uint32_t count = frontend->config->board.count + 1;
    dispatch->workers = oribi_mem_try_alloc(count, sizeof(*dispatch->workers));
    if (!dispatch->workers)
        return ORIBI_ENOMEM;
    for (uint32_t i = 0; i < count; i++)
        dispatch->workers[i].average_us = UINT32_MAX;
    return 0;
}

void oribi__dispatch_deinit(struct oribi__frontend *frontend)
{
    oribi_mem_free(frontend->dispatch->workers);
}

/* --- the queue --- */

void oribi__dispatch_add(struct oribi__upstream_request *call, bool first)
{
    struct oribi__frontend *frontend = call->frontend;
    call->state = ORIBI__CALL_QUEUED;
    call->prev = first ? NULL : frontend->dispatch->last;
    call->next = first ? frontend->dispatch->first : NULL;
    *(call->prev ? &call->prev->next : &frontend->dispatch->first) = call;
    *(call->next ? &call->next->prev : &frontend->dispatch->last) = call;
    frontend->queue_len++;
    call->ops->waits(call, 1);
}

void oribi__dispatch_remove(struct oribi__upstream_request *call)
{
    struct oribi__frontend *frontend = call->frontend;
    *(call->prev ? &call->prev->next : &frontend->dispatch->first) = call->next;
    *(call->next ? &call->next->prev : &frontend->dispatch->last) = call->prev;
    call->prev = call->next = NULL;
    call->state = ORIBI__CALL_NEW;
    frontend->queue_len--;
    call->ops->waits(call, -1);
}

/* --- who is free --- */

static uint32_t threads_of(const struct oribi_slot *slot)
{
    uint32_t threads = atomic_load_explicit(&slot->threads, memory_order_relaxed);
    return threads ? threads : 1;
}

static bool serves(const struct oribi_slot *slot)
{
    uint32_t state = atomic_load_explicit(&slot->state, memory_order_acquire);
    return state == ORIBI_SLOT_IDLE || state == ORIBI_SLOT_BUSY;
}

/* How many requests its worker may have. Of calls so short that a wake-up costs as much it is given several at a time,
 * which wait less for each other than each would for the wake-up; of longer ones as many as it can make at a time. */
static uint32_t room_at(const struct oribi__frontend *frontend, uint32_t i)
{
    uint32_t threads = threads_of(&frontend->config->board.slots[i]);
    uint32_t average_us = frontend->dispatch->workers[i + 1].average_us;
    if (threads > 1 || average_us > SHORT_US / 2)
        return threads;
    return average_us > SHORT_US / SHORT_CALLS ? SHORT_US / average_us : SHORT_CALLS;
}

/* Its only thread is in a call that has turned out long: what it were given would lie there. */
static bool is_in_long_call(const struct oribi__frontend *frontend, const struct oribi_slot *slot)
{
    int64_t started_us = atomic_load_explicit(&slot->call_started_us, memory_order_relaxed);
    return started_us && frontend->reactor.now_us - started_us >= ORIBI__UNTAKEN_MS * 1000;
}

/* How many requests more the worker of this slot can have, ours counted as far as we know them. */
static uint32_t free_at(const struct oribi__frontend *frontend, uint32_t i)
{
    const struct oribi_slot *slot = &frontend->config->board.slots[i];
    if (!serves(slot) || frontend->reactor.now_ms < frontend->dispatch->workers[i + 1].shunned_until_ms)
        return 0;
    uint32_t room = room_at(frontend, i);
    uint32_t busy = frontend->dispatch->workers[i + 1].out;
    if (threads_of(slot) == 1 && is_in_long_call(frontend, slot))
        return 0;
    if (threads_of(slot) > 1) {
        uint32_t told = atomic_load_explicit(&slot->threads_busy, memory_order_relaxed);
        busy = told > busy ? told : busy;
    } else if (busy == 0) {
        /* a call that began before our last one ended was that one */
        busy = atomic_load_explicit(&slot->call_started_us, memory_order_relaxed) >
               frontend->dispatch->workers[i + 1].ended_us;
    }
    if (busy == 0)
        busy = atomic_load_explicit(&slot->queue_len, memory_order_relaxed);
    return busy < room ? room - busy : 0;
}

uint32_t oribi__dispatch_capacity(const struct oribi__frontend *frontend)
{
    uint32_t capacity = 0;
    for (uint32_t i = 0; i < frontend->config->board.count; i++)
        if (serves(&frontend->config->board.slots[i]))
            capacity += room_at(frontend, i);
    return capacity;
}

bool oribi__dispatch_serves(const struct oribi__frontend *frontend)
{
    for (uint32_t i = 0; i < frontend->config->board.count; i++)
        if (serves(&frontend->config->board.slots[i]))
            return true;
    return false;
}

static uint32_t median(uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t low = a < b ? a : b;
    uint32_t high = a < b ? b : a;
    return c < low ? low : c > high ? high : c;
}

/* One long call among short ones is most likely one from which the processor was taken; the second one counts. */
static void add_sample(struct oribi__dispatch_worker *worker, uint32_t took_us)
{
    if (worker->average_us == UINT32_MAX) {
        worker->average_us = worker->samples_us[0] = worker->samples_us[1] = took_us;
        return;
    }
    uint32_t middle_us = median(worker->samples_us[0], worker->samples_us[1], took_us);
    worker->average_us = (worker->average_us * 7 + middle_us) / 8;
    worker->samples_us[0] = worker->samples_us[1];
    worker->samples_us[1] = took_us;
}

/* The worker's own count says how long its calls take: the time from a request to its answer also holds the wait for a
 * processor, of which several requests at a time make less. Read once a turn, since the worker writes there. */
static void note_calls(struct oribi__frontend *frontend, uint16_t owner)
{
    struct oribi__dispatch_worker *worker = &frontend->dispatch->workers[owner];
    const struct oribi_slot *slot = &frontend->config->board.slots[owner - 1u];
    if (worker->looked_us == frontend->reactor.now_us)
        return;
    worker->looked_us = frontend->reactor.now_us;
    uint64_t count = atomic_load_explicit(&slot->request_count, memory_order_relaxed);
    uint64_t calls_us = atomic_load_explicit(&slot->call_time.sum_us, memory_order_relaxed);
    if (count > worker->call_count && calls_us >= worker->calls_us) { /* else it is another process */
        uint64_t mean_us = (calls_us - worker->calls_us) / (count - worker->call_count);
        add_sample(worker, mean_us < AVERAGE_US_MAX ? (uint32_t)mean_us : AVERAGE_US_MAX);
    }
    worker->call_count = count;
    worker->calls_us = calls_us;
}

void oribi__dispatch_note_end(struct oribi__frontend *frontend, uint16_t owner)
{
    if (owner == 0 || owner > frontend->config->board.count)
        return;
    frontend->dispatch->workers[owner].ended_us = oribi_clock_us();
    note_calls(frontend, owner);
}

void oribi__dispatch_shun(struct oribi__frontend *frontend, uint16_t owner)
{
    frontend->dispatch->workers[owner].shunned_until_ms = frontend->reactor.now_ms + SHUNNED_MS;
}

/* --- channels --- */

/* An idle channel of a worker that has room, `idle`: and no request of ours. */
static struct oribi__channel *free_channel(struct oribi__frontend *frontend, bool idle)
{
    for (struct oribi__channel *channel = frontend->channels->idle_first; channel; channel = channel->next) {
        uint16_t owner = oribi__channel_owner(channel);
        if (owner > 0 && owner <= frontend->config->board.count && !(idle && frontend->dispatch->workers[owner].out) &&
            free_at(frontend, owner - 1u) > 0)
            return channel;
    }
    return NULL;
}

/* Does a worker wait for requests that has no channel of ours? */
static bool waits_elsewhere(const struct oribi__frontend *frontend)
{
    for (uint32_t i = 0; i < frontend->config->board.count; i++)
        if (!frontend->dispatch->workers[i + 1].out && free_at(frontend, i) > 0)
            return true;
    return false;
}

/* Prefers a worker that has nothing to do, with a channel of ours or without one (NULL), to one that is done soon. */
static struct oribi__channel *choose(struct oribi__frontend *frontend)
{
    struct oribi__channel *channel = free_channel(frontend, true);
    return channel || waits_elsewhere(frontend) ? channel : free_channel(frontend, false);
}

/* The request travels with a new channel. ORIBI_AGAIN: not now. */
static int give(struct oribi__upstream_request *call)
{
    struct oribi__frontend *frontend = call->frontend;
    const struct oribi_frontend_listener *listener = &frontend->config->listeners[call->listener];
    int far_fd;
    int own_fd = -1;
    int body_fd = call->body_fd;
    struct oribi_slice body = call->body;
    bool fits = call->head.len + call->chunk_len + body.n + call->tail.len <= ORIBI_HANDOFF_BYTES_MAX;
    if (body_fd < 0 && (body.n > SPOOL_BYTES || (body.n > 0 && !fits))) {
        struct oribi_body copy;
        oribi_body_init(&copy);
        int code = oribi_body_append(&copy, body.p, body.n, UINT32_MAX, 0);
        code = code < 0 ? code : oribi_body_spool(&copy);
        if (code == 0) {
            body_fd = own_fd = oribi_os_dup(copy.fd);
            body = oribi_slice(NULL, 0);
        }
        oribi_body_deinit(&copy);
        if (own_fd < 0)
            return ORIBI_ENOMEM;
    }
    struct oribi__channel *channel = oribi__channel_open(frontend, NULL, &far_fd);
    if (!channel) {
        oribi_os_close(own_fd);
        return ORIBI_AGAIN;
    }
    struct iovec vec[4];
    size_t count = 0;
    vec[count++] = (struct iovec){call->head.p, call->head.len};
    if (call->chunk_len && body.n)
        vec[count++] = (struct iovec){call->chunk, call->chunk_len};
    if (body.n)
        vec[count++] = (struct iovec){(void *)body.p, body.n};
    struct oribi_slice tail = oribi_slice(call->tail.p, call->tail.len);
    if (call->chunk_len && !body.n) { /* the chunk's end stands in front of the last chunk: the body is in the file */
        tail.p += 2;
        tail.n -= 2;
    }
    if (tail.n)
        vec[count++] = (struct iovec){(void *)tail.p, tail.n};
    struct oribi_handoff_item item = {
        .fd = far_fd,
        .body_fd = body_fd,
        .body_len = call->body_len,
        .complete_us = call->complete_us,
        .channel = channel->number,
        .ring_fd = channel->ring ? channel->ring->memory_fd : 0,
        .listener = listener->index,
        .listener_hash = listener->hash,
    };
    int code = oribi_handoff_give(&frontend->config->handoff, &item, vec, count);
    if (code == ORIBI_ELIMIT) /* a head that is too long */
        code = oribi_handoff_give_long(&frontend->config->handoff, &item, vec, count);
    oribi_os_close(far_fd);
    oribi_os_close(own_fd);
    if (code < 0) {
        oribi__channel_close(channel);
        return code == ORIBI_ELIMIT || code == ORIBI_EFULL || code == ORIBI_ESTORE ? ORIBI_ENOMEM : ORIBI_AGAIN;
    }
    if (channel->ring)
        oribi_channel_ring_sent(channel->ring);
    frontend->dispatch->woken_us = frontend->reactor.now_us;
    oribi_frontend_slot_count(&frontend->slot->passed_count, 1);
    atomic_fetch_add_explicit(&frontend->config->board.slots->handed_off, 1,
                              memory_order_relaxed); /* its taker subtracts */
    (void)oribi__channel_call(channel, call, false);
    return 0;
}

/* Requests of all frontends that workers have, waiting or called. */
static int64_t out_of_frontends(const struct oribi__frontend *frontend)
{
    int64_t sum = frontend->calls_out;
    for (uint32_t i = 0; frontend->config->slots && i < ORIBI_FRONTENDS_MAX; i++)
        if (&frontend->config->slots[i] != frontend->slot)
            sum += atomic_load_explicit(&frontend->config->slots[i].calls_out, memory_order_relaxed);
    return sum;
}

/* How many requests wait for workers that did not come through a frontend, or fewer: calls of ours are not told from
 * what waits. */
static int64_t others_waiting(const struct oribi__frontend *frontend)
{
    const struct oribi_scoreboard *board = &frontend->config->board;
    int64_t waiting = board->count ? atomic_load_explicit(&board->slots->handed_off, memory_order_relaxed) : 0;
    for (uint32_t i = 0; i < board->count; i++)
        waiting += atomic_load_explicit(&board->slots[i].queue_len, memory_order_relaxed);
    int64_t others = waiting - out_of_frontends(frontend);
    return others > 0 ? others : 0;
}

/* May one more request travel through the hand-off queue? As many are out as workers have capacity, which others may
 * have taken. Where requests of others wait, as many of ours wait among them: with one for each free thread alone, a
 * frontend's clients would come last of all. */
static bool may_give(const struct oribi__frontend *frontend)
{
    int64_t capacity = oribi__dispatch_capacity(frontend);
    return frontend->calls_out < capacity || frontend->calls_out < capacity + others_waiting(frontend);
}

/* Channels beyond what workers can use at a time are closed, those used longest ago first. */
static void trim(struct oribi__frontend *frontend)
{
    uint32_t keep = 2 * oribi__dispatch_capacity(frontend) + 2;
    while (frontend->channels->idle_count > keep)
        oribi__channel_close(frontend->channels->idle_last);
}

static bool send_first(struct oribi__frontend *frontend, struct oribi__channel *channel)
{
    struct oribi__upstream_request *call = frontend->dispatch->first;
    if (call->body_fd >= 0)
        return false;
    oribi__dispatch_remove(call);
    if (oribi__channel_call(channel, call, true))
        return true;
    oribi__dispatch_add(call, true); /* the channel has ended */
    return true;
}

void oribi__dispatch_give_up(struct oribi__frontend *frontend)
{
    while (frontend->dispatch->first)
        oribi__upstream_failed(frontend->dispatch->first, 503, ORIBI_REFUSAL_QUEUE, "the server ends");
}

void oribi__dispatch(struct oribi__frontend *frontend)
{
    if (frontend->gives_up)
        oribi__dispatch_give_up(frontend);
    if (frontend->dispatch->first)
        oribi__channels_look(frontend);
    while (frontend->dispatch->first) {
        struct oribi__upstream_request *call = frontend->dispatch->first;
        struct oribi__channel *channel = call->body_fd < 0 ? choose(frontend) : NULL;
        if (channel) {
            (void)send_first(frontend, channel);
            continue;
        }
        if (!may_give(frontend))
            break;
        oribi__dispatch_remove(call);
        int code = give(call);
        if (code == ORIBI_AGAIN) {
            oribi__dispatch_add(call, true);
            if (call->body_fd < 0 && (channel = free_channel(frontend, false)) != NULL && send_first(frontend, channel))
                continue; /* without descriptors for another channel */
            break;
        }
        if (code < 0)
            oribi__upstream_failed(call, 503, ORIBI_REFUSAL_MEMORY, "a request cannot be handed to a worker");
    }
    if (frontend->channels->idle_count > 4)
        trim(frontend);
}

/* Its worker has just ended a call and looks for the next: the request that waits longest goes out in this turn. A
 * worker that stops, or that others keep busy, is passed by. */
void oribi__dispatch_idle(struct oribi__channel *channel)
{
    struct oribi__frontend *frontend = channel->frontend;
    uint16_t owner = oribi__channel_owner(channel);
    if (!frontend->dispatch->first || frontend->gives_up || owner == 0 || owner > frontend->config->board.count)
        return;
    const struct oribi_slot *slot = &frontend->config->board.slots[owner - 1u];
    if (serves(slot) && frontend->reactor.now_ms >= frontend->dispatch->workers[owner].shunned_until_ms &&
        frontend->dispatch->workers[owner].out < room_at(frontend, owner - 1u))
        (void)send_first(frontend, channel);
}
