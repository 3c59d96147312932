/* Clients of HTTP/1.1: the reactor reads their requests, with all its limits and timeouts, and takes the answers. */
#include "frontend/clients_h1.h"
#include "frontend/answers.h"
#include "frontend/canonical.h"
#include "frontend/channel.h"
#include "frontend/count.h"
#include "frontend/events.h"
#include "frontend/frontend.h"
#include "frontend/local.h"
#include "frontend/tunnel.h"
#include "frontend/upstream_request.h"
#include "frontend/websocket.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/http/fields.h"
#include "oribi/worker/logs/request_log.h"

#include <string.h>

enum {
    RETRY_AFTER_S = 1,
    STATUS_GONE = 499,
    JOINED_BYTES = 1024, /* of a piece that is copied behind a head: a second piece costs the kernel more than that */
};

static const struct oribi_header version_field = {"Sec-WebSocket-Version", "13", 21, 2}; /* RFC 6455 4.4 */

/* A call's client: exchange->user is the call, call->owner the connection. */
static struct oribi_conn *conn_of(const struct oribi__upstream_request *call)
{
    return call->owner;
}

static struct oribi__upstream_request *call_of(const struct oribi_conn *c)
{
    return c->exchange ? c->exchange->user : NULL;
}

static struct oribi__frontend *frontend_of(const struct oribi__upstream_request *call)
{
    return call->frontend;
}

/* --- answers --- */

/* The call is over: the connection goes on to its next request, or closes. */
static void end(struct oribi__upstream_request *call, bool closes)
{
    struct oribi_conn *c = conn_of(call);
    struct oribi__frontend *frontend = frontend_of(call);
    c->exchange->user = NULL;
    if (c->timer.timeout_class == ORIBI_TIMEOUT_WRITE)
        oribi_timeouts_arm(&frontend->reactor.timeouts, &c->timer, ORIBI_TIMEOUT_NONE, frontend->reactor.now_ms);
    oribi__upstream_destroy(call);
    oribi_conn_finish(&frontend->reactor, c, closes);
}

static struct oribi__peer peer_of(const struct oribi__frontend *frontend, const struct oribi_conn *c)
{
    const struct oribi_frontend_listener *listener = c->listener;
    struct oribi__peer peer = {.fd = c->watch.fd,
                               .tls = c->transport ? oribi_tls_info_of(c->transport) : NULL,
                               .listener = (uint32_t)(listener - frontend->config->listeners),
                               .proxy_tls = c->proxy_tls,
                               .addr_len = c->addr_len,
                               .port_len = c->port_len};
    memcpy(peer.addr, c->addr, sizeof(peer.addr));
    memcpy(peer.port, c->port, sizeof(peer.port));
    return peer;
}

/* The answer cannot be ended: without its end the client must not take it for whole. */
static void cut(struct oribi__upstream_request *call)
{
    struct oribi_conn *c = conn_of(call);
    struct oribi__frontend *frontend = frontend_of(call);
    c->exchange->user = NULL;
    oribi__upstream_destroy(call);
    oribi_conn_abort(&frontend->reactor, c, true);
}

/* Output that the socket has not taken is sent as it takes it (oribi__h1_turn()); the worker of a streamed answer waits
 * meanwhile. */
static void watch_output(struct oribi__upstream_request *call)
{
    struct oribi_conn *c = conn_of(call);
    if (!c->out)
        return;
    oribi_conn_await_room(&frontend_of(call)->reactor, c);
    if (call_of(c) != call)
        return; /* the connection has ended */
    oribi__upstream_list(call);
    if (call->streams && oribi_conn_pending(c) > oribi__upstream_high(call))
        oribi__upstream_block(call);
}

