/* Listeners of a worker: when to look at them, how many connections to take, what to do when descriptors run out.
 *
 * A worker looks at its listeners only when it has nothing else to do, so that connections go to idle workers. When
 * every sibling is busy too, it accepts in each turn, between two calls, and its helper does in long calls: kept-alive
 * clients who saturate the workers cannot starve newcomers, whose requests wait in the order of all others. */
#include "worker/placement/accept.h"
#include "worker/worker_private.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/config/address.h"

#include <netinet/in.h>
#include <string.h>

enum {
    ACCEPT_BATCH = 16,      /* connections a turn, when no sibling would have been free to take them */
    ACCEPT_BATCH_MAX = 256, /* connections between two long calls, at most */
    ACCEPT_US = 32, /* of a long call for each connection: accepting takes about half of that, so half the time */
    FORSAKEN_US = 250 * 1000, /* how long newcomers are left to a sibling that sleeps */
    ACCEPT_PAUSE_MS = 1000,   /* after running out of descriptors, or when a listener fails */
    CLOSE_RESTING_BATCH = 16, /* when descriptors are out: the application needs some too */
};

void oribi__listener_watches_unwatch(struct oribi_worker *w)
{
    if (!w->acceptor.open)
        return;
    for (uint32_t i = 0; i < w->acceptor.watch_count; i++) {
        oribi_loop_remove(w->reactor.loop, &w->acceptor.watches[i].watch);
        w->acceptor.watches[i].ready = false;
    }
    w->acceptor.open = false;
}

static void pause_accepting(struct oribi_worker *w)
{
    oribi__listener_watches_unwatch(w);
    w->own_due = true; /* a descriptor that is not there any more fails in many ways */
    w->acceptor.pause_until_ms = w->reactor.now_ms + ACCEPT_PAUSE_MS;
}

/* Logs a failure and pauses, so that a listener that fails for good keeps no worker awake. */
static void complain(struct oribi_worker *w, const struct oribi__listener_watch *listener_watch, const char *what)
{
    if (oribi_log_limit_allows(&w->refuse_log_limit, w->reactor.now_ms))
        oribi_log(ORIBI_LOG_ERROR, "cannot %s %s: %s", what, listener_watch->listener->text, oribi_os_error_text());
    pause_accepting(w);
}

static void on_listener_ready(void *self, struct oribi_watch *watch)
{
    ((struct oribi__listener_watch *)watch)->ready = true; /* its first member */
}

void oribi__listener_watches_open(struct oribi_worker *w)
{
    if (w->acceptor.open || w->stopping || w->orphaned)
        return;
    w->acceptor.open = true;
    for (uint32_t i = 0; i < w->acceptor.watch_count; i++) {
        struct oribi__listener_watch *listener_watch = &w->acceptor.watches[i];
        listener_watch->watch.handler = on_listener_ready;
        if (oribi_loop_add(w->reactor.loop, &listener_watch->watch, listener_watch->listener->fd, ORIBI_WATCH_LISTENER,
                           ORIBI_READ) < 0) {
            complain(w, listener_watch, "watch");
            return;
        }
    }
}

/* --- connections_max --- */

/* As many connections as connections_max, or more. */
static bool at_limit(const struct oribi_worker *w)
{
    return w->options->connections_max && oribi__client_count(w) >= w->options->connections_max;
}

/* Also at the limit, while a connection may go for the new one. Beyond it, where one did not go after all, first
 * another has to. */
static bool has_room(const struct oribi_worker *w)
{
    if (!at_limit(w))
        return true;
    return oribi__client_count(w) == w->options->connections_max && oribi_reactor_room_ms(&w->reactor) == 0;
}

static bool beyond_limit(const struct oribi_worker *w)
{
    return w->options->connections_max && oribi__client_count(w) > w->options->connections_max;
}

/* When a connection may be closed that has to go; -1: none has to. */
static int64_t room_wait_ms(const struct oribi_worker *w)
{
    bool waits = beyond_limit(w) || (at_limit(w) && !w->acceptor.open); /* a connection in the backlog, too */
    return waits && !w->stopping ? oribi_reactor_room_ms(&w->reactor) : -1;
}

int64_t oribi__accept_wait_ms(const struct oribi_worker *w)
{
    int64_t pause_ms = w->acceptor.open ? 0 : w->acceptor.pause_until_ms - w->reactor.now_ms;
    int64_t room_ms = room_wait_ms(w);
    if (pause_ms <= 0)
        return room_ms;
    return oribi_shorter(room_ms, pause_ms);
}

