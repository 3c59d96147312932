/* Streamed answers and sockets that leave the core. The head waits for the first body bytes, so that a short stream
 * is one packet. */
#include "worker/call.h"
#include "worker/compress.h"
#include "worker/exchange.h"
#include "worker/placement/helper.h"
#include "worker/placement/ownership.h"
#include "worker/placement/placement.h"
#include "worker/reply.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/http/chunked.h"

#include <assert.h>
#include <poll.h>
#include <string.h>

/* Queued output above this makes the application wait. */
static int64_t high_water(const struct oribi__exchange *exchange)
{
    return exchange->worker->options->response_memory_max;
}

/* Queued output down to half of high_water() lets the application go on. Output that has overflowed to a file must go
 * altogether: a file shrinks only by running empty, and a stream whose reader is always a little behind would fill the
 * disk. */
static int64_t low_water(const struct oribi__exchange *exchange)
{
    return oribi_conn_in_temp_file(exchange->base.conn) > 0 ? 0 : high_water(exchange) / 2;
}

int oribi__stream_begin(struct oribi__exchange *exchange, int status, const struct oribi_header *headers,
                        uint32_t header_count, int64_t body_len)
{
    struct oribi__head_text head;
    int64_t promised;
    exchange->streams = true;
    int result = oribi__reply_head(exchange, status, headers, header_count, body_len, &head, &promised);
    exchange->streams = false; /* the 500 for a head that is not valid is a whole answer */
    if (result < 0)
        return result;
    if (exchange->app_frames && (result = oribi__framed_begin(exchange)) < 0) {
        oribi__head_text_free(&head);
        return result;
    }
    result = oribi_buf_try_append(&exchange->held, head.p, head.n);
    oribi__head_text_free(&head);
    if (result < 0) {
        oribi__log_app(exchange, "no memory for the response head");
        return ORIBI_EAPP;
    }
    exchange->left = exchange->framing == ORIBI_FRAMING_LENGTH ? promised : -1;
    exchange->phase = ORIBI_PHASE_BEGUN;
    oribi__burst_begin(exchange, headers, header_count);
    return 0;
}

int oribi_reply_begin(struct oribi_req *req, int status, const struct oribi_header *headers, uint32_t header_count,
                      int64_t body_len)
{
    struct oribi__exchange *exchange = oribi__exchange_of(req);
    if (oribi__call_is_abandoned(exchange))
        return ORIBI_ECLOSED;
    assert(exchange->phase == ORIBI_PHASE_OPEN);
    oribi__enter(exchange->worker);
    int result = exchange->worker->compression
                     ? oribi__compress_begin(exchange, status, headers, header_count, body_len)
                     : oribi__stream_begin(exchange, status, headers, header_count, body_len);
    oribi__leave(exchange->worker);
    return result;
}

/* A piece with the framing around it. */
struct piece {
    struct oribi_slice before;
    const struct iovec *vec;
    size_t count;
    struct oribi_slice after;
    int64_t total; /* bytes of the vector */
};

/* Sends what is held (the head, or pieces before) and this one; NULL: nothing more. */
static int send_piece(struct oribi__exchange *exchange, const struct piece *piece)
{
    struct iovec front[2] = {{exchange->held.p, exchange->held.len}, {(char *)piece->before.p, piece->before.n}};
    struct iovec back = {(char *)piece->after.p, piece->after.n};
    struct oribi__gathering g;
    exchange->phase = ORIBI_PHASE_STARTED;
    exchange->overhead += (int64_t)(piece->before.n + piece->after.n);
    oribi__burst_sent(exchange);
    oribi__gather_begin(&g, &exchange->worker->reactor, exchange->base.conn, 0);
    int result = oribi__gather(&g, front, 2);
    if (result == 0)
        result = oribi__gather(&g, piece->vec, piece->count);
    if (result == 0)
        result = oribi__gather(&g, &back, 1);
    return result < 0 ? result : oribi__gather_send(&g, false);
}

static const struct piece no_piece = {{"", 0}, NULL, 0, {"", 0}, 0};

static char *put(char *end, const void *p, size_t n)
{
    if (n > 0) /* an empty string may have no address */
        memcpy(end, p, n);
    return end + n;
}

