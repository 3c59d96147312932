/* Answers that a client of a frontend reads, checked as they come: of HTTP/1.1 a sequence of well-formed answers, of
 * HTTP/2 frames of which each stream gets one answer or one reset. The first byte tells which of both it is. */
#ifndef ORIBI_FUZZ_FRONTEND_ANSWERS_H
#define ORIBI_FUZZ_FRONTEND_ANSWERS_H

#include "frontend/h2_private.h"
#include "oribi/http/response_head.h"
#include "oribi/http/chunked.h"
#include "ours.h"

enum { ANSWERS_STREAMS_MAX = 300, ANSWERS_FIELDS = 300 };

struct answered_stream {
    uint32_t id;
    bool begun; /* its final head has come */
    bool ended;
    bool reset;
};

struct answers {
    struct oribi_buf unread;
    bool is_h2;
    bool unchecked; /* bytes behind 101, or answers to requests that the input itself has written as HEAD */
    /* HTTP/1.1 */
    bool in_body;
    enum oribi_framing framing;
    int64_t left;
    struct oribi_chunked chunked;
    /* HTTP/2 */
    nghttp2_hd_inflater *inflater;
    struct oribi_buf block; /* field block that goes on with CONTINUATION */
    uint8_t block_flags;
    uint32_t block_id; /* 0: none */
    size_t stream_count;
    struct answered_stream streams[ANSWERS_STREAMS_MAX];
};

static void answers_begin(struct answers *a)
{
    memset(a, 0, sizeof(*a));
}

static void answers_end(struct answers *a)
{
    oribi_buf_deinit(&a->unread);
    oribi_buf_deinit(&a->block);
    oribi_buf_deinit(&a->chunked.trailers);
    if (a->inflater)
        nghttp2_hd_inflate_del(a->inflater);
}

/* --- HTTP/1.1 --- */

static size_t answers_h1_head(struct answers *a)
{
    static struct oribi_header headers[ANSWERS_FIELDS];
    struct oribi_answer answer = {.headers = headers, .room = ANSWERS_FIELDS};
    ssize_t n = oribi_answer_head(a->unread.p, a->unread.len, false, &answer);
    if (n < 0 && n != ORIBI_AGAIN)
        (void)fprintf(stderr, "%s:\n%.*s\n", answer.reason, (int)a->unread.len, a->unread.p);
    expect(n > 0 || n == ORIBI_AGAIN);
    if (n < 0)
        return 0;
    if (answer.switches) {
        a->unchecked = true;
    } else if (answer.status >= 200) {
        a->in_body = true;
        a->framing = answer.framing;
        a->left = answer.content_length;
        a->unchecked = answer.framing == ORIBI_FRAMING_CLOSE;
    }
    return (size_t)n;
}

static size_t answers_h1_body(struct answers *a)
{
    struct oribi_limits limits;
    size_t n = a->unread.len;
    size_t used = 0;
    switch (a->framing) {
    case ORIBI_FRAMING_LENGTH:
        used = (int64_t)n < a->left ? n : (size_t)a->left;
        a->left -= (int64_t)used;
        a->in_body = a->left > 0;
        return used;
    case ORIBI_FRAMING_CHUNKED:
        oribi_limits_init(&limits);
        limits.body_bytes_max = INT64_MAX;
        expect(oribi_chunked_decode(&a->chunked, &limits, a->unread.p, &n, &used) == 0);
        if (a->chunked.done) {
            a->in_body = false;
            oribi_buf_deinit(&a->chunked.trailers);
            memset(&a->chunked, 0, sizeof(a->chunked));
        }
        return used;
    default:
        a->in_body = false;
        return 0;
    }
}

static void answers_h1(struct answers *a)
{
    bool was_in_body = true;
    size_t used = 1;
    while (!a->unchecked && (used || was_in_body != a->in_body) && (a->unread.len || a->in_body)) {
        was_in_body = a->in_body;
        used = a->in_body ? answers_h1_body(a) : answers_h1_head(a);
        oribi_buf_consume(&a->unread, used);
    }
}

/* --- HTTP/2 --- */

static struct answered_stream *answers_stream(struct answers *a, uint32_t id)
{
    expect(id & 1);
    for (size_t i = 0; i < a->stream_count; i++)
        if (a->streams[i].id == id)
            return &a->streams[i];
    expect(a->stream_count < ANSWERS_STREAMS_MAX);
    a->streams[a->stream_count].id = id;
    return &a->streams[a->stream_count++];
}

