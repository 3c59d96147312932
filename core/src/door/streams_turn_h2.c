/* Streams of HTTP/2 when output has left, and when time has passed. */
#include "door/clients_h2.h"

static void let_workers_go_on(struct oribi__client *client)
{
    client->has_blocked = false;
    for (struct oribi__stream *stream = client->streams; stream; stream = stream->next) {
        if (stream->call && stream->call->blocked)
            oribi__call_taken(stream->call); /* may end the call; the stream stays */
        client->has_blocked |= stream->call && stream->call->blocked;
    }
}

void oribi__streams_turn(struct oribi__client *client)
{
    if (client->has_blocked)
        let_workers_go_on(client);
    struct oribi__stream *stream = client->ended;
    while (stream) {
        struct oribi__stream *next = stream->ended_next;
        if (oribi_h2_is_answered(stream->h2)) {
            oribi_h2_release(stream->h2);
            oribi__stream_destroy(stream);
        }
        stream = next;
    }
}

static bool too_slow(const struct oribi__stream *stream, int64_t now_ms)
{
    const struct oribi_options *options = stream->client->door->config->options;
    return oribi_body_too_slow(stream->body.len, now_ms - stream->began_ms, options->body_timeout_ms,
                               options->body_rate_min);
}

int64_t oribi__streams_deadline(struct oribi__client *client, int64_t now_ms)
{
    int64_t timeout_ms = client->door->config->options->body_timeout_ms;
    int64_t deadline_ms = INT64_MAX;
    for (struct oribi__stream *stream = timeout_ms ? client->streams : NULL; stream; stream = stream->next) {
        if (!stream->data_ms || !stream->call)
            continue;
        bool late = now_ms >= stream->data_ms + timeout_ms;
        if (late || too_slow(stream, now_ms))
            oribi__stream_refuse(stream, 408, late ? ORIBI_REFUSAL_BODY_TIMEOUT : ORIBI_REFUSAL_BODY_RATE,
                                 late ? "body without progress" : "body slower than the minimum rate");
        else if (stream->data_ms + timeout_ms < deadline_ms)
            deadline_ms = stream->data_ms + timeout_ms;
    }
    return deadline_ms;
}