/* The framing of a piece: `vec` has room for four. */
static size_t frame(const struct oribi__upstream_request *call, struct iovec *vec, struct oribi_slice body, bool last,
                    char head[ORIBI_CHUNK_HEAD_CAP])
{
    size_t count = 0;
    if (call->framing != ORIBI_FRAMING_CHUNKED) {
        if (body.n)
            vec[count++] = (struct iovec){(void *)body.p, body.n};
        return count;
    }
    if (body.n) {
        vec[count++] = (struct iovec){head, oribi_chunk_head(head, body.n)};
        vec[count++] = (struct iovec){(void *)body.p, body.n};
    }
    struct oribi_slice tail = last && call->tail.len ? oribi_slice(body.n ? "\r\n0\r\n" : "0\r\n", body.n ? 5 : 3)
                              : last                 ? (body.n ? ORIBI_CHUNK_TAIL_LAST : ORIBI_CHUNK_LAST)
                              : body.n               ? ORIBI_CHUNK_TAIL
                                                     : oribi_slice(NULL, 0);
    if (tail.n)
        vec[count++] = (struct iovec){(void *)tail.p, tail.n};
    if (last && call->tail.len) { /* trailers with their lines' ends, and the empty line */
        vec[count++] = (struct iovec){call->tail.p, call->tail.len};
        vec[count++] = (struct iovec){(void *)"\r\n", 2};
    }
    return count;
}

/* Copies short pieces behind the head vec[0], which stands in h1->text, so that it is sent as one. Returns how many
 * pieces there are then. */
static size_t join(struct iovec *vec, size_t count)
{
    size_t joined = 1;
    while (joined < count && vec[joined].iov_len <= JOINED_BYTES &&
           vec[joined].iov_len <= ORIBI_RESPONSE_HEAD_BYTES_MAX - vec[0].iov_len) {
        memcpy((char *)vec[0].iov_base + vec[0].iov_len, vec[joined].iov_base, vec[joined].iov_len);
        vec[0].iov_len += vec[joined++].iov_len;
    }
    memmove(vec + 1, vec + joined, (count - joined) * sizeof(*vec));
    return count - joined + 1;
}

static void drop_connection_fields(struct oribi_answer *answer)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < answer->count; i++) {
        const struct oribi_header *header = &answer->headers[i];
        if (!oribi_slice_equal_fold(oribi_slice(header->name, header->name_len), ORIBI_SLICE("connection")) &&
            !oribi_slice_equal_fold(oribi_slice(header->name, header->name_len), ORIBI_SLICE("transfer-encoding")))
            answer->headers[kept++] = *header;
    }
    answer->count = kept;
}

static bool keeps(const struct oribi__upstream_request *call)
{
    const struct oribi_conn *c = conn_of(call);
    const struct oribi_options *options = frontend_of(call)->config->options;
    uint32_t max = options->keepalive_requests_max;
    return c->exchange->head.keep_alive && !frontend_of(call)->draining && (max == 0 || c->request_count < max);
}

/* The record of a WebSocket is whole: the connection leaves the reactor. */
static void become_socket(struct oribi__upstream_request *call)
{
    struct oribi__frontend *frontend = frontend_of(call);
    struct oribi_conn *c = conn_of(call);
    struct oribi_slice behind;
    struct oribi__peer peer = peer_of(frontend, c);
    int fd = oribi_conn_flush(&frontend->reactor, c) == 0 ? oribi_conn_withdraw(&frontend->reactor, c, &behind) : -1;
    if (fd < 0) {
        cut(call);
        return;
    }
    struct oribi__handshake *handshake = call->accepted;
    peer.fd = fd;
    peer.transport = c->transport;
    c->transport = NULL;
    oribi__websocket_start(handshake, &peer, behind);
    call->accepted = NULL;
    c->exchange->user = NULL;
    oribi__upstream_destroy(call);
    oribi_conn_release(&frontend->reactor, c);
}

static void take_record(struct oribi__upstream_request *call, struct oribi_slice part, bool last)
{
    if (oribi__websocket_take_record(call->accepted, part, last) < 0)
        oribi__upstream_failed(call, 502, ORIBI_REFUSAL_OTHER, "the record of a WebSocket that cannot be read");
    else if (last)
        become_socket(call);
}

/* The application has accepted a handshake. */
static void accept_socket(struct oribi__upstream_request *call, const struct oribi_answer *answer,
                          struct oribi_slice body, bool last)
{
    struct oribi__frontend *frontend = frontend_of(call);
    call->begun = false; /* the client has nothing yet */
    if (!oribi__websocket_room(frontend)) {
        oribi__upstream_failed(call, 503, ORIBI_REFUSAL_WEBSOCKETS, "too many WebSockets are open (websockets_max)");
        return;
    }
    const struct oribi_head *head = &conn_of(call)->exchange->head;
    call->accepted = oribi__websocket_create(frontend, head->path);
    if (!call->accepted || oribi__websocket_answer(call->accepted, head, answer) < 0)
        oribi__upstream_failed(call, 502, ORIBI_REFUSAL_OTHER, "an answer to a handshake that cannot be passed on");
    else
        take_record(call, body, last);
}

