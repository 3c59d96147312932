/* A session's life, and the way from bytes to frames. A frame is never collected: its head, then what is looked at
 * together, then its body in the pieces that come, then padding. */
#include "frontend/h2.h"
#include "frontend/h2_private.h"

#include "oribi/base/mem.h"
#include "oribi/base/clock.h"

#include <assert.h>

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

enum { PREFACE_LEN = sizeof(preface) - 1 };

void oribi_h2_limits_init(struct oribi_h2_limits *limits)
{
    *limits = (struct oribi_h2_limits){
        .streams_max = ORIBI_H2_STREAMS_DEFAULT,
        .left_max = ORIBI_H2_LEFT_DEFAULT,
        .stream_window = ORIBI_H2_STREAM_WINDOW_DEFAULT,
        .connection_window = ORIBI_H2_CONNECTION_WINDOW_DEFAULT,
        .head_timeout_ms = ORIBI_H2_HEAD_TIMEOUT_MS_DEFAULT,
        .write_timeout_ms = ORIBI_H2_WRITE_TIMEOUT_MS_DEFAULT,
        .resets_max = ORIBI_H2_RESETS_DEFAULT,
        .resets_per_s = ORIBI_H2_RESETS_PER_S_DEFAULT,
        .frames_max = ORIBI_H2_FRAMES_DEFAULT,
        .frames_per_s = ORIBI_H2_FRAMES_PER_S_DEFAULT,
        .table_bytes = ORIBI_H2_TABLE_BYTES_MAX,
    };
    oribi_limits_init(&limits->http);
}

static struct h2_rate full_rate(uint32_t max, int64_t now_ms)
{
    return (struct h2_rate){(int64_t)max * 1000, now_ms};
}

struct oribi_h2 *oribi_h2_create(const struct oribi_h2_limits *limits, const struct oribi_h2_events *events, void *self,
                                 int64_t now_ms)
{
    assert(limits->streams_max > 0 && limits->streams_max <= ORIBI_H2_STREAMS_CAP);
    assert(limits->left_max > 0 && limits->left_max <= ORIBI_H2_STREAMS_CAP);
    assert(limits->stream_window >= ORIBI_H2_WINDOW_MIN && limits->stream_window <= H2_WINDOW_MAX);
    assert(limits->connection_window >= ORIBI_H2_WINDOW_MIN && limits->connection_window <= H2_WINDOW_MAX);
    assert(limits->table_bytes <= ORIBI_H2_TABLE_BYTES_MAX);
    struct oribi_h2 *h2 = oribi_mem_try_alloc(1, sizeof(*h2));
    if (!h2)
        return NULL;
    h2->limits = limits;
    h2->events = events;
    h2->self = self;
    h2->now_ms = now_ms;
    h2->frame_ms = now_ms ? now_ms : 1; /* the preface is awaited like a frame */
    h2->final_id = UINT32_MAX;
    h2->send_window = H2_WINDOW_INITIAL;
    h2->recv_window = H2_WINDOW_INITIAL;
    h2->peer_window = H2_WINDOW_INITIAL;
    h2->peer_table = ORIBI_H2_TABLE_BYTES_MAX;
    h2->resets = full_rate(limits->resets_max, now_ms);
    h2->frames = full_rate(limits->frames_max, now_ms);
    h2->updates = full_rate(limits->frames_max, now_ms);
    oribi__h2_put_settings(h2);
    if (limits->connection_window > H2_WINDOW_INITIAL) {
        oribi__h2_put_window_update(h2, 0, limits->connection_window - H2_WINDOW_INITIAL);
        h2->recv_window = limits->connection_window;
    }
    return h2;
}

