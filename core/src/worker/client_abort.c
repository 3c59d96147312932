/* Clients that leave while their call runs. Reading order: oribi_req_gone, oribi__client_abort_look,
 * oribi_thread_take_gone, oribi_reply_gone.
 *
 *   what the client did           TCP                             unix socket
 *   shutdown(SHUT_WR)             FIN                             its sending side is shut: POLLRDHUP
 *   close(), exit, kill -9        FIN; a reset answers what is    both are shut: POLLHUP
 *                                 sent to it after that
 *   close() with bytes unread,    RST                             both are shut: POLLHUP
 *   SO_LINGER 0
 *
 * So of a TCP client that has sent a FIN it is not known whether it reads on, and no byte may be sent to find out.
 * gone_on says what counts. `auto` goes by what the client is: a proxy that gives up a request closes its connection,
 * and does not close half of it; and a client whose request was to keep the connection has changed its mind. One that
 * said `Connection: close`, or speaks HTTP/1.0, may have closed half its connection because it has said all, and gets
 * its answer. */
#include "worker/call.h"
#include "worker/exchange.h"
#include "worker/placement/ownership.h"
#include "worker/reply.h"

#include "oribi/base/clock.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>

/* --- has it gone? --- */

/* Does the request say that a proxy has sent it? Whether that is true is of no matter: it concerns the client's own
 * call alone. */
static bool is_forwarded(const struct oribi_head *head)
{
    static const enum oribi_field_id ids[] = {ORIBI_FIELD_X_FORWARDED_FOR, ORIBI_FIELD_X_FORWARDED_PROTO,
                                              ORIBI_FIELD_X_REAL_IP, ORIBI_FIELD_FORWARDED, ORIBI_FIELD_VIA};
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
        if (oribi_head_field(head, ids[i]))
            return true;
    return false;
}

/* The client has sent all that it will send, and may read on. */
static bool fin_counts(const struct oribi__exchange *exchange)
{
    const struct oribi_worker *w = exchange->worker;
    const struct oribi_conn *c = exchange->base.conn;
    const struct oribi_listener *listener = c->listener;
    const char *gone_on = w->options->gone_on ? w->options->gone_on : "auto";
    if (oribi_conn_behind(c).n > 0)
        return false; /* another request waits here: its client wants two answers */
    if (strcmp(gone_on, "auto") != 0)
        return strcmp(gone_on, "fin") == 0;
    if (listener->is_unix)
        return false; /* it would be gone otherwise */
    const struct oribi_head *head = &exchange->base.head;
    return head->keep_alive || is_forwarded(head) || oribi_trust_has(&w->trust, oribi_slice(c->addr, c->addr_len));
}

static bool is_gone(const struct oribi__exchange *exchange)
{
    const struct oribi_conn *c = exchange->base.conn;
    if (c->broken)
        return true;
    enum oribi_peer_state state = oribi_os_peer_state(c->watch.fd);
    return state == ORIBI_PEER_GONE || (state == ORIBI_PEER_FINISHED && fin_counts(exchange));
}

bool oribi_req_gone(const struct oribi_req *req)
{
    const struct oribi__exchange *exchange = oribi__exchange_of(req);
    return !oribi__call_is_abandoned(exchange) && is_gone(exchange);
}

/* --- the helper's part --- */

static int64_t started_us(const struct oribi_thread *thread)
{
    return atomic_load_explicit(thread->started_us, memory_order_acquire);
}

static void send_signal(struct oribi_thread *thread, int64_t now_us)
{
    thread->gone_signalled_us = now_us;
    /* the thread is there as long as its call is, which cannot end without the reactor */
    (void)pthread_kill(atomic_load_explicit(&thread->pthread, memory_order_relaxed), oribi_os_private_signal());
}

static bool is_never_gone(const struct oribi_thread *thread, int64_t call_us)
{
    return atomic_load_explicit(&thread->never_gone_us, memory_order_relaxed) == call_us;
}

/* A call that nothing is answered to any more, or that waits for its client in the core, hears of it there. */
static bool may_be_cancelled(const struct oribi_thread *thread)
{
    const struct oribi__exchange *exchange = thread->exchange;
    return exchange && !atomic_load(&thread->waits) &&
           oribi_options_cancels(thread->worker->options, exchange->base.head.method);
}

