/* A session of frontend/h2.h with an application behind it and a client in front, both of which write down what they
 * see, one line each:
 *
 *     request 1 GET / HTTP/1.1|host: a||   data 1 5   trailers 1 x: y|   end 1   refused 1 431   reset 1 CANCEL
 *     HEADERS 1 END_STREAM :status=200        DATA 1 5      RST_STREAM 1 CANCEL   GOAWAY 1 NO_ERROR     PING ACK 00…
 *
 * A | stands for a line's end, and \xHH for what is not printable ASCII; of DATA there is the length. */
#ifndef ORIBI_TEST_FRONTEND_H2_LAB_H
#define ORIBI_TEST_FRONTEND_H2_LAB_H

#include "frontend/h2.h"
#include "oribi/base/buf.h"
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/http/fields.h"
#include "oribi/http/head.h"

#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAB_STREAMS_MAX = 1200 };

/* Work that the application does by itself. */
enum lab_manner {
    LAB_ANSWERS, /* a complete or refused request with its status and a body of two bytes; releases what is over */
    LAB_HOLDS,   /* nothing; streams stay until lab_release() */
};

struct lab_stream {
    struct oribi_h2_stream *stream; /* NULL: released */
    uint32_t id;
    size_t body_left; /* of the answer */
    bool open_end;    /* more may come: `last` is not said */
    bool is_lost;     /* the rest cannot be had */
    size_t unstored;
};

struct lab {
    struct oribi_h2_limits limits;
    struct oribi_h2 *h2;
    int64_t now_ms;
    enum lab_manner manner;
    bool stores; /* bodies are stored as they come */
    struct lab_stream streams[LAB_STREAMS_MAX];
    size_t stream_count;
    size_t most_streams; /* not released, at a time */
    struct oribi_buf events;
    struct oribi_buf frames;
    struct oribi_buf bytes; /* of a frame that is not complete */
    const char *malformed;  /* why a request was that was not told */
    uint64_t data_bytes;    /* of all DATA that was sent */
    size_t skip_frames;
    uint32_t last_data; /* stream of the event at the end of `events`, when that is data */
    size_t last_count;
    size_t last_at;
    nghttp2_hd_inflater *inflater;
};

static const char *const lab_codes[] = {
    "NO_ERROR",
    "PROTOCOL_ERROR",
    "INTERNAL_ERROR",
    "FLOW_CONTROL_ERROR",
    "SETTINGS_TIMEOUT",
    "STREAM_CLOSED",
    "FRAME_SIZE_ERROR",
    "REFUSED_STREAM",
    "CANCEL",
    "COMPRESSION_ERROR",
    "CONNECT_ERROR",
    "ENHANCE_YOUR_CALM",
    "INADEQUATE_SECURITY",
    "HTTP_1_1_REQUIRED",
};

static const char *lab_code(uint32_t code)
{
    return code < sizeof(lab_codes) / sizeof(lab_codes[0]) ? lab_codes[code] : "?";
}

/* ---- the application ---- */

static struct lab_stream *lab_find(struct lab *lab, uint32_t id)
{
    for (size_t i = lab->stream_count; i-- > 0;)
        if (lab->streams[i].id == id)
            return &lab->streams[i];
    fprintf(stderr, "no stream %u in the lab\n", id);
    exit(2);
}

static void lab_note_text(struct lab *lab, struct oribi_slice text)
{
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] == '\r' && i + 1 < text.n && text.p[i + 1] == '\n') {
            oribi_buf_append(&lab->events, "|", 1);
            i++;
        } else if ((uint8_t)text.p[i] < ' ' || (uint8_t)text.p[i] >= 0x7f) { /* char has no sign on ARM */
            oribi_buf_print(&lab->events, "\\x%02x", (uint8_t)text.p[i]);
        } else {
            oribi_buf_append(&lab->events, text.p + i, 1);
        }
    }
    oribi_buf_append(&lab->events, "\n", 1);
    lab->last_data = 0;
}

