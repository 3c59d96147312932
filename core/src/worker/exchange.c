/* The begin of a call, which fills in what the application is told of its request, and the end, which counts and logs
 * it. Between them lie reply.c and stream.c. Reading order: oribi__exchange_begin, oribi__exchange_end. */
#include "worker/exchange.h"
#include "worker/call.h"
#include "worker/compress.h"
#include "worker/logs/exchange_log.h"
#include "worker/placement/accept.h"
#include "worker/placement/ownership.h"
#include "worker/reply.h"
#include "worker/events.h"
#include "worker/socket.h"

#include "oribi/base/clock.h"
#include "oribi/worker/logs/request_log.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { AVERAGE_OVER = 8 }; /* calls that the running average remembers, more or less */

/* --- the begin --- */

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
    struct oribi_conn_request *base = &exchange->base;
    req->body_fd = base->body.fd;
    req->parted = base->parts != NULL;
    if (__builtin_expect(req->parted, 0)) {
        req->body_fd = -1;
        req->body = oribi_slice(NULL, 0);
        req->body_len = base->parts->len;
    } else if (base->body.fd >= 0) {
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

/* Sets the listener of the channel's request. It is looked for only where the last request had another one. */
static void set_listener(struct oribi_conn *c, const struct oribi_worker *w)
{
    struct oribi_channel *channel = c->channel;
    const struct oribi_channel_head *head = &channel->head;
    if (channel->has_listener && head->listener == channel->listener && head->listener_hash == channel->listener_hash)
        return;
    c->listener = oribi__listener_by(w, head->listener, head->listener_hash);
    channel->listener = head->listener;
    channel->listener_hash = head->listener_hash;
    channel->has_listener = true;
}

static void set_addresses(struct oribi__exchange *exchange)
{
    struct oribi_req *req = &exchange->req;
    struct oribi_conn *c = exchange->base.conn;
    const struct oribi_head *head = &exchange->base.head;
    if (__builtin_expect(c->channel != NULL, 0))
        set_listener(c, exchange->worker);
    const struct oribi_listener *listener = c->listener;
    req->client = c->channel ? &c->channel->head : NULL;
    oribi__peer_of(exchange);
    req->server_name = head->host.n ? head->host : oribi_slice(listener->host, strlen(listener->host));
    if (!listener->is_unix)
        req->server_port = oribi_slice(listener->port, strlen(listener->port));
    else
        req->server_port = head->port.n ? head->port : ORIBI_SLICE("80");
}

/* Of several threads each may be in a call: the last call of requests_max is known when it begins, and no other follows
 * it. */
static void count_begun(struct oribi_worker *w)
{
    if (!w->request_limit || ++w->begun_count != w->request_limit || oribi__retiring(w))
        return;
    oribi_worker_retire(w);
    oribi__threads_notify(w); /* the supervisor hears of it from the binding, and replaces the worker */
}

struct oribi_req *oribi__exchange_begin(struct oribi__exchange *exchange, struct oribi_worker *w,
                                        struct oribi_thread *thread, int64_t now_us)
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
    exchange->coder = NULL;
    exchange->websocket = NULL;
    exchange->events = NULL;
    exchange->none_match = oribi_slice(NULL, 0);
    exchange->phase = ORIBI_PHASE_OPEN;
    exchange->status = 0;
    exchange->closes = false;
    exchange->aborted = false;
    exchange->cut = false;
    exchange->unframed = false;
    exchange->streams = false;
    exchange->lends_fd = false;
    oribi__logged_begin(exchange);
    req->head = &exchange->base.head;
    req->last = false;
    req->request_id.n = 0;
    set_body(exchange);
    set_addresses(exchange);
    if (__builtin_expect(w->compression != NULL, 0))
        oribi__compress_request(exchange);
    if (__builtin_expect(w->names_requests, 0))
        oribi__id_begin(exchange);

    struct oribi_slot *slot = w->slot;
    oribi__note_line(thread->line, &exchange->base.head);
    oribi__publish_queue(w); /* without this one */
    oribi__clock_begin(thread, w->options->call_timeout_ms, now_us);
    if (oribi__shared(w)) {
        oribi__thread_begin(thread);
        count_begun(w);
    } else if (!w->stopping)
        atomic_store_explicit(&slot->state, ORIBI_SLOT_BUSY, memory_order_release);
    oribi__call_begins(w, now_us);
    oribi__leave(w);
    return req;
}

