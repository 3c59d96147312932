/* The pull interface. Reading order: oribi_worker_take, oribi__turn, on_other, prepare, oribi__exchange_end. How a
 * worker begins and ends: worker_life.c. */
#include "worker/exchange.h"
#include "worker/framed.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/worker/helper.h"
#include "oribi/base/signals.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    TURN_EVERY_US = 1000, /* with requests queued, how long other events may wait */
    LAST_CALL_MS = 10,    /* between two looks at listeners that end */
    TIMEOUT_NEVER = -1,
    AVERAGE_OVER = 8,           /* calls that the running average remembers, more or less */
    EXPECT_LOOK_US = 10 * 1000, /* between two looks at what siblings have seen */
};

/* --- what the reactor tells us --- */

static void on_timed_out(void *self, struct oribi_conn *c, enum oribi_timeout_class timeout_class)
{
    struct oribi_worker *w = self;
    if (timeout_class != ORIBI_TIMEOUT_IDLE && timeout_class != ORIBI_TIMEOUT_LINGER)
        oribi__count(&w->slot->timeouts, 1);
}

static void on_closed(void *self, struct oribi_conn *c)
{
    struct oribi_worker *w = self;
    atomic_store_explicit(&w->slot->connections_open, w->reactor.conn_count - 1, memory_order_release);
}

static void on_read(void *self, int64_t bytes)
{
    struct oribi_worker *w = self;
    w->bytes_in += (uint64_t)bytes;
}

static void on_sent(void *self, int64_t bytes)
{
    struct oribi_worker *w = self;
    w->bytes_out += (uint64_t)bytes;
}

static void on_other(void *self, struct oribi_watch *watch)
{
    struct oribi_worker *w = self;
    watch->ready = 0; /* these are reported again as long as they are readable */
    if (watch == &w->handoff_watch) {
        w->handoff_ready = true;
    } else if (watch == &w->wake_watch) {
        if (!w->leader) {                    /* else it may be meant for the thread that sleeps */
            if (!oribi_wake_clear(&w->wake)) /* what it woke us for is in its own flag */
                oribi__own_check(w);
            w->notified = true;
        }
    } else if (watch == &w->life_watch) {
        char byte;
        ssize_t n = oribi_os_read(w->setup.life_fd, &byte, 1);
        if (n == 0 || (n < 0 && n != ORIBI_AGAIN)) {
            oribi__own_check(w); /* it may not be the supervisor's end that was read */
            oribi_loop_remove(w->reactor.loop, &w->life_watch);
            oribi_log(ORIBI_LOG_WARN, "supervisor is gone: finishing what is running");
            w->orphaned = true;
            oribi_worker_stop(w);
        }
    } else {
        struct oribi__listener_watch *listener_watch =
            (struct oribi__listener_watch *)((char *)watch - offsetof(struct oribi__listener_watch, watch));
        listener_watch->ready = true;
    }
}

static void on_lost(void *self, struct oribi_conn *c)
{
    struct oribi_worker *w = self;
    if (oribi_log_limit_allows(&w->app_log_limit, w->reactor.now_ms))
        oribi_log(ORIBI_LOG_WARN,
                  "the application has closed the descriptor of a connection (%.*s), at the latest in %s",
                  c->addr_len ? c->addr_len : 4, c->addr_len ? c->addr : "unix", w->slot->line);
    if (w->reactor.lost_count + 1 != ORIBI_LOST_CONNECTIONS_MAX)
        return;
    oribi_log(ORIBI_LOG_WARN, "the application has closed the descriptors of %d connections: the worker ends",
              ORIBI_LOST_CONNECTIONS_MAX);
    oribi_worker_stop(w);
}

struct oribi_reactor_hooks oribi__worker_hooks(struct oribi_worker *w)
{
    return (struct oribi_reactor_hooks){
        w, oribi__on_refused, on_timed_out, on_closed, on_read, on_sent, oribi__on_unkept, on_lost,
    };
}

