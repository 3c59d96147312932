/* Channels: each is one end of a socket pair whose other end a worker, or the thread of the local content, has. */
#ifndef ORIBI_FRONTEND_CHANNEL_H
#define ORIBI_FRONTEND_CHANNEL_H

#include "frontend/answer_file.h"
#include "frontend/h2.h"
#include "oribi/base/buf.h"
#include "oribi/event/loop.h"
#include "oribi/http/response_head.h"
#include "oribi/http/chunked.h"
#include "oribi/worker/channel_ring.h"

#include <stdbool.h>
#include <stdint.h>

struct oribi__frontend;
struct oribi__frontend_local;
struct oribi__upstream_request;

enum oribi__channel_state {
    ORIBI__CHANNEL_IDLE,
    ORIBI__CHANNEL_HEAD, /* the request is out, the answer's head is awaited */
    ORIBI__CHANNEL_BODY,
    ORIBI__CHANNEL_ABANDONED, /* its client has gone, and its worker runs on: it counts until that has ended */
    ORIBI__CHANNEL_CLOSED,
};

struct oribi__channel {
    struct oribi_watch watch; /* first: the handler casts */
    struct oribi__frontend *frontend;
    struct oribi__channel *prev; /* idle ones, the last used first; those that are left; those with a ring in a call */
    struct oribi__channel *next;
    struct oribi__channel *posted_next;
    struct oribi__upstream_request *call;
    struct oribi__frontend_local *local; /* whose its far end is; NULL: a worker's */
    struct oribi_channel_ring *ring;     /* NULL: it is its socket alone */
    struct oribi_buf unsent;             /* of a request */
    struct oribi_buf read;               /* the begin of an answer's head */
    struct oribi_chunked chunked;
    int64_t left;                    /* of a body with a length */
    int64_t sent_us;                 /* the turn in which the request went out */
    int32_t left_pid;                /* whose worker runs on */
    struct oribi_h2_stream *left_by; /* the stream that has left it; NULL: of HTTP/1.1, or gone */
    uint16_t number;
    uint16_t owner; /* slot + 1 that its calls count for in frontend->out, 0: none */
    uint8_t state;
    uint8_t framing;
    bool closes;   /* after this answer */
    bool finished; /* its client will send no more, and it was told so */
    bool posted;   /* in frontend->posted_channels */
    bool answered; /* a byte of this answer has come */
    bool is_out;   /* in frontend->channels->out_first */
    bool unwoken;  /* in frontend->channels->unwoken */
    bool taken;    /* its worker has begun to read the request, or it came with the channel */
};

enum {
    ORIBI__CHANNEL_READ_BYTES = 64 * 1024, /* of an answer by the socket, at a time */
    /* of an answer, at a time: a head, and a piece of a file; a record of a ring is shorter */
    ORIBI__CHANNEL_SCRATCH_BYTES = 8 * 1024 + ORIBI__ANSWER_FILE_PIECE_BYTES,
    ORIBI__CHANNEL_UNWOKEN_MAX = 32, /* requests whose workers are woken together */
};

struct oribi__channels {
    struct oribi__channel *idle_first;
    struct oribi__channel *idle_last;
    uint32_t idle_count;
    uint32_t count;
    struct oribi__channel *left_first; /* abandoned ones */
    struct oribi__channel *out_first;  /* those with a ring whose answer is awaited, the last that went out first */
    uint32_t untaken_count;            /* of these, those that are not taken */
    /* Requests whose workers may sleep yet: one wake-up is enough for all that a worker has by then. */
    struct oribi__channel *unwoken[ORIBI__CHANNEL_UNWOKEN_MAX];
    uint32_t unwoken_count;
    int64_t unwoken_us;            /* the turn of the first of them */
    uint32_t *last_woken;          /* by slot + 1: each worker's word when we woke it last */
    struct oribi__channel *posted; /* a turn has not read all that is there */
    struct oribi__channel *closed; /* freed at the end of the turn */
    uint16_t *free_numbers;
    uint32_t free_number_count;
    char *scratch; /* ORIBI__CHANNEL_SCRATCH_BYTES: what comes from a channel */
    struct oribi_header headers[ORIBI_RESPONSE_FIELDS_MAX];
};

int oribi__channels_init(struct oribi__frontend *frontend);        /* 0 or ORIBI_ENOMEM */
void oribi__channels_close_idle(struct oribi__frontend *frontend); /* before the reactor ends */
void oribi__channels_deinit(struct oribi__frontend *frontend);     /* when no channel is left */

/* Opens a channel: to `local`, which needs no number, or to a worker (NULL). Gives its far end in *far_fd. Returns NULL
 * without descriptors, memory or numbers. */
struct oribi__channel *oribi__channel_open(struct oribi__frontend *frontend, struct oribi__frontend_local *local,
                                           int *far_fd);

/* Makes the call this idle channel's, and sends the request (send: false where it travels with the far end). False: the
 * channel has ended, and the call is still the caller's. */
bool oribi__channel_call(struct oribi__channel *channel, struct oribi__upstream_request *call, bool send);

/* Wakes the workers that have been given requests. Between two turns; but a little later where clients have sent more
 * already: then their requests share the wake-up. */
void oribi__channels_wake(struct oribi__frontend *frontend);

/* Closes it; its call is forgotten, not told. */
void oribi__channel_close(struct oribi__channel *channel);

/* Closes it for a worker, which finds its client gone. But while the call runs on, in a worker that has
 * begun it, it counts as out: a client that gives up requests gets no more workers by that. */
void oribi__channel_abandon(struct oribi__channel *channel);
void oribi__channels_look(struct oribi__frontend *frontend); /* closes those whose calls have ended */
void oribi__channels_forget(struct oribi__frontend *frontend, const struct oribi_h2 *h2); /* its streams go */

/* Its client will send no more: the worker sees the end of what comes. */
void oribi__channel_finish(struct oribi__channel *channel);

/* Ends the channel as oribi__channel_close(), but gives its descriptor to the caller. */
int oribi__channel_release(struct oribi__channel *channel);
void oribi__channels_free_closed(struct oribi__frontend *frontend);

/* Counts its call no longer for the worker that has it. */
void oribi__channel_uncount(struct oribi__channel *channel);

/* Slot + 1 of the worker that has the channel, as that has told; 0: none has it, or none has told. */
uint16_t oribi__channel_owner(const struct oribi__channel *channel);

#endif
