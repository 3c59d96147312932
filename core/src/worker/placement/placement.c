/* Placement rules: which connections go into the hand-off queue, when to take some out, and what a busy worker does
 * not watch. Needs no memory of its own, because at the hard deadline of a call it runs in a signal handler. */
#include "worker/placement/placement.h"
#include "worker/placement/accept.h"
#include "worker/worker_private.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/http/response.h"
#include "oribi/worker/channel_ring.h"

#include <poll.h>
#include <string.h>

enum {
    TAKE_MAX = 16,                       /* messages a turn: connections without a request cost next to nothing */
    TAKE_FDS = 2,                        /* a message's: a connection, and a request's body in a file; a channel
                                          * has its memory besides */
    PASS_IDLE_BATCH = 64,                /* a turn while stopping */
    LEAVE_US = 2000,                     /* how long something that waits is left to a sleeper */
    BALANCE_US = 10000,                  /* between two comparisons of connections */
    PASS_PARTS_BYTES = 16 * 1024 * 1024, /* of a body that would have to be put together first, in memory */
    CROWDED_US = 50 * 1000,              /* since the hand-off queue was full */
    LATE_EIGHTHS = 7, /* of the longest wait: who has waited for so long goes into what room there is */
    ROOM_MS_MAX = 10, /* a wait for room in the hand-off queue: other events are due too */
};

/* --- giving --- */

/* FNV-1a of a listener's address: the index alone could mean another one after a reload with other addresses. */
static uint32_t listener_hash(const struct oribi_listener *listener)
{
    uint32_t hash = 2166136261u;
    for (const char *p = listener->text; *p; p++)
        hash = (hash ^ (unsigned char)*p) * 16777619u;
    return hash;
}

_Static_assert((int)ORIBI_WIRE_VECS_MAX <= (int)ORIBI_HANDOFF_VECS_MAX, "what travels fits into a message");

_Static_assert((int)ORIBI_SLOTS_MAX < (int)ORIBI_CHANNEL_LENT, "an owner leaves room for the flag");

/* The owner of a channel, as its frontend reads it; NULL: there is no frontend. */
static _Atomic uint16_t *place_of(const struct oribi_worker *w, uint16_t number)
{
    const struct oribi_scoreboard *board = w->setup.board;
    return board && number <= ORIBI_CHANNELS_MAX ? &board->channels[number] : NULL;
}

static uint16_t own_place(const struct oribi_worker *w)
{
    return (uint16_t)(w->slot - w->setup.board->slots + 1);
}

/* Tells a channel's frontend whose it is now: ours, or nobody's on its way. */
static void set_owner(const struct oribi_worker *w, uint16_t number, bool ours)
{
    _Atomic uint16_t *place = place_of(w, number);
    if (!place)
        return;
    uint32_t lent = atomic_load_explicit(place, memory_order_relaxed) & ORIBI_CHANNEL_LENT;
    atomic_store_explicit(place, (uint16_t)(lent | (ours ? own_place(w) : 0)), memory_order_release);
}

/* Changes what stands there if it is ours: the frontend may have given the number to another channel. */
static void change_own(const struct oribi_worker *w, uint16_t number, uint32_t kept, uint32_t added)
{
    _Atomic uint16_t *place = place_of(w, number);
    uint16_t was = place ? atomic_load_explicit(place, memory_order_relaxed) : 0;
    while (place && (was & ~ORIBI_CHANNEL_LENT) == own_place(w) &&
           !atomic_compare_exchange_weak_explicit(place, &was, (uint16_t)((was & kept) | added), memory_order_release,
                                                  memory_order_relaxed))
        continue;
}

void oribi__disown_channel(const struct oribi_worker *w, uint16_t number)
{
    change_own(w, number, ORIBI_CHANNEL_LENT, 0);
}

