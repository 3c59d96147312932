/* The pull interface. Reading order: oribi_worker_take, oribi__turn, on_other, prepare, oribi__exchange_end. How a
 * worker begins and ends: worker_life.c. */
#include "worker/exchange.h"
#include "worker/placement/accept.h"
#include "worker/placement/ownership.h"
#include "worker/reply.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/signals.h"
#include "oribi/worker/logs/request_log.h"

/* --- what the reactor tells us --- */

static void on_timed_out(void *self, struct oribi_conn *c, enum oribi_timeout_class timeout_class)
{
    struct oribi_worker *w = self;
    oribi__count(&w->slot->timeouts[timeout_class], 1);
}

static void on_closed(void *self, struct oribi_conn *c)
{
    struct oribi_worker *w = self;
    struct oribi__exchange *exchange = (struct oribi__exchange *)c->exchange;
    if (__builtin_expect(exchange && exchange->base.unlogged, 0)) {
        c->broken = true;
        oribi__exchange_stored(exchange);
    }
    if (__builtin_expect(c->channel != NULL, 0))
        oribi__disown_channel(w, c->channel->number);
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

/* The reason for a wake is in a flag of its own. A thread that leads may be the one that is meant: then it reads the
 * wake descriptor. */
static void on_wake(void *self, struct oribi_watch *watch)
{
    struct oribi_worker *w = self;
    if (w->threads.leader)
        return;
    if (!oribi_wake_clear(&w->wake))
        oribi__fd_guard_check(w);
    w->threads.notified = true;
}

static void on_life(void *self, struct oribi_watch *watch)
{
    struct oribi_worker *w = self;
    char byte;
    ssize_t n = oribi_os_read(w->setup.life_fd, &byte, 1);
    if (n > 0 || n == ORIBI_AGAIN)
        return;
    oribi__fd_guard_check(w); /* it may not be the supervisor's end that was read */
    oribi_loop_remove(w->reactor.loop, watch);
    oribi_log(ORIBI_LOG_WARN, "the supervisor has died: this worker finishes its requests and ends");
    w->orphaned = true;
    oribi_worker_stop(w);
}

void oribi__worker_handlers(struct oribi_worker *w)
{
    w->wake_watch.handler = on_wake;
    w->life_watch.handler = on_life;
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

static void on_writer(void *self, const struct oribi_wake *wake)
{
    struct oribi_worker *w = self;
    if (wake)
        oribi__fd_guard_add_wake(&w->fd_guard, wake, "wake of the thread that writes files");
    else
        oribi_log(ORIBI_LOG_WARN,
                  "cannot start the thread that writes files: %s; on a slow disk requests wait for others' bodies",
                  oribi_os_error_text());
}

struct oribi_reactor_hooks oribi__worker_hooks(struct oribi_worker *w)
{
    return (struct oribi_reactor_hooks){
        .self = w,
        .refused = oribi__on_refused,
        .page = w->server_answers.pages ? oribi__server_page : NULL,
        .timed_out = on_timed_out,
        .closed = on_closed,
        .read = on_read,
        .sent = on_sent,
        .unkept = oribi__on_unkept,
        .lost = on_lost,
        .claims = w->local ? oribi__local_claims : NULL,
        .answer = oribi__local_answer,
        .writer = on_writer,
        .await = oribi__await_writer,
        .stored = oribi__on_stored,
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
    atomic_store_explicit(&w->stop_signalled_ms, oribi_clock_ms(), memory_order_relaxed); /* ordered by stop_asked */
    atomic_store_explicit(&w->stop_signalled, true, memory_order_relaxed);                /* likewise */
    oribi_worker_stop(w);
}

bool oribi__stop_waits(const struct oribi_worker *w)
{
    if (!w->has_frontends || w->orphaned || !atomic_load_explicit(&w->stop_signalled, memory_order_relaxed))
        return false;
    return atomic_load_explicit(&w->slot->stop_soon, memory_order_acquire) == ORIBI_STOP_FRONTENDS ||
           w->reactor.now_ms - atomic_load_explicit(&w->stop_signalled_ms, memory_order_relaxed) < ORIBI_DRAIN_GRACE_MS;
}

void oribi_worker_retire(struct oribi_worker *w)
{
    if (w->placement.queue.give_fd < 0 || oribi__stop_asked(w))
        oribi_worker_stop(w);
    else
        atomic_store_explicit(&w->retiring, true, memory_order_relaxed);
}

static void begin_stop(struct oribi_worker *w)
{
    w->acceptor.take_due = oribi__retiring(w) && !oribi__has_siblings(w);
    if (w->acceptor.take_due)
        oribi__listener_watches_unwatch(w); /* the worker that replaces this one finds who waits there */
    else
        oribi__listener_watches_close(w);
    oribi__handoff_watch(w, false);
    w->stopping = true;
    w->stop_ms = w->reactor.now_ms;
    w->cut_ms = INT64_MAX;
    atomic_store_explicit(&w->slot->state, ORIBI_SLOT_DRAINING, memory_order_release);
}

/* Requests that wait for any worker are for the workers that are left. When the server ends these are only workers that
 * end too, of which the last may be in a call for long. */
static bool empties_queue(const struct oribi_worker *w)
{
    int64_t complete_us;
    if (w->reactor.conn_count > 0)
        return false;
    bool last = atomic_load_explicit(&w->slot->stop_soon, memory_order_acquire) == ORIBI_STOP_LAST;
    return !oribi__has_siblings(w) ||
           (last && oribi_handoff_waiting(&w->placement.queue, &complete_us) && complete_us > 0);
}

/* True when the server ends, too, or this worker is all of it. */
static bool hurries(const struct oribi_worker *w)
{
    return w->orphaned || w->setup.life_fd < 0 ||
           atomic_load_explicit(&w->slot->stop_soon, memory_order_acquire) == ORIBI_STOP_LAST;
}

static int64_t end_timeout_ms(const struct oribi_worker *w)
{
    int64_t shutdown_ms = w->options->shutdown_timeout_ms;
    return hurries(w) ? shutdown_ms : oribi_options_finish_ms(shutdown_ms, w->options->call_timeout_ms);
}

static void drain_turn(struct oribi_worker *w)
{
    int64_t timeout_ms = end_timeout_ms(w);
    if (timeout_ms > 0) /* the earliest counts: a stop may come after this worker was replaced */
        w->cut_ms = oribi_earlier(w->cut_ms, w->reactor.now_ms + timeout_ms);
    w->acceptor.last_call = oribi__last_call(w);
    if (w->orphaned)
        oribi__listener_watches_quit(w);
    if (oribi__retiring(w) && oribi__stop_asked(w) && !oribi__has_siblings(w))
        /* the server ends as well: no worker replaces this one */
        atomic_store_explicit(&w->retiring, false, memory_order_relaxed);
    if (oribi__retiring(w)) {
        /* The worker that replaces this one may have watched the listeners before we left them. The kernel may have
         * woken us alone for a connection then, of which that worker does not hear. */
        if (w->acceptor.take_due && oribi__has_siblings(w))
            oribi__listener_watches_take(w);
        w->placement.queue_full = !oribi__pass_all(w);
        return;
    }
    if (!oribi__pass_idle(w) && w->reactor.now_ms - w->stop_ms >= ORIBI_DRAIN_GRACE_MS) {
        (void)oribi_reactor_close_idle(&w->reactor, UINT32_MAX);
        oribi_reactor_close_channels(&w->reactor);
    }
    if (empties_queue(w))
        oribi__handoff_turn(w);
}

static bool deadline_passed(const struct oribi_worker *w)
{
    return w->reactor.now_ms >= w->cut_ms;
}

void oribi__say_who_is_cut(const struct oribi_worker *w)
{
    uint32_t left = w->reactor.conn_count;
    if (w->stopping && left > 0 && deadline_passed(w))
        oribi_log(ORIBI_LOG_WARN, "%s reached: cutting %u connection%s with unfinished requests",
                  end_timeout_ms(w) > w->options->shutdown_timeout_ms ? "call_timeout" : "shutdown_timeout", left,
                  left == 1 ? "" : "s");
}

bool oribi_worker_stopping(const struct oribi_worker *w)
{
    return w->stopping || oribi__retiring(w) || oribi__stop_asked(w);
}

bool oribi_worker_done(const struct oribi_worker *w)
{
    return w->abandoned ||
           (w->stopping && ((w->reactor.conn_count == 0 && !w->acceptor.last_call) || deadline_passed(w)));
}

/* --- one turn --- */

static void publish_temp_file(struct oribi_slot *slot, const struct oribi_budget *budget)
{
    atomic_store_explicit(&slot->temp_file_open, budget->temp_file_open, memory_order_relaxed);
    atomic_store_explicit(&slot->temp_file_bytes, budget->file_used, memory_order_relaxed);
    atomic_store_explicit(&slot->temp_file_count, budget->temp_file_count, memory_order_relaxed);
    atomic_store_explicit(&slot->temp_file_written_bytes, budget->temp_file_written_bytes, memory_order_relaxed);
}

static void publish(struct oribi_worker *w)
{
    oribi__publish_queue(w);
    atomic_store_explicit(&w->slot->connections_open, oribi__client_count(w), memory_order_release);
    atomic_store_explicit(&w->slot->bytes_in, w->bytes_in, memory_order_release);
    atomic_store_explicit(&w->slot->bytes_out, w->bytes_out, memory_order_release);
    if (w->reactor.budget.temp_file_count > 0)
        publish_temp_file(w->slot, &w->reactor.budget);
    if (w->setup.access_log)
        oribi_access_log_flush(w->setup.access_log);
    atomic_store_explicit(&w->slot->unlogged_count, oribi_log_dropped() + oribi_access_log_dropped(w->setup.access_log),
                          memory_order_relaxed);
    oribi_log_flush(); /* as a rule there is nothing, which is told by a flag */
}

/* Calls may leave handlers of their own instead of ours. A call that ignores a signal may do so for the
 * programs that it starts. */
static void mend_signals(const struct oribi_worker *w)
{
    bool in_call = oribi__shared(w) ? w->threads.busy_count > 0
                                    : atomic_load_explicit(&w->owner, memory_order_relaxed) != ORIBI_OWNER_MAIN;
    oribi_signals_mend_all(!in_call);
}

/* Costs nothing but three comparisons as a rule; see fd_guard.c. */
static void look_after_own(struct oribi_worker *w)
{
    bool due = w->own_due && w->reactor.now_us - w->own_checked_us >= ORIBI__FD_GUARD_CHECK_US;
    bool doubted = atomic_load_explicit(&w->own_doubted, memory_order_relaxed);
    if (__builtin_expect(due || doubted || oribi_loop_lost(w->reactor.loop), 0)) {
        oribi__fd_guard_check(w);
        mend_signals(w);
        if (w->options->status)
            atomic_store_explicit(&w->gc_due, true, memory_order_relaxed);
    }
}

/* The helper's step takes the accept sources out of the loop, and a lack of descriptors the hand-off queue. */
static void restore_sources(struct oribi_worker *w)
{
    if (w->placement.starved)
        oribi__look_for_descriptors(w);
    if (w->accept_sources_closed)
        oribi__accept_sources_open(w);
}

static void stop_turn(struct oribi_worker *w)
{
    if (!w->stopping && oribi_worker_stopping(w))
        begin_stop(w);
    if (w->stopping)
        drain_turn(w);
}

/* The phases of a turn, in order. */
void oribi__turn(struct oribi_worker *w)
{
    restore_sources(w);                    /* listeners, hand-off queue and wake descriptor are watched again */
    (void)oribi_reactor_turn(&w->reactor); /* events, readers and writers cut short, deadlines, deferred free */
    w->turned_us = w->reactor.now_us;
    look_after_own(w); /* ends the process if a descriptor of ours was closed */
    stop_turn(w);      /* begins or continues the drain */
    if (w->placement.ready)
        oribi__handoff_turn(w); /* requests that siblings have passed on: older than newcomers */
    oribi__accept_turn(w);      /* newcomers, unless the worker stops */
    if (w->placement.way.one_cpu)
        oribi__make_way(w); /* connections go where one worker is enough for all */
    w->woken = false;
    oribi__shed(w); /* requests beyond queue_max and queue_time_max */
    publish(w);     /* scoreboard and logs */
    oribi__tell_awake(w);
}

/* A turn as far as the helper may go while the worker's thread is in a call. */
bool oribi__turn_connections(struct oribi_worker *w)
{
    (void)oribi_reactor_turn(&w->reactor); /* how much happened does not matter here */
    look_after_own(w);
    bool more = oribi__accept_in_call(w);
    oribi__take_late(w);
    oribi__shed(w);
    publish(w);
    return more;
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
            return oribi__exchange_begin(exchange, w, thread, now_us);
    }
    return NULL;
}

struct oribi_req *oribi_worker_take(struct oribi_worker *w)
{
    if (__builtin_expect(w->abandoned, 0))
        return NULL;
    int64_t now_us = oribi_clock_us();
    if (!w->reactor.queue_len || oribi__retiring(w) || now_us - w->turned_us > ORIBI__TURN_EVERY_US) {
        oribi__turn(w);
        now_us = w->reactor.now_us;
    }
    return oribi__take_queued(w, &w->threads.single, now_us);
}

int64_t oribi__wait_bound_ms(const struct oribi_worker *w)
{
    if (w->acceptor.last_call || w->placement.queue_full)
        return ORIBI__LAST_CALL_MS;
    /* the drain grace and the time until the cut both end within this */
    if (w->stopping || atomic_load_explicit(&w->stop_asked, memory_order_relaxed))
        return ORIBI_DRAIN_GRACE_MS / 4;
    int64_t bound_ms = oribi__accept_wait_ms(w);
    if (w->own_due)
        bound_ms = oribi_shorter(bound_ms, ORIBI__FD_GUARD_CHECK_US / 1000); /* the look after the last call */
    if (w->placement.starved)
        bound_ms = oribi_shorter(bound_ms, ORIBI__STARVED_LOOK_MS);
    if (w->placement.way.away_until_us)
        bound_ms = oribi_shorter(bound_ms, ORIBI__AWAY_MS);
    if (oribi_log_waits() || oribi_access_log_waits(w->setup.access_log))
        bound_ms = oribi_shorter(bound_ms, ORIBI_LOG_RETRY_MS);
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
        oribi__skip(w, false);
        oribi__idle_waiter_wake(w);
    }
    int64_t bound_ms = oribi__wait_bound_ms(w);
    if (ms >= 0 && (bound_ms < 0 || ms < bound_ms))
        bound_ms = ms;
    /* Newcomers and messages that we have left to a sleeper keep us awake: then no wake-up was meant for us, and that
     * sleeper may need our CPU. */
    bool left = w->acceptor.ready_us || w->placement.ready_us;
    if (left) {
        oribi_os_yield();
        w->reactor.neighbour = false;
    }
    int64_t before_us = left ? oribi_clock_us() : 0;
    oribi__tell_asleep(w);
    oribi_reactor_wait(&w->reactor, bound_ms);
    oribi__tell_awake(w);
    w->woken = !left || oribi_clock_us() - before_us > ORIBI_ASLEEP_US;
}

void oribi_worker_wake(struct oribi_worker *w)
{
    oribi_wake_notify(&w->wake);
}

uint64_t oribi_worker_request_count(const struct oribi_worker *w)
{
    return w->request_count;
}

/* --- the language's garbage collector --- */

bool oribi_worker_gc_due(struct oribi_worker *w)
{
    if (__builtin_expect(!atomic_load_explicit(&w->gc_due, memory_order_relaxed), 1))
        return false;
    atomic_store_explicit(&w->gc_due, false, memory_order_relaxed);
    return true;
}

/* An application may set a collector's clock back. */
static uint64_t grown(uint64_t now, uint64_t before)
{
    return now > before ? now - before : 0;
}

void oribi_worker_note_gc(struct oribi_worker *w, const struct oribi_gc *now)
{
    if (!w->options->status || w->abandoned)
        return;
    if (w->gc_noted) {
        oribi__count(&w->slot->gc_count, grown(now->count, w->gc_count));
        oribi__count(&w->slot->gc_us, grown(now->us, w->gc_us));
    }
    w->gc_noted = true;
    w->gc_count = now->count;
    w->gc_us = now->us;
    atomic_store_explicit(&w->slot->live_objects, now->live_objects, memory_order_relaxed);
    atomic_store_explicit(&w->slot->heap_pages, now->heap_pages, memory_order_relaxed);
}
