/* Frames of a client, and what each of them does, RFC 9113 6. */
#include "frontend/h2_private.h"

static void fail(struct oribi_h2 *h2, uint32_t code, const char *reason)
{
    oribi__h2_fail(h2, code, reason);
}

/* The padding's length is the payload's first byte, and padding the rest behind the body. Returns whether there is room
 * for `wanted` bytes in front of the body. */
static bool begin_padded(struct oribi_h2 *h2, uint32_t wanted)
{
    h2->prefix_len = wanted + (h2->flags & H2_PADDED ? 1 : 0);
    if (h2->len < h2->prefix_len) {
        fail(h2, ORIBI_H2_FRAME_SIZE_ERROR, "frame too short for its flags");
        return false;
    }
    h2->body_left = h2->len - h2->prefix_len;
    return true;
}

static bool take_padding(struct oribi_h2 *h2)
{
    uint32_t padding = h2->flags & H2_PADDED ? (uint8_t)h2->small[0] : 0;
    if (padding > h2->body_left) {
        fail(h2, ORIBI_H2_PROTOCOL_ERROR, "padding longer than its frame");
        return false;
    }
    h2->body_left -= padding;
    h2->skip_left = padding;
    return true;
}

/* ---- DATA ---- */

static void ignore_data(struct oribi_h2 *h2)
{
    oribi__h2_give_back(h2, NULL, h2->len); /* the stream will never ask for it */
    h2->data = NULL;
}

static void begin_data(struct oribi_h2 *h2)
{
    if (h2->id == 0)
        return fail(h2, ORIBI_H2_PROTOCOL_ERROR, "DATA on stream 0");
    if (!begin_padded(h2, 0))
        return;
    if (h2->len > h2->recv_window)
        return fail(h2, ORIBI_H2_FLOW_CONTROL_ERROR, "DATA beyond the connection's window");
    h2->recv_window -= h2->len;
    struct h2_stream *stream = oribi__h2_find(h2, h2->id);
    h2->data = stream;
    if (!stream) {
        if (oribi__h2_ignores(h2, h2->id))
            ignore_data(h2);
    } else if (stream->request_ended) {
        ignore_data(h2);
        oribi__h2_stream_error(h2, h2->id, ORIBI_H2_STREAM_CLOSED);
    } else if (h2->len > stream->recv_window) {
        ignore_data(h2);
        oribi__h2_stream_error(h2, h2->id, ORIBI_H2_FLOW_CONTROL_ERROR);
    } else {
        stream->recv_window -= h2->len;
    }
}

static void refuse_body(struct oribi_h2 *h2, struct h2_stream *stream)
{
    stream->refused = true;
    h2->events->refused(h2->self, &stream->to, ORIBI_EBODY, NULL, stream->is_head);
}

/* The length of the frame's data is known: does it agree with the request? */
static void check_data(struct oribi_h2 *h2)
{
    struct h2_stream *stream = h2->data;
    uint32_t n = h2->body_left;
    if (n == 0 && !(h2->flags & H2_END_STREAM))
        oribi__h2_count_frame(h2);
    if (!stream || h2->over)
        return;
    oribi__h2_give_back(h2, stream, (int64_t)h2->len - n); /* padding is stored at once */
    if (stream->body_left >= 0 && n > stream->body_left) {
        oribi__h2_stream_error(h2, h2->id, ORIBI_H2_PROTOCOL_ERROR); /* RFC 9113 8.1.1 */
        return;
    }
    if (stream->body_left >= 0)
        stream->body_left -= n;
    stream->body_seen += n;
    if (!stream->refused && !stream->is_socket && stream->body_seen > h2->limits->http.body_bytes_max)
        refuse_body(h2, stream);
}

static void data_piece(struct oribi_h2 *h2, const char *p, size_t n)
{
    struct h2_stream *stream = h2->data;
    if (!stream)
        return; /* the window has it back already */
    if (stream->refused) {
        oribi__h2_give_back(h2, NULL, (int64_t)n); /* not the stream's: nobody waits for more */
        return;
    }
    stream->unstored += (int64_t)n;
    h2->events->data(h2->self, &stream->to, p, n);
}