bool oribi__make_room(struct oribi_worker *w)
{
    struct oribi_room room;
    if (!beyond_limit(w) || !oribi_reactor_make_room(&w->reactor, &room))
        return false;
    oribi__count(&w->slot->evicted_count, 1);
    if (oribi_log_limit_allows(&w->refuse_log_limit, w->reactor.now_ms))
        oribi_log(ORIBI_LOG_WARN, "connections_max (%u) reached: closed a connection %s %lld ms for a new one",
                  w->options->connections_max,
                  room.head ? "whose request head was not finished for" : "that was idle for", (long long)room.age_ms);
    return true;
}

/* Newcomers wait in the backlog until a turn finds room. The kernel has told us of them, so an idle sibling would
 * not hear of them. */
static void no_room(struct oribi_worker *w)
{
    oribi__listener_watches_unwatch(w);
    if (oribi__idle_siblings(w, 1) > 0)
        oribi_handoff_notify(&w->placement.queue);
    if (oribi_log_limit_allows(&w->refuse_log_limit, w->reactor.now_ms))
        oribi_log(ORIBI_LOG_WARN,
                  "connections_max (%u) reached and all connections are in use: new ones wait in the backlog",
                  w->options->connections_max);
}

/* --- descriptors --- */

/* The kernel woke us, and will wake no sibling for the same newcomer. */
static void leave_to_siblings(struct oribi_worker *w)
{
    oribi_handoff_notify(&w->placement.queue);
    if (oribi_log_limit_allows(&w->refuse_log_limit, w->reactor.now_ms))
        oribi_log(ORIBI_LOG_WARN, "out of file descriptors: new connections are left to other workers for %d ms",
                  ACCEPT_PAUSE_MS);
    pause_accepting(w);
}

static void out_of_descriptors(struct oribi_worker *w)
{
    struct oribi_room room;
    uint32_t closed = 0;
    if (oribi__idle_siblings(w, 1) > 0) {
        leave_to_siblings(w);
        return;
    }
    while (closed < CLOSE_RESTING_BATCH && oribi_reactor_make_room(&w->reactor, &room))
        closed++;
    oribi__count(&w->slot->evicted_count, closed);
    if (oribi_log_limit_allows(&w->refuse_log_limit, w->reactor.now_ms))
        oribi_log(ORIBI_LOG_WARN, "out of file descriptors: closed %u connections without a request, accepting %s",
                  closed, closed ? "goes on" : "pauses for a second");
    if (closed == 0)
        pause_accepting(w);
}

/* 0 when there may be more, also after a failure that a pause may cure; ORIBI_AGAIN, or a code. */
static int accept_next(struct oribi_worker *w, struct oribi__listener_watch *listener_watch)
{
    struct sockaddr_storage peer;
    socklen_t peer_len = sizeof(peer);
    int fd;
    int result = oribi_os_accept(listener_watch->listener->fd, &fd, &peer, &peer_len);
    if (result == ORIBI_ECLOSED)
        return 0;
    if (result == ORIBI_ELIMIT && oribi_os_raise_descriptors()) /* the application has taken them all */
        return 0;
    if (result == ORIBI_ELIMIT || result == ORIBI_ENOMEM) {
        out_of_descriptors(w);
        return 0;
    }
    if (result < 0)
        return result;
    struct oribi_conn *c = oribi_conn_open(&w->reactor, fd, listener_watch->listener);
    if (!c)
        return 0;
    if (!listener_watch->listener->is_unix)
        oribi_address_of_client(&peer, c->addr, &c->addr_len, c->port, &c->port_len);
    c->proxy_awaited = (listener_watch->listener->proxy || w->options->proxy_protocol) &&
                       oribi_trust_has(&w->trust, oribi_slice(c->addr, c->addr_len));
    oribi__count(&w->slot->connection_count, 1);
    bool stopping = oribi_worker_stopping(w); /* then its other connections go anyway */
    if (!stopping && beyond_limit(w) && oribi__share_beyond(w, c))
        return 0;
    if (!stopping)
        (void)oribi__make_room(w); /* where none can go after all, this one may stay: the next has to wait */
    oribi_conn_start(&w->reactor, c);
    oribi__share(w, c);
    return 0;
}

/* True for a listener that ends with the server. */
static bool is_last(const struct oribi_worker *w, const struct oribi__listener_watch *listener_watch)
{
    return !listener_watch->listener->inherited && !w->orphaned &&
           atomic_load_explicit(&w->slot->stop_soon, memory_order_acquire) == ORIBI_STOP_LAST;
}

/* True if there may be more, and now. */
static bool accept_one(struct oribi_worker *w, struct oribi__listener_watch *listener_watch)
{
    int result = accept_next(w, listener_watch);
    if (result < 0 && result != ORIBI_AGAIN)
        oribi__fd_guard_check(w);
    /* else its end has come before our signal */
    if (result < 0 && result != ORIBI_AGAIN && !is_last(w, listener_watch))
        complain(w, listener_watch, "accept from");
    return result == 0 && w->reactor.now_ms >= w->acceptor.pause_until_ms;
}

