/* Whole answers: head and body leave in one sendmsg; what the socket does not take is kept by the connection. */
#include "worker/reply.h"
#include "worker/call.h"
#include "worker/compress.h"
#include "worker/events.h"
#include "worker/logs/exchange_log.h"
#include "worker/placement/ownership.h"
#include "worker/socket.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/http/status.h"
#include "oribi/http/syntax.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { TIMING_CAP = 128 };

void oribi__log_app(struct oribi__exchange *exchange, const char *format, ...)
{
    struct oribi_worker *w = exchange->worker;
    if (!oribi_log_limit_allows(&w->app_log_limit, w->reactor.now_ms))
        return;
    char text[512];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args); /* cut when too long */
    va_end(args);
    oribi__log_about(exchange);
    oribi_log(ORIBI_LOG_ERROR, "%s: %s", exchange->thread->line, text);
    oribi__log_about(NULL);
}

void oribi__head_text_free(struct oribi__head_text *head)
{
    if (head->on_heap)
        oribi_mem_free(head->p);
}

static void log_bad_head(struct oribi__exchange *exchange, const struct oribi_response *res)
{
    if (res->reason_index < res->header_count) {
        const struct oribi_header *header = &res->headers[res->reason_index];
        int shown = header->name_len < 64 ? (int)header->name_len : 64;
        oribi__log_app(exchange, "answer not valid: %s (header %.*s)", res->reason, shown, header->name);
    } else {
        oribi__log_app(exchange, "answer not valid: %s", res->reason ? res->reason : "response head too long");
    }
}

/* Is it the first time that a header of this name is put right so? */
static bool is_news(struct oribi_worker *w, const struct oribi_header *header, int kind)
{
    uint64_t hash = 0xcbf29ce484222325u ^ (uint64_t)kind; /* FNV-1a */
    for (uint32_t i = 0; i < header->name_len; i++)
        hash = (hash ^ ((uint8_t)header->name[i] | 0x20)) * 0x100000001b3u; /* names are the same in any case */
    for (uint32_t i = 0; i < w->mended_told_count; i++)
        if (w->mended_told[i] == hash)
            return false;
    if (w->mended_told_count == ORIBI__MENDED_TOLD_MAX)
        return false;
    w->mended_told[w->mended_told_count++] = hash;
    return true;
}

/* One line of a worker for each header and each kind of thing that was put right: applications live long with such
 * answers. */
static void log_mended(struct oribi__exchange *exchange, const struct oribi_response *res)
{
    static const char *const deeds[ORIBI_MENDED_KINDS] = {
        "has no value (undef, nil): it is left out",
        "has a value that ends in white space or a line end: that is cut off",
        "has a value on several lines: they are joined with a space",
        "is empty or has white space around it: the server counts where it can",
    };
    struct oribi_worker *w = exchange->worker;
    for (int kind = 0; kind < ORIBI_MENDED_KINDS; kind++) {
        if (!(res->mended & 1U << kind))
            continue;
        const struct oribi_header *header = &res->headers[res->mended_index[kind]];
        if (!is_news(w, header, kind))
            continue;
        int shown = header->name_len < 64 ? (int)header->name_len : 64;
        oribi__log_about(exchange);
        oribi_log(ORIBI_LOG_WARN, "%s: header %.*s of the answer %s", exchange->thread->line, shown, header->name,
                  deeds[kind]);
        oribi__log_about(NULL);
    }
}

static void log_dropped(struct oribi__exchange *exchange, const struct oribi_response *res)
{
    struct oribi_worker *w = exchange->worker;
    if (!oribi_log_limit_allows(&w->mended_log_limit, w->reactor.now_ms))
        return;
    oribi__log_about(exchange);
    oribi_log(ORIBI_LOG_WARN, "%s: %u header%s of the answer dropped: framing and persistence are the server's",
              exchange->thread->line, res->dropped_count, oribi_log_plural(res->dropped_count));
    oribi__log_about(NULL);
}

