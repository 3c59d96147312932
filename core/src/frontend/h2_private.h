/* Declarations that the sources of h2.h share. */
#ifndef ORIBI_FRONTEND_H2_PRIVATE_H
#define ORIBI_FRONTEND_H2_PRIVATE_H

#include "frontend/h2.h"
#include "oribi/base/buf.h"
#include "oribi/base/error.h"

#include <nghttp2/nghttp2.h>
#include <string.h>

enum {
    H2_DATA,
    H2_HEADERS,
    H2_PRIORITY,
    H2_RST_STREAM,
    H2_SETTINGS,
    H2_PUSH_PROMISE,
    H2_PING,
    H2_GOAWAY,
    H2_WINDOW_UPDATE,
    H2_CONTINUATION,
    H2_PRIORITY_UPDATE = 0x10, /* RFC 9218 7.1 */
};

enum { H2_END_STREAM = 1, H2_ACK = 1, H2_END_HEADERS = 4, H2_PADDED = 8, H2_WITH_PRIORITY = 0x20 };

enum {
    H2_FRAME_HEAD = 9,
    H2_FRAME_MAX = 16384, /* payload; we neither allow more nor send more */
    H2_WINDOW_MAX = 0x7fffffff,
    H2_WINDOW_INITIAL = 65535,
    H2_PRIORITY_BYTES = 64, /* of a priority that is looked at */
    H2_PREFIX_MAX = 4 + H2_PRIORITY_BYTES,
    H2_RECENT = 256,           /* streams whose end we remember */
    H2_BUFFER_KEPT = 4 * 1024, /* bytes of a buffer that is kept for the next field block */
    H2_SETTINGS_MAX = 32,      /* in one frame */
    /* Frames that a frame of an answer pays for, however short it is: a client may open both windows again for each
     * frame of DATA, and ask by PING how long that took. So floods cost the client as many answers. */
    H2_FREE_UPDATES = 4, /* WINDOW_UPDATE, for each frame of DATA */
    H2_FREE_FRAMES = 1,  /* PING and other frames that carry nothing, for each HEADERS and each frame of DATA */
};

/* How many of something are allowed at once and per second. */
struct h2_rate {
    int64_t level; /* thousandths */
    int64_t at_ms;
};

/* Where in the input we are. */
enum h2_phase {
    H2_AT_PREFACE, /* the 24 bytes of RFC 9113 3.4 */
    H2_AT_HEAD,    /* the nine bytes of a frame's head */
    H2_AT_PREFIX,  /* bytes that are looked at together, `prefix_len` of them */
    H2_AT_BODY,    /* DATA or a field block's piece, taken as it comes */
    H2_AT_SKIP,    /* padding, and what is ignored */
};

enum h2_use { H2_USE_NONE, H2_USE_REQUEST, H2_USE_TRAILERS, H2_USE_DISCARD };

/* A field block under way, RFC 9113 4.3. */
struct h2_block {
    enum h2_use use;
    uint32_t id;      /* of its stream */
    uint32_t refuse;  /* H2_USE_DISCARD: reset the stream with this code; ORIBI_H2_NO_ERROR: do not */
    bool ends;        /* END_STREAM */
    bool open;        /* CONTINUATION has to follow */
    int64_t since_ms; /* when it began; 0 while none is under way */
    uint64_t bytes;   /* decoded, as RFC 9113 6.5.2 counts them */
    uint64_t encoded;
    uint32_t fields;
    const char *malformed; /* static words; NULL: it is well-formed so far */
    bool too_large;
    /* of a request */
    bool past_pseudo;
    uint8_t pseudo_seen; /* a bit for each */
    struct {
        uint32_t at;
        uint32_t len;
    } pseudo[5]; /* in `text` */
    bool has_host, has_length;
    bool is_socket; /* extended CONNECT for a WebSocket */
    bool offers_sockets;
    uint8_t urgency;
    bool incremental;
    struct oribi_buf text;            /* pseudo-fields, values behind each other */
    struct oribi_buf lines;           /* fields as lines */
    struct oribi_buf cookie;          /* the value of Cookie */
    struct oribi_buf length;          /* the value of Content-Length */
    struct oribi_buf head;            /* the request's head when it is complete */
    const struct oribi_head *refused; /* what is known of it, while the event `refused` tells that it is bad */
};