static void begin(struct oribi__upstream_request *call, struct oribi_answer *answer, struct oribi_slice body, bool last)
{
    if (__builtin_expect(call->offers, 0) && oribi__websocket_accepts(answer)) {
        accept_socket(call, answer, body, last);
        return;
    }
    struct oribi__frontend *frontend = frontend_of(call);
    struct oribi_conn *c = conn_of(call);
    const struct oribi_head *head = &c->exchange->head;
    struct iovec vec[6];
    char chunk[ORIBI_CHUNK_HEAD_CAP];
    drop_connection_fields(answer);
    struct oribi_response res = {
        .status = answer->status,
        .headers = answer->headers,
        .header_count = answer->count,
        .minor = head->minor,
        .is_head = head->is_head,
        /* a worker closes a channel only where the application has said so, or the answer has no other end */
        .keep_alive = keeps(call) && (!answer->closes || answer->framing == ORIBI_FRAMING_CLOSE),
        .body_len = answer->content_length >= 0 ? answer->content_length : -1,
        .date = oribi_reactor_date(&frontend->reactor),
        .extra = c->transport ? frontend->answers->extra_tls : (struct oribi_header){0},
    };
    ssize_t n = oribi_response_head(&res, frontend->h1->text, ORIBI_RESPONSE_HEAD_BYTES_MAX);
    if (n < 0) {
        call->begun = false;
        oribi__upstream_failed(call, 502, ORIBI_REFUSAL_OTHER,
                               res.reason ? res.reason : "an answer that cannot be passed on");
        return;
    }
    call->framing = (uint8_t)res.framing;
    call->closes = res.closes;
    call->streams = answer->content_length < 0 || call->of_local || call->from_file;
    vec[0] = (struct iovec){frontend->h1->text, (size_t)n};
    size_t count = join(vec, 1 + frame(call, vec + 1, body, last, chunk));
    (void)oribi_conn_send(&frontend->reactor, c, vec, count, !last); /* a broken connection: below */
    if (last)
        end(call, call->closes);
    else if (c->broken)
        cut(call);
    else
        watch_output(call);
}

static void more(struct oribi__upstream_request *call, struct oribi_slice body, bool last)
{
    if (__builtin_expect(call->accepted != NULL, 0)) {
        take_record(call, body, last);
        return;
    }
    struct oribi__frontend *frontend = frontend_of(call);
    struct oribi_conn *c = conn_of(call);
    struct iovec vec[5];
    char chunk[ORIBI_CHUNK_HEAD_CAP];
    size_t count = frame(call, vec, body, last, chunk);
    if (count)
        (void)oribi_conn_send(&frontend->reactor, c, vec, count, false);
    if (last)
        end(call, call->closes);
    else if (c->broken)
        cut(call);
    else
        watch_output(call);
}

static void interim(struct oribi__upstream_request *call, const struct oribi_answer *answer)
{
    struct oribi__frontend *frontend = frontend_of(call);
    struct oribi_conn *c = conn_of(call);
    if (c->exchange->head.minor == 0 || answer->status == 100) /* the connection has said that by itself */
        return;
    if (oribi_conn_pending(c) > ORIBI_INTERIM_UNSENT_BYTES_MAX)
        return;
    ssize_t n = oribi_response_interim(answer->status, answer->headers, answer->count, frontend->h1->text,
                                       ORIBI_RESPONSE_HEAD_BYTES_MAX, NULL);
    struct iovec vec = {frontend->h1->text, n > 0 ? (size_t)n : 0};
    if (n > 0)
        (void)oribi_conn_send(&frontend->reactor, c, &vec, 1, false); /* the answer finds out */
}