/* Frameworks that speak WebSocket by a server of their own (Mojolicious) have no route for it here. */
static __attribute__((noinline)) void log_not_upgraded(struct oribi__exchange *exchange)
{
    struct oribi_worker *w = exchange->worker;
    const struct oribi_head *head = &exchange->base.head;
    struct oribi_slice wanted = ORIBI_SLICE("another protocol");
    for (uint32_t i = 0; i < head->field_count; i++)
        if (head->fields[i].id == ORIBI_FIELD_UPGRADE)
            wanted = oribi_slice(head->fields[i].value, head->fields[i].value_len);
    if (!oribi_log_limit_allows(&w->mended_log_limit, w->reactor.now_ms))
        return;
    oribi__log_about(exchange);
    oribi_log(ORIBI_LOG_INFO,
              "%s: the client asked for %.*s, and the application answered 404: it does not speak that protocol here",
              exchange->thread->line, wanted.n < 64 ? (int)wanted.n : 64, wanted.p);
    oribi__log_about(NULL);
}

int oribi_req_read_status(struct oribi_req *req, struct oribi_slice text)
{
    struct oribi__exchange *exchange = oribi__exchange_of(req);
    struct oribi_worker *w = exchange->worker;
    int status = oribi_status_read(text);
    if (status >= 0 && text.n > 3 && oribi_log_limit_allows(&w->mended_log_limit, w->reactor.now_ms)) {
        oribi_thread_log_about(exchange->thread);
        oribi_log(ORIBI_LOG_WARN, "%s: the status '%.*s' of the answer is taken for %d", exchange->thread->line,
                  text.n < 64 ? (int)text.n : 64, text.p, status);
        oribi_thread_log_about(NULL);
    }
    return status;
}

/* Server-Timing (W3C), in ms. Of a streamed answer the head leaves before the call has ended. */
static struct oribi_slice timing_line(const struct oribi__exchange *exchange, char dst[TIMING_CAP])
{
    int64_t queue_us = exchange->req.queue_us > 0 ? exchange->req.queue_us : 0;
    int64_t call_us = oribi_clock_us() - exchange->started_us;
    int n = snprintf(dst, TIMING_CAP, "Server-Timing: queue;dur=%lld.%03d, %s;dur=%lld.%03d\r\n",
                     (long long)(queue_us / 1000), (int)(queue_us % 1000), exchange->streams ? "ttfb" : "call",
                     (long long)(call_us / 1000), (int)(call_us % 1000)); /* fits */
    return oribi_slice(dst, (size_t)n);
}

int oribi__reply_head(struct oribi__exchange *exchange, int status, const struct oribi_header *headers,
                      uint32_t header_count, int64_t body_len, struct oribi__head_text *head, int64_t *content_length)
{
    struct oribi_reactor *r = &exchange->worker->reactor;
    struct oribi_response res = {
        .status = status,
        .headers = headers,
        .header_count = header_count,
        .minor = exchange->base.head.minor,
        .is_head = exchange->base.head.is_head,
        .keep_alive = oribi__exchange_keeps(exchange),
        .detached = body_len == ORIBI_BODY_DETACHED,
        .unframed = exchange->unframed,
        .body_len = body_len < 0 ? -1 : body_len,
        .date = oribi_reactor_date(r),
        .server = r->config.server,
        .added = r->config.added,
        .reason_index = UINT32_MAX,
    };
    if (__builtin_expect(exchange->base.head.wants_events, 0) &&
        oribi__events_refuse_head(exchange, status, headers, header_count))
        return ORIBI_EAPP;
    if (__builtin_expect(res.detached && exchange->base.conn->channel, 0))
        oribi__lend_channel(exchange->worker, exchange->base.conn); /* its head goes the way that follows */
    if (__builtin_expect(exchange->worker->options->request_id_header != NULL, 0))
        res.extra = oribi__id_header(exchange);
    char timing[TIMING_CAP];
    if (__builtin_expect(exchange->worker->options->server_timing, 0))
        res.lines = timing_line(exchange, timing);
    *head = (struct oribi__head_text){r->scratch, 0, false};
    ssize_t n = oribi_response_head(&res, r->scratch, ORIBI_SCRATCH_BYTES);
    if (n == ORIBI_ELIMIT) {
        char *large = oribi_mem_try_alloc(1, ORIBI_RESPONSE_HEAD_BYTES_MAX);
        if (large) {
            *head = (struct oribi__head_text){large, 0, true};
            n = oribi_response_head(&res, large, ORIBI_RESPONSE_HEAD_BYTES_MAX);
        }
    }
    if (n < 0) {
        log_bad_head(exchange, &res);
        oribi__head_text_free(head);
        return ORIBI_EAPP;
    }
    exchange->app_frames = res.framed;
    bool comes_again = res.framed && body_len >= 0; /* with the length of the content */
    if (__builtin_expect(res.mended, 0) && !comes_again)
        log_mended(exchange, &res);
    if (__builtin_expect(res.dropped_count > 0, 0) && !comes_again)
        log_dropped(exchange, &res);
    if (__builtin_expect(status == 404, 0) && exchange->base.head.upgrade)
        log_not_upgraded(exchange);
    head->n = (size_t)n;
    oribi__logged_head(exchange, oribi_slice(head->p, head->n));
    exchange->overhead = n;
    exchange->sent_before = exchange->base.conn->sent_bytes + oribi_conn_pending(exchange->base.conn);
    exchange->status = status;
    exchange->framing = res.framing;
    exchange->closes = res.closes;
    *content_length = res.content_length;
    return 0;
}