static void end_data(struct oribi_h2 *h2)
{
    struct h2_stream *stream = h2->data;
    h2->data = NULL;
    if (!stream || !(h2->flags & H2_END_STREAM))
        return;
    stream->request_ended = true;
    if (stream->body_left > 0) {
        oribi__h2_stream_error(h2, stream->to.id, ORIBI_H2_PROTOCOL_ERROR);
        return;
    }
    if (!stream->refused)
        h2->events->end(h2->self, &stream->to);
    oribi__h2_close_if_ended(stream);
}

/* ---- HEADERS, CONTINUATION ---- */

/* For a stream that is over, or that a GOAWAY has excluded: decoded for what it does to the table. */
static void ignore_headers(struct oribi_h2 *h2)
{
    oribi__h2_count_frame(h2);
    if (!h2->over)
        oribi__h2_block_begin(h2, H2_USE_DISCARD, ORIBI_H2_NO_ERROR);
}

static void begin_headers(struct oribi_h2 *h2)
{
    if (h2->id == 0 || (h2->id & 1) == 0)
        return fail(h2, ORIBI_H2_PROTOCOL_ERROR, "HEADERS on a stream that no client opens");
    if (!begin_padded(h2, h2->flags & H2_WITH_PRIORITY ? 5 : 0))
        return;
    struct h2_stream *stream = oribi__h2_find(h2, h2->id);
    if (stream && stream->request_ended)
        oribi__h2_block_begin(h2, H2_USE_DISCARD, ORIBI_H2_STREAM_CLOSED);
    else if (stream && (stream->is_socket || !(h2->flags & H2_END_STREAM))) /* RFC 9113 8.5, 8.1 */
        oribi__h2_block_begin(h2, H2_USE_DISCARD, ORIBI_H2_PROTOCOL_ERROR);
    else if (stream)
        oribi__h2_block_begin(h2, H2_USE_TRAILERS, 0);
    else if (h2->id <= h2->last_id) {
        if (oribi__h2_ignores(h2, h2->id))
            ignore_headers(h2);
    } else if (h2->id > h2->final_id) {
        ignore_headers(h2);
    } else {
        oribi__h2_note_opened(h2, h2->id);
        bool room = oribi__h2_has_room(h2);
        oribi__h2_block_begin(h2, room ? H2_USE_REQUEST : H2_USE_DISCARD, ORIBI_H2_REFUSED_STREAM);
    }
}

static void begin_continuation(struct oribi_h2 *h2)
{
    h2->body_left = h2->len;
    if (h2->len == 0)
        oribi__h2_count_frame(h2);
}

/* ---- SETTINGS ---- */

static void begin_settings(struct oribi_h2 *h2)
{
    if (h2->id)
        return fail(h2, ORIBI_H2_PROTOCOL_ERROR, "SETTINGS on a stream");
    if (h2->len > 6 * H2_SETTINGS_MAX)
        return fail(h2, ORIBI_H2_ENHANCE_YOUR_CALM, "too many settings in a frame");
    if (h2->len % 6 || (h2->flags & H2_ACK && h2->len))
        return fail(h2, ORIBI_H2_FRAME_SIZE_ERROR, "SETTINGS of a wrong length");
    h2->prefix_len = h2->len ? 6 : 0;
    oribi__h2_count_frame(h2);
}

/* Every stream's window moves by the difference, and may become negative (RFC 9113 6.9.2). */
static void set_initial_window(struct oribi_h2 *h2, uint32_t value)
{
    int64_t difference = (int64_t)value - h2->peer_window;
    h2->peer_window = value;
    for (uint32_t i = 0; i < h2->stream_count; i++) {
        struct h2_stream *stream = h2->streams[i];
        if (stream->closed)
            continue;
        stream->send_window += difference;
        if (stream->send_window > H2_WINDOW_MAX)
            return fail(h2, ORIBI_H2_FLOW_CONTROL_ERROR, "INITIAL_WINDOW_SIZE lifts a window beyond 2^31-1");
        if (stream->blocked_ms && stream->send_window > 0)
            oribi__h2_list(stream);
    }
}