void oribi__lend_channel(const struct oribi_worker *w, struct oribi_conn *c)
{
    uint16_t number = c->channel->number;
    if (c->transport)
        oribi_channel_ring_leave((struct oribi_channel_ring *)c->transport);
    change_own(w, number, UINT16_MAX, ORIBI_CHANNEL_LENT);
}

static void note_full(struct oribi_worker *w)
{
    w->placement.wants_room = true;
    atomic_store_explicit(&w->setup.board->slots->handoff_full_us, w->reactor.now_us,
                          memory_order_relaxed); /* a hint */
}

/* in_file: its bytes. 0; ORIBI_AGAIN: the hand-off queue is full; or a code: it cannot travel (so). */
static int give(struct oribi_worker *w, struct oribi_conn *c, bool in_file)
{
    const struct oribi_listener *listener = c->listener;
    bool queued = c->state == ORIBI_CONN_QUEUED;
    struct oribi_wire wire;
    if (queued && c->exchange->parts) {
        int error = oribi_conn_spool(&w->reactor, c); /* where it goes, it is a body like any other */
        if (error < 0)
            return error;
    }
    oribi_conn_wire(c, &wire);
    struct oribi_handoff_item item = {
        .fd = c->watch.fd,
        .body_fd = wire.body_fd,
        .body_len = wire.body_len,
        .complete_us = queued ? c->exchange->complete_us : 0,
        .request_count = c->request_count - (c->exchange ? 1 : 0),
        .listener = (uint32_t)(listener - w->setup.listeners->items),
        .listener_hash = listener_hash(listener),
        .addr_len = c->addr_len,
        .port_len = c->port_len,
        .proxy_awaited = c->proxy_awaited,
        .proxy_tls = c->proxy_tls,
        .channel = c->channel ? c->channel->number : 0,
        .ring_fd = c->transport ? ((const struct oribi_channel_ring *)c->transport)->memory_fd : 0,
    };
    memcpy(item.addr, c->addr, sizeof(item.addr));
    memcpy(item.port, c->port, sizeof(item.port));
    if (c->channel)
        set_owner(w, c->channel->number, false);
    int result =
        (in_file ? oribi_handoff_give_long : oribi_handoff_give)(&w->placement.queue, &item, wire.vec, wire.count);
    if (result != 0 && c->channel)
        set_owner(w, c->channel->number, true); /* it stays */
    if (result == 0)
        atomic_fetch_add_explicit(&w->setup.board->slots->handed_off, 1, memory_order_relaxed); /* to be shown */
    else if (result == ORIBI_AGAIN)
        note_full(w);
    return result;
}

/* A body that is too large for a message travels in a file; a head that is too large does so too. */
static int give_spooled(struct oribi_worker *w, struct oribi_conn *c)
{
    bool queued = c->state == ORIBI_CONN_QUEUED;
    int result = oribi_conn_movable(c) ? give(w, c, false) : ORIBI_EBAD;
    if (result != ORIBI_ELIMIT || (queued && c->exchange->parts))
        return result;
    if (queued && c->exchange->body.fd < 0 && c->exchange->body.len > 0) {
        int code = oribi_conn_spool(&w->reactor, c);
        result = code < 0 ? code : give(w, c, false);
        if (code < 0 || result != ORIBI_ELIMIT)
            return result;
    }
    return give(w, c, true);
}

bool oribi__pass_conn(struct oribi_worker *w, struct oribi_conn *c)
{
    return w->placement.queue.give_fd >= 0 && give_spooled(w, c) == 0;
}

/* Putting it together would keep all connections of this worker waiting. */
static bool is_long_form(const struct oribi_conn *c)
{
    return c->exchange->parts && c->exchange->parts->len > PASS_PARTS_BYTES;
}

static bool is_long(const struct oribi_worker *w, int64_t age_us)
{
    return age_us >= ORIBI_EXPECT_US || atomic_load_explicit(&w->placement.expects_long, memory_order_relaxed);
}