void oribi__cut(struct oribi__exchange *exchange)
{
    struct oribi_conn *c = exchange->base.conn;
    struct oribi_worker *w = exchange->worker;
    bool reset = exchange->framing == ORIBI_FRAMING_CLOSE; /* else the missing bytes or the missing last chunk tell */
    exchange->aborted = true;
    oribi__exchange_end(exchange, exchange->status);
    oribi_conn_abort(&w->reactor, c, reset);
    oribi__end(w);
}

/* An answer that is broken, or of which a part is on its way to a file. */
static __attribute__((noinline)) void finish_odd(struct oribi__exchange *exchange)
{
    struct oribi_conn *c = exchange->base.conn;
    struct oribi_worker *w = exchange->worker;
    if (c->unstored)
        oribi__await_writer(w, c);
    if (c->broken && !c->lost) {
        oribi__cut(exchange);
        return;
    }
    bool closes = exchange->closes;
    if (c->unstored)
        oribi__exchange_end_unstored(exchange, exchange->status);
    else
        oribi__exchange_end(exchange, exchange->status);
    oribi_conn_finish(&w->reactor, c, closes);
    oribi__end(w);
}

void oribi__finish(struct oribi__exchange *exchange)
{
    struct oribi_conn *c = exchange->base.conn;
    struct oribi_worker *w = exchange->worker;
    bool closes = exchange->closes;
    if (__builtin_expect(c->broken | c->unstored, 0)) {
        finish_odd(exchange);
        return;
    }
    oribi__exchange_end(exchange, exchange->status);
    oribi_conn_finish(&w->reactor, c, closes);
    oribi__end(w);
}

static int finish(struct oribi__exchange *exchange, int result)
{
    oribi__finish(exchange);
    return result < 0 ? ORIBI_ECLOSED : 0;
}

/* Back to the application, which still has the request. */
static int still_open(struct oribi__exchange *exchange, int result)
{
    oribi__leave(exchange->worker);
    return result;
}

/* The first `limit` bytes of the vector, in as few entries as that takes. */
static size_t cut_vec(struct iovec *vec, size_t count, int64_t limit)
{
    for (size_t i = 0; i < count; i++) {
        if ((int64_t)vec[i].iov_len >= limit) {
            vec[i].iov_len = (size_t)limit;
            return i + 1;
        }
        limit -= (int64_t)vec[i].iov_len;
    }
    return count;
}

/* Head and body in one go; a very long vector takes more of them. */
static int send_whole(struct oribi__exchange *exchange, const struct oribi__head_text *head, const struct iovec *body,
                      size_t count)
{
    struct oribi__gathering g;
    oribi__gather_begin(&g, &exchange->worker->reactor, exchange->base.conn, head->on_heap ? 0 : head->n);
    int result = head->on_heap ? oribi__gather(&g, &(struct iovec){head->p, head->n}, 1) : 0;
    if (result == 0)
        result = oribi__gather(&g, body, count);
    return result < 0 ? result : oribi__gather_send(&g, false);
}