/* --- the end of a call --- */

bool oribi__conn_keeps(const struct oribi_worker *w, const struct oribi_conn *c)
{
    uint32_t max = w->options->keepalive_requests_max;
    if (__builtin_expect(c->channel != NULL, 0))
        return true; /* its end is the frontend's, or it is passed on */
    if (!c->exchange->head.keep_alive || oribi__stop_asked(w) || (w->stopping && !oribi__retiring(w)))
        return false; /* a worker that retires passes the connection on */
    return max == 0 || c->request_count < max;
}

bool oribi__exchange_keeps(const struct oribi__exchange *exchange)
{
    const struct oribi_worker *w = exchange->worker;
    bool is_channel = exchange->base.conn->channel != NULL;
    bool is_last = exchange->req.last || (!is_channel && w->request_limit && w->request_count + 1 >= w->request_limit);
    return !is_last && oribi__conn_keeps(w, exchange->base.conn);
}

static inline __attribute__((always_inline)) void end_call(struct oribi__exchange *exchange, int status, bool logged)
{
    struct oribi_worker *w = exchange->worker;
    struct oribi_slot *slot = w->slot;
    int64_t now_us = oribi_clock_us();
    int64_t call_us = now_us - exchange->started_us;
    if (__builtin_expect(w->cancels_gone, 0))
        status = oribi__client_abort_status(exchange, status);
    oribi_reactor_clock(&w->reactor, now_us);
    w->request_count++;
    w->call_lengths.average_us += (call_us - w->call_lengths.average_us) / AVERAGE_OVER;
    if (logged)
        oribi_slot_count_answer(slot, exchange->base.head.method, oribi__exchange_is_cut(exchange) ? 0 : status);
    oribi_histogram_count(&slot->queue_wait, exchange->req.queue_us);
    oribi_histogram_count(&slot->call_time, call_us);
    oribi_histogram_count(&slot->total_time, now_us - exchange->base.complete_us);
    oribi__clock_end(exchange->thread);
    exchange->thread->exchange = NULL;
    if (oribi__shared(w))
        oribi__threads_publish(w);
    atomic_store_explicit(&slot->request_count, w->request_count, memory_order_release);
    if (logged && w->setup.access_log && !oribi__events_told(exchange)) /* of those the frontend writes it */
        oribi__log_access(exchange, status, now_us);
    if (logged)
        oribi__logged_end(exchange);
    if (__builtin_expect(call_us > ORIBI_LONG_US, 0))
        oribi__slow_end(exchange, status, now_us);
    oribi_buf_deinit(&exchange->held);
    if (__builtin_expect((uintptr_t)exchange->framed | (uintptr_t)exchange->coder | (uintptr_t)exchange->websocket |
                             (uintptr_t)exchange->events,
                         0)) { /* one comparison for all */
        oribi__framed_free(exchange);
        oribi__socket_free(exchange);
        oribi__events_free(exchange);
        oribi__compress_give_back(exchange);
    }
    oribi__call_took(w, call_us, now_us);
    if (w->request_limit && w->request_count == w->request_limit && !oribi__retiring(w))
        oribi_worker_retire(w);
}

void oribi__exchange_end(struct oribi__exchange *exchange, int status)
{
    end_call(exchange, status, true);
}

void oribi__exchange_end_unstored(struct oribi__exchange *exchange, int status)
{
    end_call(exchange, status, false);
    oribi__exchange_unstored(exchange, status);
}

void oribi__exchange_unstored(struct oribi__exchange *exchange, int status)
{
    exchange->base.unlogged = true;
    exchange->base.reset_when_cut = exchange->framing == ORIBI_FRAMING_CLOSE;
    exchange->ended_us = exchange->worker->reactor.now_us;
    exchange->status = status;
    exchange->thread = NULL; /* it has other calls */
}

void oribi__exchange_stored(struct oribi__exchange *exchange)
{
    struct oribi_worker *w = exchange->worker;
    if (!exchange->base.unlogged)
        return;
    oribi_slot_count_answer(w->slot, exchange->base.head.method,
                            oribi__exchange_is_cut(exchange) ? 0 : exchange->status);
    if (w->setup.access_log)
        oribi__log_access(exchange, exchange->status, exchange->ended_us);
    oribi__logged_end(exchange);
    exchange->base.unlogged = false;
}