static void fail(struct oribi__upstream_request *call, int status, const char *reason)
{
    struct oribi__frontend *frontend = frontend_of(call);
    struct oribi_conn *c = conn_of(call);
    if (call->begun) {
        cut(call);
        return;
    }
    struct oribi_server_answer own = {.status = status,
                                      .is_head = c->exchange->head.is_head,
                                      .retry_after_s = status == 503 ? RETRY_AFTER_S : 0,
                                      .field = status == 426 ? version_field : (struct oribi_header){0},
                                      .date = oribi_reactor_date(&frontend->reactor),
                                      .added = frontend->answers->added};
    char text[ORIBI__OWN_TEXT_CAP];
    struct oribi_slice type;
    struct oribi_slice body = oribi__answer_text(frontend, status, text, &type);
    own.page = oribi__answer_page_of(frontend, status, &own.type);
    oribi__answer_log(call, status, own.is_head ? 0 : (int64_t)body.n);
    c->exchange->user = NULL;
    oribi__upstream_destroy(call);
    size_t n = oribi_response_own(&own, frontend->h1->text, ORIBI_RESPONSE_HEAD_BYTES_MAX);
    struct iovec vec[2] = {{frontend->h1->text, n}, {(void *)own.page.p, own.page.n}};
    (void)oribi_conn_send(&frontend->reactor, c, vec, own.page.p && !own.is_head ? 2 : 1, false);
    oribi_conn_finish(&frontend->reactor, c, true); /* what oribi_response_own() has said */
}

static void reads_file(struct oribi__upstream_request *call)
{
    call->streams = true;
}

static int64_t pending(const struct oribi__upstream_request *call)
{
    return oribi_conn_pending(conn_of(call));
}

static void waits(struct oribi__upstream_request *call, int change)
{
    call->frontend->waiting_h1 += (uint32_t)change;
}

/* 101: the head goes out, and from then on bytes. */
static void tunnel(struct oribi__upstream_request *call, struct oribi_answer *answer, struct oribi_slice rest)
{
    struct oribi__frontend *frontend = frontend_of(call);
    struct oribi_conn *c = conn_of(call);
    struct oribi_slice behind;
    struct oribi_response res = {.status = answer->status,
                                 .headers = answer->headers,
                                 .header_count = answer->count,
                                 .minor = 1,
                                 .detached = true,
                                 .body_len = -1,
                                 .date = oribi_reactor_date(&frontend->reactor)};
    ssize_t n = oribi_response_head(&res, frontend->h1->text, ORIBI_RESPONSE_HEAD_BYTES_MAX);
    struct iovec vec = {frontend->h1->text, n > 0 ? (size_t)n : 0};
    if (n < 0 || oribi_conn_send(&frontend->reactor, c, &vec, 1, false) < 0 ||
        oribi_conn_flush(&frontend->reactor, c) != 0) {
        cut(call);
        return;
    }
    struct oribi__peer peer = {.transport = c->transport};
    int fd = oribi_conn_withdraw(&frontend->reactor, c, &behind);
    if (fd < 0) {
        cut(call);
        return;
    }
    peer.fd = fd;
    c->transport = NULL;
    int channel_fd = oribi__channel_release(call->channel);
    oribi__tunnel_begin(frontend, &peer, channel_fd, rest, behind);
    c->exchange->user = NULL;
    oribi__upstream_destroy(call);
    oribi_conn_release(&frontend->reactor, c);
}

static const struct oribi__upstream_ops ops = {.interim = interim,
                                               .begin = begin,
                                               .more = more,
                                               .reads_file = reads_file,
                                               .fail = fail,
                                               .pending = pending,
                                               .waits = waits,
                                               .tunnel = tunnel};

/* --- requests --- */

static int64_t body_of(struct oribi__upstream_request *call, const struct oribi_conn_request *exchange)
{
    const struct oribi_head *head = &exchange->head;
    if (!head->has_body)
        return -1;
    if (exchange->in_place.p) {
        call->body = exchange->in_place;
    } else if (exchange->body.fd >= 0) {
        call->body_fd = exchange->body.fd;
        call->body_len = exchange->body.len;
        return exchange->body.len;
    } else {
        call->body = oribi_slice(exchange->body.memory.p, exchange->body.memory.len);
    }
    call->body_len = (int64_t)call->body.n;
    return call->body_len;
}

/* A chunked body with trailers stays one, of one chunk; its end is call->tail. */
static int add_trailers(struct oribi__upstream_request *call, const struct oribi_buf *trailers)
{
    if (call->body.n)
        call->chunk_len = (uint8_t)oribi_chunk_head(call->chunk, call->body.n);
    int code = oribi_buf_try_append(&call->tail, call->body.n ? "\r\n0\r\n" : "0\r\n", call->body.n ? 5 : 3);
    code = code < 0 ? code : oribi_buf_try_append(&call->tail, trailers->p, trailers->len);
    return code < 0 ? code : oribi_buf_try_append(&call->tail, "\r\n", 2);
}