/* A stream with what only the session sees. */
struct h2_stream {
    struct oribi_h2_stream to; /* first: one is cast to the other */
    int64_t send_window;
    int64_t recv_window;
    int64_t body_left;      /* bytes that Content-Length promises; -1: not known */
    int64_t body_seen;      /* bytes of the body so far */
    int64_t unstored;       /* bytes given to the caller and not yet stored: the windows lack them */
    int64_t kept;           /* bytes given to the caller that the stream's window alone lacks */
    int64_t owed;           /* bytes stored that no WINDOW_UPDATE of this stream has told of yet */
    int64_t answer_left;    /* as body_left */
    int64_t blocked_ms;     /* since when data waits for the stream's window; 0: it does not */
    int64_t linger_ms;      /* since when only the client has not ended; 0: it has, or we have not */
    struct h2_stream *next; /* in a list of ready ones, or of free ones */
    struct h2_stream *previous;
    struct oribi_buf trailers; /* of the answer: name NUL value NUL … */
    uint8_t urgency;
    bool incremental;
    bool is_head;
    bool is_socket;     /* extended CONNECT: what follows its head has no length */
    bool request_ended; /* END_STREAM has come */
    bool answered;      /* the head has gone */
    bool answer_ended;  /* END_STREAM has gone */
    bool closed;        /* nothing more is sent or told */
    bool held;          /* not released */
    bool left;          /* among left_count */
    bool refused;       /* the body is thrown away */
    bool listed;        /* among the ready ones */
    bool asked;         /* pulled without room since it became ready */
};

struct h2_list {
    struct h2_stream *first;
    struct h2_stream *last;
};

struct oribi_h2 {
    const struct oribi_h2_limits *limits;
    const struct oribi_h2_events *events;
    void *self;
    int64_t now_ms;

    /* input */
    enum h2_phase phase;
    uint32_t got; /* bytes of the preface, head or prefix that are in `small` */
    uint32_t prefix_len;
    uint32_t body_left;
    uint32_t skip_left;
    uint8_t type;
    uint8_t flags;
    uint32_t id;
    uint32_t len;           /* of the frame's payload */
    int64_t frame_ms;       /* since when a frame without DATA is incomplete; 0: none is */
    struct h2_stream *data; /* DATA goes to it; NULL: it is thrown away */
    bool settings_seen;
    char small[H2_PREFIX_MAX];

    /* the connection */
    uint32_t last_id;  /* the highest stream that the client has opened */
    uint32_t final_id; /* what the second GOAWAY said; UINT32_MAX before it */
    int64_t send_window;
    int64_t recv_window;
    int64_t owed;          /* bytes that no WINDOW_UPDATE of the connection has told of yet */
    uint32_t peer_window;  /* the client's INITIAL_WINDOW_SIZE */
    uint32_t peer_table;   /* its HEADER_TABLE_SIZE, at most ORIBI_H2_TABLE_BYTES_MAX */
    uint32_t settings_due; /* our SETTINGS that are not acknowledged */
    bool table_due;        /* the client's next field block has to say that its table is smaller */
    bool over;
    uint32_t error;
    const char *reason;
    int64_t goaway_ms;  /* when the second GOAWAY is due; 0: no shutdown under way */
    int64_t blocked_ms; /* since when data waits for the connection's window */
    struct h2_rate resets;
    struct h2_rate frames;
    struct h2_rate updates;
    uint64_t free_updates; /* frames of WINDOW_UPDATE that answers have paid for */
    uint64_t free_frames;  /* other frames that carry nothing and are paid for */
    uint64_t free_resets;  /* frames of RST_STREAM, behind the end of a stream, that are paid for */
    int64_t slow_until_ms; /* a trusted client has to wait; 0: it does not */
    uint32_t recent_opened[H2_RECENT / 32];
    uint32_t recent_ours[H2_RECENT / 32]; /* streams that we have reset: frames may still be on their way */

