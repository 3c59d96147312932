/* Streams of HTTP/2 from their requests to their release: what belongs to each, and when it may go. */
#include "frontend/streams_h2.h"
#include "frontend/channel.h"
#include "frontend/clients_h2.h"
#include "frontend/frontend.h"

#include "oribi/base/mem.h"

struct oribi__stream *oribi__stream_create(struct oribi__client *client, struct oribi_h2_stream *h2)
{
    struct oribi__stream *stream = oribi_mem_try_alloc(1, sizeof(*stream));
    if (!stream)
        return NULL;
    stream->client = client;
    stream->h2 = h2;
    oribi_body_init(&stream->body);
    oribi_body_init(&stream->file);
    stream->next = client->streams;
    if (client->streams)
        client->streams->prev = stream;
    client->streams = stream;
    client->frontend->stream_count++;
    client->stream_count++;
    oribi__client_waits(client);
    oribi__client_rests(client);
    h2->user = stream;
    return stream;
}

static void unlist_ended(struct oribi__stream *stream)
{
    struct oribi__stream **at = &stream->client->ended;
    if (!stream->is_ended)
        return;
    while (*at != stream)
        at = &(*at)->ended_next;
    *at = stream->ended_next;
    stream->is_ended = false;
}

void oribi__stream_destroy(struct oribi__stream *stream)
{
    struct oribi__client *client = stream->client;
    unlist_ended(stream);
    if (stream->call) {
        oribi__upstream_destroy(stream->call);
    }
    oribi_body_deinit(&stream->body);
    oribi_body_deinit(&stream->file);
    oribi_buf_deinit(&stream->out);
    oribi_budget_set(&client->frontend->reactor.budget, &stream->charge, 0, 0);
    *(stream->prev ? &stream->prev->next : &client->streams) = stream->next;
    if (stream->next)
        stream->next->prev = stream->prev;
    client->frontend->stream_count--;
    client->stream_count--;
    oribi__client_waits(client);
    oribi__client_rests(client);
    oribi_mem_free(stream);
}

void oribi__stream_ends(struct oribi__stream *stream)
{
    if (stream->is_ended)
        return;
    stream->is_ended = true;
    stream->ended_next = stream->client->ended;
    stream->client->ended = stream;
    oribi__client_dirty(stream->client);
}

void oribi__stream_end_call(struct oribi__stream *stream)
{
    struct oribi__upstream_request *call = stream->call;
    if (!call)
        return;
    stream->call = NULL;
    oribi__upstream_destroy(call);
    stream->data_ms = 0;
    oribi_body_deinit(&stream->body);
    oribi_body_init(&stream->body);
}

void oribi__stream_let_go(struct oribi__stream *stream)
{
    struct oribi__channel *channel = stream->call ? stream->call->channel : NULL;
    struct oribi_h2_stream *h2 = stream->h2;
    stream->h2 = NULL;
    oribi__stream_end_call(stream);
    oribi__stream_ends(stream);
    if (!h2)
        return;
    if (!channel || channel->state != ORIBI__CHANNEL_ABANDONED) {
        oribi_h2_release(h2);
        return;
    }
    h2->user = stream->client;
    channel->left_by = h2;
    stream->client->left_count++;
}

void oribi__h2_left_ended(struct oribi_h2_stream *h2)
{
    struct oribi__client *client = h2->user;
    client->left_count--;
    client->asleep = false; /* it may now */
    oribi_h2_release(h2);
    oribi__client_dirty(client);
}

static void let_workers_go_on(struct oribi__client *client)
{
    client->has_blocked = false;
    for (struct oribi__stream *stream = client->streams; stream; stream = stream->next) {
        if (stream->call && stream->call->blocked)
            oribi__upstream_taken(stream->call); /* may end the call; the stream stays */
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
        bool answered = stream->h2 && oribi_h2_is_answered(stream->h2);
        if (answered)
            oribi_h2_release(stream->h2);
        if (answered || !stream->h2)
            oribi__stream_destroy(stream);
        stream = next;
    }
}

/* --- deadlines --- */

static bool too_slow(const struct oribi__stream *stream, int64_t now_ms)
{
    const struct oribi_options *options = stream->client->frontend->config->options;
    return oribi_body_too_slow(stream->body.len, now_ms - stream->began_ms, options->body_timeout_ms,
                               options->body_rate_min);
}

int64_t oribi__streams_deadline(struct oribi__client *client, int64_t now_ms)
{
    int64_t timeout_ms = client->frontend->config->options->body_timeout_ms;
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