/* Sends a piece, or puts it to others of its burst. */
static int write_piece(struct oribi__exchange *exchange, const struct piece *piece)
{
    size_t bytes = piece->before.n + (size_t)piece->total + piece->after.n;
    bool complete = exchange->framing == ORIBI_FRAMING_LENGTH && exchange->left == 0;
    if (exchange->base.conn->broken)
        return ORIBI_ECLOSED;
    if (exchange->coder || !oribi__burst_takes(exchange, bytes) || exchange->phase == ORIBI_PHASE_BEGUN || complete)
        return send_piece(exchange, piece);
    char *end = exchange->held.p + exchange->held.len; /* oribi__burst_takes() has made room */
    end = put(end, piece->before.p, piece->before.n);
    for (size_t i = 0; i < piece->count; i++)
        end = put(end, piece->vec[i].iov_base, piece->vec[i].iov_len);
    exchange->held.len = (size_t)(put(end, piece->after.p, piece->after.n) - exchange->held.p);
    exchange->overhead += (int64_t)(piece->before.n + piece->after.n);
    return oribi__burst_gathered(exchange);
}

int oribi__stream_outcome(const struct oribi__exchange *exchange, int result)
{
    const struct oribi_conn *c = exchange->base.conn;
    if (result < 0 || c->broken)
        return ORIBI_ECLOSED;
    return oribi_conn_pending(c) > high_water(exchange) || oribi_conn_in_temp_file(c) > 0 ? 1 : 0;
}

/* Writes at most what a known length has left. */
static int write_known(struct oribi__exchange *exchange, const struct iovec *vec, size_t count, int64_t total)
{
    if (total <= exchange->left) {
        exchange->left -= total;
        exchange->body_sent += total;
        return write_piece(exchange, &(struct piece){.vec = vec, .count = count, .total = total});
    }
    if (!exchange->cut)
        oribi__log_app(exchange, "body is longer than its Content-Length: cut");
    exchange->cut = true;
    for (size_t i = 0; i < count && exchange->left > 0; i++) {
        struct iovec part = vec[i];
        if ((int64_t)part.iov_len > exchange->left)
            part.iov_len = (size_t)exchange->left;
        exchange->left -= (int64_t)part.iov_len;
        exchange->body_sent += (int64_t)part.iov_len;
        int result = write_piece(exchange, &(struct piece){.vec = &part, .count = 1, .total = (int64_t)part.iov_len});
        if (result < 0)
            return result;
    }
    return 0;
}

/* The head, or pieces that were gathered. */
static int send_held(struct oribi__exchange *exchange)
{
    return exchange->phase == ORIBI_PHASE_BEGUN ? send_piece(exchange, &no_piece) : oribi__burst_send(exchange);
}

int oribi__stream_write(struct oribi__exchange *exchange, const struct iovec *vec, size_t count, int64_t total)
{
    int result;
    switch (exchange->framing) {
    case ORIBI_FRAMING_NONE:
        return exchange->phase == ORIBI_PHASE_BEGUN ? oribi__stream_outcome(exchange, send_held(exchange)) : 0;
    case ORIBI_FRAMING_LENGTH:
        result = write_known(exchange, vec, count, total);
        break;
    case ORIBI_FRAMING_CHUNKED: {
        char size[ORIBI_CHUNK_HEAD_CAP];
        size_t n = oribi_chunk_head(size, (uint64_t)total);
        result = write_piece(exchange, &(struct piece){oribi_slice(size, n), vec, count, ORIBI_CHUNK_TAIL, total});
        exchange->body_sent += total;
        break;
    }
    default:
        result = write_piece(exchange, &(struct piece){.vec = vec, .count = count, .total = total});
        exchange->body_sent += total;
    }
    return oribi__stream_outcome(exchange, result);
}

/* Writes a body without the framing that the application has given it. */
static int write_unframed(struct oribi__exchange *exchange, const struct iovec *vec, size_t count)
{
    int result = oribi__stream_outcome(exchange, 0);
    for (size_t i = 0; i < count; i++) {
        const char *p = vec[i].iov_base;
        const char *end = p + vec[i].iov_len;
        while (p < end) {
            struct iovec content;
            result = oribi__framed_next(exchange, &p, end, &content);
            if (result < 0)
                return result;
            result = content.iov_len > 0 ? oribi__stream_write(exchange, &content, 1, (int64_t)content.iov_len)
                                         : oribi__stream_outcome(exchange, 0);
            if (result < 0)
                return result;
        }
    }
    return result;
}