/* Limits on waiting count what a worker has itself. */
static bool may_wait_for_any(const struct oribi_worker *w)
{
    return w->placement.queue.give_fd >= 0 && !oribi__limits_waiting(w->options) && oribi__has_siblings(w);
}

/* Behind a long call a request waits for whichever worker is free first. In the hand-off queue it need not be found
 * then: that worker takes what has waited longest, of all workers. */
bool oribi__waits_for_any(const struct oribi_worker *w, int64_t age_us)
{
    return is_long(w, age_us) && may_wait_for_any(w);
}

static int64_t call_age_us(const struct oribi_worker *w)
{
    int64_t started_us = atomic_load_explicit(&w->slot->call_started_us, memory_order_relaxed);
    return started_us ? w->reactor.now_us - started_us : 0;
}

/* Where they would have to stay with this worker, though it has siblings, they are better left to the worker whose call
 * ends first. */
bool oribi__queues_newcomers(const struct oribi_worker *w)
{
    if (oribi_worker_stopping(w) || !is_long(w, call_age_us(w)))
        return false;
    return may_wait_for_any(w) ? !w->placement.kept : !oribi__has_siblings(w);
}

static bool is_crowded(const struct oribi_worker *w)
{
    int64_t full_us = atomic_load_explicit(&w->setup.board->slots->handoff_full_us, memory_order_relaxed);
    return full_us && w->reactor.now_us - full_us < CROWDED_US;
}

/* Where the hand-off queue has no room for all and no sibling is idle, the room is for those of all workers that have
 * waited longest: when the youngest of them was complete. Nothing is held back for long: what waits here becomes the
 * oldest, and where those who hold the oldest do not come for the room, the queue is soon no longer full. */
static int64_t youngest_us(const struct oribi_worker *w, const struct oribi_conn *first)
{
    if (!first || !is_crowded(w) || oribi__idle_siblings(w, 1) > 0)
        return INT64_MAX;
    int64_t elsewhere_us = oribi__oldest_elsewhere_us(w);
    int64_t own_us = first->exchange->complete_us;
    int64_t oldest_us = elsewhere_us && elsewhere_us < own_us ? elsewhere_us : own_us;
    return w->reactor.now_us - (w->reactor.now_us - oldest_us) * LATE_EIGHTHS / 8;
}

/* The first that may go; NULL: none. */
static struct oribi_conn *behind(const struct oribi_worker *w, uint32_t keep)
{
    struct oribi_conn *c = w->reactor.run_first;
    for (; c && keep > 0; keep--)
        c = c->run_next;
    return c;
}

uint32_t oribi__pass_on(struct oribi_worker *w, uint32_t keep)
{
    w->placement.wants_room = false;
    if (w->placement.queue.give_fd < 0 || w->reactor.queue_len <= keep || w->stopping)
        return 0;
    uint32_t wanted = w->reactor.queue_len - keep;
    uint32_t takers = oribi__waits_for_any(w, call_age_us(w)) ? wanted : oribi__idle_siblings(w, wanted);
    uint32_t passed = 0;
    if (takers == 0 && keep > 0)
        takers = oribi__evened_out(w, wanted);
    struct oribi_conn *c = behind(w, keep);
    int64_t last_us = takers > 0 ? youngest_us(w, c) : 0;
    while (c && passed < takers && c->exchange->complete_us <= last_us && !w->placement.wants_room) {
        struct oribi_conn *next = c->run_next;
        if (!is_long_form(c) && oribi__pass_conn(w, c)) {
            oribi_conn_leave(&w->reactor, c);
            passed++;
        }
        c = next;
    }
    if (passed) {
        oribi__count(&w->slot->passed_count, passed);
        oribi__publish_queue(w);
    }
    return passed;
}

/* An awake worker is quicker at the listener than those who sleep, and what it collects in a burst of newcomers
 * would keep it busy, and them idle, for as long as the connections live. Closing the listener watches instead would
 * leave a connection that the kernel told us alone about. */
