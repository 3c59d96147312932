/* One turn of a worker's connections. Functions stand in reading order: init, wait, turn, the run queue, descriptors,
 * room for new connections, sleep, end. */
#include "oribi/event/reactor.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/base/ring.h"

#include "event/conn_private.h"

#include <assert.h>
#include <string.h>

enum {
    FULL_TURNS_MAX = 16,
    ROOM_LOOKS_MAX = 16, /* connections that turn out not to be idle, in one call of oribi_reactor_make_room() */
};

static int polled_count(struct oribi_reactor *r);

/* One turn, in its order. */
static void run_polled(struct oribi_reactor *r);
static void run_posted(struct oribi_reactor *r);
static void run_connections(struct oribi_reactor *r, int count);
static void run_handlers(struct oribi_reactor *r, int count);
static void answer_claimed(struct oribi_reactor *r);
static bool deadlines_may_run(struct oribi_reactor *r, int count);
static void run_timeouts(struct oribi_reactor *r);
static void free_deferred(struct oribi_reactor *r);

static void unlink_posted(struct oribi_reactor *r, struct oribi_conn *c);
static void append(struct oribi_conn **first, struct oribi_conn **last, struct oribi_conn *c);
static bool unlink_from(struct oribi_conn **first, struct oribi_conn **last, struct oribi_conn *c);
static void lose_descriptor(struct oribi_reactor *r, struct oribi_conn *c);

int oribi_reactor_init(struct oribi_reactor *r, const struct oribi_reactor_config *config,
                       const struct oribi_reactor_hooks *hooks, enum oribi_loop_source source)
{
    memset(r, 0, sizeof(*r));
    r->config = *config;
    r->channel_limits = config->limits;
    r->channel_limits.head_bytes_max += ORIBI__CHANNEL_MORE_BYTES;
    r->channel_limits.fields_max += ORIBI__CHANNEL_MORE_FIELDS;
    r->call_limits = r->channel_limits;
    r->call_limits.body_bytes_max = INT64_MAX;
    r->hooks = *hooks;
    r->budget.memory_max = config->buffers_memory_max;
    r->budget.file_max = config->buffers_file_max;
    assert(config->exchange_bytes >= sizeof(struct oribi_conn_request));
    int result = oribi_loop_create(source, &r->loop);
    if (result < 0)
        return result;
    r->scratch = oribi_mem_alloc(1, ORIBI_SCRATCH_BYTES);
    oribi_pool_init(&r->conn_pool, sizeof(struct oribi_conn), ORIBI_POOL_KEEP * 4);
    oribi_pool_init(&r->buf_pool, ORIBI_READ_BUF_BYTES, ORIBI_POOL_KEEP);
    oribi_pool_init(&r->exchange_pool, config->exchange_bytes, ORIBI_POOL_KEEP);
    oribi_timeouts_init(&r->timeouts);
    oribi_timeouts_set(&r->timeouts, ORIBI_TIMEOUT_FIRST, config->head_timeout_ms);
    oribi_timeouts_set(&r->timeouts, ORIBI_TIMEOUT_HEAD, config->head_timeout_ms);
    oribi_timeouts_set(&r->timeouts, ORIBI_TIMEOUT_BODY, config->body_timeout_ms);
    oribi_timeouts_set(&r->timeouts, ORIBI_TIMEOUT_IDLE, config->idle_timeout_ms);
    oribi_timeouts_set(&r->timeouts, ORIBI_TIMEOUT_WRITE, config->write_timeout_ms);
    oribi_timeouts_set(&r->timeouts, ORIBI_TIMEOUT_LINGER, ORIBI_LINGER_SILENCE_MS_MAX);
    oribi_reactor_clock(r, oribi_clock_us());
    return 0;
}

void oribi_reactor_clock(struct oribi_reactor *r, int64_t now_us)
{
    r->now_us = now_us;
    r->now_ms = now_us / 1000;
}

bool oribi_reactor_yields(struct oribi_reactor *r)
{
    if (__builtin_expect(!r->neighbour, 1))
        return false;
    r->neighbour = false;
    return oribi_yield_due(&r->yield, r->now_us);
}