static void take_setting(struct oribi_h2 *h2, uint32_t id, uint32_t value)
{
    switch (id) {
    case NGHTTP2_SETTINGS_HEADER_TABLE_SIZE:
        h2->peer_table = value < ORIBI_H2_TABLE_BYTES_MAX ? value : ORIBI_H2_TABLE_BYTES_MAX;
        if (h2->deflater && !h2->limits->sleeps &&
            nghttp2_hd_deflate_change_table_size(h2->deflater, h2->peer_table) != 0)
            fail(h2, ORIBI_H2_INTERNAL_ERROR, "out of memory");
        break;
    case NGHTTP2_SETTINGS_ENABLE_PUSH:
    case NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL: /* RFC 8441 3 */
    case NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES:   /* RFC 9218 2.1 */
        if (value > 1)
            fail(h2, ORIBI_H2_PROTOCOL_ERROR, "a setting that is neither 0 nor 1");
        break;
    case NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE:
        if (value > H2_WINDOW_MAX)
            fail(h2, ORIBI_H2_FLOW_CONTROL_ERROR, "INITIAL_WINDOW_SIZE over 2^31-1");
        else
            set_initial_window(h2, value);
        break;
    case NGHTTP2_SETTINGS_MAX_FRAME_SIZE:
        if (value < H2_FRAME_MAX || value > 0xffffff)
            fail(h2, ORIBI_H2_PROTOCOL_ERROR, "MAX_FRAME_SIZE out of its range");
        break; /* we send no longer ones */
    default:   /* MAX_CONCURRENT_STREAMS is about pushes, MAX_HEADER_LIST_SIZE advice, others are unknown */
        break;
    }
}

/* Six bytes; asks for six more while there are any. */
static void settings_prefix(struct oribi_h2 *h2)
{
    if (h2->prefix_len == 0)
        return;
    uint32_t id = h2_read32(h2->small) >> 16;
    take_setting(h2, id, h2_read32(h2->small + 2));
    h2->len -= 6;
    if (h2->len)
        h2->phase = H2_AT_PREFIX;
}

static void end_settings(struct oribi_h2 *h2)
{
    if (!(h2->flags & H2_ACK)) {
        (void)oribi__h2_put_ack(h2, H2_SETTINGS, 0);
        return;
    }
    if (h2->settings_due == 0)
        return fail(h2, ORIBI_H2_PROTOCOL_ERROR, "SETTINGS acknowledged that were not sent");
    h2->settings_due--;
    oribi__h2_block_settled(h2);
}

/* ---- the small ones ---- */

static void begin_fixed(struct oribi_h2 *h2, uint32_t len, bool on_stream)
{
    if (h2->len != len)
        return fail(h2, ORIBI_H2_FRAME_SIZE_ERROR, "frame of a wrong length");
    if (on_stream != (h2->id > 0))
        return fail(h2, ORIBI_H2_PROTOCOL_ERROR, on_stream ? "frame on stream 0" : "frame on a stream");
    h2->prefix_len = len;
}

static void begin_window_update(struct oribi_h2 *h2)
{
    begin_fixed(h2, 4, h2->id > 0);
    oribi__h2_count_update(h2);
}