/* A stream may last for ever, so it cannot wait for its own end to be found long: a helper is started, or woken,
 * while it is written. */
static void note_length(const struct oribi__exchange *exchange)
{
    struct oribi_worker *w = exchange->worker;
    if (w->helper && !oribi_helper_parked(w))
        return;
    /* ours: written by this thread */
    int64_t started_us = atomic_load_explicit(exchange->thread->started_us, memory_order_relaxed);
    if (started_us && exchange->now_us - started_us >= ORIBI_LONG_US)
        oribi_helper_need(w);
}

int oribi_reply_write(struct oribi_req *req, const struct iovec *vec, size_t count)
{
    struct oribi__exchange *exchange = oribi__exchange_of(req);
    if (oribi__call_is_abandoned(exchange))
        return ORIBI_ECLOSED;
    assert(exchange->phase != ORIBI_PHASE_OPEN);
    int64_t total = oribi_vec_len(vec, count);
    if (total == 0) /* an empty chunk would end the body */
        return 0;
    exchange->now_us = oribi_clock_us();
    note_length(exchange);
    if (exchange->coder)
        return oribi__compress_write(exchange, vec, count, total);
    oribi__enter(exchange->worker);
    int result =
        exchange->framed ? write_unframed(exchange, vec, count) : oribi__stream_write(exchange, vec, count, total);
    oribi__clock_anew_at(exchange->thread, exchange->now_us);
    oribi__leave(exchange->worker);
    return result;
}

int oribi_reply_flush(struct oribi_req *req)
{
    struct oribi__exchange *exchange = oribi__exchange_of(req);
    if (oribi__call_is_abandoned(exchange))
        return ORIBI_ECLOSED;
    exchange->now_us = oribi_clock_us();
    note_length(exchange);
    oribi__enter(exchange->worker);
    int result = oribi__stream_outcome(exchange, send_held(exchange));
    oribi__clock_anew_at(exchange->thread, exchange->now_us);
    oribi__leave(exchange->worker);
    return result;
}

/* Time left of write_timeout since output last moved; -1: no bound. Being woken in between is no progress. */
static int wait_left_ms(struct oribi__exchange *exchange)
{
    int64_t timeout = exchange->worker->options->write_timeout_ms;
    int64_t now_ms = oribi_clock_ms();
    int64_t pending = oribi_conn_pending(exchange->base.conn);
    if (pending != exchange->waited_pending) {
        (void)oribi_out_taken(exchange->base.conn->out, exchange->base.conn->watch.fd); /* from here on counts */
        exchange->waited_pending = pending;
        exchange->waited_since_ms = now_ms;
    }
    if (timeout <= 0)
        return -1;
    int64_t left = exchange->waited_since_ms + timeout - now_ms;
    return left < 0 ? 0 : left < INT32_MAX ? (int)left : INT32_MAX;
}

/* Waits for the writer, as long as it takes, where output is on its way to a file. True: the thread was woken. */
static bool poll_writer(const struct oribi__exchange *exchange)
{
    struct oribi_worker *w = exchange->worker;
    oribi__leave(w);
    bool woken = oribi__wait_stored(w, exchange->thread->wake, -1);
    oribi__enter(w);
    return woken;
}

static int wait_unstored(struct oribi__exchange *exchange)
{
    struct oribi_worker *w = exchange->worker;
    struct oribi_conn *c = exchange->base.conn;
    bool woken = poll_writer(exchange);
    oribi_reactor_stored(&w->reactor);
    int result = oribi_conn_flush(&w->reactor, c);
    exchange->waited_since_ms = oribi_clock_ms();
    return result == ORIBI_ECLOSED || c->broken ? ORIBI_ECLOSED : woken;
}

/* Waits for the socket without the reactor, so that the helper can go on with the others, and takes it again: what the
 * connection has is the helper's meanwhile, also for a look. 1 woken, 0 something moved, ORIBI_ECLOSED too late or
 * gone. */