void oribi_reactor_wait(struct oribi_reactor *r, int64_t timeout_ms)
{
    if (r->event_count > 0 || oribi_reactor_goes_on(r) || r->run_first)
        return;
    int64_t next_ms = oribi_timeouts_next_ms(&r->timeouts, oribi_clock_ms());
    if (next_ms >= 0 && (timeout_ms < 0 || next_ms < timeout_ms))
        timeout_ms = next_ms;
    bool yields = oribi_reactor_yields(r);
    int64_t took_us = yields ? oribi_yield() : 0;
    int found = yields ? polled_count(r) : 0;
    if (timeout_ms != 0 && !oribi_reactor_fall_asleep(r))
        timeout_ms = 0;
    r->event_count = oribi_loop_poll(r->loop, timeout_ms > INT32_MAX ? INT32_MAX : (int)timeout_ms, r->events,
                                     ORIBI_LOOP_EVENTS_MAX);
    if (yields)
        oribi_yield_note(&r->yield, took_us, r->now_us + took_us, found + r->event_count);
}

int oribi_reactor_look(struct oribi_reactor *r)
{
    if (r->event_count == 0)
        r->event_count = oribi_loop_poll(r->loop, 0, r->events, ORIBI_LOOP_EVENTS_MAX);
    return r->event_count;
}

int oribi_reactor_turn(struct oribi_reactor *r)
{
    if (r->event_count == 0)
        r->event_count = oribi_loop_poll(r->loop, 0, r->events, ORIBI_LOOP_EVENTS_MAX);
    oribi_reactor_clock(r, oribi_clock_us());
    int count = r->event_count;
    if (__builtin_expect(r->asleep != NULL, 0))
        oribi_asleep_end(r->asleep);
    if (__builtin_expect(r->polled != NULL, 0))
        run_polled(r);
    if (r->posted)
        run_posted(r);
    run_connections(r, count);
    run_handlers(r, count); /* listeners last: accepted connections come first */
    if (r->claimed_first)
        answer_claimed(r);
    r->event_count = 0;
    if (deadlines_may_run(r, count))
        run_timeouts(r);
    if (!r->sleeping) /* else oribi_reactor_sleep_end() may bring an event that names a closed connection */
        free_deferred(r);
    return count;
}

/* Channels whose bytes come by memory. One that closes takes itself out of the list; no other can be closed by it. */
static void run_polled(struct oribi_reactor *r)
{
    struct oribi_conn *next;
    for (struct oribi_conn *c = r->polled; c; c = next) {
        next = c->channel->polled_next;
        if (!oribi__conn_wants_input(c) || !c->transport->waits(c->transport))
            continue;
        c->watch.ready |= ORIBI_READ;
        oribi__conn_on_event(r, c);
    }
}

/* How many channels have bytes in memory. Behind the sleeper's word: who writes from here on sees it and wakes us. */
static int polled_count(struct oribi_reactor *r)
{
    int count = r->hooks.waits ? r->hooks.waits(r->hooks.self) : 0;
    for (struct oribi_conn *c = r->polled; c; c = c->channel->polled_next)
        count += oribi__conn_wants_input(c) && c->transport->waits(c->transport);
    return count;
}

bool oribi_reactor_fall_asleep(struct oribi_reactor *r)
{
    if (__builtin_expect(!r->asleep, 1))
        return true;
    oribi_asleep_begin(r->asleep);
    if (polled_count(r) == 0)
        return true;
    oribi_asleep_end(r->asleep);
    return false;
}

static void run_posted(struct oribi_reactor *r)
{
    struct oribi_conn *c = r->posted;
    r->posted = NULL;
    while (c) {
        struct oribi_conn *next = c->posted_next;
        c->is_posted = false;
        oribi__conn_on_event(r, c);
        c = next;
    }
}

static void run_connections(struct oribi_reactor *r, int count)
{
    for (int i = 0; i < count; i++) {
        struct oribi_watch *watch = r->events[i].watch;
        if (watch->kind != ORIBI_WATCH_STREAM)
            continue;
        struct oribi_conn *c = (struct oribi_conn *)watch;
        if (__builtin_expect(watch->lost && watch->added, 0)) {
            oribi__reactor_disclaim(r, c);
            lose_descriptor(r, c);
        } else {
            oribi__conn_on_event(r, c);
        }
    }
}

/* These watches are level-triggered, but for peers: what a handler leaves is reported again. */
static void run_handlers(struct oribi_reactor *r, int count)
{
    for (int i = 0; i < count; i++) {
        struct oribi_watch *watch = r->events[i].watch;
        if (watch->kind == ORIBI_WATCH_STREAM)
            continue;
        if (watch->kind != ORIBI_WATCH_PEER)
            watch->ready = 0;
        watch->handler(r->hooks.self, watch);
    }
}