static void window_update(struct oribi_h2 *h2)
{
    uint32_t increment = h2_read32(h2->small) & H2_WINDOW_MAX;
    struct h2_stream *stream = h2->id ? oribi__h2_find(h2, h2->id) : NULL;
    if (h2->id == 0) {
        if (increment == 0)
            return fail(h2, ORIBI_H2_PROTOCOL_ERROR, "WINDOW_UPDATE by 0");
        h2->send_window += increment;
        h2->blocked_ms = 0;
        if (h2->send_window > H2_WINDOW_MAX)
            fail(h2, ORIBI_H2_FLOW_CONTROL_ERROR, "the connection's window beyond 2^31-1");
        return;
    }
    if (oribi__h2_is_idle(h2, h2->id))
        return fail(h2, ORIBI_H2_PROTOCOL_ERROR, "WINDOW_UPDATE on an idle stream");
    if (!stream)
        return; /* RFC 9113 6.9: it may come behind the stream's end */
    if (increment == 0)
        return oribi__h2_stream_error(h2, h2->id, ORIBI_H2_PROTOCOL_ERROR);
    stream->send_window += increment;
    if (stream->send_window > H2_WINDOW_MAX)
        return oribi__h2_stream_error(h2, h2->id, ORIBI_H2_FLOW_CONTROL_ERROR);
    if (stream->blocked_ms && stream->send_window > 0)
        oribi__h2_list(stream);
}

/* Whether the stream's answer has ended, which the client may not know yet; or was reset by us. */
static bool resets_nothing(struct oribi_h2 *h2, const struct h2_stream *stream)
{
    if (stream)
        return stream->answer_ended;
    bool paid = h2->free_resets > 0;
    h2->free_resets -= paid;
    return paid;
}

static void rst_stream(struct oribi_h2 *h2)
{
    struct h2_stream *stream = oribi__h2_find(h2, h2->id);
    if (oribi__h2_is_idle(h2, h2->id))
        return fail(h2, ORIBI_H2_PROTOCOL_ERROR, "RST_STREAM on an idle stream");
    if (!resets_nothing(h2, stream) && !oribi__h2_count_reset(h2, "too many resets"))
        return;
    if (stream)
        oribi__h2_close(stream, true, h2_read32(h2->small));
}

static void ping(struct oribi_h2 *h2)
{
    if (h2->flags & H2_ACK) {
        if (h2->goaway_ms && memcmp(h2->small, "shutdown", 8) == 0)
            oribi__h2_go_away(h2); /* all that the client had sent before has come */
        return;
    }
    char *p = oribi__h2_put_ack(h2, H2_PING, 8);
    if (p)
        memcpy(p, h2->small, 8);
}

/* Trees of priorities are ignored (RFC 9113 5.3.2), but for what never was one (RFC 7540 5.3.1). */
static void check_dependency(struct oribi_h2 *h2, const char *p)
{
    if ((h2_read32(p) & H2_WINDOW_MAX) == h2->id)
        fail(h2, ORIBI_H2_PROTOCOL_ERROR, "stream that depends on itself");
}

static void begin_goaway(struct oribi_h2 *h2)
{
    if (h2->id)
        return fail(h2, ORIBI_H2_PROTOCOL_ERROR, "GOAWAY on a stream");
    if (h2->len < 8)
        return fail(h2, ORIBI_H2_FRAME_SIZE_ERROR, "GOAWAY of a wrong length");
    h2->skip_left = h2->len;
    oribi__h2_count_frame(h2);
}

static void begin_priority_update(struct oribi_h2 *h2)
{
    if (h2->id)
        return fail(h2, ORIBI_H2_PROTOCOL_ERROR, "PRIORITY_UPDATE on a stream");
    if (h2->len < 4)
        return fail(h2, ORIBI_H2_FRAME_SIZE_ERROR, "PRIORITY_UPDATE of a wrong length");
    h2->prefix_len = h2->len < H2_PREFIX_MAX ? h2->len : H2_PREFIX_MAX;
    h2->skip_left = h2->len - h2->prefix_len;
    oribi__h2_count_frame(h2);
}

static void priority_update(struct oribi_h2 *h2)
{
    uint32_t id = h2_read32(h2->small) & H2_WINDOW_MAX;
    if (id == 0 || (id & 1) == 0)
        return fail(h2, ORIBI_H2_PROTOCOL_ERROR, "PRIORITY_UPDATE for a stream that no client opens");
    struct h2_stream *stream = oribi__h2_find(h2, id);
    if (!stream || h2->len > H2_PREFIX_MAX)
        return; /* before its stream, or behind its end */
    bool listed = stream->listed;
    oribi__h2_unlist(stream);
    stream->urgency = 3; /* it says all anew, RFC 9218 7 */
    stream->incremental = false;
    oribi__h2_priority_read(oribi_slice(h2->small + 4, h2->len - 4), &stream->urgency, &stream->incremental);
    if (listed)
        oribi__h2_list(stream);
}