void oribi__h2_let_go(struct oribi_h2 *h2)
{
    if (h2->inflater)
        nghttp2_hd_inflate_del(h2->inflater);
    if (h2->deflater)
        nghttp2_hd_deflate_del(h2->deflater);
    h2->inflater = NULL;
    h2->deflater = NULL;
    oribi__h2_block_deinit(h2);
    oribi_buf_deinit(&h2->names);
    oribi_buf_deinit(&h2->out);
    h2->sent = 0;
    while (h2->free_streams) {
        struct h2_stream *next = h2->free_streams->next;
        oribi_mem_free(h2->free_streams);
        h2->free_streams = next;
    }
    oribi_mem_free(h2->streams);
    h2->streams = NULL;
    h2->stream_cap = 0;
}

void oribi_h2_destroy(struct oribi_h2 *h2)
{
    if (!h2)
        return;
    assert(h2->depth == 0);
    for (uint32_t i = 0; i < h2->stream_count; i++) {
        oribi_buf_deinit(&h2->streams[i]->trailers);
        oribi_mem_free(h2->streams[i]);
    }
    oribi__h2_let_go(h2);
    oribi_buf_deinit(&h2->remembered);
    oribi_mem_free(h2);
}

uint32_t oribi_h2_streams(const struct oribi_h2 *h2)
{
    return h2->stream_count;
}

bool oribi_h2_is_over(const struct oribi_h2 *h2)
{
    return h2->over || (h2->final_id != UINT32_MAX && h2->stream_count == h2->left_count && !h2_in_block(h2));
}

uint32_t oribi_h2_error(const struct oribi_h2 *h2, const char **reason)
{
    *reason = h2->reason;
    return h2->error;
}

bool oribi_h2_wants_input(const struct oribi_h2 *h2)
{
    return h2_unsent(h2) < ORIBI_H2_UNSENT_BYTES_MAX && h2->slow_until_ms == 0;
}

/* ---- input ---- */

/* As many bytes as are wanted and there. */
static size_t take_small(struct oribi_h2 *h2, const char *p, size_t n, size_t wanted)
{
    size_t len = wanted - h2->got < n ? wanted - h2->got : n;
    memcpy(h2->small + h2->got, p, len);
    h2->got += (uint32_t)len;
    return len;
}

static size_t take_preface(struct oribi_h2 *h2, const char *p, size_t n)
{
    size_t len = PREFACE_LEN - h2->got < n ? PREFACE_LEN - h2->got : n;
    if (memcmp(p, preface + h2->got, len) != 0) {
        oribi__h2_fail(h2, ORIBI_H2_PROTOCOL_ERROR, "no connection preface");
        return len;
    }
    h2->got += (uint32_t)len;
    if (h2->got == PREFACE_LEN) {
        h2->got = 0;
        h2->phase = H2_AT_HEAD;
    }
    return len;
}

static void read_head(struct oribi_h2 *h2)
{
    const uint8_t *b = (const uint8_t *)h2->small;
    h2->len = (uint32_t)b[0] << 16 | (uint32_t)b[1] << 8 | b[2];
    h2->type = b[3];
    h2->flags = b[4];
    h2->id = h2_read32(h2->small + 5) & H2_WINDOW_MAX; /* the reserved bit is ignored, RFC 9113 4.1 */
    h2->got = 0;
    h2->prefix_len = h2->body_left = h2->skip_left = 0;
    h2->phase = H2_AT_PREFIX;
    oribi__h2_frame_begin(h2);
}

/* Goes on to the next phase that has bytes to wait for. */
static void advance(struct oribi_h2 *h2)
{
    while (!h2->over) {
        if (h2->phase == H2_AT_PREFIX && h2->got == h2->prefix_len) {
            h2->got = 0;
            h2->phase = H2_AT_BODY;
            oribi__h2_frame_prefix(h2); /* may ask for another prefix */
        } else if (h2->phase == H2_AT_BODY && h2->body_left == 0) {
            h2->phase = H2_AT_SKIP;
        } else if (h2->phase == H2_AT_SKIP && h2->skip_left == 0) {
            h2->phase = H2_AT_HEAD;
            h2->frame_ms = 0;
            oribi__h2_frame_end(h2);
            return;
        } else {
            return;
        }
    }
}