static struct lab_stream *lab_take(struct lab *lab, struct oribi_h2_stream *stream)
{
    if (stream->user)
        return stream->user;
    if (lab->stream_count == LAB_STREAMS_MAX)
        lab->stream_count = 0; /* tests with so many look at none of the first */
    struct lab_stream *mine = &lab->streams[lab->stream_count++];
    *mine = (struct lab_stream){.stream = stream, .id = stream->id};
    stream->user = mine;
    if (oribi_h2_streams(lab->h2) > lab->most_streams)
        lab->most_streams = oribi_h2_streams(lab->h2);
    return mine;
}

static void lab_release(struct lab *lab, uint32_t id)
{
    struct lab_stream *mine = lab_find(lab, id);
    if (mine->stream)
        oribi_h2_release(mine->stream);
    mine->stream = NULL;
}

/* An answer with so many bytes; SIZE_MAX: without a body. */
static int lab_answer(struct lab *lab, uint32_t id, int status, size_t bytes)
{
    struct lab_stream *mine = lab_find(lab, id);
    bool last = bytes == SIZE_MAX;
    if (!mine->stream)
        return ORIBI_ECLOSED;
    mine->body_left = last ? 0 : bytes;
    int error = oribi_h2_answer(mine->stream, status, NULL, 0, last);
    if (!error && !last)
        oribi_h2_ready(mine->stream);
    return error;
}

static void lab_auto(struct lab *lab, struct lab_stream *mine, int status, bool is_head)
{
    if (lab->manner != LAB_ANSWERS)
        return;
    (void)lab_answer(lab, mine->id, status, 2);
    if (is_head)
        lab_release(lab, mine->id);
}

/* Checks a request's head, whatever the client sent: a worker reads it as the session has. */
static void lab_check_head(const struct lab *lab, const struct oribi_h2_request *request)
{
    struct oribi_parser parser = {0};
    struct oribi_head again;
    struct oribi_limits limits = lab->limits.http;
    struct oribi_slice head = request->head;
    struct oribi_slice framing = oribi_slice(head.p + request->framing, head.n - request->framing);
    limits.connect_allow = true;
    bool good = oribi_parser_head(&parser, &limits, head.p, head.n, &again) == (ssize_t)head.n && again.minor == 1 &&
                again.chunked == (request->body_len < 0 && !request->socket) && again.upgrade == request->socket &&
                again.keep_alive && (again.chunked || request->socket || again.content_length == request->body_len) &&
                oribi_head_field(&again, ORIBI_FIELD_HOST) &&
                !oribi_head_field(&again, ORIBI_FIELD_CONNECTION) == !request->socket && again.target.p[0] != 'h' &&
                (!request->ended || request->socket || request->body_len == 0);
    if (again.chunked)
        good = good && oribi_slice_equal(framing, ORIBI_SLICE("transfer-encoding: chunked\r\n\r\n"));
    else if (again.has_body)
        good = good && framing.n > 16 && memcmp(framing.p, "content-length: ", 16) == 0;
    else
        good = good && oribi_slice_equal(framing, ORIBI_SLICE("\r\n"));
    oribi_head_release(&again);
    if (good)
        return;
    fprintf(stderr, "a head that a worker would read otherwise: %.*s\n", (int)head.n, head.p);
    abort();
}

static void lab_on_request(void *self, struct oribi_h2_stream *stream, const struct oribi_h2_request *request)
{
    struct lab *lab = self;
    (void)lab_take(lab, stream);
    lab_check_head(lab, request);
    oribi_buf_print(&lab->events, "request %u ", stream->id);
    lab_note_text(lab, request->head);
}