/* ---- all of them ---- */

void oribi__h2_frame_begin(struct oribi_h2 *h2)
{
    if (h2->len > H2_FRAME_MAX)
        return fail(h2, ORIBI_H2_FRAME_SIZE_ERROR, "frame longer than MAX_FRAME_SIZE");
    if (!h2->settings_seen) { /* RFC 9113 3.4 */
        if (h2->type != H2_SETTINGS || h2->flags & H2_ACK)
            return fail(h2, ORIBI_H2_PROTOCOL_ERROR, "the first frame is not SETTINGS");
        h2->settings_seen = true;
    }
    bool open = h2_in_block(h2);
    bool continues = h2->type == H2_CONTINUATION && open && h2->id == h2->block->id;
    if (!continues && (open || h2->type == H2_CONTINUATION))
        return fail(h2, ORIBI_H2_PROTOCOL_ERROR, open ? "CONTINUATION is missing" : "CONTINUATION of nothing");
    switch (h2->type) {
    case H2_DATA:
        h2->frame_ms = 0; /* the frontend knows how slow a body may be */
        return begin_data(h2);
    case H2_HEADERS:
        return begin_headers(h2);
    case H2_CONTINUATION:
        return begin_continuation(h2);
    case H2_PRIORITY:
        begin_fixed(h2, 5, true);
        return oribi__h2_count_frame(h2);
    case H2_RST_STREAM:
        return begin_fixed(h2, 4, true);
    case H2_SETTINGS:
        return begin_settings(h2);
    case H2_PUSH_PROMISE:
        return fail(h2, ORIBI_H2_PROTOCOL_ERROR, "PUSH_PROMISE of a client");
    case H2_PING:
        begin_fixed(h2, 8, false);
        return oribi__h2_count_frame(h2);
    case H2_GOAWAY:
        return begin_goaway(h2);
    case H2_WINDOW_UPDATE:
        return begin_window_update(h2);
    case H2_PRIORITY_UPDATE:
        return begin_priority_update(h2);
    default:
        h2->skip_left = h2->len; /* RFC 9113 5.5 */
        return oribi__h2_count_frame(h2);
    }
}

void oribi__h2_frame_prefix(struct oribi_h2 *h2)
{
    switch (h2->type) {
    case H2_DATA:
        if (take_padding(h2))
            check_data(h2);
        break;
    case H2_HEADERS:
        if (take_padding(h2) && h2->flags & H2_WITH_PRIORITY)
            check_dependency(h2, h2->small + h2->prefix_len - 5);
        break;
    case H2_PRIORITY:
        return check_dependency(h2, h2->small);
    case H2_RST_STREAM:
        return rst_stream(h2);
    case H2_SETTINGS:
        return settings_prefix(h2);
    case H2_PING:
        return ping(h2);
    case H2_WINDOW_UPDATE:
        return window_update(h2);
    case H2_PRIORITY_UPDATE:
        return priority_update(h2);
    default:
        break;
    }
}

void oribi__h2_frame_body(struct oribi_h2 *h2, const char *p, size_t n)
{
    if (h2->type == H2_DATA)
        data_piece(h2, p, n);
    else
        oribi__h2_block_piece(h2, p, n);
}

void oribi__h2_frame_end(struct oribi_h2 *h2)
{
    switch (h2->type) {
    case H2_DATA:
        return end_data(h2);
    case H2_HEADERS:
    case H2_CONTINUATION:
        if (h2->flags & H2_END_HEADERS)
            oribi__h2_block_end(h2);
        return;
    case H2_SETTINGS:
        return end_settings(h2);
    default:
        return;
    }
}
