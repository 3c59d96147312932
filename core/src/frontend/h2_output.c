/* Output of a session, and the order of its data: the most urgent stream that its windows let go is first. */
#include "frontend/h2_private.h"

#include <assert.h>

void oribi_h2_ready(struct oribi_h2_stream *to)
{
    struct h2_stream *stream = h2_of(to);
    stream->asked = false;
    if (!stream->closed && stream->answered && !stream->answer_ended)
        oribi__h2_list(stream);
}

void oribi__h2_rest(struct oribi_h2 *h2)
{
    if (h2->stream_count == 0 && h2_unsent(h2) == 0 && h2->out.cap > H2_BUFFER_KEPT) {
        oribi_buf_deinit(&h2->out);
        h2->sent = 0;
    }
}

/* ---- one frame ---- */

/* The body ends otherwise than its head said: the client must not take it for whole. */
static void break_off(struct h2_stream *stream)
{
    oribi__h2_put_reset(stream->to.h2, stream->to.id, ORIBI_H2_INTERNAL_ERROR);
    oribi__h2_close(stream, true, ORIBI_H2_INTERNAL_ERROR);
}

static void end_answer(struct h2_stream *stream)
{
    oribi__h2_unlist(stream);
    if (stream->trailers.len && oribi__h2_put_trailers(stream) != 0)
        break_off(stream);
    else
        oribi__h2_answer_ended(stream);
}

/* Takes what the caller has for the stream, `cap` bytes at the most, and makes a frame of it. */
static void send_piece(struct h2_stream *stream, size_t cap)
{
    struct oribi_h2 *h2 = stream->to.h2;
    bool last = false;
    if (stream->answer_left >= 0 && (size_t)stream->answer_left < cap) /* one more, to see that it is too long */
        cap = (size_t)stream->answer_left + 1;
    char *p = oribi_buf_reserve(&h2->out, H2_FRAME_HEAD + cap) + H2_FRAME_HEAD;
    size_t n = h2->events->pull(h2->self, &stream->to, p, cap, &last);
    if (cap == 0 && !last) { /* it waits for a window, or has nothing */
        stream->asked = true;
        if (n == 0)
            oribi__h2_unlist(stream);
        return;
    }
    if (n == ORIBI_H2_PULL_FAILED) {
        break_off(stream);
        return;
    }
    assert(n <= cap);
    if (n == 0 && !last) {
        oribi__h2_unlist(stream);
        return;
    }
    bool wrong =
        stream->answer_left >= 0 && ((int64_t)n > stream->answer_left || (last && (int64_t)n < stream->answer_left));
    if (wrong) {
        break_off(stream);
        return;
    }
    if (stream->answer_left >= 0)
        stream->answer_left -= (int64_t)n;
    bool ends = last && stream->trailers.len == 0;
    if (n > 0 || ends)
        (void)oribi__h2_put_frame(h2, H2_DATA, ends ? H2_END_STREAM : 0, stream->to.id, n);
    stream->send_window -= (int64_t)n;
    h2->send_window -= (int64_t)n;
    h2->free_updates += H2_FREE_UPDATES;
    h2->free_frames += H2_FREE_FRAMES;
    if (last) {
        end_answer(stream);
    } else if (stream->incremental) { /* to the end of its queue */
        oribi__h2_unlist(stream);
        oribi__h2_list(stream);
    }
}

/* ---- the next frame ---- */

static int64_t now_of(const struct oribi_h2 *h2)
{
    return h2->now_ms ? h2->now_ms : 1;
}

/* A stream whose window is closed may have nothing more to say than that it has ended; else it waits. */
static void try_closed_window(struct h2_stream *stream)
{
    if (!stream->asked)
        send_piece(stream, 0);
    if (!stream->listed)
        return;
    oribi__h2_unlist(stream);
    stream->blocked_ms = now_of(stream->to.h2);
}

/* Lets all ready streams say that they have ended where the connection's window is closed; the others wait. */
static void try_closed_connection(struct oribi_h2 *h2)
{
    bool waits = false;
    for (int urgency = 0; urgency < 8; urgency++) {
        struct h2_stream *next;
        for (struct h2_stream *stream = h2->ready[urgency].first; stream; stream = next) {
            next = stream->next;
            if (!stream->asked)
                send_piece(stream, 0);
            waits = waits || stream->listed;
        }
    }
    if (waits && h2->blocked_ms == 0)
        h2->blocked_ms = now_of(h2);
}

/* Makes one frame of DATA; false when there is none to make. */
static bool send_next(struct oribi_h2 *h2)
{
    int urgency = 0;
    while (urgency < 8 && !h2->ready[urgency].first)
        urgency++;
    if (urgency == 8)
        return false;
    if (h2->send_window <= 0) {
        try_closed_connection(h2);
        return false;
    }
    struct h2_stream *stream = h2->ready[urgency].first;
    int64_t cap = H2_FRAME_MAX;
    if (cap > stream->send_window)
        cap = stream->send_window;
    if (cap > h2->send_window)
        cap = h2->send_window;
    if (cap <= 0)
        try_closed_window(stream);
    else
        send_piece(stream, (size_t)cap);
    return true;
}

struct oribi_slice oribi_h2_output(struct oribi_h2 *h2, size_t want, int64_t now_ms)
{
    h2->now_ms = now_ms;
    if (h2->sent > h2_unsent(h2)) { /* moving the rest costs less than what has been sent */
        oribi_buf_consume(&h2->out, h2->sent);
        h2->sent = 0;
    }
    h2->depth++;
    while (!h2->over && h2_unsent(h2) < want && send_next(h2))
        ;
    h2->depth--;
    oribi__h2_sweep(h2);
    return h2->out.p ? oribi_slice(h2->out.p + h2->sent, h2_unsent(h2)) : ORIBI_SLICE("");
}

void oribi_h2_sent(struct oribi_h2 *h2, size_t n)
{
    assert(n <= h2_unsent(h2));
    h2->sent += n;
    if (h2_unsent(h2) > 0)
        return;
    h2->sent = h2->out.len = 0;
    oribi__h2_rest(h2);
}
