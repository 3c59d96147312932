/* A session with nghttp2's as its client, in memory: requests with bodies, answers with bodies and trailers, windows,
 * resets and settings at random, cut into pieces at random, some sessions sleeping in between, some ended without a
 * loss. nghttp2 checks every frame that it gets; here the bytes of every body are checked at both ends. */
#include "frontend/h2.h"
#include "oribi/base/buf.h"
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "tap.h"

#include <nghttp2/nghttp2.h>
#include <stdlib.h>
#include <string.h>

enum { REQUESTS = 60, BODY_MAX = 200 * 1000 };

/* One request, as both ends know it; its path is its number. */
struct exchange {
    struct oribi_h2_stream *stream; /* the server's; NULL: not yet, or released */
    int32_t id;                     /* the client's; 0: not yet */
    size_t up;                      /* bytes of the request's body */
    size_t down;                    /* bytes of the answer's body */
    size_t up_sent, up_seen, down_sent, down_seen;
    bool has_length, early, trailers, hints, paused;
    bool trailers_seen, hints_seen;
    bool ended;     /* the request has, at the server */
    bool answered;  /* the head has gone */
    bool cancelled; /* by the client */
    bool seen;      /* by the server */
    bool unsent;    /* the client had heard of the shutdown before */
    bool closed;    /* at the client */
    uint32_t error;
    int status;
};

static struct exchange exchanges[REQUESTS];
static uint32_t next_exchange;
static uint64_t seed;
static struct oribi_h2 *h2;
static nghttp2_session *client;
static bool corrupt;
static bool shutting_down;
static uint32_t sleeps;
static uint32_t shutdowns;

static uint32_t any(uint32_t below)
{
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    return (uint32_t)(seed >> 33) % below;
}

static char byte_of(size_t number, size_t at)
{
    return (char)(number * 31 + at * 7 + at / 251);
}

static void fill(size_t number, size_t at, char *dst, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = byte_of(number, at + i);
}

static void check(size_t number, size_t at, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        corrupt = corrupt || p[i] != byte_of(number, at + i);
}

static size_t number_of(const struct exchange *exchange)
{
    return (size_t)(exchange - exchanges);
}

/* ---- the server ---- */

static struct oribi_field field_of(const char *name, const char *value)
{
    return (struct oribi_field){
        .name = name, .value = value, .name_len = (uint16_t)strlen(name), .value_len = (uint32_t)strlen(value)};
}

static void answer(struct exchange *exchange)
{
    char length[24];
    char long_value[3000];
    struct oribi_field fields[3] = {field_of("X-Same", "always"), field_of("Connection", "close")};
    uint32_t count = 2;
    snprintf(length, sizeof(length), "%zu", exchange->down);
    if (exchange->has_length)
        fields[count++] = field_of("Content-Length", length);
    else {
        memset(long_value, 'v', sizeof(long_value));
        fields[count] = field_of("x-long", "");
        fields[count].value = long_value;
        fields[count++].value_len = any(sizeof(long_value));
    }
    if (exchange->hints && oribi_h2_interim(exchange->stream, 103, fields, 1) != 0)
        corrupt = true;
    if (oribi_h2_answer(exchange->stream, 200, fields, count, exchange->down == 0 && !exchange->trailers) != 0)
        corrupt = true;
    exchange->answered = true;
    oribi_h2_ready(exchange->stream);
}

static void on_request(void *self, struct oribi_h2_stream *stream, const struct oribi_h2_request *request)
{
    size_t number = strtoul(request->parsed->path.p + 1, NULL, 10);
    struct exchange *exchange = &exchanges[number];
    stream->user = exchange;
    exchange->stream = stream;
    exchange->seen = true;
    if (request->ended != (exchange->up == 0) || (exchange->has_length && request->body_len != (int64_t)exchange->up))
        corrupt = true;
    if (exchange->early)
        answer(exchange);
}

static void on_refused(void *self, struct oribi_h2_stream *stream, int error, const struct oribi_fault *fault,
                       bool is_head)
{
    corrupt = true;
}