/* --- stopping --- */

void oribi_worker_stop(struct oribi_worker *w)
{
    atomic_store_explicit(&w->stop_asked, true, memory_order_release);
    oribi_wake_notify(&w->wake);
}

void oribi_worker_stop_signalled(struct oribi_worker *w)
{
    atomic_store_explicit(&w->stop_signalled, true, memory_order_relaxed); /* ordered by stop_asked */
    oribi_worker_stop(w);
}

/* By oribi_worker_stop(), or by the supervisor's word on the scoreboard, which stands there before its signal: an
 * application that handles the signal itself keeps it from us. */
static bool stop_asked(const struct oribi_worker *w)
{
    return atomic_load_explicit(&w->stop_asked, memory_order_acquire) ||
           atomic_load_explicit(&w->slot->stop_soon, memory_order_relaxed) >= ORIBI_STOP_TOLD;
}

void oribi_worker_retire(struct oribi_worker *w)
{
    if (w->handoff.give_fd < 0 || stop_asked(w))
        oribi_worker_stop(w);
    else
        atomic_store_explicit(&w->retiring, true, memory_order_relaxed);
}

static void begin_stop(struct oribi_worker *w)
{
    if (oribi__retiring(w) && !oribi__has_siblings(w))
        oribi__listener_watches_unwatch(w); /* the worker that replaces this one finds who waits there */
    else
        oribi__listener_watches_close(w);
    oribi__handoff_watch(w, false);
    w->stopping = true;
    w->stop_ms = w->reactor.now_ms;
    atomic_store_explicit(&w->slot->state, ORIBI_SLOT_DRAINING, memory_order_release);
}

static void drain_turn(struct oribi_worker *w)
{
    w->last_call = oribi__last_call(w);
    if (w->orphaned)
        oribi__listener_watches_quit(w);
    if (oribi__retiring(w) && stop_asked(w) && !oribi__has_siblings(w))
        /* the server ends as well: nobody replaces us */
        atomic_store_explicit(&w->retiring, false, memory_order_relaxed);
    if (oribi__retiring(w)) {
        w->pool_full = !oribi__pass_all(w);
        return;
    }
    if (!oribi__pass_idle(w) && w->reactor.now_ms - w->stop_ms >= ORIBI_DRAIN_GRACE_MS)
        (void)oribi_reactor_close_idle(&w->reactor, UINT32_MAX);
    if (w->reactor.conn_count == 0 && !oribi__has_siblings(w))
        oribi__handoff_turn(w); /* the last one turns off the light */
}

static bool deadline_passed(const struct oribi_worker *w)
{
    return w->options->shutdown_timeout_ms > 0 && w->reactor.now_ms - w->stop_ms >= w->options->shutdown_timeout_ms;
}

bool oribi_worker_stopping(const struct oribi_worker *w)
{
    return w->stopping || oribi__retiring(w) || stop_asked(w);
}

bool oribi_worker_done(const struct oribi_worker *w)
{
    return w->abandoned || (w->stopping && ((w->reactor.conn_count == 0 && !w->last_call) || deadline_passed(w)));
}

/* --- one turn --- */

static void publish(struct oribi_worker *w)
{
    atomic_store_explicit(&w->slot->queue_len, w->reactor.queue_len, memory_order_release);
    atomic_store_explicit(&w->slot->connections_open, w->reactor.conn_count, memory_order_release);
    atomic_store_explicit(&w->slot->bytes_in, w->bytes_in, memory_order_release);
    atomic_store_explicit(&w->slot->bytes_out, w->bytes_out, memory_order_release);
    if (w->setup.access_log)
        oribi_access_log_flush(w->setup.access_log);
    oribi_log_flush(); /* as a rule there is nothing, which is told by a flag */
}

/* Calls may leave handlers of their own in the place of ours. A call that ignores a signal may do so for the
 * programs that it starts. */
