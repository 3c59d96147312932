/* Upstream requests (calls): a complete request of a client to a channel, and its answer back to the client. */
#ifndef ORIBI_FRONTEND_UPSTREAM_REQUEST_H
#define ORIBI_FRONTEND_UPSTREAM_REQUEST_H

#include "frontend/answer_file.h"
#include "frontend/peer.h"
#include "oribi/base/buf.h"
#include "oribi/http/response_head.h"
#include "oribi/http/chunked.h"
#include "oribi/http/status.h"

#include <stdbool.h>
#include <stdint.h>

struct oribi__channel;
struct oribi__event_stream;
struct oribi__frontend;
struct oribi__handshake;

struct oribi__upstream_request;

enum {
    /* of a streamed answer that the client has not taken: the answer's worker waits above HIGH, until LOW is left */
    ORIBI__FRONTEND_HIGH_BYTES = 256 * 1024,
    ORIBI__FRONTEND_LOW_BYTES = 128 * 1024,
};

/* Functions of a call's client, which get the answer. */
struct oribi__upstream_ops {
    void (*interim)(struct oribi__upstream_request *call, const struct oribi_answer *answer);
    /* The head, and the first bytes of the body; last: all of it. headers are borrowed and may be changed. */
    void (*begin)(struct oribi__upstream_request *call, struct oribi_answer *answer, struct oribi_slice body,
                  bool last);
    /* More of it. last: the call ends with this; call->channel is gone then. */
    void (*more)(struct oribi__upstream_request *call, struct oribi_slice body, bool last);
    /* The rest of the body comes from a file, and waits for the client as that of a stream does. NULL: nothing is to be
     * done. */
    void (*reads_file)(struct oribi__upstream_request *call);
    /* There is no answer: the client gets this status (502, 503, 504); or, where the answer had begun (call->begun),
     * sees that its end is missing. Ends the call. */
    void (*fail)(struct oribi__upstream_request *call, int status, const char *reason);
    /* Bytes of the answer that the client has not taken: the channel is read while they are few. */
    int64_t (*pending)(const struct oribi__upstream_request *call);
    /* It waits in the queue now (1), or does no longer (-1). */
    void (*waits)(struct oribi__upstream_request *call, int change);
    /* The answer is 101: gives the client's connection to a tunnel; the head is sent. `rest` stands behind it. */
    void (*tunnel)(struct oribi__upstream_request *call, struct oribi_answer *answer, struct oribi_slice rest);
};

enum oribi__upstream_state {
    ORIBI__CALL_NEW,
    ORIBI__CALL_QUEUED, /* in the queue of complete requests */
    ORIBI__CALL_OUT,    /* on its channel */
    ORIBI__CALL_FILE,   /* the rest of its answer is read from a file (answer_file.h) */
    ORIBI__CALL_ENDED,
};

/* A complete request and its answer. Made and freed by its client; memory is pooled with the buffer of its head. */
struct oribi__upstream_request {
    struct oribi__frontend *frontend;
    const struct oribi__upstream_ops *ops;
    void *owner; /* the client's */
    struct oribi__upstream_request *prev;
    struct oribi__upstream_request *next;
    struct oribi__channel *channel; /* while it is out */
    struct oribi_buf head;          /* the channel head and the request's head, as they go out */
    struct oribi_slice body;        /* in memory, borrowed from the client */
    int body_fd;                    /* the body in a file, borrowed as well; -1: none */
    int64_t body_len;
    struct oribi_buf tail; /* behind the body: trailers of a chunked one */
    char chunk[ORIBI_CHUNK_HEAD_CAP];
    uint8_t chunk_len; /* in front of the body, when chunked */
    uint8_t state;
    uint8_t tries;
    bool is_head;
    bool safe;    /* to be made twice */
    bool begun;   /* the client has the answer's head */
    bool blocked; /* the channel, or the file, is not read until the client has taken more */
    bool upgrades;
    bool finished;                      /* the client will send no more */
    bool from_file;                     /* a part of the answer is to be read from a file yet */
    bool streams;                       /* the answer's length was not known at its begin */
    bool closes;                        /* the client's connection, after it */
    bool of_local;                      /* the local content is asked: it holds no worker, however slow its client is */
    bool listed;                        /* clients_h1.c: its output waits for the socket */
    uint8_t framing;                    /* towards the client */
    uint8_t method;                     /* enum oribi_slot_method */
    uint8_t refusal;                    /* enum oribi_refusal; OTHER: it was not refused */
    uint16_t status;                    /* of the answer that the local content has begun */
    bool offers;                        /* a handshake of a WebSocket that the application may accept */
    bool of_socket;                     /* a call of a WebSocket, and no request of a client */
    bool wants_events;                  /* GET of a client that accepts text/event-stream */
    uint32_t listener;                  /* in config->listeners */
    struct oribi_slice websocket;       /* record for the channel head, borrowed until that is written */
    struct oribi__handshake *accepted;  /* owned, until its record is whole; NULL: it was not accepted */
    struct oribi__event_stream *stream; /* that it has become; NULL: none */
    int64_t complete_us;
    uint64_t path_hash;             /* local.c */
    struct oribi__answer_file file; /* all zero: none */
    struct oribi__upstream_request *blocked_next;
    struct oribi__upstream_request *listed_prev;
    struct oribi__upstream_request *listed_next;
};

struct oribi__upstream {
    struct oribi__upstream_request *spare; /* linked by next */
    uint32_t spare_count;
    struct oribi__upstream_request *blocked;
    struct oribi__upstream_request *listed;
    struct oribi__upstream_request *listed_at; /* where oribi__h1_turn() goes on */
};

/* Frees the spare ones. */
void oribi__upstream_trim(struct oribi__frontend *frontend);

/* NULL: out of memory. */
struct oribi__upstream_request *oribi__upstream_create(struct oribi__frontend *frontend,
                                                       const struct oribi__upstream_ops *ops, void *owner);

/* Takes it from the queue or closes its channel, if need be, and frees it. No ops are called. */
void oribi__upstream_destroy(struct oribi__upstream_request *call);

/* Writes the channel head to call->head, which is empty. `head` NULL: the call is no request of a client. 0 or
 * ORIBI_ENOMEM. */
int oribi__upstream_about(struct oribi__upstream_request *call, const struct oribi__peer *peer,
                          const struct oribi_head *head, uint8_t protocol, bool keeps);

/* Puts the request, which is complete, into the queue. What of it does not fit fails at once (503). */
void oribi__upstream_submit(struct oribi__upstream_request *call);

/* The bytes that a client may leave untaken before the call waits for it. */
static inline int64_t oribi__upstream_high(const struct oribi__upstream_request *call)
{
    return call->state == ORIBI__CALL_FILE ? ORIBI__ANSWER_FILE_HIGH_BYTES : ORIBI__FRONTEND_HIGH_BYTES;
}

/* The client has taken some of the answer. */
void oribi__upstream_taken(struct oribi__upstream_request *call);

/* The client does not take the answer as fast as it comes: its channel is left alone until it has. */
void oribi__upstream_block(struct oribi__upstream_request *call);

/* Its output waits for the client's socket, or no longer. */
void oribi__upstream_list(struct oribi__upstream_request *call);
void oribi__upstream_unlist(struct oribi__upstream_request *call);

/* There will be no answer, or none of its rest. It counts as refused for this; OTHER: as answered with the status. */
void oribi__upstream_failed(struct oribi__upstream_request *call, int status, enum oribi_refusal refusal,
                            const char *reason);

#endif