static void on_malformed(void *self, uint32_t id, const char *reason)
{
    corrupt = true;
}

static void on_data(void *self, struct oribi_h2_stream *stream, const char *p, size_t n)
{
    struct exchange *exchange = stream->user;
    check(number_of(exchange), exchange->up_seen, p, n);
    exchange->up_seen += n;
    oribi_h2_stored(stream, n);
}

static void on_trailers(void *self, struct oribi_h2_stream *stream, struct oribi_slice lines)
{
    corrupt = true;
}

static void on_end(void *self, struct oribi_h2_stream *stream)
{
    struct exchange *exchange = stream->user;
    exchange->ended = true;
    corrupt = corrupt || exchange->up_seen != exchange->up;
    if (!exchange->early)
        answer(exchange);
}

static void on_reset(void *self, struct oribi_h2_stream *stream, uint32_t code)
{
    struct exchange *exchange = stream->user;
    corrupt = corrupt || !exchange->cancelled;
}

static size_t on_pull(void *self, struct oribi_h2_stream *stream, char *dst, size_t cap, bool *last)
{
    struct exchange *exchange = stream->user;
    size_t left = exchange->down - exchange->down_sent;
    if (cap == 0 && left)
        return left;
    if (left && any(4) == 0) { /* the answer comes in pieces */
        exchange->paused = true;
        return 0;
    }
    size_t n = left < cap ? left : cap;
    if (any(3) == 0)
        n = n ? any((uint32_t)n) + 1 : 0;
    fill(number_of(exchange), exchange->down_sent, dst, n);
    exchange->down_sent += n;
    if (exchange->down_sent == exchange->down) {
        struct oribi_field sum = field_of("X-Sum", "1");
        *last = true;
        if (exchange->trailers && oribi_h2_trailers(stream, &sum, 1) != 0)
            corrupt = true;
    }
    return n;
}

static const struct oribi_h2_events events = {on_request,  on_refused, on_malformed, on_data,
                                              on_trailers, on_end,     on_reset,     on_pull};

/* ---- the client ---- */

static struct exchange *exchange_of(int32_t id)
{
    return nghttp2_session_get_stream_user_data(client, id);
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_len,
                     const uint8_t *value, size_t value_len, uint8_t flags, void *self)
{
    struct exchange *exchange = exchange_of(frame->hd.stream_id);
    if (name_len == 7 && memcmp(name, ":status", 7) == 0)
        exchange->status = (int)strtol((const char *)value, NULL, 10);
    if (name_len == 5 && memcmp(name, "x-sum", 5) == 0)
        exchange->trailers_seen = true;
    if (exchange->status == 103)
        exchange->hints_seen = true;
    return name_len == 10 && memcmp(name, "connection", 10) == 0 ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

static int on_chunk(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *p, size_t n, void *self)
{
    struct exchange *exchange = exchange_of(id);
    check(number_of(exchange), exchange->down_seen, (const char *)p, n);
    exchange->down_seen += n;
    return 0;
}

static int on_unsent(nghttp2_session *session, const nghttp2_frame *frame, int error, void *self)
{
    if (frame->hd.type == NGHTTP2_HEADERS)
        for (uint32_t i = 0; i < next_exchange; i++)
            if (exchanges[i].id == frame->hd.stream_id)
                exchanges[i].unsent = exchanges[i].closed = true;
    return 0;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t code, void *self)
{
    struct exchange *exchange = exchange_of(id);
    exchange->closed = true;
    exchange->error = code;
    return 0;
}

static ssize_t read_body(nghttp2_session *session, int32_t id, uint8_t *dst, size_t cap, uint32_t *flags,
                         nghttp2_data_source *source, void *self)
{
    struct exchange *exchange = source->ptr;
    size_t left = exchange->up - exchange->up_sent;
    size_t n = left < cap ? left : cap;
    if (n > 1 && any(2))
        n = any((uint32_t)n) + 1;
    fill(number_of(exchange), exchange->up_sent, (char *)dst, n);
    exchange->up_sent += n;
    if (exchange->up_sent == exchange->up)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}

static nghttp2_nv nv_of(const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name), strlen(value), 0};
}