/* Requests pipelined behind an answer wait for the next turn, so that other connections have theirs. */
static void answer_claimed(struct oribi_reactor *r)
{
    for (uint32_t n = r->claimed_count; n > 0 && r->claimed_first; n--) {
        struct oribi_conn *c = r->claimed_first;
        oribi__reactor_unqueue(r, c);
        c->state = ORIBI_CONN_CALL;
        if (!r->hooks.answer(r->hooks.self, c))
            oribi__reactor_queue(r, c);
    }
}

/* A full batch says that more events wait than this turn has seen: after a long call a client that sent in time must
 * not time out. Under a load that never ends deadlines still run, every FULL_TURNS_MAX turns. */
static bool deadlines_may_run(struct oribi_reactor *r, int count)
{
    if (count == ORIBI_LOOP_EVENTS_MAX && ++r->full_turns < FULL_TURNS_MAX)
        return false;
    r->full_turns = 0;
    return true;
}

static struct oribi_conn *conn_of(struct oribi_timeout *timer)
{
    return timer ? (struct oribi_conn *)((char *)timer - offsetof(struct oribi_conn, timer)) : NULL;
}

static void run_timeouts(struct oribi_reactor *r)
{
    enum oribi_timeout_class timeout_class;
    struct oribi_timeout *timer;
    while ((timer = oribi_timeouts_expired(&r->timeouts, r->now_ms, &timeout_class)) != NULL) {
        oribi__conn_on_timeout(r, conn_of(timer), timeout_class);
    }
}

static void free_deferred(struct oribi_reactor *r)
{
    while (r->deferred_free) {
        struct oribi_conn *c = r->deferred_free;
        r->deferred_free = c->run_next;
        oribi_pool_put(&r->conn_pool, c);
    }
}

void oribi__reactor_queue(struct oribi_reactor *r, struct oribi_conn *c)
{
    c->state = ORIBI_CONN_QUEUED;
    append(&r->run_first, &r->run_last, c);
    r->queue_len++;
}

void oribi__reactor_queue_by_age(struct oribi_reactor *r, struct oribi_conn *c)
{
    if (c->claimed || !unlink_from(&r->run_first, &r->run_last, c))
        return;
    struct oribi_conn *before = NULL;
    struct oribi_conn *at = r->run_first;
    while (at && at->exchange->complete_us <= c->exchange->complete_us) {
        before = at;
        at = at->run_next;
    }
    if (!at) {
        append(&r->run_first, &r->run_last, c);
        return;
    }
    c->run_next = at;
    *(before ? &before->run_next : &r->run_first) = c;
}

void oribi__reactor_queue_claimed(struct oribi_reactor *r, struct oribi_conn *c)
{
    c->state = ORIBI_CONN_QUEUED;
    c->claimed = true;
    append(&r->claimed_first, &r->claimed_last, c);
    r->claimed_count++;
}

static void append(struct oribi_conn **first, struct oribi_conn **last, struct oribi_conn *c)
{
    c->run_next = NULL;
    if (*last)
        (*last)->run_next = c;
    else
        *first = c;
    *last = c;
}

void oribi__reactor_unqueue(struct oribi_reactor *r, struct oribi_conn *c)
{
    bool removed =
        c->claimed ? unlink_from(&r->claimed_first, &r->claimed_last, c) : unlink_from(&r->run_first, &r->run_last, c);
    if (removed && c->claimed)
        r->claimed_count--;
    else if (removed)
        r->queue_len--;
    c->claimed = false;
}

static bool unlink_from(struct oribi_conn **first, struct oribi_conn **last, struct oribi_conn *c)
{
    struct oribi_conn *before = NULL;
    struct oribi_conn *at = *first;
    while (at && at != c) {
        before = at;
        at = at->run_next;
    }
    if (!at)
        return false;
    if (before)
        before->run_next = c->run_next;
    else
        *first = c->run_next;
    if (*last == c)
        *last = before;
    c->run_next = NULL;
    return true;
}

struct oribi_conn_request *oribi_reactor_pop(struct oribi_reactor *r)
{
    struct oribi_conn *c = r->run_first;
    if (!c)
        return NULL;
    r->run_first = c->run_next;
    if (!r->run_first)
        r->run_last = NULL;
    c->run_next = NULL;
    r->queue_len--;
    c->state = ORIBI_CONN_CALL;
    return c->exchange;
}