static void mend_signals(const struct oribi_worker *w)
{
    bool in_call = oribi__shared(w) ? w->busy_count > 0
                                    : atomic_load_explicit(&w->owner, memory_order_relaxed) != ORIBI_OWNER_MAIN;
    oribi_signals_mend_all(!in_call);
}

/* Costs nothing but three comparisons as a rule; see own.c. */
static void look_after_own(struct oribi_worker *w)
{
    bool due = w->own_due && w->reactor.now_us - w->own_checked_us >= ORIBI__OWN_CHECK_US;
    bool doubted = atomic_load_explicit(&w->own_doubted, memory_order_relaxed);
    if (__builtin_expect(due || doubted || oribi_loop_lost(w->reactor.loop), 0)) {
        oribi__own_check(w);
        mend_signals(w);
    }
}

void oribi__turn_connections(struct oribi_worker *w)
{
    (void)oribi_reactor_turn(&w->reactor, on_other, w); /* how much happened does not matter here */
    look_after_own(w);
    oribi__accept_in_call(w);
    oribi__shed(w);
    publish(w);
}

void oribi__turn(struct oribi_worker *w)
{
    if (w->starved)
        oribi__look_for_descriptors(w);
    if (w->accept_sources_closed)
        oribi__accept_sources_open(w);
    (void)oribi_reactor_turn(&w->reactor, on_other, w);
    w->turned_us = w->reactor.now_us;
    look_after_own(w);
    if (!w->stopping && oribi_worker_stopping(w))
        begin_stop(w);
    if (w->stopping)
        drain_turn(w);
    else
        oribi__accept_turn(w);
    if (w->handoff_ready)
        oribi__handoff_turn(w);
    w->woken = false;
    oribi__shed(w);
    publish(w);
}

/* CONTENT_LENGTH of a chunked request is what was decoded, and its Transfer-Encoding is used up (RFC 9112 7.1.3). */
static void correct_chunked(struct oribi__exchange *exchange)
{
    struct oribi_head *head = &exchange->base.head;
    int n = snprintf(exchange->length_text, sizeof(exchange->length_text), "%lld", (long long)exchange->req.body_len);
    for (uint32_t i = 0; i < head->field_count; i++) {
        struct oribi_field *field = &head->fields[i];
        if (field->id != ORIBI_FIELD_TRANSFER_ENCODING)
            continue;
        *field =
            (struct oribi_field){"Content-Length", exchange->length_text, (uint32_t)n, 14, ORIBI_FIELD_CONTENT_LENGTH};
        return;
    }
}

static void set_body(struct oribi__exchange *exchange)
{
    struct oribi_req *req = &exchange->req;
    struct oribi_exchange *base = &exchange->base;
    req->body_fd = base->body.fd;
    if (base->body.fd >= 0) {
        (void)lseek(base->body.fd, 0, SEEK_SET); /* a regular file of ours: cannot fail */
        req->body = oribi_slice(NULL, 0);
        req->body_len = base->body.len;
    } else if (base->body.len > 0) {
        req->body = oribi_slice(base->body.memory.p, base->body.memory.len);
        req->body_len = base->body.len;
    } else {
        req->body = base->in_place;
        req->body_len = (int64_t)base->in_place.n;
    }
    req->trailers = base->trailers.fields;
    req->trailer_count = base->trailers.count;
    if (base->head.chunked)
        correct_chunked(exchange);
}

static void set_addresses(struct oribi__exchange *exchange)
{
    struct oribi_req *req = &exchange->req;
    const struct oribi_listener *listener = exchange->base.conn->listener;
    const struct oribi_head *head = &exchange->base.head;
    oribi__peer_of(exchange);
    req->server_name = head->host.n ? head->host : oribi_slice(listener->host, strlen(listener->host));
    if (!listener->is_unix)
        req->server_port = oribi_slice(listener->port, strlen(listener->port));
    else
        req->server_port = head->port.n ? head->port : ORIBI_SLICE("80");
}

