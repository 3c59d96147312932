/* A stream of HTTP/2, as its own sources share it: streams_h2.c (requests and answers) and streams_h2_socket.c
 * (WebSockets and tunnels). */
#ifndef ORIBI_FRONTEND_STREAMS_H2_PRIVATE_H
#define ORIBI_FRONTEND_STREAMS_H2_PRIVATE_H

#include "frontend/h2.h"
#include "frontend/upstream_request.h"

#include "oribi/base/buf.h"
#include "oribi/base/os/os.h"
#include "oribi/event/body.h"
#include "oribi/http/response_head.h"

#include <stdbool.h>
#include <stdint.h>

struct oribi__client;
struct oribi__stream_bytes;

struct oribi__stream {
    struct oribi__client *client;
    struct oribi_h2_stream *h2; /* NULL: it was reset, and nothing of it is left here */
    struct oribi__stream *prev;
    struct oribi__stream *next;
    struct oribi__stream *ended_next;
    struct oribi__upstream_request *call; /* NULL: over */
    struct oribi__stream_bytes *bytes;    /* of an extended CONNECT; NULL: an ordinary request, or over */
    struct oribi_body body;               /* of the request */
    struct oribi_charge charge;
    int64_t data_ms;  /* when bytes of it came last; 0: it is whole */
    int64_t began_ms; /* when its head had come */
    int64_t over_ms;  /* when its WebSocket or its events had ended; 0: they have not, or it is an ordinary request */
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
    bool of_local;  /* the local content may have an answer */
    bool is_socket; /* extended CONNECT: an answer 2xx would open the socket */
};

/* ---- streams_h2.c ---- */

/* Tells the budget what the stream holds now. */
void oribi__stream_charge(struct oribi__stream *stream);

/* Bytes of the answer that the client has not taken. */
int64_t oribi__stream_pending(const struct oribi__stream *stream);

/* No more is to come: it is released when its answer has left. */
void oribi__stream_ends(struct oribi__stream *stream);

/* Its call is over, or is given up. */
void oribi__stream_end_call(struct oribi__stream *stream);

/* It was reset, and counts no longer; where its worker has begun the call and goes on with it, until that has ended. */
void oribi__stream_let_go(struct oribi__stream *stream);

/* Resets it by itself. */
void oribi__stream_reset(struct oribi__stream *stream, uint32_t code);

/* ---- streams_h2_socket.c ---- */

/* Takes a request that is a handshake: offers it to the application, or refuses it. Its call and head are made. */
void oribi__stream_offer(struct oribi__stream *stream, const struct oribi_h2_request *request);

/* The head of an answer that accepts the handshake, and the first bytes of the record behind it. */
void oribi__stream_accept(struct oribi__stream *stream, const struct oribi_answer *answer, struct oribi_slice record,
                          bool last);

/* More of the record. */
void oribi__stream_take_record(struct oribi__stream *stream, struct oribi_slice part, bool last);

/* As oribi__upstream_ops.tunnel. */
void oribi__stream_tunnel(struct oribi__upstream_request *call, struct oribi_answer *answer, struct oribi_slice rest);

/* The client's bytes, and their end. */
void oribi__stream_heard(struct oribi__stream *stream, const char *p, size_t n);
void oribi__stream_heard_end(struct oribi__stream *stream);

/* The client has taken some. True: it is still behind. */
bool oribi__stream_has_taken(struct oribi__stream *stream);

/* The stream is over: who has its bytes hears of it. */
void oribi__stream_bytes_end(struct oribi__stream *stream);

/* Bytes of memory that it holds for what was heard. */
int64_t oribi__stream_bytes_memory(const struct oribi__stream *stream);

#endif