/* One step; returns how many bytes it took. */
static size_t take(struct oribi_h2 *h2, const char *p, size_t n)
{
    size_t len = 0;
    switch (h2->phase) {
    case H2_AT_PREFACE:
        return take_preface(h2, p, n);
    case H2_AT_HEAD:
        if (h2->frame_ms == 0)
            h2->frame_ms = h2->now_ms ? h2->now_ms : 1;
        len = take_small(h2, p, n, H2_FRAME_HEAD);
        if (h2->got == H2_FRAME_HEAD)
            read_head(h2);
        break;
    case H2_AT_PREFIX:
        len = take_small(h2, p, n, h2->prefix_len);
        break;
    case H2_AT_BODY:
        len = h2->body_left < n ? h2->body_left : n;
        h2->body_left -= (uint32_t)len;
        oribi__h2_frame_body(h2, p, len);
        break;
    case H2_AT_SKIP:
        len = h2->skip_left < n ? h2->skip_left : n;
        h2->skip_left -= (uint32_t)len;
        break;
    }
    if (h2->phase != H2_AT_HEAD)
        advance(h2);
    return len;
}

int oribi_h2_feed(struct oribi_h2 *h2, const char *p, size_t n, int64_t now_ms)
{
    h2->now_ms = now_ms;
    h2->depth++;
    while (n > 0 && !h2->over) {
        size_t len = take(h2, p, n);
        if (h2->phase == H2_AT_HEAD && h2->depth == 1)
            oribi__h2_sweep_between(h2);
        p += len;
        n -= len;
    }
    h2->depth--;
    oribi__h2_sweep(h2);
    return oribi_h2_is_over(h2) ? ORIBI_ECLOSED : 0;
}

/* ---- the end ---- */

void oribi_h2_shutdown(struct oribi_h2 *h2, int64_t now_ms)
{
    h2->now_ms = now_ms;
    if (h2->over || h2->goaway_ms || h2->final_id != UINT32_MAX)
        return;
    oribi__h2_put_goaway(h2, H2_WINDOW_MAX, ORIBI_H2_NO_ERROR);
    memcpy(oribi__h2_put_frame(h2, H2_PING, 0, 0, 8), "shutdown", 8);
    h2->goaway_ms = now_ms + ORIBI_H2_GOAWAY_MS;
}

void oribi_h2_fail(struct oribi_h2 *h2, uint32_t code)
{
    if (!h2->over)
        oribi__h2_fail(h2, code, "ended by the server");
    oribi__h2_sweep(h2);
}

/* --- deadlines --- */

static int64_t due(int64_t since_ms, int64_t timeout_ms)
{
    return since_ms && timeout_ms ? since_ms + timeout_ms : INT64_MAX;
}

static int64_t input_due(const struct oribi_h2 *h2)
{
    int64_t timeout = h2->limits->head_timeout_ms;
    return oribi_earlier(due(h2->frame_ms, timeout), due(h2->block ? h2->block->since_ms : 0, timeout));
}

int64_t oribi_h2_deadline(const struct oribi_h2 *h2)
{
    if (h2->over)
        return INT64_MAX;
    int64_t at = oribi_earlier(input_due(h2), h2->goaway_ms ? h2->goaway_ms : INT64_MAX);
    at = oribi_earlier(at, due(h2->blocked_ms, h2->limits->write_timeout_ms));
    at = oribi_earlier(at, h2->slow_until_ms ? h2->slow_until_ms : INT64_MAX);
    for (uint32_t i = 0; i < h2->stream_count; i++) {
        const struct h2_stream *stream = h2->streams[i];
        if (stream->closed)
            continue;
        at = oribi_earlier(at, due(stream->blocked_ms, h2->limits->write_timeout_ms));
        at = oribi_earlier(at, due(stream->linger_ms, ORIBI_LINGER_SILENCE_MS_MAX));
    }
    return at;
}