static void note_line(char line[ORIBI_SLOT_LINE_CAP], const struct oribi_head *head)
{
    size_t method_n = head->method.n < ORIBI_METHOD_BYTES_MAX ? head->method.n : ORIBI_METHOD_BYTES_MAX;
    size_t room = ORIBI_SLOT_LINE_CAP - 2 - method_n;
    size_t target_n = head->target.n < room ? head->target.n : room;
    memcpy(line, head->method.p, method_n);
    line[method_n] = ' ';
    memcpy(line + method_n + 1, head->target.p, target_n);
    line[method_n + 1 + target_n] = '\0';
}

/* When the worker of this slot last had a long call: now, if it is in one; 0: never. */
static int64_t last_long_us(const struct oribi_slot *slot, int64_t now_us)
{
    int64_t started_us = atomic_load_explicit(&slot->call_started_us, memory_order_relaxed);
    if (started_us && now_us - started_us >= ORIBI_EXPECT_US)
        return now_us;
    return atomic_load_explicit(&slot->long_call_us, memory_order_relaxed);
}

/* One call in a hundred may be long, and cannot be told from the others when it begins: where there are such, here
 * or at a sibling, the helper is awake for all. */
static bool expects_long(struct oribi_worker *w, int64_t now_us)
{
    if (now_us - w->long_looked_us >= EXPECT_LOOK_US) {
        const struct oribi_scoreboard *board = w->setup.board;
        w->long_looked_us = now_us;
        for (uint32_t i = 0; board && i < board->count; i++) {
            int64_t seen_us = last_long_us(&board->slots[i], now_us);
            if (seen_us && seen_us + ORIBI_EXPECT_FOR_US > w->long_until_us)
                w->long_until_us = seen_us + ORIBI_EXPECT_FOR_US;
        }
    }
    return now_us < w->long_until_us;
}

/* A limit on waiting holds from the first call on: then the helper is there, and parked it comes by often enough
 * (helper.c). */
static bool wants_helper(struct oribi_worker *w, int64_t now_us)
{
    return w->call_us_average > ORIBI_LONG_US / 2 || oribi__free_threads(w) == 0 ||
           (!w->helper && oribi__limits_waiting(w)) || expects_long(w, now_us);
}

void oribi__note_long(struct oribi_worker *w, int64_t now_us)
{
    w->long_until_us = now_us + ORIBI_EXPECT_FOR_US;
    atomic_store_explicit(&w->slot->long_call_us, now_us, memory_order_relaxed); /* a hint: no partner */
}

void oribi__call_begins(struct oribi_worker *w, int64_t now_us)
{
    if (oribi_helper_asleep(w) && wants_helper(w, now_us))
        oribi_helper_need(w);
}

void oribi__call_took(struct oribi_worker *w, int64_t us, int64_t now_us)
{
    if (us > ORIBI_LONG_US)
        oribi_helper_need(w);
    if (us > ORIBI_EXPECT_US)
        oribi__note_long(w, now_us);
}

static struct oribi_req *prepare(struct oribi_worker *w, struct oribi_thread *thread, struct oribi__exchange *exchange,
                                 int64_t now_us)
{
    struct oribi_req *req = &exchange->req;
    exchange->worker = w;
    exchange->thread = thread;
    thread->exchange = exchange;
    w->own_due = true;
    atomic_store_explicit(&thread->pthread, pthread_self(), memory_order_relaxed);
    exchange->started_us = now_us;
    exchange->body_sent = 0;
    exchange->left = -1;
    exchange->waited_pending = -1;
    exchange->held = (struct oribi_buf){0};
    exchange->framed = NULL;
    exchange->phase = ORIBI_PHASE_OPEN;
    exchange->status = 0;
    exchange->closes = false;
    exchange->aborted = false;
    exchange->cut = false;
    exchange->unframed = false;
    req->head = &exchange->base.head;
    req->last = false;
    set_body(exchange);
    set_addresses(exchange);

    struct oribi_slot *slot = w->slot;
    note_line(thread->line, &exchange->base.head);
    oribi__count(&slot->queue_us_sum, (uint64_t)req->queue_us);
    atomic_store_explicit(&slot->queue_len, w->reactor.queue_len, memory_order_relaxed); /* without this one */
    oribi__clock_begin(thread, now_us);
    if (oribi__shared(w))
        oribi__thread_begin(thread);
    else if (!w->stopping)
        atomic_store_explicit(&slot->state, ORIBI_SLOT_BUSY, memory_order_release);
    oribi__call_begins(w, now_us);
    oribi__leave(w);
    return req;
}

