/* Streams of the frontend's clients, for programs that include streams_h2.c: that alone knows what a stream holds. */
#ifndef ORIBI_TEST_FRONTEND_FAKE_STREAM_H
#define ORIBI_TEST_FRONTEND_FAKE_STREAM_H

#include "fakes.h"

/* NULL: it is over. */
__attribute__((unused)) static struct oribi__stream *fake_stream(int client, int32_t id)
{
    struct oribi__stream *at = fake_client_of(client)->streams;
    while (at && !(at->h2 && at->h2->id == (uint32_t)id))
        at = at->next;
    return at;
}

/* Bytes of its answer that the client has not; -1: it is over. */
__attribute__((unused)) static int64_t fake_pending_of(int client, int32_t id)
{
    const struct oribi__stream *stream = fake_stream(client, id);
    return stream ? oribi__stream_pending(stream) : -1;
}

#endif
