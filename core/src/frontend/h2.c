/* A session's life, and the way from bytes to frames. A frame is never collected: its head, then what is looked at
 * together, then its body in the pieces that come, then padding. */
#include "frontend/h2.h"

#include "frontend/h2_private.h"
#include "oribi/base/mem.h"

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
    return h2->over || (h2->final_id != UINT32_MAX && h2->stream_count == h2->left_count && !h2->block.open);
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