struct oribi_req *oribi__take_queued(struct oribi_worker *w, struct oribi_thread *thread, int64_t now_us)
{
    if (oribi__retiring(w))
        return NULL;
    if (w->reactor.queue_len > 1 && oribi__should_pass(w))
        (void)oribi__pass_on(w, 1);
    while (w->reactor.queue_len > 0) {
        struct oribi__exchange *exchange = (struct oribi__exchange *)oribi_reactor_pop(&w->reactor);
        if (oribi__admit(w, exchange, now_us))
            return prepare(w, thread, exchange, now_us);
    }
    return NULL;
}

struct oribi_req *oribi_worker_take(struct oribi_worker *w)
{
    if (__builtin_expect(w->abandoned, 0))
        return NULL;
    int64_t now_us = oribi_clock_us();
    if (!w->reactor.queue_len || oribi__retiring(w) || now_us - w->turned_us > TURN_EVERY_US) {
        oribi__turn(w);
        now_us = w->reactor.now_us;
    }
    return oribi__take_queued(w, &w->single, now_us);
}

/* Of two bounds, of which the first may be none. */
static int64_t sooner(int64_t bound_ms, int64_t ms)
{
    return bound_ms < 0 || bound_ms > ms ? ms : bound_ms;
}

int64_t oribi__wait_bound_ms(const struct oribi_worker *w)
{
    if (w->last_call || w->pool_full)
        return LAST_CALL_MS;
    if (w->stopping) /* the drain grace and the shutdown deadline both end within this */
        return ORIBI_DRAIN_GRACE_MS / 4;
    int64_t bound_ms = TIMEOUT_NEVER;
    if (!w->listeners_open && w->pause_until_ms > w->reactor.now_ms)
        bound_ms = w->pause_until_ms - w->reactor.now_ms;
    int64_t room_ms = oribi__at_limit(w) ? oribi__room_wait_ms(w) : -1;
    if (room_ms >= 0)
        bound_ms = sooner(bound_ms, room_ms);
    if (w->own_due)
        bound_ms = sooner(bound_ms, ORIBI__OWN_CHECK_US / 1000); /* the look after the last call */
    if (w->starved)
        bound_ms = sooner(bound_ms, ORIBI__STARVED_LOOK_MS);
    if (oribi_log_waits() || oribi_access_log_waits(w->setup.access_log))
        bound_ms = sooner(bound_ms, ORIBI_LOG_RETRY_MS);
    return bound_ms;
}

void oribi_worker_wait_for(struct oribi_worker *w, int64_t ms)
{
    if (oribi__retiring(w) && w->reactor.queue_len) {
        oribi__await_room(w, ms);
        return;
    }
    if (w->reactor.queue_len || oribi_worker_done(w))
        return;
    if (w->accept_sources_closed)
        oribi__accept_sources_open(w);
    if (!w->stopping) {
        atomic_store_explicit(&w->slot->state, ORIBI_SLOT_IDLE, memory_order_release);
        oribi__idle_waiter_wake(w);
    }
    int64_t bound_ms = oribi__wait_bound_ms(w);
    if (ms >= 0 && (bound_ms < 0 || ms < bound_ms))
        bound_ms = ms;
    /* What we have left to a sleeper keeps us awake: then no wake-up was meant for us, and that sleeper may need our
     * CPU. */
    bool left = w->listeners_ready_us || w->handoff_ready_us;
    if (left)
        oribi_os_yield();
    int64_t before_us = left ? oribi_clock_us() : 0;
    oribi_reactor_wait(&w->reactor, bound_ms);
    w->woken = !left || oribi_clock_us() - before_us > ORIBI_ASLEEP_US;
}