/* The reactor's oldest request, now in state CALL. */
static void take(struct oribi__frontend *frontend, struct oribi_conn_request *exchange)
{
    struct oribi_conn *c = exchange->conn;
    const struct oribi_head *head = &exchange->head;
    struct oribi__upstream_request *call = oribi__upstream_create(frontend, &ops, c);
    if (!call) {
        oribi_conn_refuse_busy(&frontend->reactor, c, 1, ORIBI_REFUSAL_BUFFERS_MEMORY, "out of memory");
        return;
    }
    exchange->user = call;
    struct oribi__peer peer = peer_of(frontend, c);
    oribi__count_request(call, head->method, false);
    call->is_head = head->is_head;
    call->safe = oribi_canonical_is_safe(head->method);
    call->upgrades = head->upgrade;
    call->wants_events = head->wants_events;
    enum oribi_refusal refusal = ORIBI_REFUSAL_OTHER;
    const char *reason = NULL;
    if (__builtin_expect(head->upgrade, 0))
        refusal = oribi__websocket_check(frontend, head, &call->offers, &reason);
    if (call->offers)
        call->websocket = ORIBI_SLICE("O");
    int64_t len = body_of(call, exchange);
    bool trailers = head->chunked && exchange->chunked.trailers.len > 0;
    int code = oribi__upstream_about(call, &peer, head, head->minor ? 11 : 10, head->keep_alive);
    code = code < 0 ? code : oribi_canonical_head(&call->head, head, len, trailers);
    if (code == 0 && trailers)
        code = add_trailers(call, &exchange->chunked.trailers);
    (void)oribi_conn_tells_leaving(&frontend->reactor, c); /* else a client that goes is found by what is sent to it */
    if (code < 0)
        oribi__upstream_failed(call, 503, ORIBI_REFUSAL_MEMORY, "out of memory");
    else if (refusal != ORIBI_REFUSAL_OTHER)
        oribi__upstream_failed(call, oribi_refusal_status(refusal), refusal, reason);
    else if (!oribi__frontend_local_claims(frontend, call, head) || !oribi__frontend_local_submit(call))
        oribi__upstream_submit(call);
}

/* --- life --- */

int oribi__h1_init(struct oribi__frontend *frontend)
{
    frontend->h1->text = oribi_mem_try_alloc(1, ORIBI_RESPONSE_HEAD_BYTES_MAX);
    return frontend->h1->text ? 0 : ORIBI_ENOMEM;
}

void oribi__h1_deinit(struct oribi__frontend *frontend)
{
    oribi_mem_free(frontend->h1->text);
}

/* --- the reactor's --- */

static void on_closed(void *self, struct oribi_conn *c)
{
    struct oribi__upstream_request *call = call_of(c);
    if (!call)
        return;
    if (call->state == ORIBI__CALL_QUEUED) {
        oribi__answer_log(call, STATUS_GONE, 0);
        oribi_frontend_slot_count(&call->frontend->slot->gone_count, 1);
    }
    c->exchange->user = NULL;
    oribi__upstream_destroy(call);
}

/* One that has closed only its sending side may still read: its worker is told the same, and knows what that means. */
static void on_leaving(void *self, struct oribi_conn *c)
{
    struct oribi__frontend *frontend = self;
    struct oribi__upstream_request *call = call_of(c);
    enum oribi_peer_state state = call ? oribi_os_peer_state(c->watch.fd) : ORIBI_PEER_OPEN;
    if (state == ORIBI_PEER_GONE)
        oribi_conn_abort(&frontend->reactor, c, false);
    if (state != ORIBI_PEER_FINISHED || oribi_conn_behind(c).n > 0)
        return;
    bool told = call->finished;
    call->finished = true;
    if (call->channel)
        oribi__channel_finish(call->channel);
    else if (call->stream && !told)
        oribi__events_half_closed(call);
}