static bool holds_too_many(const struct oribi_worker *w)
{
    return !w->placement.way.computes && oribi__holds_more_than(w, 9);
}

/* Short calls are not worth a hand-off each, but their connections stay where they go: once is enough, when clients
 * that left elsewhere have left the rest here. Looking at every slot is not for every request. */
bool oribi__should_pass(struct oribi_worker *w)
{
    if (w->placement.way.computes)
        return false; /* a sibling on the same processor is no help */
    if (w->call_lengths.average_us > ORIBI_PASS_US)
        return true;
    if (w->reactor.now_us - w->placement.balanced_us < BALANCE_US)
        return false;
    w->placement.balanced_us = w->reactor.now_us;
    return oribi__holds_more_than(w, 8);
}

/* The kernel reports a waiting connection to all workers that are awake, and wakes one sleeper besides. A worker that
 * goes to sleep looks once more, so leaving is safe; the bound is for a sleeper that was killed just then. */
bool oribi__leave_to_sleepers(const struct oribi_worker *w, int64_t ready_us)
{
    if (w->woken || w->placement.way.computes || w->placement.queue.give_fd < 0 ||
        (ready_us && w->reactor.now_us - ready_us > LEAVE_US))
        return false;
    if (w->call_lengths.average_us > ORIBI_PASS_US)
        return oribi__idle_siblings(w, 1) > 0;
    return holds_too_many(w);
}

/* Behind others of ours, and all siblings are busy: as many more would not wait for as long there. */
static bool is_worth_sharing(const struct oribi_worker *w, const struct oribi_conn *c)
{
    return c->state == ORIBI_CONN_QUEUED && w->reactor.run_first != c && !c->claimed &&
           w->call_lengths.average_us > ORIBI_PASS_US && !w->placement.way.computes && may_wait_for_any(w) &&
           !is_crowded(w);
}

void oribi__share(struct oribi_worker *w, struct oribi_conn *c)
{
    if (c->state == ORIBI_CONN_CLOSED || oribi_worker_stopping(w) || (!is_worth_sharing(w, c) && !holds_too_many(w)) ||
        !oribi__pass_conn(w, c))
        return;
    oribi_conn_leave(&w->reactor, c);
    w->acceptor.rotate_due = true;
    oribi__count(&w->slot->passed_count, 1);
}

bool oribi__share_beyond(struct oribi_worker *w, struct oribi_conn *c)
{
    if (!oribi__has_room_elsewhere(w) || !oribi__pass_conn(w, c))
        return false;
    oribi_conn_leave(&w->reactor, c);
    w->acceptor.rotate_due = true;
    oribi__count(&w->slot->passed_count, 1);
    return true;
}

bool oribi__pass_idle(struct oribi_worker *w)
{
    if (w->placement.queue.give_fd < 0 || !oribi__has_siblings(w))
        return false;
    uint32_t left = PASS_IDLE_BATCH;
    struct oribi_conn *c = w->reactor.conns;
    while (c && left > 0) {
        struct oribi_conn *next = c->next;
        if (c->state == ORIBI_CONN_IDLE) {
            if (!oribi__pass_conn(w, c))
                return true; /* full: they empty it, and we come again */
            oribi_conn_leave(&w->reactor, c);
            left--;
        }
        c = next;
    }
    return true;
}

/* --- a worker that retires --- */

/* False: the hand-off queue is full. */
static bool retire_conn(struct oribi_worker *w, struct oribi_conn *c)
{
    int result = give_spooled(w, c);
    if (result == ORIBI_AGAIN)
        return false;
    if (result == 0) {
        oribi_conn_leave(&w->reactor, c);
        oribi__count(&w->slot->passed_count, 1);
    } else if (c->exchange) { /* no other worker will answer it, nor will we */
        const char *reason = "the worker ends, and the request cannot be passed on";
        oribi_conn_refuse_busy(&w->reactor, c, ORIBI__RETRY_AFTER_S, ORIBI_REFUSAL_WORKER_END, reason);
    } else {
        oribi_conn_abort(&w->reactor, c, false);
    }
    return true;
}

