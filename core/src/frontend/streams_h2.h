/* Streams of HTTP/2 as upstream requests. */
#ifndef ORIBI_FRONTEND_STREAMS_H2_H
#define ORIBI_FRONTEND_STREAMS_H2_H

#include "frontend/h2.h"
#include "frontend/upstream_request.h"
#include "oribi/base/os/os.h"
#include "oribi/event/body.h"

#include <stdbool.h>
#include <stdint.h>

struct oribi__client;

/* A request, from its head until its answer has left. */
struct oribi__stream {
    struct oribi__client *client;
    struct oribi_h2_stream *h2; /* NULL: it was reset, and nothing of it is left here */
    struct oribi__stream *prev;
    struct oribi__stream *next;
    struct oribi__stream *ended_next;
    struct oribi__upstream_request *call; /* NULL: over */
    struct oribi_body body;               /* of the request */
    struct oribi_charge charge;
    int64_t data_ms;      /* when bytes of it came last; 0: it is whole */
    int64_t began_ms;     /* when its head had come */
    struct oribi_buf out; /* of the answer, from out_at on */
    size_t out_at;
    struct oribi_body file; /* the rest of a great answer, or of one that memory has no room for */
    int64_t file_at;
    bool in_file; /* more of the answer goes there */
    /* a code of error.h: why the disk does not take it, so that it stays in memory and the worker waits for the client;
     * 0: it does */
    int unstored;
    struct oribi_os_error unstored_error; /* with its words */
    bool has_length;                      /* the answer's worker never waits for the client */
    bool whole;                           /* the answer's last byte is here */
    bool is_ended;
    bool is_head;
    bool of_local; /* the local content may have an answer */
};

extern const struct oribi_h2_events oribi__stream_events;

/* The call that a stream has left (oribi__channel_abandon) has ended in its worker. */
void oribi__h2_left_ended(struct oribi_h2_stream *h2);

/* --- stream_life_h2.c --- */

/* NULL: out of memory. */
struct oribi__stream *oribi__stream_create(struct oribi__client *client, struct oribi_h2_stream *h2);

/* Frees what belongs to the stream; its h2 stream is released or gone. */
void oribi__stream_destroy(struct oribi__stream *stream);

/* No more is to come: it is released when its answer has left. */
void oribi__stream_ends(struct oribi__stream *stream);

/* Its call is over, or is given up. */
void oribi__stream_end_call(struct oribi__stream *stream);

/* It was reset, and counts no longer; where its worker has begun the call and goes on with it, until that has ended. */
void oribi__stream_let_go(struct oribi__stream *stream);

/* After output: lets workers go on, releases what has been answered. */
void oribi__streams_turn(struct oribi__client *client);

/* --- stream_bytes_h2.c --- */

/* Keeps a copy of the next bytes of the answer. 0, ORIBI_ENOMEM, or ORIBI_EFULL, ORIBI_ESTORE or ORIBI_ELIMIT when
 * neither a file nor memory takes them. */
int oribi__stream_keep(struct oribi__stream *stream, struct oribi_slice body);

/* Bytes of the answer that the client has not taken. */
int64_t oribi__stream_pending(const struct oribi__stream *stream);

/* As oribi_h2_events.pull. */
size_t oribi__stream_pull(void *self, struct oribi_h2_stream *h2, char *dst, size_t cap, bool *last);

/* Tells the budget what the stream holds now. */
void oribi__stream_charge(struct oribi__stream *stream);

/* Answers by itself. reason: for the error log; NULL: that has it. */
void oribi__stream_refuse(struct oribi__stream *stream, int status, enum oribi_refusal refusal, const char *reason);

/* --- stream_life_h2.c --- */

/* Until when a body has to go on, INT64_MAX: none is on its way; resets those that are late. */
int64_t oribi__streams_deadline(struct oribi__client *client, int64_t now_ms);

#endif