static void submit(void)
{
    struct exchange *exchange = &exchanges[next_exchange++];
    char path[16];
    char length[24];
    exchange->up = any(3) ? 0 : any(10) ? any(3000) : any(BODY_MAX);
    exchange->down = any(4) == 0 ? 0 : any(10) ? any(3000) : any(BODY_MAX);
    exchange->has_length = any(2);
    exchange->early = any(3) == 0;
    exchange->trailers = any(4) == 0;
    exchange->hints = any(5) == 0;
    snprintf(path, sizeof(path), "/%zu", number_of(exchange));
    snprintf(length, sizeof(length), "%zu", exchange->up);
    nghttp2_nv fields[8] = {nv_of(":method", exchange->up ? "POST" : "GET"),
                            nv_of(":scheme", "http"),
                            nv_of(":authority", "a.example"),
                            nv_of(":path", path),
                            nv_of("x-one", "always the same"),
                            nv_of("cookie", path)};
    size_t count = 6;
    if (any(2))
        fields[count++] = nv_of("priority", any(2) ? "u=1, i" : "u=6");
    if (exchange->up && exchange->has_length)
        fields[count++] = nv_of("content-length", length);
    nghttp2_data_provider body = {.source.ptr = exchange, .read_callback = read_body};
    exchange->id = nghttp2_submit_request(client, NULL, fields, count, exchange->up ? &body : NULL, exchange);
    if (exchange->id < 0) /* the client may open no more */
        exchange->unsent = exchange->closed = true;
    corrupt = corrupt || (exchange->id < 0 && !shutting_down);
}

static void make_client(void)
{
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *option;
    nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, any(2) ? 65535 : any(100000)},
                                         {NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, any(2) ? 4096 : any(8192)}};
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_chunk);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks, on_unsent);
    nghttp2_option_new(&option);
    nghttp2_session_client_new2(&client, callbacks, NULL, option);
    nghttp2_submit_settings(client, NGHTTP2_FLAG_NONE, settings, 2);
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
}

/* ---- between them ---- */

static struct oribi_buf up;
static struct oribi_buf down;

static bool move_up(int64_t now_ms)
{
    const uint8_t *p;
    ssize_t n = any(3) ? nghttp2_session_mem_send(client, &p) : 0;
    if (n > 0)
        oribi_buf_append(&up, p, (size_t)n);
    size_t piece = up.len ? any((uint32_t)up.len) + 1 : 0;
    if (piece && oribi_h2_wants_input(h2)) {
        if (oribi_h2_feed(h2, up.p, piece, now_ms) != 0 && !shutting_down)
            return false;
        oribi_buf_consume(&up, piece);
    }
    return n >= 0;
}

static bool move_down(int64_t now_ms)
{
    struct oribi_slice out = oribi_h2_output(h2, any(40000) + 1, now_ms);
    size_t piece = out.n ? any((uint32_t)out.n) + 1 : 0;
    if (piece) {
        oribi_buf_append(&down, out.p, piece);
        oribi_h2_sent(h2, piece);
    }
    piece = down.len ? any((uint32_t)down.len) + 1 : 0;
    if (piece) {
        if (nghttp2_session_mem_recv(client, (const uint8_t *)down.p, piece) != (ssize_t)piece)
            return false;
        oribi_buf_consume(&down, piece);
    }
    return true;
}

static void attend(void)
{
    for (uint32_t i = 0; i < next_exchange; i++) {
        struct exchange *exchange = &exchanges[i];
        if (exchange->stream && exchange->paused && any(2)) {
            exchange->paused = false;
            oribi_h2_ready(exchange->stream);
        }
        if (exchange->stream && oribi_h2_is_answered(exchange->stream)) {
            oribi_h2_release(exchange->stream);
            exchange->stream = NULL;
        }
        if (exchange->id && !exchange->closed && !exchange->cancelled && any(3000) == 0) {
            exchange->cancelled = true;
            nghttp2_submit_rst_stream(client, 0, exchange->id, NGHTTP2_CANCEL);
        }
    }
}