/* Whose window stands still: a stream waits for its own, and the ready ones for the connection's. */
static void reset_blocked(struct oribi_h2 *h2)
{
    bool all = due(h2->blocked_ms, h2->limits->write_timeout_ms) <= h2->now_ms;
    for (uint32_t i = 0; i < h2->stream_count && !h2->over; i++) {
        struct h2_stream *stream = h2->streams[i];
        if (stream->closed)
            continue;
        if ((all && stream->listed) || due(stream->blocked_ms, h2->limits->write_timeout_ms) <= h2->now_ms)
            oribi__h2_stream_error(h2, stream->to.id, ORIBI_H2_CANCEL);
    }
    if (all)
        h2->blocked_ms = 0;
}

/* Uploads that go on behind their answer, RFC 9113 8.1. */
static void end_lingering(struct oribi_h2 *h2)
{
    for (uint32_t i = 0; i < h2->stream_count && !h2->over; i++) {
        struct h2_stream *stream = h2->streams[i];
        if (stream->closed || due(stream->linger_ms, ORIBI_LINGER_SILENCE_MS_MAX) > h2->now_ms)
            continue;
        oribi__h2_put_reset(h2, stream->to.id, ORIBI_H2_NO_ERROR);
        oribi__h2_close(stream, false, ORIBI_H2_NO_ERROR);
        h2->free_resets++;
    }
}

void oribi__h2_go_away(struct oribi_h2 *h2)
{
    h2->goaway_ms = 0;
    h2->final_id = h2->last_id;
    oribi__h2_put_goaway(h2, h2->final_id, ORIBI_H2_NO_ERROR);
}

void oribi_h2_tick(struct oribi_h2 *h2, int64_t now_ms)
{
    h2->now_ms = now_ms;
    if (h2->over)
        return;
    h2->depth++;
    if (h2->slow_until_ms <= now_ms)
        h2->slow_until_ms = 0;
    if (h2->goaway_ms && h2->goaway_ms <= now_ms)
        oribi__h2_go_away(h2);
    if (input_due(h2) <= now_ms)
        oribi__h2_fail(h2, ORIBI_H2_ENHANCE_YOUR_CALM,
                       h2->settings_seen ? "frame or field block not finished within head_timeout"
                                         : "no connection preface within head_timeout");
    reset_blocked(h2);
    end_lingering(h2);
    h2->depth--;
    oribi__h2_sweep(h2);
}

/* --- sleep ---
 *
 * A session without a stream gives up all but itself. What cannot be made again is the decoder's table, which the
 * client goes on using: it is remembered as the field block that would make it. */

enum { STATIC_ENTRIES = 61 }; /* RFC 7541, Appendix A */

/* RFC 7541 5.1. */
static void put_int(struct oribi_buf *out, uint8_t first, int bits, size_t value)
{
    size_t max = ((size_t)1 << bits) - 1;
    char bytes[12];
    size_t n = 0;
    bytes[n++] = (char)(first | (value < max ? value : max));
    if (value >= max) {
        for (value -= max; value >= 128; value >>= 7)
            bytes[n++] = (char)(value | 128);
        bytes[n++] = (char)value;
    }
    oribi_buf_append(out, bytes, n);
}

static void put_string(struct oribi_buf *out, nghttp2_vec text)
{
    put_int(out, 0, 7, text.len);
    oribi_buf_append(out, text.base, text.len);
}

/* The table's size where the client has chosen it, and the entries, oldest first, as literal fields that are indexed
 * (RFC 7541 6.2.1). */
static void remember(struct oribi_h2 *h2)
{
    struct oribi_buf *out = &h2->remembered;
    size_t count = nghttp2_hd_inflate_get_num_table_entries(h2->inflater);
    out->len = 0;
    size_t table = nghttp2_hd_inflate_get_max_dynamic_table_size(h2->inflater);
    if (!h2->table_due && table != ORIBI_H2_TABLE_BYTES_MAX)
        put_int(out, 0x20, 5, table);
    for (size_t i = count; i > STATIC_ENTRIES; i--) {
        const nghttp2_nv *nv = nghttp2_hd_inflate_get_table_entry(h2->inflater, i);
        put_int(out, 0x40, 6, 0);
        put_string(out, (nghttp2_vec){nv->name, nv->namelen});
        put_string(out, (nghttp2_vec){nv->value, nv->valuelen});
    }
    char *trimmed = out->len ? oribi_mem_try_resize(out->p, 1, out->len) : NULL;
    if (trimmed) {
        out->p = trimmed;
        out->cap = out->len;
    }
}

