/* Deadlines of a session, and what is done when they have passed. */
#include "frontend/h2_private.h"
#include "oribi/base/clock.h"

static int64_t due(int64_t since_ms, int64_t timeout_ms)
{
    return since_ms && timeout_ms ? since_ms + timeout_ms : INT64_MAX;
}

static int64_t input_due(const struct oribi_h2 *h2)
{
    int64_t timeout = h2->limits->head_timeout_ms;
    return oribi_earlier(due(h2->frame_ms, timeout), due(h2->block.since_ms, timeout));
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