bool oribi__pass_all(struct oribi_worker *w)
{
    while (w->reactor.run_first) /* in their order */
        if (!retire_conn(w, w->reactor.run_first))
            return false;
    struct oribi_conn *c = w->reactor.conns;
    while (c) {
        struct oribi_conn *next = c->next;
        if ((c->state == ORIBI_CONN_IDLE || c->state == ORIBI_CONN_HEAD) && !retire_conn(w, c))
            return false;
        c = next;
    }
    return true;
}

void oribi__await_room(const struct oribi_worker *w, int64_t ms)
{
    struct pollfd room = {.fd = w->placement.queue.give_fd, .events = POLLOUT};
    (void)poll(&room, 1, ms >= 0 && ms < ROOM_MS_MAX ? (int)ms : ROOM_MS_MAX); /* why it ended does not matter */
}

/* --- taking --- */

const struct oribi_listener *oribi__listener_by(const struct oribi_worker *w, uint32_t index, uint32_t hash)
{
    const struct oribi_listeners *listeners = w->setup.listeners;
    if (index < listeners->count && listener_hash(&listeners->items[index]) == hash)
        return &listeners->items[index];
    for (uint32_t i = 0; i < listeners->count; i++)
        if (listener_hash(&listeners->items[i]) == hash)
            return &listeners->items[i];
    return &listeners->items[0]; /* accepted at an address that this generation has no more */
}

static void close_ring(const struct oribi_handoff_item *item)
{
    if (item->ring_fd > 0)
        oribi_os_close(item->ring_fd);
}

/* Takes the item's ring. False: no memory, the connection is closed. */
static bool be_channel(struct oribi_worker *w, struct oribi_conn *c, const struct oribi_handoff_item *item)
{
    if (item->ring_fd > 0 && w->setup.board) {
        uint32_t frontend = (item->channel - 1u) / (ORIBI_CHANNELS_MAX / ORIBI_FRONTENDS_MAX);
        struct oribi_channel_ring *ring = oribi_channel_ring_try_attach(
            item->ring_fd, item->fd, &w->setup.board->frontends[frontend].asleep, &w->placement.last_woken[frontend]);
        if (!ring) {
            oribi_conn_abort(&w->reactor, c, false); /* its frontend may write where we cannot read */
            return false;
        }
        c->transport = &ring->transport;
    } else {
        close_ring(item);
    }
    if (!oribi_conn_be_channel(&w->reactor, c, item->channel))
        return false;
    set_owner(w, item->channel, true); /* before the first look at the ring: its frontend wakes us from here on */
    return true;
}

/* Takes what the item owns, but its long_bytes. */
static void open_taken(struct oribi_worker *w, const struct oribi_handoff_item *item)
{
    struct oribi_conn *c =
        oribi_conn_open(&w->reactor, item->fd, oribi__listener_by(w, item->listener, item->listener_hash));
    if (!c) {
        oribi_os_close(item->body_fd);
        close_ring(item);
        return;
    }
    c->request_count = item->request_count;
    c->proxy_awaited = item->proxy_awaited;
    c->proxy_tls = item->proxy_tls;
    c->addr_len = item->addr_len;
    c->port_len = item->port_len;
    memcpy(c->addr, item->addr, sizeof(c->addr));
    memcpy(c->port, item->port, sizeof(c->port));
    if (item->channel && !be_channel(w, c, item)) {
        oribi_os_close(item->body_fd);
        return;
    }
    oribi_conn_resume(&w->reactor, c, item->bytes, item->body_fd, item->body_len, item->complete_us);
    oribi__count(&w->slot->taken_count, 1);
    if (!item->channel)
        (void)oribi__make_room(w); /* where it can: what a sibling passes on is taken in any case */
}