static bool all_closed(void)
{
    for (uint32_t i = 0; i < next_exchange; i++)
        if (!exchanges[i].closed)
            return false;
    return true;
}

static bool is_through(void)
{
    return next_exchange == REQUESTS && all_closed() && (!shutting_down || oribi_h2_is_over(h2));
}

static bool is_right(const struct exchange *exchange)
{
    if (exchange->cancelled)
        return true;
    if (exchange->unsent || (shutting_down && !exchange->seen))
        return shutting_down && !exchange->seen && exchange->down_seen == 0;
    if (exchange->early)
        return (exchange->error == 0 && exchange->down_seen == exchange->down);
    return exchange->error == 0 && exchange->status == 200 && exchange->down_seen == exchange->down &&
           exchange->up_seen == exchange->up && exchange->trailers_seen == exchange->trailers &&
           exchange->hints_seen == exchange->hints;
}

static bool run(uint64_t from)
{
    struct oribi_h2_limits limits;
    const char *reason;
    int64_t now_ms = 1000;
    uint32_t turns = 0;
    bool fine = true;
    seed = from;
    memset(exchanges, 0, sizeof(exchanges));
    next_exchange = 0;
    corrupt = false;
    oribi_h2_limits_init(&limits);
    limits.sleeps = any(2);
    limits.table_bytes = any(2) ? ORIBI_H2_TABLE_BYTES_MAX : any(2) ? 0 : any(ORIBI_H2_TABLE_BYTES_MAX);
    limits.stream_window = any(2) ? 65535 : 100000;
    limits.connection_window = any(2) ? 65535 : 1024 * 1024;
    limits.frames_max = 1000 * 1000; /* pieces of a byte want many frames */
    h2 = oribi_h2_create(&limits, &events, NULL, now_ms);
    make_client();
    bool shuts_down = any(3) == 0;
    shutting_down = false;
    while (fine && !is_through() && turns++ < 400 * 1000) {
        if (next_exchange < REQUESTS && any(4) == 0)
            submit();
        fine = move_up(now_ms) && move_down(now_ms);
        attend();
        if (shuts_down && !shutting_down && any(500) == 0) {
            oribi_h2_shutdown(h2, now_ms);
            shutting_down = true;
            shutdowns++;
        }
        if (oribi_h2_streams(h2) == 0 && oribi_h2_sleep(h2))
            sleeps++;
        now_ms += any(3);
        oribi_h2_tick(h2, now_ms);
    }
    (void)oribi_h2_error(h2, &reason);
    if (reason || !fine)
        diag("seed %llu: %s", (unsigned long long)from, reason ? reason : "nghttp2 has ended it");
    for (uint32_t i = 0; i < REQUESTS; i++) {
        if (is_right(&exchanges[i]))
            continue;
        diag("seed %llu: request %u is wrong: error %u, status %d, %zu of %zu up, %zu of %zu down",
             (unsigned long long)from, i, exchanges[i].error, exchanges[i].status, exchanges[i].up_seen,
             exchanges[i].up, exchanges[i].down_seen, exchanges[i].down);
        fine = false;
    }
    if (shutting_down && !oribi_h2_is_over(h2)) {
        diag("seed %llu: the shutdown does not end", (unsigned long long)from);
        fine = false;
    }
    oribi_h2_destroy(h2);
    nghttp2_session_del(client);
    oribi_buf_deinit(&up);
    oribi_buf_deinit(&down);
    return fine && !corrupt && !reason;
}

int main(void)
{
    const char *soak = getenv("ORIBI_SOAK");
    uint64_t count = soak ? 20000 : 200;
    int64_t blocks = oribi_mem_blocks();
    for (uint64_t i = 1; i <= count; i++)
        ok_named(run(i * 7919), "seed %llu", (unsigned long long)(i * 7919));
    ok(sleeps > 0);
    ok(shutdowns > 0);
    ok_eq(oribi_mem_blocks(), blocks);
    return done_testing();
}