/* The application's body is longer than its own Content-Length: what was promised is what is sent. */
static int send_cut(struct oribi__exchange *exchange, const struct oribi__head_text *head, const struct iovec *body,
                    size_t count, int64_t limit)
{
    struct iovec *copy = oribi_mem_try_alloc(count, sizeof(*copy));
    if (!copy) {
        exchange->base.conn->broken = true; /* the head promised what will not come */
        return ORIBI_ENOMEM;
    }
    memcpy(copy, body, count * sizeof(*copy));
    int result = send_whole(exchange, head, copy, cut_vec(copy, count, limit));
    oribi_mem_free(copy);
    return result;
}

/* Ends the call. */
static int send_answer(struct oribi__exchange *exchange, struct oribi__head_text *head, int64_t promised,
                       const struct iovec *body, size_t body_count, int64_t total)
{
    int result;
    exchange->phase = ORIBI_PHASE_STARTED;
    if (exchange->framing == ORIBI_FRAMING_NONE) {
        result = send_whole(exchange, head, NULL, 0);
        total = promised = 0;
    } else if (promised >= 0 && total > promised) {
        oribi__log_app(exchange, "body of %lld bytes cut to its Content-Length of %lld", (long long)total,
                       (long long)promised);
        result = send_cut(exchange, head, body, body_count, promised);
        total = promised;
    } else {
        result = send_whole(exchange, head, body, body_count);
    }
    oribi__head_text_free(head);
    exchange->body_sent = total;
    if (result == 0 && promised > total) {
        oribi__log_app(exchange, "body of %lld bytes is shorter than its Content-Length of %lld: connection cut",
                       (long long)total, (long long)promised);
        oribi__cut(exchange);
        return 0;
    }
    return finish(exchange, result);
}

/* The application has framed the body itself: its content is what is sent. */
static int reply_unframed(struct oribi__exchange *exchange, int status, const struct oribi_header *headers,
                          uint32_t header_count, const struct iovec *body, size_t body_count)
{
    struct oribi__head_text head;
    struct iovec content;
    int64_t promised;
    int result = oribi__framed_whole(exchange, body, body_count, &content);
    if (result < 0)
        return still_open(exchange, result);
    exchange->unframed = true;
    result = oribi__reply_head(exchange, status, headers, header_count, (int64_t)content.iov_len, &head, &promised);
    exchange->unframed = false;
    if (result < 0)
        result = still_open(exchange, result);
    else
        result = send_answer(exchange, &head, promised, &content, 1, (int64_t)content.iov_len);
    oribi_mem_free(content.iov_base);
    return result;
}

int oribi__reply_whole(struct oribi__exchange *exchange, int status, const struct oribi_header *headers,
                       uint32_t header_count, const struct iovec *body, size_t body_count, int64_t body_len)
{
    struct oribi__head_text head;
    int64_t promised;
    oribi__enter(exchange->worker);
    int result = oribi__reply_head(exchange, status, headers, header_count, body_len, &head, &promised);
    if (result < 0)
        return still_open(exchange, result);
    if (__builtin_expect(exchange->app_frames, 0)) {
        oribi__head_text_free(&head);
        return reply_unframed(exchange, status, headers, header_count, body, body_count);
    }
    return send_answer(exchange, &head, promised, body, body_count, body_len);
}

int oribi__reply_accept(struct oribi__exchange *exchange, const struct oribi_header *headers, uint32_t header_count,
                        const struct iovec *record)
{
    struct oribi__head_text head;
    int64_t promised;
    oribi__enter(exchange->worker);
    int result = oribi__reply_head(exchange, 200, headers, header_count, (int64_t)record->iov_len, &head, &promised);
    if (result < 0)
        return still_open(exchange, result);
    exchange->status = 101;
    return send_answer(exchange, &head, (int64_t)record->iov_len, record, 1, (int64_t)record->iov_len);
}