_Static_assert(ORIBI_CONN_ADDR_CAP == sizeof(((struct oribi_handoff_item *)0)->addr), "addresses travel whole");
_Static_assert(ORIBI_CONN_PORT_CAP == sizeof(((struct oribi_handoff_item *)0)->port), "ports travel whole");

/* --- descriptors --- */

/* Asked right before each message is taken, because the kernel drops descriptors that it has no room for: then the
 * others get it. */
static bool can_take(struct oribi_worker *w)
{
    bool long_heads = w->options->limits.head_bytes_max > ORIBI_HEAD_BYTES_DEFAULT; /* may come in files of their own */
    return oribi_os_can_open(w->wake.read_fd, TAKE_FDS + w->has_frontends + long_heads);
}

static void set_starved(struct oribi_worker *w, bool starved)
{
    w->placement.starved = starved;
    /* a hint: the hand-off queue is safe without it */
    atomic_store_explicit(&w->slot->starved, starved, memory_order_relaxed);
    oribi__handoff_watch(w, !starved && !w->accept_sources_closed);
}

static void starve(struct oribi_worker *w)
{
    set_starved(w, true);
    oribi_handoff_notify(&w->placement.queue); /* the wake-up for what is left there was ours */
    if (oribi_log_limit_allows(&w->refuse_log_limit, w->reactor.now_ms))
        oribi_log(ORIBI_LOG_WARN,
                  "out of file descriptors: this worker takes no connections from other workers for %d ms",
                  ORIBI__STARVED_LOOK_MS);
}

void oribi__look_for_descriptors(struct oribi_worker *w)
{
    if (w->placement.starved && can_take(w))
        set_starved(w, false);
}

/* Another thread has opened something since we looked. */
static void lose(struct oribi_worker *w, const struct oribi_handoff_item *item)
{
    char text[512]; /* without added headers, which need more */
    const struct oribi_server_answer own = {.status = 503,
                                            .retry_after_s = ORIBI__RETRY_AFTER_S,
                                            .date = oribi_reactor_date(&w->reactor),
                                            .server = w->reactor.config.server};
    oribi__count(&w->slot->lost_count, 1);
    oribi_log(ORIBI_LOG_ERROR, "out of file descriptors: a connection of another worker came without %s: %s",
              item->fd < 0 ? "its socket" : "a file of its request",
              item->fd < 0 ? "its connection is closed" : "its client is answered 503");
    if (item->fd < 0)
        return;
    struct iovec vec = {text, oribi_response_own(&own, text, sizeof(text))};
    (void)oribi_os_send_vec(item->fd, &vec, 1); /* a client that has gone is answered by the close */
    oribi_os_close(item->fd);
}

/* One message. False when no more is to be taken now. */
static bool take_one(struct oribi_worker *w)
{
    struct oribi_handoff_item item;
    if (!can_take(w)) {
        oribi__fd_guard_check(w); /* what is copied for the look may be gone */
        starve(w);
        return false;
    }
    int result = oribi_handoff_take(&w->placement.queue, w->placement.buf, ORIBI_HANDOFF_BUF_BYTES, &item);
    if (result == 0 || result == ORIBI_ELIMIT)
        atomic_fetch_sub_explicit(&w->setup.board->slots->handed_off, 1, memory_order_relaxed);
    if (result == ORIBI_HANDOFF_WAKEUP)
        oribi__listener_watches_rotate(w); /* a newcomer may wait there, whose wake-up went to another worker */
    if (result == ORIBI_ELIMIT)
        lose(w, &item);
    if (result < 0 && result != ORIBI_AGAIN && result != ORIBI_ELIMIT)
        oribi__fd_guard_check(w);
    if (result != 0)
        return result == ORIBI_HANDOFF_WAKEUP || result == ORIBI_ELIMIT || result == ORIBI_EBAD;
    uint32_t before = w->reactor.queue_len;
    open_taken(w, &item);
    oribi_mem_free(item.long_bytes);
    /* One call at a time: the next is for the worker that is free first. Of connections our share: each message has
     * woken a sleeper of its own. */
    return w->reactor.queue_len == before && !holds_too_many(w);
}