int oribi__h2_recall(struct oribi_h2 *h2)
{
    const uint8_t *in = (const uint8_t *)h2->remembered.p;
    size_t n = h2->remembered.len;
    nghttp2_nv nv;
    int flags = 0;
    if (n == 0)
        return 0;
    while (!(flags & NGHTTP2_HD_INFLATE_FINAL)) {
        flags = 0;
        ssize_t len = nghttp2_hd_inflate_hd2(h2->inflater, &nv, &flags, in, n, 1);
        if (len < 0)
            return ORIBI_ENOMEM; /* it has decoded these entries before */
        in += len;
        n -= (size_t)len;
    }
    oribi_buf_deinit(&h2->remembered);
    return nghttp2_hd_inflate_end_headers(h2->inflater) == 0 ? 0 : ORIBI_ENOMEM;
}

bool oribi_h2_sleep(struct oribi_h2 *h2)
{
    if (!h2->limits->sleeps || h2->stream_count || h2->phase != H2_AT_HEAD || h2->got || h2_in_block(h2) ||
        h2_unsent(h2) || h2->goaway_ms || h2->over)
        return false;
    if (h2->inflater)
        remember(h2);
    oribi__h2_let_go(h2);
    return true;
}

/* --- floods ---
 *
 * How many frames that bring no request further a client may send, RFC 9113 10.5. Each frame of an answer pays for
 * frames that it is a reason for (h2_private.h); what is not paid for is counted against a rate. Too many end the
 * connection of a client. A trusted one is a balancer, and has other clients on its connection: it has to wait until
 * one frame more is due, and its resets are not counted. What they leave to run on is bounded by left_max. */

bool oribi__h2_rate_take(struct h2_rate *rate, uint32_t max, uint32_t per_s, int64_t now_ms)
{
    int64_t full = (int64_t)max * 1000;
    int64_t passed = now_ms - rate->at_ms;
    if (passed > 0) {
        rate->level = passed >= full / (per_s ? per_s : 1) + 1 && per_s ? full : rate->level + passed * per_s;
        rate->at_ms = now_ms;
    }
    if (rate->level > full)
        rate->level = full;
    if (rate->level < 1000)
        return false;
    rate->level -= 1000;
    return true;
}

/* One read may bring many such frames: they are taken all, and the wait is that for one. */
static void count(struct oribi_h2 *h2, struct h2_rate *rate, const char *reason)
{
    uint32_t per_s = h2->limits->frames_per_s;
    if (oribi__h2_rate_take(rate, h2->limits->frames_max, per_s, h2->now_ms))
        return;
    if (!h2->limits->trusted)
        oribi__h2_fail(h2, ORIBI_H2_ENHANCE_YOUR_CALM, reason);
    else
        h2->slow_until_ms = h2->now_ms + (per_s ? (1000 + per_s - 1) / per_s : 1000);
}

void oribi__h2_count_update(struct oribi_h2 *h2)
{
    if (h2->free_updates > 0)
        h2->free_updates--;
    else
        count(h2, &h2->updates, "too many WINDOW_UPDATE");
}

void oribi__h2_count_frame(struct oribi_h2 *h2)
{
    if (h2->free_frames > 0)
        h2->free_frames--;
    else
        count(h2, &h2->frames, "too many frames that carry nothing");
}

bool oribi__h2_count_reset(struct oribi_h2 *h2, const char *reason)
{
    const struct oribi_h2_limits *limits = h2->limits;
    if (limits->trusted || oribi__h2_rate_take(&h2->resets, limits->resets_max, limits->resets_per_s, h2->now_ms))
        return true;
    oribi__h2_fail(h2, ORIBI_H2_ENHANCE_YOUR_CALM, reason);
    return false;
}