/* The kernel woke one sleeper for each waiting connection, and if that was us, no other worker will hear of
 * it: we take the connections that wait now, after we have left the sleepers' queue. Otherwise a reload loses
 * requests. */
void oribi__listener_watches_close(struct oribi_worker *w)
{
    if (!w->acceptor.open)
        return;
    oribi__listener_watches_unwatch(w);
    oribi__listener_watches_take(w);
}

void oribi__listener_watches_take(struct oribi_worker *w)
{
    w->acceptor.take_due = false;
    for (uint32_t i = 0; i < w->acceptor.watch_count; i++)
        while (!is_last(w, &w->acceptor.watches[i]) && accept_one(w, &w->acceptor.watches[i]))
            continue;
}

/* Accepts until the queue is empty; true while more connections may wait. A unix socket was shut before we were told,
 * so an empty queue stays empty; of TCP we hear its end by accept(2) failing with EINVAL, when the supervisor has seen
 * that none waits. */
static bool empty_listener(struct oribi_worker *w, struct oribi__listener_watch *listener_watch)
{
    int result = 0;
    while (!at_limit(w) && w->reactor.now_ms >= w->acceptor.pause_until_ms && result == 0)
        result = accept_next(w, listener_watch);
    listener_watch->over = result < 0 && (result != ORIBI_AGAIN || listener_watch->listener->is_unix);
    return !listener_watch->over;
}

void oribi__listener_watches_quit(struct oribi_worker *w)
{
    oribi__listener_watches_unwatch(w);
    for (uint32_t i = 0; i < w->acceptor.watch_count; i++) {
        struct oribi__listener_watch *listener_watch = &w->acceptor.watches[i];
        if (listener_watch->closed)
            continue;
        while (!listener_watch->listener->inherited && accept_one(w, listener_watch))
            continue;
        oribi__fd_guard_drop(&w->fd_guard, listener_watch->listener->fd);
        oribi_os_close(listener_watch->listener->fd);
        listener_watch->closed = true;
    }
}

/* True while the supervisor has not said whether this listener ends: it gets a signal to the process group no sooner
 * than we do. */
static bool may_be_last(const struct oribi_worker *w, const struct oribi__listener_watch *listener_watch)
{
    return w->stopping && atomic_load_explicit(&w->stop_signalled, memory_order_relaxed) && !w->orphaned &&
           !listener_watch->listener->inherited && w->reactor.now_ms - w->stop_ms < ORIBI_DRAIN_GRACE_MS &&
           atomic_load_explicit(&w->slot->stop_soon, memory_order_acquire) < ORIBI_STOP_TOLD;
}

bool oribi__last_call(struct oribi_worker *w)
{
    bool more = false;
    for (uint32_t i = 0; i < w->acceptor.watch_count; i++) {
        struct oribi__listener_watch *listener_watch = &w->acceptor.watches[i];
        if (!listener_watch->over &&
            (may_be_last(w, listener_watch) || (is_last(w, listener_watch) && empty_listener(w, listener_watch))))
            more = true;
    }
    return more;
}

/* The kernel's backlog can be neither counted nor refused, so with a limit on waiting a busy worker lets newcomers in
 * when no sibling would: they are answered in time, or 503 at once, and passed on as soon as a sibling is idle. So it
 * does with local content, which has answers that no call is needed for. In long calls it does so in any case, because
 * a request in the backlog has no place in the order of those that wait (oribi__queues_newcomers()). */
bool oribi__wants_newcomers_in_call(const struct oribi_worker *w)
{
    bool paused = w->stopping || w->orphaned || oribi__retiring(w) || w->reactor.now_ms < w->acceptor.pause_until_ms;
    return !paused && (oribi__takes_newcomers_in_call(w) || oribi__queues_newcomers(w)) && has_room(w) &&
           oribi__idle_siblings(w, 1) == 0;
}

bool oribi__accept_in_call(struct oribi_worker *w)
{
    bool more = false;
    if (!oribi__wants_newcomers_in_call(w))
        return false;
    for (uint32_t i = 0; i < w->acceptor.watch_count; i++) {
        int left = ACCEPT_BATCH;
        while (left > 0 && has_room(w) && !w->acceptor.watches[i].over && accept_one(w, &w->acceptor.watches[i]))
            left = oribi__holds_newcomers_back(w) ? 0 : left - 1;
        more |= left == 0;
    }
    return more;
}