static void lab_on_refused(void *self, struct oribi_h2_stream *stream, int error, const struct oribi_fault *fault,
                           bool is_head)
{
    struct lab *lab = self;
    struct lab_stream *mine = lab_take(lab, stream);
    oribi_buf_print(&lab->events, "refused %u %d\n", stream->id, oribi_error_status(error));
    lab->last_data = 0;
    lab_auto(lab, mine, oribi_error_status(error), is_head);
}

static void lab_on_malformed(void *self, uint32_t id, const char *reason)
{
    struct lab *lab = self;
    lab->malformed = reason;
}

static void lab_on_data(void *self, struct oribi_h2_stream *stream, const char *p, size_t n)
{
    struct lab *lab = self;
    struct lab_stream *mine = stream->user;
    if (lab->last_data == stream->id) {
        lab->events.len = lab->last_at; /* pieces of one body are one line */
    } else {
        lab->last_count = 0;
        lab->last_at = lab->events.len;
    }
    lab->last_count += n;
    oribi_buf_print(&lab->events, "data %u %zu\n", stream->id, lab->last_count);
    lab->last_data = stream->id;
    if (lab->stores)
        oribi_h2_stored(stream, n);
    else
        mine->unstored += n;
}

static void lab_on_trailers(void *self, struct oribi_h2_stream *stream, struct oribi_slice lines)
{
    struct lab *lab = self;
    oribi_buf_print(&lab->events, "trailers %u ", stream->id);
    lab_note_text(lab, lines);
}

static void lab_on_end(void *self, struct oribi_h2_stream *stream)
{
    struct lab *lab = self;
    oribi_buf_print(&lab->events, "end %u\n", stream->id);
    lab->last_data = 0;
    lab_auto(lab, stream->user, 200, false);
}

static void lab_on_reset(void *self, struct oribi_h2_stream *stream, uint32_t code)
{
    struct lab *lab = self;
    oribi_buf_print(&lab->events, "reset %u %s\n", stream->id, lab_code(code));
    lab->last_data = 0;
    if (lab->manner == LAB_ANSWERS)
        lab_release(lab, stream->id);
}

static size_t lab_on_pull(void *self, struct oribi_h2_stream *stream, char *dst, size_t cap, bool *last)
{
    struct lab_stream *mine = stream->user;
    if (mine->is_lost)
        return ORIBI_H2_PULL_FAILED;
    size_t n = mine->body_left < cap ? mine->body_left : cap;
    memset(dst, 'x', n);
    if (cap == 0 && mine->body_left)
        return 1;
    mine->body_left -= n;
    *last = mine->body_left == 0 && !mine->open_end;
    return n;
}

static const struct oribi_h2_events lab_events = {lab_on_request,  lab_on_refused, lab_on_malformed, lab_on_data,
                                                  lab_on_trailers, lab_on_end,     lab_on_reset,     lab_on_pull};

/* ---- the client ---- */

static void lab_show_flags(struct lab *lab, int type, int flags)
{
    if (flags & 1)
        oribi_buf_print(&lab->frames, " %s", type == 0 || type == 1 ? "END_STREAM" : "ACK");
}

static void lab_show_fields(struct lab *lab, const uint8_t *p, size_t n)
{
    for (;;) {
        nghttp2_nv nv;
        int flags = 0;
        ssize_t len = nghttp2_hd_inflate_hd2(lab->inflater, &nv, &flags, p, n, 1);
        if (len < 0) {
            oribi_buf_print(&lab->frames, " undecodable");
            return;
        }
        p += len;
        n -= (size_t)len;
        if (flags & NGHTTP2_HD_INFLATE_EMIT)
            oribi_buf_print(&lab->frames, " %.*s=%.*s", (int)nv.namelen, (char *)nv.name, (int)nv.valuelen,
                            (char *)nv.value);
        if (flags & NGHTTP2_HD_INFLATE_FINAL)
            break;
    }
    nghttp2_hd_inflate_end_headers(lab->inflater);
}