/* The block's status; 0: it has none, which trailers have to have. */
static int answers_status(struct answers *a)
{
    const uint8_t *p = (const uint8_t *)a->block.p;
    size_t n = a->block.len;
    int status = 0;
    int flags = 0;
    expect(a->inflater || nghttp2_hd_inflate_new(&a->inflater) == 0);
    while (!(flags & NGHTTP2_HD_INFLATE_FINAL)) {
        nghttp2_nv field;
        ssize_t used = nghttp2_hd_inflate_hd2(a->inflater, &field, &flags, p, n, 1);
        expect(used >= 0);
        p += used;
        n -= (size_t)used;
        if (!(flags & NGHTTP2_HD_INFLATE_EMIT))
            continue;
        expect(field.namelen > 0);
        for (size_t i = 0; i < field.namelen; i++)
            expect(field.name[i] < 'A' || field.name[i] > 'Z');
        if (field.name[0] == ':') {
            expect(status == 0 && field.namelen == 7 && memcmp(field.name, ":status", 7) == 0 && field.valuelen == 3);
            status = (field.value[0] - '0') * 100 + (field.value[1] - '0') * 10 + field.value[2] - '0';
        }
    }
    (void)nghttp2_hd_inflate_end_headers(a->inflater); /* cannot fail */
    return status;
}

static void answers_block(struct answers *a)
{
    struct answered_stream *stream = answers_stream(a, a->block_id);
    int status = answers_status(a);
    bool ends = a->block_flags & H2_END_STREAM;
    expect(!stream->ended && !stream->reset);
    if (status == 0)
        expect(stream->begun && ends);
    else if (status < 200)
        expect(!stream->begun && !ends && status >= 100 && status != 101);
    else
        expect(!stream->begun);
    stream->begun |= status >= 200;
    stream->ended = ends;
    a->block.len = 0;
    a->block_id = 0;
}

static void answers_frame(struct answers *a, uint8_t type, uint8_t flags, uint32_t id, const char *p, size_t n)
{
    struct answered_stream *stream;
    expect((a->block_id != 0) == (type == H2_CONTINUATION) && (!a->block_id || a->block_id == id));
    switch (type) {
    case H2_DATA:
        stream = answers_stream(a, id);
        expect(stream->begun && !stream->ended && !stream->reset && !(flags & H2_PADDED));
        stream->ended = flags & H2_END_STREAM;
        break;
    case H2_HEADERS:
        a->block_flags = flags;
        a->block_id = id;
        expect(!(flags & (H2_PADDED | H2_WITH_PRIORITY)));
        oribi_buf_append(&a->block, p, n);
        break;
    case H2_CONTINUATION:
        oribi_buf_append(&a->block, p, n);
        break;
    case H2_RST_STREAM:
        stream = answers_stream(a, id);
        expect(n == 4 && !stream->reset);
        stream->reset = true;
        break;
    case H2_SETTINGS:
        expect(id == 0 && n % 6 == 0 && (n == 0 || !(flags & H2_ACK)));
        break;
    case H2_PING:
        expect(id == 0 && n == 8);
        break;
    case H2_GOAWAY:
        expect(id == 0 && n >= 8);
        break;
    case H2_WINDOW_UPDATE:
        expect(n == 4 && (p[0] || p[1] || p[2] || p[3]));
        break;
    default:
        expect(!"a frame that the frontend sends");
    }
    if ((type == H2_HEADERS || type == H2_CONTINUATION) && flags & H2_END_HEADERS)
        answers_block(a);
}

static void answers_h2(struct answers *a)
{
    while (a->unread.len >= H2_FRAME_HEAD) {
        const uint8_t *p = (const uint8_t *)a->unread.p;
        size_t n = (size_t)p[0] << 16 | (size_t)p[1] << 8 | p[2];
        uint32_t id = (uint32_t)p[5] << 24 | (uint32_t)p[6] << 16 | (uint32_t)p[7] << 8 | p[8];
        expect(n <= H2_FRAME_MAX);
        if (a->unread.len < H2_FRAME_HEAD + n)
            return;
        answers_frame(a, p[3], p[4], id, a->unread.p + H2_FRAME_HEAD, n);
        oribi_buf_consume(&a->unread, H2_FRAME_HEAD + n);
    }
}

/* The next bytes that the client has read. */
static void answers_read(struct answers *a, const char *p, size_t n, bool first)
{
    if (a->unchecked)
        return;
    oribi_buf_append(&a->unread, p, n);
    if (first)
        a->is_h2 = p[0] != 'H';
    if (a->is_h2)
        answers_h2(a);
    else
        answers_h1(a);
}

#endif