/* No sibling is idle, and requests wait here: how many newcomers may come to them. As each waits behind those that are
 * here, no more need be let in than are served meanwhile, where calls are short: the siblings take their share. */
static uint32_t saturated_budget(struct oribi_worker *w)
{
    uint64_t calls = w->request_count - w->acceptor.calls_seen;
    int64_t budget = w->call_lengths.average_us / ACCEPT_US;
    w->acceptor.calls_seen = w->request_count;
    if (oribi__limits_waiting(w->options) && oribi__has_siblings(w))
        return 1; /* their requests stay with us: the siblings take their share */
    if (w->call_lengths.average_us <= ORIBI_PASS_US)
        return calls < ACCEPT_BATCH ? (uint32_t)calls + 1 : ACCEPT_BATCH;
    return budget < ACCEPT_BATCH ? ACCEPT_BATCH : budget > ACCEPT_BATCH_MAX ? ACCEPT_BATCH_MAX : (uint32_t)budget;
}

/* The sibling that seems to sleep does not come: it is stopped, or hangs. */
static bool is_forsaken(const struct oribi_worker *w)
{
    return w->acceptor.ready_us && w->reactor.now_us - w->acceptor.ready_us > FORSAKEN_US;
}

static uint32_t accept_budget(struct oribi_worker *w)
{
    if (oribi__leave_to_sleepers(w, w->acceptor.ready_us))
        return 0;
    if (oribi__idle_siblings(w, 1) > 0) /* the kernel wakes one of them instead */
        return w->reactor.queue_len == 0 || w->woken || is_forsaken(w) ? 1 : 0;
    return w->reactor.queue_len == 0 ? ACCEPT_BATCH : saturated_budget(w);
}

void oribi__listener_watches_restore(struct oribi_worker *w)
{
    if (!w->acceptor.open && w->reactor.now_ms >= w->acceptor.pause_until_ms && has_room(w))
        oribi__listener_watches_open(w);
}

void oribi__listener_watches_rotate(struct oribi_worker *w)
{
    if (!w->acceptor.open || !w->setup.board || w->setup.board->count < 2)
        return;
    for (uint32_t i = 0; i < w->acceptor.watch_count; i++) {
        oribi_loop_rotate(w->reactor.loop, &w->acceptor.watches[i].watch);
        if (!w->acceptor.watches[i].watch.added) {
            complain(w, &w->acceptor.watches[i], "watch");
            return;
        }
    }
    if (w->placement.watched) /* what others share is not for us next either */
        oribi_loop_rotate(w->reactor.loop, &w->placement.watch);
}

/* Connections that stay, or went on to a sibling because we have enough, move us to the end of the kernel's queue of
 * sleepers, see oribi_loop_rotate(). */
static void rotate(struct oribi_worker *w)
{
    uint32_t registered = w->reactor.registered_count;
    if (registered == w->acceptor.registered_seen && !w->acceptor.rotate_due)
        return;
    w->acceptor.rotate_due = false;
    w->acceptor.registered_seen = registered;
    oribi__listener_watches_rotate(w);
}

void oribi__accept_turn(struct oribi_worker *w)
{
    if (w->stopping)
        return;
    /* siblings' connections, and those that stayed though there was no room */
    while (at_limit(w) && oribi__make_room(w))
        continue;
    if (!w->acceptor.open)
        oribi__listener_watches_restore(w);
    if (w->acceptor.open)
        rotate(w);
    if (!w->acceptor.open)
        return;
    bool any = false;
    for (uint32_t i = 0; i < w->acceptor.watch_count; i++)
        any |= w->acceptor.watches[i].ready;
    if (!any) {
        w->acceptor.ready_us = 0;
        return;
    }
    uint32_t budget = UINT32_MAX; /* found out only when a connection waits */
    for (uint32_t i = 0; i < w->acceptor.watch_count && w->acceptor.open; i++) {
        struct oribi__listener_watch *listener_watch = &w->acceptor.watches[i];
        if (!listener_watch->ready)
            continue;
        if (budget == UINT32_MAX)
            budget = accept_budget(w);
        while (budget > 0 && listener_watch->ready && w->acceptor.open) {
            budget--;
            if (!has_room(w))
                no_room(w);
            else if (!accept_one(w, listener_watch))
                listener_watch->ready = false;
        }
    }
    bool left = false;
    for (uint32_t i = 0; i < w->acceptor.watch_count; i++) {
        left |= w->acceptor.watches[i].ready;
        w->acceptor.watches[i].ready = false; /* level-triggered: the next poll says it again */
    }
    w->acceptor.ready_us = !left ? 0 : w->acceptor.ready_us ? w->acceptor.ready_us : w->reactor.now_us;
}