int oribi_reply(struct oribi_req *req, int status, const struct oribi_header *headers, uint32_t header_count,
                const struct iovec *body, size_t body_count)
{
    struct oribi__exchange *exchange = oribi__exchange_of(req);
    if (oribi__call_is_abandoned(exchange))
        return ORIBI_ECLOSED;
    assert(exchange->phase == ORIBI_PHASE_OPEN);
    if (__builtin_expect(exchange->websocket != NULL, 0) && status == 101)
        return oribi__socket_reply_accept(exchange, headers, header_count);
    if (__builtin_expect(exchange->events != NULL, 0) && status == 200)
        return oribi__events_reply(exchange, headers, header_count);
    if (__builtin_expect(exchange->worker->compression != NULL, 0))
        return oribi__compress_reply(exchange, status, headers, header_count, body, body_count);
    return oribi__reply_whole(exchange, status, headers, header_count, body, body_count,
                              oribi_vec_len(body, body_count));
}

void oribi_reply_error(struct oribi_req *req, int status)
{
    struct oribi__exchange *exchange = oribi__exchange_of(req);
    if (exchange->phase == ORIBI_PHASE_STARTED) {
        oribi_reply_abort(req);
        return;
    }
    exchange->phase = ORIBI_PHASE_OPEN; /* a head that was begun and held back never existed */
    char text[ORIBI__OWN_TEXT_CAP];
    struct oribi_slice type_text;
    struct oribi_slice content = oribi__server_body(exchange->worker, status, text, &type_text);
    struct iovec body = {(void *)content.p, content.n};
    const struct oribi_header type = {"Content-Type", type_text.p, 12, (uint32_t)type_text.n};
    /* Our own head is valid, and a client that has gone needs no answer. */
    (void)oribi_reply(req, status, &type, 1, &body, 1);
}

void oribi_reply_failure(struct oribi_req *req, int status, const char *type, struct oribi_slice page)
{
    struct oribi__exchange *exchange = oribi__exchange_of(req);
    if (exchange->phase == ORIBI_PHASE_STARTED) {
        oribi_reply_abort(req);
        return;
    }
    struct oribi_slice own_type;
    if (oribi__server_page(exchange->worker, status, &own_type).p) {
        oribi_reply_error(req, status);
        return;
    }
    exchange->phase = ORIBI_PHASE_OPEN; /* as above */
    struct iovec body = {(void *)page.p, page.n};
    const struct oribi_header headers[] = {
        {"Content-Type", type, 12, (uint32_t)strlen(type)},
        {"Cache-Control", "no-store", 13, 8},
        {"X-Content-Type-Options", "nosniff", 22, 7},
    };
    (void)oribi_reply(req, status, headers, sizeof(headers) / sizeof(headers[0]), &body, page.n > 0);
}

void oribi_req_close_after(struct oribi_req *req)
{
    req->last = true;
}

/* A proxy may read a path that cannot be decoded differently: nothing behind it on the connection is believed
 * either. */
ssize_t oribi_req_decode_path(struct oribi_req *req, char *dst)
{
    ssize_t n = oribi_percent_decode(req->head->path, dst);
    if (n >= 0)
        return n;
    oribi_req_close_after(req);
    oribi_reply_error(req, 400);
    return ORIBI_EBAD;
}

int oribi_req_inform(struct oribi_req *req, int status, const struct oribi_header *headers, uint32_t header_count)
{
    struct oribi__exchange *exchange = oribi__exchange_of(req);
    struct oribi_reactor *r = &exchange->worker->reactor;
    if (oribi__call_is_abandoned(exchange))
        return ORIBI_ECLOSED;
    if (exchange->base.head.minor == 0 || exchange->phase != ORIBI_PHASE_OPEN)
        return 0;
    const char *reason = NULL;
    oribi__enter(exchange->worker);
    if (oribi_conn_pending(exchange->base.conn) > ORIBI_INTERIM_UNSENT_BYTES_MAX)
        return still_open(exchange, exchange->base.conn->broken ? ORIBI_ECLOSED : 0);
    ssize_t n = oribi_response_interim(status, headers, header_count, r->scratch, ORIBI_SCRATCH_BYTES, &reason);
    if (n < 0) {
        oribi__log_app(exchange, "interim answer not valid: %s", reason ? reason : "too long");
        return still_open(exchange, ORIBI_EAPP);
    }
    struct iovec vec = {r->scratch, (size_t)n};
    oribi__clock_anew(exchange->thread);
    return still_open(exchange, oribi_conn_send(r, exchange->base.conn, &vec, 1, false) < 0 ? ORIBI_ECLOSED : 0);
}