void oribi__reactor_post(struct oribi_reactor *r, struct oribi_conn *c)
{
    if (c->is_posted || c->state == ORIBI_CONN_CLOSED)
        return;
    c->is_posted = true;
    c->posted_next = r->posted;
    r->posted = c;
}

static void unlink_posted(struct oribi_reactor *r, struct oribi_conn *c)
{
    struct oribi_conn **at = &r->posted;
    while (*at && *at != c)
        at = &(*at)->posted_next;
    if (*at)
        *at = c->posted_next;
    c->is_posted = false;
}

/* The memory stays until the end of the turn: an event of this turn may still name the connection. */
void oribi__reactor_forget(struct oribi_reactor *r, struct oribi_conn *c, bool queued)
{
    if (c->is_posted)
        unlink_posted(r, c);
    if (queued)
        oribi__reactor_unqueue(r, c);
    if (c->prev)
        c->prev->next = c->next;
    else
        r->conns = c->next;
    if (c->next)
        c->next->prev = c->prev;
    r->conn_count--;
    struct oribi_conn **list = c->lost ? &r->adrift : &r->deferred_free;
    r->lost_count += c->lost;
    c->run_next = *list;
    *list = c;
}

bool oribi__reactor_claim(struct oribi_reactor *r, struct oribi_conn *c)
{
    enum { CAP_MIN = 64 };
    uint32_t fd = (uint32_t)c->watch.fd;
    if (fd >= r->by_fd_cap) {
        uint32_t cap = r->by_fd_cap ? r->by_fd_cap : CAP_MIN;
        while (cap <= fd)
            cap *= 2;
        struct oribi_conn **by_fd = oribi_mem_try_resize(r->by_fd, cap, sizeof(struct oribi_conn *));
        if (!by_fd)
            return false;
        memset(by_fd + r->by_fd_cap, 0, (cap - r->by_fd_cap) * sizeof(struct oribi_conn *));
        r->by_fd = by_fd;
        r->by_fd_cap = cap;
    }
    if (r->by_fd[fd])
        lose_descriptor(r, r->by_fd[fd]);
    r->by_fd[fd] = c;
    return true;
}

/* The connection that had this descriptor's number has not closed it: the application did. A connection that went on
 * would read, answer and close another client's socket. During a call, it ends with the call. */
static void lose_descriptor(struct oribi_reactor *r, struct oribi_conn *c)
{
    (void)oribi_loop_remove(r->loop, &c->watch); /* the number is another file's: this only forgets */
    c->broken = true;
    c->lost = true;
    if (c->state == ORIBI_CONN_CALL)
        c->watch.fd = -1;
    else
        oribi__conn_close(r, c);
}

void oribi__reactor_disclaim(struct oribi_reactor *r, const struct oribi_conn *c)
{
    if (c->watch.fd >= 0 && r->by_fd[c->watch.fd] == c)
        r->by_fd[c->watch.fd] = NULL;
}

static int64_t rested_ms(const struct oribi_reactor *r, const struct oribi_timeout *timer)
{
    return timer ? r->now_ms - timer->armed_ms : -1;
}

/* The timer of the connection to be closed first for a new one; NULL: no connection may be closed. */
static struct oribi_timeout *first_to_go(const struct oribi_reactor *r)
{
    struct oribi_timeout *kept = oribi_timeouts_oldest(&r->timeouts, ORIBI_TIMEOUT_IDLE);
    struct oribi_timeout *silent = oribi_timeouts_oldest(&r->timeouts, ORIBI_TIMEOUT_FIRST);
    struct oribi_timeout *head = oribi_timeouts_oldest(&r->timeouts, ORIBI_TIMEOUT_HEAD);
    struct oribi_timeout *idle = rested_ms(r, silent) > rested_ms(r, kept) ? silent : kept;
    if (rested_ms(r, idle) >= ORIBI_ROOM_IDLE_MS_MIN)
        return idle;
    return rested_ms(r, head) >= ORIBI_ROOM_IDLE_MS_MIN ? head : NULL;
}

bool oribi_reactor_make_room(struct oribi_reactor *r, struct oribi_room *room)
{
    struct oribi_timeout *timer;
    for (int looks = 0; looks < ROOM_LOOKS_MAX && (timer = first_to_go(r)) != NULL; looks++) {
        *room = (struct oribi_room){timer->timeout_class == ORIBI_TIMEOUT_HEAD, rested_ms(r, timer)};
        if (room->head ? oribi__conn_close_head(r, conn_of(timer)) : oribi__conn_close_idle(r, conn_of(timer)))
            return true; /* else there were bytes to read, and the timer is of another class now */
    }
    return false;
}