    /* streams: all that are not closed and released */
    struct h2_stream **streams;
    uint32_t stream_count;
    uint32_t stream_cap;
    uint32_t left_count; /* closed before their answer had ended, and not released: calls that run on */
    uint32_t dead_count; /* closed and released, and not yet freed */
    struct h2_stream *free_streams;
    uint32_t depth; /* of our functions that have called an event: no stream is freed meanwhile */
    struct h2_list ready[8];

    struct oribi_buf remembered; /* asleep: the block that makes the decoder's table */

    /* what sleep lets go of */
    nghttp2_hd_inflater *inflater;
    nghttp2_hd_deflater *deflater;
    struct h2_block *block; /* NULL: none has begun yet */
    struct oribi_buf names; /* of an answer's fields, for the encoder */
    struct oribi_buf out;
    size_t sent; /* bytes at the front of `out` */
};

/* A field block is under way: CONTINUATION has to follow. */
static inline bool h2_in_block(const struct oribi_h2 *h2)
{
    return h2->block && h2->block->open;
}

static inline struct h2_stream *h2_of(struct oribi_h2_stream *stream)
{
    return (struct h2_stream *)stream;
}

static inline uint32_t h2_read32(const char *p)
{
    const uint8_t *b = (const uint8_t *)p;
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static inline void h2_write32(char *p, uint32_t value)
{
    p[0] = (char)(value >> 24);
    p[1] = (char)(value >> 16);
    p[2] = (char)(value >> 8);
    p[3] = (char)value;
}

/* ---- h2.c ---- */

/* Counts one; false when there have been too many. */
bool oribi__h2_rate_take(struct h2_rate *rate, uint32_t max, uint32_t per_s, int64_t now_ms);

/* A frame that costs us something and brings a request no further: WINDOW_UPDATE, or another. The connection ends when
 * there are too many; a trusted client has to wait then. */
void oribi__h2_count_update(struct oribi_h2 *h2);
void oribi__h2_count_frame(struct oribi_h2 *h2);

/* A stream's reset that is the client's doing. False: there are too many, and the connection has ended. */
bool oribi__h2_count_reset(struct oribi_h2 *h2, const char *reason);

/* Frees what can be made again. */
void oribi__h2_let_go(struct oribi_h2 *h2);

/* Gives a new decoder the table that was remembered. 0 or ORIBI_ENOMEM. */
int oribi__h2_recall(struct oribi_h2 *h2);

/* The second GOAWAY of a shutdown. */
void oribi__h2_go_away(struct oribi_h2 *h2);

/* ---- h2_stream.c ---- */

/* Whether the client may open one more. */
bool oribi__h2_has_room(const struct oribi_h2 *h2);

/* The stream while it is not closed, or NULL. */
struct h2_stream *oribi__h2_find(const struct oribi_h2 *h2, uint32_t id);

/* Makes one; NULL when out of memory. */
struct h2_stream *oribi__h2_open(struct oribi_h2 *h2, uint32_t id);

/* Notes that the client has opened this stream, and passed over those below it. */
void oribi__h2_note_opened(struct oribi_h2 *h2, uint32_t id);

/* Notes that we have reset it: frames of the client may still be on their way. */
void oribi__h2_note_reset(struct oribi_h2 *h2, uint32_t id);

/* Whether no frame has opened this stream, nor a higher one (RFC 9113 5.1.1). */
bool oribi__h2_is_idle(const struct oribi_h2 *h2, uint32_t id);

/* Whether a frame on this stream, which is not open, can have been sent before the client knew: it is ignored. If not,
 * the connection has ended. */
bool oribi__h2_ignores(struct oribi_h2 *h2, uint32_t id);

/* RST_STREAM for what the client has done, whether there is such a stream or not. */
void oribi__h2_stream_error(struct oribi_h2 *h2, uint32_t id, uint32_t code);

/* Nothing more is sent or told, but `reset` to a caller that does not know. */
void oribi__h2_close(struct h2_stream *stream, bool tell, uint32_t code);

/* Closes the stream if both sides have ended. */
void oribi__h2_close_if_ended(struct h2_stream *stream);

/* Ends the connection with a GOAWAY; `reason` is static. */
void oribi__h2_fail(struct oribi_h2 *h2, uint32_t code, const char *reason);

/* Frees what is closed and released, unless an event is being told. */
void oribi__h2_sweep(struct oribi_h2 *h2);

/* Frees what is closed and released between two frames, where nobody has a stream in hand. */
void oribi__h2_sweep_between(struct oribi_h2 *h2);

/* The windows get n bytes back: that of the connection, and the stream's unless it is NULL. */
void oribi__h2_give_back(struct oribi_h2 *h2, struct h2_stream *stream, int64_t n);

/* Takes or leaves the lists of ready streams. */
void oribi__h2_list(struct h2_stream *stream);
void oribi__h2_unlist(struct h2_stream *stream);

/* ---- h2_frames.c ---- */

/* A frame's head is complete: says what follows (prefix_len, body_left, skip_left). */
void oribi__h2_frame_begin(struct oribi_h2 *h2);

/* Its prefix, if it has one, is in `small`. */
void oribi__h2_frame_prefix(struct oribi_h2 *h2);

/* A piece of its body. */
void oribi__h2_frame_body(struct oribi_h2 *h2, const char *p, size_t n);

/* All of it has been seen. */
void oribi__h2_frame_end(struct oribi_h2 *h2);

/* ---- h2_block.c ---- */

/* Begins the block of the HEADERS frame at hand, whose use and stream are set. */
void oribi__h2_block_begin(struct oribi_h2 *h2, enum h2_use use, uint32_t refuse);
void oribi__h2_block_piece(struct oribi_h2 *h2, const char *p, size_t n);
void oribi__h2_block_end(struct oribi_h2 *h2);

/* The client has acknowledged our table size. */
void oribi__h2_block_settled(struct oribi_h2 *h2);

void oribi__h2_block_deinit(struct oribi_h2 *h2);

/* nghttp2's allocator, over oribi/base/mem.h. */
nghttp2_mem *oribi__h2_mem(void);

/* ---- h2_request.c ---- */

/* One field of a request, or of its trailers. */
void oribi__h2_request_field(struct h2_block *block, struct oribi_slice name, struct oribi_slice value);

/* Makes a stream of the fields, and tells it; or resets it. */
void oribi__h2_request_complete(struct oribi_h2 *h2);

/* True for fields that say something about an HTTP/1.1 connection; lower-case names. TE is none of them. */
bool oribi__h2_is_connection_field(struct oribi_slice name);

/* Reads a Priority field, RFC 9218 4 and 8; what it does not say stays as it is. */
void oribi__h2_priority_read(struct oribi_slice text, uint8_t *urgency, bool *incremental);

/* ---- h2_output.c ---- */

/* Gives up room for DATA when nobody is there who might send any. */
void oribi__h2_rest(struct oribi_h2 *h2);

/* ---- h2_answer.c ---- */

/* Appends a frame's head to the output and makes room for its payload, which the caller writes there. */
char *oribi__h2_put_frame(struct oribi_h2 *h2, uint8_t type, uint8_t flags, uint32_t id, size_t len);

void oribi__h2_put_settings(struct oribi_h2 *h2);
void oribi__h2_put_reset(struct oribi_h2 *h2, uint32_t id, uint32_t code);
void oribi__h2_put_window_update(struct oribi_h2 *h2, uint32_t id, uint32_t increment);
void oribi__h2_put_goaway(struct oribi_h2 *h2, uint32_t last_id, uint32_t code);

/* Appends an acknowledgement, which the client has asked for; the connection ends when too much is unsent. */
char *oribi__h2_put_ack(struct oribi_h2 *h2, uint8_t type, size_t len);

/* The trailers that oribi_h2_trailers() has kept, with END_STREAM. */
int oribi__h2_put_trailers(struct h2_stream *stream);

/* The answer's last byte has been put into a frame with END_STREAM. */
void oribi__h2_answer_ended(struct h2_stream *stream);

static inline size_t h2_unsent(const struct oribi_h2 *h2)
{
    return h2->out.len - h2->sent;
}

#endif