/* A request of ours has waited for longer than the first message, and all others are busy. Taken all the same, that one
 * would be passed on, to the end of the queue. After a sleep the wake-up for it may have been ours alone. */
static bool own_comes_first(const struct oribi_worker *w)
{
    int64_t complete_us;
    const struct oribi_conn *own = w->reactor.run_first;
    return own && !w->woken && oribi_handoff_waiting(&w->placement.queue, &complete_us) &&
           complete_us > own->exchange->complete_us && oribi__idle_siblings(w, 1) == 0;
}

void oribi__take_late(struct oribi_worker *w)
{
    int64_t complete_us;
    const int64_t max_us = w->options->queue_time_max_ms * 1000;
    if (max_us > 0 && w->placement.queue.take_fd >= 0 &&
        atomic_load_explicit(&w->setup.board->slots->handed_off, memory_order_relaxed) > 0 &&
        oribi_handoff_waiting(&w->placement.queue, &complete_us) && complete_us > 0 &&
        w->reactor.now_us - complete_us > max_us)
        (void)take_one(w);
}

void oribi__handoff_turn(struct oribi_worker *w)
{
    w->placement.ready = false;
    if (!w->stopping && oribi__leave_to_sleepers(w, w->placement.ready_us)) {
        if (!w->placement.ready_us)
            w->placement.ready_us = w->reactor.now_us;
        return;
    }
    w->placement.ready_us = 0;
    if (w->placement.queue.take_fd < 0 || !w->setup.listeners || w->setup.listeners->count == 0 || own_comes_first(w))
        return;
    uint32_t taken = w->reactor.conn_count;
    for (int i = 0; i < TAKE_MAX && take_one(w); i++)
        continue;
    if (w->reactor.conn_count == taken)
        return;
    /* As with a listener: to the end of the queue of sleepers, so that the same one does not get everything. */
    if (w->placement.watched)
        oribi_loop_rotate(w->reactor.loop, &w->placement.watch);
}

/* --- what is watched --- */

static void on_queue_ready(void *self, struct oribi_watch *watch)
{
    struct oribi_worker *w = self;
    w->placement.ready = true;
}

void oribi__handoff_watch(struct oribi_worker *w, bool on)
{
    if (w->placement.queue.take_fd < 0 || w->placement.watched == on || (on && (w->stopping || w->placement.starved)))
        return;
    w->placement.watch.handler = on_queue_ready;
    if (!on)
        oribi_loop_remove(w->reactor.loop, &w->placement.watch);
    else if (oribi_loop_add(w->reactor.loop, &w->placement.watch, w->placement.queue.take_fd, ORIBI_WATCH_LISTENER,
                            ORIBI_READ) < 0)
        return;
    w->placement.watched = on;
    w->placement.ready = false;
}

void oribi__accept_sources_close(struct oribi_worker *w)
{
    oribi__listener_watches_unwatch(
        w); /* after a sleep the first connection that waited was taken: no wake-up is spent on us and not followed */
    oribi__handoff_watch(w, false);
    oribi_loop_remove(w->reactor.loop, &w->wake_watch);
    w->accept_sources_closed = true;
}

/* All before the next poll, or under a load that never ends newcomers would never be seen: between two long calls there
 * is one turn. */
void oribi__accept_sources_open(struct oribi_worker *w)
{
    w->accept_sources_closed = false;
    oribi__listener_watches_restore(w);
    if (oribi_loop_add(w->reactor.loop, &w->wake_watch, w->wake.read_fd, ORIBI_WATCH_SIGNAL, ORIBI_READ) < 0)
        oribi_log(ORIBI_LOG_ERROR, "cannot watch the wake descriptor: %s", oribi_os_error_text());
    oribi__handoff_watch(w, true);
}