static uint32_t lab_u32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void lab_show_frame(struct lab *lab, const uint8_t *p, size_t n)
{
    static const char *const names[] = {"DATA",         "HEADERS", "PRIORITY", "RST_STREAM",    "SETTINGS",
                                        "PUSH_PROMISE", "PING",    "GOAWAY",   "WINDOW_UPDATE", "CONTINUATION"};
    int type = p[3];
    uint32_t id = lab_u32(p + 5);
    const uint8_t *payload = p + 9;
    n -= 9;
    oribi_buf_print(&lab->frames, "%s", type < 10 ? names[type] : "?");
    if (type != 4 && type != 6 && type != 7)
        oribi_buf_print(&lab->frames, " %u", id);
    if (type != 9 && type != 7)
        lab_show_flags(lab, type, p[4]);
    if (type == 0) {
        oribi_buf_print(&lab->frames, " %zu", n);
        lab->data_bytes += n;
    } else if (type == 1 && p[4] & 4) {
        lab_show_fields(lab, payload, n);
    } else if (type == 3) {
        oribi_buf_print(&lab->frames, " %s", lab_code(lab_u32(payload)));
    } else if (type == 7) {
        oribi_buf_print(&lab->frames, " %u %s", lab_u32(payload), lab_code(lab_u32(payload + 4)));
    } else if (type == 8) {
        oribi_buf_print(&lab->frames, " %u", lab_u32(payload));
    } else if (type == 6) {
        oribi_buf_print(&lab->frames, " %08x%08x", lab_u32(payload), lab_u32(payload + 4));
    }
    oribi_buf_print(&lab->frames, "\n");
}

/* Fetches what is to be sent, `want` bytes at a time, until there is nothing; the application releases what is over. */
static void lab_drain(struct lab *lab, size_t want)
{
    for (;;) {
        struct oribi_slice out = oribi_h2_output(lab->h2, want, lab->now_ms);
        if (out.n == 0)
            break;
        oribi_buf_append(&lab->bytes, out.p, out.n);
        oribi_h2_sent(lab->h2, out.n);
    }
    size_t at = 0;
    while (lab->bytes.len - at >= 9) {
        const uint8_t *p = (const uint8_t *)lab->bytes.p + at;
        size_t len = 9 + ((size_t)p[0] << 16 | (size_t)p[1] << 8 | p[2]);
        if (lab->bytes.len - at < len)
            break;
        if (lab->skip_frames)
            lab->skip_frames--;
        else
            lab_show_frame(lab, p, len);
        at += len;
    }
    oribi_buf_consume(&lab->bytes, at);
    for (size_t i = 0; i < lab->stream_count && lab->manner == LAB_ANSWERS; i++) {
        struct lab_stream *mine = &lab->streams[i];
        if (mine->stream && mine->stream->user == mine && oribi_h2_is_answered(mine->stream))
            lab_release(lab, mine->id);
    }
}

__attribute__((unused)) static void lab_begin(struct lab *lab)
{
    lab->now_ms = 1000000;
    lab->skip_frames = 2; /* our SETTINGS, and the connection's window */
    lab->h2 = oribi_h2_create(&lab->limits, &lab_events, lab, lab->now_ms);
    if (!lab->h2 || nghttp2_hd_inflate_new(&lab->inflater) != 0)
        exit(2);
}

static void lab_init(struct lab *lab)
{
    memset(lab, 0, sizeof(*lab));
    oribi_h2_limits_init(&lab->limits);
    lab->stores = true;
}

static void lab_deinit(struct lab *lab)
{
    oribi_h2_destroy(lab->h2);
    nghttp2_hd_inflate_del(lab->inflater);
    oribi_buf_deinit(&lab->events);
    oribi_buf_deinit(&lab->frames);
    oribi_buf_deinit(&lab->bytes);
}

static int lab_feed(struct lab *lab, const void *p, size_t n)
{
    return oribi_h2_feed(lab->h2, p, n, lab->now_ms);
}

#endif