void oribi_worker_wait(struct oribi_worker *w)
{
    oribi_worker_wait_for(w, TIMEOUT_NEVER);
}

void oribi_worker_wake(struct oribi_worker *w)
{
    oribi_wake_notify(&w->wake);
}

uint64_t oribi_worker_request_count(const struct oribi_worker *w)
{
    return w->request_count;
}

/* --- the end of a call --- */

bool oribi__exchange_keeps(const struct oribi__exchange *exchange)
{
    const struct oribi_worker *w = exchange->worker;
    uint32_t max = w->options->keepalive_requests_max;
    if (!exchange->base.head.keep_alive || exchange->req.last || stop_asked(w) || (w->stopping && !oribi__retiring(w)))
        return false; /* a worker that retires passes the connection on */
    if (w->request_limit && w->request_count + 1 >= w->request_limit)
        return false;
    return max == 0 || exchange->base.conn->request_count < max;
}

static uint32_t bucket_of(int64_t us)
{
    uint32_t bucket = us <= 0 ? 0 : 64 - (uint32_t)__builtin_clzll((uint64_t)us);
    return bucket < ORIBI_HISTOGRAM_BUCKETS ? bucket : ORIBI_HISTOGRAM_BUCKETS - 1;
}

static bool is_cut(const struct oribi__exchange *exchange)
{
    return exchange->aborted || exchange->base.conn->broken;
}

void oribi__log_access(struct oribi__exchange *exchange, int status, int64_t now_us)
{
    bool cut = is_cut(exchange);
    struct oribi_access_entry entry = {
        .head = &exchange->base.head,
        .remote_addr = exchange->req.remote_addr,
        .status = status,
        .cut = cut,
        .body_bytes = cut ? oribi__body_taken(exchange) : exchange->body_sent,
        .call_us = now_us - exchange->started_us,
        .total_us = now_us - exchange->base.complete_us,
        .wall_ms = oribi_clock_wall_ms(),
    };
    oribi_access_log_add(exchange->worker->setup.access_log, &entry);
}

void oribi__exchange_end(struct oribi__exchange *exchange, int status)
{
    struct oribi_worker *w = exchange->worker;
    struct oribi_slot *slot = w->slot;
    int64_t now_us = oribi_clock_us();
    int64_t call_us = now_us - exchange->started_us;
    oribi_reactor_clock(&w->reactor, now_us);
    w->request_count++;
    w->call_us_average += (call_us - w->call_us_average) / AVERAGE_OVER;
    oribi__count(&slot->status_class[is_cut(exchange) ? 0 : status / 100], 1);
    oribi__count(&slot->call_us_sum, (uint64_t)call_us);
    uint32_t bucket = bucket_of(call_us);
    atomic_store_explicit(&slot->call_us_histogram[bucket],
                          atomic_load_explicit(&slot->call_us_histogram[bucket], memory_order_relaxed) + 1,
                          memory_order_relaxed);
    oribi__clock_end(exchange->thread);
    exchange->thread->exchange = NULL;
    if (oribi__shared(w))
        oribi__threads_publish(w);
    atomic_store_explicit(&slot->request_count, w->request_count, memory_order_release);
    if (w->setup.access_log)
        oribi__log_access(exchange, status, now_us);
    oribi_buf_deinit(&exchange->held);
    oribi__framed_free(exchange);
    oribi__call_took(w, call_us, now_us);
    if (w->request_limit && w->request_count == w->request_limit && !oribi__retiring(w))
        oribi_worker_stop(w);
}
