/* Streams: opened, found, closed, freed; their errors and their windows. */
#include "frontend/h2_private.h"
#include "oribi/base/mem.h"

#include <assert.h>

/* ---- which there have been ---- */

static bool has_bit(const uint32_t *bits, uint32_t id)
{
    uint32_t at = (id >> 1) % H2_RECENT;
    return bits[at / 32] >> at % 32 & 1;
}

static void set_bit(uint32_t *bits, uint32_t id, bool value)
{
    uint32_t at = (id >> 1) % H2_RECENT;
    if (value)
        bits[at / 32] |= 1U << at % 32;
    else
        bits[at / 32] &= ~(1U << at % 32);
}

static bool is_recent(const struct oribi_h2 *h2, uint32_t id)
{
    return h2->last_id - id < 2 * H2_RECENT;
}

void oribi__h2_note_opened(struct oribi_h2 *h2, uint32_t id)
{
    uint32_t passed = h2->last_id ? h2->last_id + 2 : 1;
    if (id - passed >= 2 * H2_RECENT)
        passed = id - 2 * H2_RECENT + 2;
    for (; passed <= id; passed += 2) {
        set_bit(h2->recent_opened, passed, passed == id);
        set_bit(h2->recent_ours, passed, false);
    }
    h2->last_id = id;
}

void oribi__h2_note_reset(struct oribi_h2 *h2, uint32_t id)
{
    if (id <= h2->last_id && is_recent(h2, id))
        set_bit(h2->recent_ours, id, true);
}

bool oribi__h2_is_idle(const struct oribi_h2 *h2, uint32_t id)
{
    return (id & 1) == 0 || (id > h2->last_id && id <= h2->final_id);
}

bool oribi__h2_ignores(struct oribi_h2 *h2, uint32_t id)
{
    if (oribi__h2_is_idle(h2, id)) {
        oribi__h2_fail(h2, ORIBI_H2_PROTOCOL_ERROR, "frame on an idle stream");
        return false;
    }
    if (id > h2->last_id) /* and so behind our GOAWAY */
        return true;
    if (is_recent(h2, id) && has_bit(h2->recent_ours, id))
        return true;
    if (is_recent(h2, id) && !has_bit(h2->recent_opened, id))
        oribi__h2_fail(h2, ORIBI_H2_PROTOCOL_ERROR, "frame on a stream that was passed over");
    else
        oribi__h2_fail(h2, ORIBI_H2_STREAM_CLOSED, "frame on a stream that has ended");
    return false;
}

struct h2_stream *oribi__h2_find(const struct oribi_h2 *h2, uint32_t id)
{
    for (uint32_t i = h2->stream_count; i-- > 0;) /* most frames are for one of the last */
        if (h2->streams[i]->to.id == id)
            return h2->streams[i]->closed ? NULL : h2->streams[i];
    return NULL;
}

/* ---- life ---- */

bool oribi__h2_has_room(const struct oribi_h2 *h2)
{
    uint32_t count = h2->stream_count - h2->left_count - h2->dead_count;
    return count < h2->limits->streams_max && h2->left_count < h2->limits->left_max;
}

struct h2_stream *oribi__h2_open(struct oribi_h2 *h2, uint32_t id)
{
    if (h2->stream_count == h2->stream_cap) {
        uint32_t cap = h2->stream_cap ? 2 * h2->stream_cap : 4;
        struct h2_stream **grown = oribi_mem_try_resize(h2->streams, cap, sizeof(*grown));
        if (!grown)
            return NULL;
        h2->streams = grown;
        h2->stream_cap = cap;
    }
    struct h2_stream *stream = h2->free_streams;
    if (stream)
        h2->free_streams = stream->next;
    else
        stream = oribi_mem_try_alloc(1, sizeof(*stream));
    if (!stream)
        return NULL;
    *stream = (struct h2_stream){
        .to = {.h2 = h2, .id = id},
        .send_window = h2->peer_window,
        .recv_window = h2->limits->stream_window,
        .body_left = -1,
        .answer_left = -1,
        .urgency = 3,
        .held = true,
    };
    h2->streams[h2->stream_count++] = stream;
    return stream;
}

void oribi__h2_close(struct h2_stream *stream, bool tell, uint32_t code)
{
    struct oribi_h2 *h2 = stream->to.h2;
    if (stream->closed)
        return;
    stream->closed = true;
    stream->left = stream->held && !stream->answer_ended;
    h2->left_count += stream->left;
    h2->dead_count += !stream->held;
    oribi__h2_unlist(stream);
    if (h2->data == stream) { /* the rest of the frame at hand is thrown away */
        h2->data = NULL;
        oribi__h2_give_back(h2, NULL, h2->phase == H2_AT_PREFIX ? h2->len : h2->body_left);
    }
    if (tell && stream->held && !stream->answer_ended) {
        h2->depth++;
        h2->events->reset(h2->self, &stream->to, code);
        h2->depth--;
    }
}

void oribi__h2_close_if_ended(struct h2_stream *stream)
{
    if (!stream->request_ended || !stream->answer_ended || stream->closed)
        return;
    stream->to.h2->free_resets++;
    oribi__h2_close(stream, false, ORIBI_H2_NO_ERROR);
}

void oribi__h2_sweep(struct oribi_h2 *h2)
{
    if (h2->depth == 0)
        oribi__h2_sweep_between(h2);
}