int64_t oribi_reactor_rested_ms(const struct oribi_reactor *r)
{
    return rested_ms(r, first_to_go(r));
}

int64_t oribi_reactor_room_ms(const struct oribi_reactor *r)
{
    static const enum oribi_timeout_class classes[] = {ORIBI_TIMEOUT_IDLE, ORIBI_TIMEOUT_FIRST, ORIBI_TIMEOUT_HEAD};
    int64_t longest_ms = -1;
    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
        int64_t ms = rested_ms(r, oribi_timeouts_oldest(&r->timeouts, classes[i]));
        longest_ms = ms > longest_ms ? ms : longest_ms;
    }
    if (longest_ms < 0)
        return -1;
    return longest_ms < ORIBI_ROOM_IDLE_MS_MIN ? ORIBI_ROOM_IDLE_MS_MIN - longest_ms : 0;
}

static uint32_t close_class(struct oribi_reactor *r, enum oribi_timeout_class timeout_class, uint32_t count)
{
    uint32_t closed = 0;
    struct oribi_timeout *timer;
    while (closed < count && (timer = oribi_timeouts_oldest(&r->timeouts, timeout_class)) != NULL) {
        if (oribi__conn_close_idle(r, conn_of(timer))) /* else its timer is of another class now */
            closed++;
    }
    return closed;
}

uint32_t oribi_reactor_close_idle(struct oribi_reactor *r, uint32_t count)
{
    uint32_t closed = close_class(r, ORIBI_TIMEOUT_IDLE, count);
    return closed + close_class(r, ORIBI_TIMEOUT_FIRST, count - closed);
}

void oribi_reactor_close_channels(struct oribi_reactor *r)
{
    struct oribi_conn *next;
    for (struct oribi_conn *c = r->channel_count ? r->conns : NULL; c; c = next) {
        next = c->next;
        if (c->channel && c->state == ORIBI_CONN_IDLE)
            (void)oribi__conn_close_idle(r, c);
    }
}

void oribi_reactor_trim(struct oribi_reactor *r)
{
    oribi_pool_trim(&r->conn_pool);
    oribi_pool_trim(&r->buf_pool);
    oribi_pool_trim(&r->exchange_pool);
}

const char *oribi_reactor_date(struct oribi_reactor *r)
{
    return oribi_date_cached(&r->date, oribi_clock_wall_s());
}

int oribi_reactor_sleep_begin(struct oribi_reactor *r, int timeout_ms)
{
    assert(r->event_count == 0 && !r->sleeping);
    r->sleeping = true;
    int64_t next_ms = oribi_timeouts_next_ms(&r->timeouts, oribi_clock_ms());
    if (timeout_ms != 0 && !oribi_reactor_fall_asleep(r))
        return 0;
    return next_ms >= 0 && next_ms < timeout_ms ? (int)next_ms : timeout_ms;
}

void oribi_reactor_sleep_end(struct oribi_reactor *r)
{
    r->sleeping = false;
    r->event_count = oribi_loop_collect(r->loop, r->events, ORIBI_LOOP_EVENTS_MAX);
}

void oribi_reactor_deinit(struct oribi_reactor *r)
{
    while (r->conns)
        oribi__conn_close(r, r->conns);
    free_deferred(r);
    while (r->adrift) {
        struct oribi_conn *c = r->adrift;
        r->adrift = c->run_next;
        oribi_pool_put(&r->conn_pool, c);
    }
    if (r->writer)
        oribi_writer_stop(r->writer);
    oribi_mem_free(r->by_fd);
    oribi_pool_deinit(&r->conn_pool);
    oribi_pool_deinit(&r->buf_pool);
    oribi_pool_deinit(&r->exchange_pool);
    oribi_loop_destroy(r->loop);
    oribi_mem_free(r->scratch);
}

void oribi_reactor_abandon(struct oribi_reactor *r)
{
    for (struct oribi_conn *c = r->conns; c; c = c->next) {
        oribi_os_close(c->watch.fd);
        if (c->transport && c->transport->abandon)
            c->transport->abandon(c->transport);
        if (c->out)
            oribi_out_abandon(c->out);
    }
    if (r->writer)
        oribi_writer_forget(r->writer);
    oribi_os_close(oribi_loop_fd(r->loop));
}