static int wait_writable(struct oribi__exchange *exchange)
{
    struct oribi_worker *w = exchange->worker;
    struct oribi_conn *c = exchange->base.conn;
    const struct oribi_wake *wake = exchange->thread->wake;
    struct pollfd fds[2] = {{.fd = c->watch.fd, .events = POLLOUT}, {.fd = wake->read_fd, .events = POLLIN}};
    if (c->broken)
        return ORIBI_ECLOSED;
    if (c->unstored)
        return wait_unstored(exchange);
    int left_ms = wait_left_ms(exchange);
    oribi__leave(w);
    int ready = poll(fds, 2, left_ms);
    bool woken = ready < 0 || (fds[1].revents && oribi_wake_clear(wake));
    oribi__enter(w);
    if (fds[1].revents && !woken)
        oribi__fd_guard_check(w);
    if (woken && left_ms != 0)
        return 1;
    int result = 0;
    if (ready > 0 && fds[0].revents)
        result = oribi_conn_flush(&w->reactor, c);
    else if (oribi_out_taken(c->out, c->watch.fd)) /* it reads, but there is no room yet */
        exchange->waited_since_ms = oribi_clock_ms();
    else
        c->broken = true; /* nothing moved for write_timeout */
    return result == ORIBI_ECLOSED || c->broken ? ORIBI_ECLOSED : woken;
}

/* Until no more than `most` is queued, low_water() for -1. The application does nothing meanwhile, and its clock
 * stands still. The caller has the reactor, and has it again after. */
static int wait_for_client(struct oribi__exchange *exchange, int64_t most)
{
    const struct oribi_conn *c = exchange->base.conn;
    int result = 0;
    oribi__clock_stop(exchange->thread);
    while (result == 0 && oribi_conn_pending(c) > (most < 0 ? low_water(exchange) : most))
        result = wait_writable(exchange);
    oribi__clock_go_on(exchange->thread);
    return result;
}

int oribi_reply_wait(struct oribi_req *req)
{
    struct oribi__exchange *exchange = oribi__exchange_of(req);
    const struct oribi_conn *c = exchange->base.conn;
    if (oribi__call_is_abandoned(exchange))
        return ORIBI_ECLOSED;
    oribi__enter(exchange->worker);
    (void)oribi__burst_send(exchange);
    int result = oribi_conn_pending(c) > low_water(exchange) ? wait_for_client(exchange, -1) : 0;
    if (result == 0 && c->broken)
        result = ORIBI_ECLOSED;
    oribi__leave(exchange->worker);
    return result;
}

static int finish(struct oribi__exchange *exchange, int result)
{
    bool gone = result < 0 || exchange->base.conn->broken;
    oribi__finish(exchange);
    return gone ? ORIBI_ECLOSED : 0;
}

/* The end of a stream, behind its last bytes if there are any: in one packet. */
static int send_end(struct oribi__exchange *exchange, const struct iovec *last)
{
    if (exchange->framing == ORIBI_FRAMING_CHUNKED && last->iov_len > 0) {
        char size[ORIBI_CHUNK_HEAD_CAP];
        size_t n = oribi_chunk_head(size, last->iov_len);
        exchange->body_sent += (int64_t)last->iov_len;
        return send_piece(exchange, &(struct piece){.before = oribi_slice(size, n),
                                                    .vec = last,
                                                    .count = 1,
                                                    .after = ORIBI_CHUNK_TAIL_LAST,
                                                    .total = (int64_t)last->iov_len});
    }
    if (exchange->framing == ORIBI_FRAMING_CHUNKED)
        return send_piece(exchange, &(struct piece){.before = ORIBI_CHUNK_LAST});
    int result = last->iov_len > 0 ? oribi__stream_write(exchange, last, 1, (int64_t)last->iov_len) : 0;
    return result < 0 ? result : send_held(exchange);
}