void oribi__h2_sweep_between(struct oribi_h2 *h2)
{
    uint32_t kept = 0;
    if (h2->dead_count == 0)
        return;
    h2->dead_count = 0;
    for (uint32_t i = 0; i < h2->stream_count; i++) {
        struct h2_stream *stream = h2->streams[i];
        if (!stream->closed || stream->held) {
            h2->streams[kept++] = stream;
            continue;
        }
        oribi__h2_give_back(h2, NULL, stream->unstored);
        oribi_buf_deinit(&stream->trailers);
        stream->next = h2->free_streams;
        h2->free_streams = stream;
    }
    h2->stream_count = kept;
    oribi__h2_rest(h2);
}

/* ---- errors ---- */

void oribi__h2_fail(struct oribi_h2 *h2, uint32_t code, const char *reason)
{
    if (h2->over)
        return;
    oribi__h2_put_goaway(h2, h2->last_id < h2->final_id ? h2->last_id : h2->final_id, code);
    h2->over = true;
    h2->error = code;
    h2->reason = reason;
    h2->depth++;
    for (uint32_t i = 0; i < h2->stream_count; i++)
        oribi__h2_close(h2->streams[i], true, code);
    h2->depth--;
}

void oribi__h2_stream_error(struct oribi_h2 *h2, uint32_t id, uint32_t code)
{
    struct h2_stream *stream = oribi__h2_find(h2, id);
    if (h2->over)
        return;
    if (!oribi__h2_count_reset(h2, "too many streams reset for what the client does"))
        return;
    oribi__h2_put_reset(h2, id, code);
    if (stream)
        oribi__h2_close(stream, true, code);
}

void oribi_h2_reset(struct oribi_h2_stream *to, uint32_t code)
{
    struct h2_stream *stream = h2_of(to);
    if (stream->closed)
        return;
    oribi__h2_put_reset(to->h2, to->id, code);
    oribi__h2_close(stream, false, code);
    to->h2->free_resets++; /* the client's may be on its way */
    oribi__h2_sweep(to->h2);
}

void oribi_h2_release(struct oribi_h2_stream *to)
{
    struct h2_stream *stream = h2_of(to);
    struct oribi_h2 *h2 = to->h2;
    assert(stream->held);
    stream->held = false;
    h2->dead_count += stream->closed;
    h2->left_count -= stream->left;
    stream->left = false;
    if (!stream->closed && !stream->answer_ended) {
        oribi__h2_put_reset(h2, to->id, ORIBI_H2_CANCEL);
        oribi__h2_close(stream, false, ORIBI_H2_CANCEL);
    }
    oribi__h2_sweep(h2);
}

/* ---- the windows of bodies ---- */

/* A WINDOW_UPDATE is worth its frame when half the window is owed. */
static bool is_due(int64_t owed, uint32_t window)
{
    return owed >= window / 2;
}

static void give_back_stream(struct h2_stream *stream, int64_t n)
{
    struct oribi_h2 *h2 = stream->to.h2;
    stream->owed += n;
    if (is_due(stream->owed, h2->limits->stream_window)) {
        oribi__h2_put_window_update(h2, stream->to.id, (uint32_t)stream->owed);
        stream->recv_window += stream->owed;
        stream->owed = 0;
    }
}

void oribi__h2_give_back(struct oribi_h2 *h2, struct h2_stream *stream, int64_t n)
{
    if (n <= 0 || h2->over)
        return;
    h2->owed += n;
    if (is_due(h2->owed, h2->limits->connection_window)) {
        oribi__h2_put_window_update(h2, 0, (uint32_t)h2->owed);
        h2->recv_window += h2->owed;
        h2->owed = 0;
    }
    if (!stream || stream->closed || stream->request_ended)
        return;
    give_back_stream(stream, n);
}

void oribi_h2_stored(struct oribi_h2_stream *to, size_t n)
{
    struct h2_stream *stream = h2_of(to);
    int64_t kept = (int64_t)n < stream->kept ? (int64_t)n : stream->kept;
    int64_t rest = (int64_t)n - kept;
    assert(rest <= stream->unstored);
    stream->kept -= kept;
    stream->unstored -= rest;
    if (kept && !stream->closed && !stream->request_ended && !to->h2->over)
        give_back_stream(stream, kept);
    oribi__h2_give_back(to->h2, stream, rest);
}

void oribi_h2_kept(struct oribi_h2_stream *to, size_t n)
{
    struct h2_stream *stream = h2_of(to);
    assert((int64_t)n <= stream->unstored);
    stream->unstored -= (int64_t)n;
    stream->kept += (int64_t)n;
    oribi__h2_give_back(to->h2, NULL, (int64_t)n);
}

/* ---- whose turn it is ---- */

/* Behind those that were first: without `incremental` a stream is sent whole before the next one (RFC 9218 10); the
 * others take turns. */
void oribi__h2_list(struct h2_stream *stream)
{
    struct h2_list *list = &stream->to.h2->ready[stream->urgency];
    if (stream->listed || stream->closed)
        return;
    struct h2_stream *before = list->last;
    while (before && !stream->incremental && (before->incremental || before->to.id > stream->to.id))
        before = before->previous;
    stream->previous = before;
    stream->next = before ? before->next : list->first;
    *(before ? &before->next : &list->first) = stream;
    *(stream->next ? &stream->next->previous : &list->last) = stream;
    stream->listed = true;
    stream->blocked_ms = 0;
}

void oribi__h2_unlist(struct h2_stream *stream)
{
    struct h2_list *list = &stream->to.h2->ready[stream->urgency];
    if (!stream->listed)
        return;
    *(stream->previous ? &stream->previous->next : &list->first) = stream->next;
    *(stream->next ? &stream->next->previous : &list->last) = stream->previous;
    stream->next = stream->previous = NULL;
    stream->listed = false;
}