/* With the reactor. */
static int64_t look_at(struct oribi_thread *thread, int64_t now_us)
{
    struct oribi_worker *w = thread->worker;
    if (!may_be_cancelled(thread))
        return INT64_MAX;
    int64_t call_us = started_us(thread);
    if (is_never_gone(thread, call_us))
        return INT64_MAX;
    if (thread->gone_seen_us == call_us) {
        bool taken = atomic_load_explicit(&thread->gone_us, memory_order_acquire) != call_us;
        if (!taken && now_us - thread->gone_signalled_us >= ORIBI__CLIENT_ABORT_REPEAT_MS * 1000)
            send_signal(thread, now_us);
        return taken ? INT64_MAX : ORIBI__CLIENT_ABORT_REPEAT_MS;
    }
    struct oribi_conn *c = thread->exchange->base.conn;
    bool told = oribi_conn_tells_leaving(&w->reactor, c);
    if (told && !(c->watch.ready & ORIBI_HANGUP) && !c->broken)
        return INT64_MAX;
    if (!is_gone(thread->exchange))
        return told ? INT64_MAX : ORIBI__CLIENT_ABORT_LOOK_MS;
    thread->gone_seen_us = call_us;
    atomic_store_explicit(&thread->gone_us, call_us, memory_order_release); /* partner: oribi_thread_take_gone() */
    oribi__count(&w->slot->cancelled_count, 1);
    send_signal(thread, now_us);
    return ORIBI__CLIENT_ABORT_REPEAT_MS;
}

int64_t oribi__client_abort_look(struct oribi_worker *w, int64_t now_us)
{
    uint32_t expected = ORIBI_OWNER_CALL;
    int64_t soonest_ms = INT64_MAX;
    if (!w->cancels_gone)
        return INT64_MAX;
    if (!atomic_compare_exchange_strong_explicit(&w->owner, &expected, ORIBI_OWNER_HELPER, memory_order_acquire,
                                                 memory_order_relaxed))
        return 1;
    for (uint32_t i = 0; i < w->threads.count; i++) {
        int64_t ms = look_at(&w->threads.list[i], now_us);
        soonest_ms = ms < soonest_ms ? ms : soonest_ms;
    }
    oribi__helper_give_back(w);
    return soonest_ms;
}

/* --- on the thread of the call --- */

bool oribi__client_abort_is_due(const struct oribi_thread *thread)
{
    int64_t call_us = atomic_load_explicit(&thread->gone_us, memory_order_acquire);
    return call_us && call_us == started_us(thread);
}

void oribi__client_abort_tell(const struct oribi_thread *thread)
{
    if (thread->worker->setup.deadline_signal > 0)
        (void)pthread_kill(pthread_self(), thread->worker->setup.deadline_signal);
}

/* Two calls of a thread have different starts: the first of them has lasted until the helper came to look at it. */
bool oribi_thread_take_gone(struct oribi_thread *thread)
{
    int64_t call_us = atomic_load_explicit(&thread->gone_us, memory_order_acquire);
    if (!call_us || thread->worker->abandoned)
        return false;
    bool ours = atomic_compare_exchange_strong_explicit(&thread->gone_us, &call_us, 0, memory_order_acq_rel,
                                                        memory_order_relaxed);
    return ours && call_us == started_us(thread) && !is_never_gone(thread, call_us);
}

void oribi_thread_never_gone(struct oribi_thread *thread)
{
    atomic_store_explicit(&thread->never_gone_us, started_us(thread), memory_order_relaxed);
}

/* Frameworks catch every exception and answer 500. */
int oribi__client_abort_status(struct oribi__exchange *exchange, int status)
{
    if (status < 500 || exchange->thread->gone_seen_us != exchange->started_us)
        return status;
    exchange->aborted = true;
    return 499;
}

void oribi_reply_gone(struct oribi_req *req)
{
    struct oribi__exchange *exchange = oribi__exchange_of(req);
    struct oribi_worker *w = exchange->worker;
    if (oribi__call_is_abandoned(exchange))
        return;
    if (exchange->phase == ORIBI_PHASE_STARTED) {
        oribi_reply_abort(req);
        return;
    }
    oribi__enter(w);
    exchange->status = 499;
    exchange->framing = ORIBI_FRAMING_NONE; /* no answer is to be told from a whole one */
    oribi__cut(exchange);
}