static void on_refused(void *self, struct oribi_conn *c, enum oribi_refusal refusal, size_t head_bytes,
                       size_t body_bytes, const char *text)
{
    struct oribi__frontend *frontend = self;
    oribi__count_refusal(frontend, oribi_refusal_status(refusal), refusal);
    const struct oribi_frontend_listener *listener = c->listener;
    const struct oribi__refused refused = {.listener = &listener->listener,
                                           .addr = oribi_slice(c->addr, c->addr_len),
                                           .port = oribi_slice(c->port, c->port_len),
                                           .tls = c->transport || c->proxy_tls,
                                           .closes = true,
                                           .status = oribi_refusal_status(refusal),
                                           .refusal = refusal,
                                           .reason = text ? text : "malformed",
                                           .fault = c->exchange ? &c->exchange->parser.fault : NULL,
                                           .body_bytes = (int64_t)body_bytes,
                                           .bytes_in = c->buf ? c->len : 0,
                                           .bytes_out = (int64_t)(head_bytes + body_bytes),
                                           .requests = c->request_count};
    oribi__answer_log_refused(frontend, c->exchange ? &c->exchange->head : NULL,
                              oribi_parser_first_line(c->buf, c->buf ? c->len : 0), &refused);
}

/* The call may be over: its answer is on its way to the client, or to a file. */
static void on_unkept(void *self, struct oribi_conn *c, int error)
{
    struct oribi__frontend *frontend = self;
    char reason[ORIBI__OWN_REASON_CAP];
    char line[ORIBI_SLOT_LINE_CAP];
    if (call_of(c)) {
        oribi__own_say_cut(call_of(c), error);
        return;
    }
    oribi__own_why_unkept(error, reason);
    oribi__note_line(line, &c->exchange->head);
    if (oribi_log_limit_allows(&frontend->log_limit, frontend->reactor.now_ms))
        oribi_log(ORIBI_LOG_ERROR, "frontend: %s from %.*s: %s: the answer breaks off", line,
                  c->addr_len ? c->addr_len : 13, c->addr_len ? c->addr : "a unix socket", reason);
}

static void on_timed_out(void *self, struct oribi_conn *c, enum oribi_timeout_class timeout_class)
{
    struct oribi__frontend *frontend = self;
    oribi_frontend_slot_count(&frontend->slot->timeouts[timeout_class], 1);
}

static void on_read(void *self, int64_t bytes)
{
    struct oribi__frontend *frontend = self;
    frontend->bytes_in += (uint64_t)bytes;
}

static void on_sent(void *self, int64_t bytes)
{
    struct oribi__frontend *frontend = self;
    frontend->bytes_out += (uint64_t)bytes;
}

struct oribi_reactor_hooks oribi__h1_hooks(struct oribi__frontend *frontend)
{
    return (struct oribi_reactor_hooks){
        .self = frontend,
        .closed = on_closed,
        .leaving = on_leaving,
        .refused = on_refused,
        .unkept = on_unkept,
        .page = oribi__answer_page_of,
        .timed_out = on_timed_out,
        .read = on_read,
        .sent = on_sent,
    };
}

static void flush(struct oribi__upstream_request *call)
{
    struct oribi__frontend *frontend = frontend_of(call);
    struct oribi_conn *c = conn_of(call);
    int result = oribi_conn_flush(&frontend->reactor, c);
    if (result == 0) {
        oribi_loop_interest(frontend->reactor.loop, &c->watch, 0);
        oribi_timeouts_arm(&frontend->reactor.timeouts, &c->timer, ORIBI_TIMEOUT_NONE, frontend->reactor.now_ms);
        oribi__upstream_unlist(call);
        oribi__upstream_taken(call);
    } else if (result == ORIBI_AGAIN) {
        oribi_conn_await_room(&frontend->reactor, c);
        if (call_of(c) == call)
            oribi__upstream_taken(call);
    } else {
        oribi_conn_abort(&frontend->reactor, c, true);
    }
}

void oribi__h1_turn(struct oribi__frontend *frontend)
{
    struct oribi_conn_request *exchange;
    while ((exchange = oribi_reactor_pop(&frontend->reactor)))
        take(frontend, exchange);
    frontend->upstream->listed_at = frontend->upstream->listed;
    while (frontend->upstream->listed_at) {
        struct oribi__upstream_request *call = frontend->upstream->listed_at;
        frontend->upstream->listed_at = call->listed_next;
        if (conn_of(call)->watch.ready & ORIBI_WRITE)
            flush(call);
    }
}