int oribi_reply_end(struct oribi_req *req)
{
    struct oribi__exchange *exchange = oribi__exchange_of(req);
    struct iovec last = {NULL, 0};
    if (oribi__call_is_abandoned(exchange))
        return ORIBI_ECLOSED;
    assert(exchange->phase != ORIBI_PHASE_OPEN);
    if (exchange->coder && oribi__compress_end(exchange, &last) < 0) {
        oribi_reply_abort(req);
        return 0;
    }
    oribi__enter(exchange->worker);
    if (exchange->framed && oribi__framed_end(exchange) < 0) {
        oribi__leave(exchange->worker);
        oribi_reply_abort(req);
        return 0;
    }
    int result = send_end(exchange, &last);
    oribi__burst_sent(exchange); /* or lost with the connection */
    if (exchange->framing == ORIBI_FRAMING_LENGTH && exchange->left > 0) {
        oribi__log_app(exchange, "body is %lld bytes shorter than its Content-Length: connection cut",
                       (long long)exchange->left);
        oribi__cut(exchange);
        return 0;
    }
    return finish(exchange, result);
}

void oribi_reply_abort(struct oribi_req *req)
{
    struct oribi__exchange *exchange = oribi__exchange_of(req);
    if (oribi__call_is_abandoned(exchange))
        return;
    if (exchange->phase != ORIBI_PHASE_STARTED) {
        oribi_reply_error(req, 500);
        return;
    }
    oribi__enter(exchange->worker);
    (void)oribi__burst_send(exchange); /* as far as it was written before it failed */
    oribi__cut(exchange);
}

bool oribi_req_is_unix(const struct oribi_req *req)
{
    const struct oribi_listener *listener = oribi__exchange_of(req)->base.conn->listener;
    return listener->is_unix;
}

/* Behind a frontend the socket is not that of one client. */
static void lend_channel(const struct oribi__exchange *exchange)
{
    if (exchange->base.conn->channel)
        oribi__lend_channel(exchange->worker, exchange->base.conn);
}

void oribi_req_lend_fd(struct oribi_req *req)
{
    struct oribi__exchange *exchange = oribi__exchange_of(req);
    if (oribi__call_is_abandoned(exchange))
        return;
    exchange->lends_fd = true;
    exchange->by_piece = true;
    lend_channel(exchange);
    if (atomic_load_explicit(&exchange->thread->burst_us, memory_order_relaxed)) {
        oribi__enter(exchange->worker);
        (void)oribi__burst_send(exchange); /* the next write finds the connection broken */
        oribi__leave(exchange->worker);
    }
}

int oribi_req_fd(const struct oribi_req *req)
{
    const struct oribi__exchange *exchange = oribi__exchange_of(req);
    return oribi__call_is_abandoned(exchange) ? -1 : exchange->base.conn->watch.fd;
}

struct oribi_slice oribi_req_behind(const struct oribi_req *req)
{
    return oribi_conn_behind(oribi__exchange_of(req)->base.conn);
}

int oribi_req_detach(struct oribi_req *req, int *fd, struct oribi_slice *rest)
{
    struct oribi__exchange *exchange = oribi__exchange_of(req);
    struct oribi_conn *c = exchange->base.conn;
    struct oribi_worker *w = exchange->worker;
    if (oribi__call_is_abandoned(exchange))
        return ORIBI_ECLOSED;
    int result = oribi_reply_flush(req);
    oribi__enter(w);
    while (result >= 0 && oribi_conn_pending(c) > 0)
        result = wait_for_client(exchange, 0);
    lend_channel(exchange);
    int given = result < 0 ? ORIBI_ECLOSED : oribi_conn_withdraw(&w->reactor, c, rest);
    if (given < 0) {
        oribi__exchange_end(exchange, exchange->status);
        oribi_conn_abort(&w->reactor, c, false);
        oribi__end(w);
        return ORIBI_ECLOSED;
    }
    oribi__leave(w);
    *fd = given;
    return 0;
}

void oribi_req_detached(struct oribi_req *req)
{
    struct oribi__exchange *exchange = oribi__exchange_of(req);
    struct oribi_conn *c = exchange->base.conn;
    struct oribi_worker *w = exchange->worker;
    if (oribi__call_is_abandoned(exchange))
        return;
    oribi__enter(w);
    oribi__exchange_end(exchange, exchange->status);
    oribi_conn_release(&w->reactor, c);
    oribi__end(w);
}
