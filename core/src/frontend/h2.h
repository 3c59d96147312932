/* HTTP/2 with one client (RFC 9113), without sockets and clocks: bytes and the time go in, events come out, bytes to
 * send are fetched. The caller is the frontend, which has the socket and passes complete requests to workers.
 *
 *     client ─ bytes ─► oribi_h2_feed() ─► events: request, data, trailers, end │ refused │ reset
 *     client ◄─ bytes ─ oribi_h2_output() ◄─ oribi_h2_answer(), _interim(), _trailers() │ pull
 *
 * A request comes as the head that an HTTP/1.1 client would have sent. The core's own parser has read it, so every
 * rule for HTTP/1.1 requests holds for these too.
 *
 * A stream, for the caller:
 *
 *     request ──► data* ──► trailers? ──► end       what the client sends
 *        │  refused: answer it with its status; no more data comes
 *        ├──► oribi_h2_interim()* ──► oribi_h2_answer() ──► pull* ──► (trailers)     what is answered
 *        │  reset: over, whoever wanted that; nothing more comes and nothing is sent
 *        └──► oribi_h2_release()       always, and last
 *
 * Where the answer has ended before the request has, the rest of the request is thrown away, within its window and for
 * two seconds; then the stream is reset with NO_ERROR (RFC 9113 8.1).
 *
 * A stream counts against streams_max until it is reset, by either side (RFC 9113 5.1.2), or released; one that was
 * reset counts against left_max until it is released. So a client that resets its streams, or has us reset them
 * (CVE-2023-44487, CVE-2025-8671), leaves no more calls to run on than that, if the caller releases such a stream with
 * the end of its call. resets_max and resets_per_s bound how fast one client may do so.
 *
 * The frames and streams are ours; HPACK (RFC 7541) is nghttp2's. Sources: h2.c (life, bytes to frames,
 * deadlines, sleep, floods), h2_frames.c (what each frame does), h2_stream.c (streams and their errors), h2_block.c
 * (field blocks), h2_request.c (fields to a request head, priorities of RFC 9218), h2_answer.c (answers to frames),
 * h2_output.c (whose data goes first).
 *
 * A WebSocket (extended CONNECT, RFC 8441) comes as the handshake that an HTTP/1.1 client would have sent: a request
 * that is complete with its head. `data` are the socket's bytes then, as is the body of an answer 2xx, and the client's
 * END_STREAM is told by `end`.
 *
 * Not here: server push, Upgrade: h2c, the priority trees of RFC 7540, CONNECT to other hosts. */
#ifndef ORIBI_FRONTEND_H2_H
#define ORIBI_FRONTEND_H2_H

#include "oribi/base/limits.h"
#include "oribi/base/buf.h"
#include "oribi/http/head.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ORIBI_H2_STREAMS_CAP = 1000,
    ORIBI_H2_STREAMS_DEFAULT = 100,
    ORIBI_H2_LEFT_DEFAULT = 100,
    ORIBI_H2_STREAM_WINDOW_DEFAULT = 256 * 1024,
    ORIBI_H2_CONNECTION_WINDOW_DEFAULT = 1024 * 1024,
    ORIBI_H2_WINDOW_MIN = 65535, /* clients may send so much before they know our settings, RFC 9113 6.9.2 */
    ORIBI_H2_HEAD_TIMEOUT_MS_DEFAULT = 60 * 1000,
    ORIBI_H2_WRITE_TIMEOUT_MS_DEFAULT = 60 * 1000,
    ORIBI_H2_RESETS_DEFAULT = 100,
    ORIBI_H2_RESETS_PER_S_DEFAULT = 33,
    ORIBI_H2_FRAMES_DEFAULT = 1000,
    ORIBI_H2_FRAMES_PER_S_DEFAULT = 100,
    ORIBI_H2_TABLE_BYTES_MAX = 4096, /* of a dynamic table, RFC 7541 4.2; also the default */
    /* A field block may be so many times head_bytes_max, decoded; up to there the answer is 431, beyond it the
     * connection ends, since decoding costs more than sending. */
    ORIBI_H2_BLOCK_TIMES = 4,
    ORIBI_H2_GOAWAY_MS = 1000,               /* from the first GOAWAY of a shutdown to the second at the latest */
    ORIBI_H2_UNSENT_BYTES_MAX = 128 * 1024,  /* beyond it no more input is wanted */
    ORIBI_H2_CONTROL_BYTES_MAX = 256 * 1024, /* unsent, when another acknowledgement is due: the connection ends */
};

/* Error codes, RFC 9113 7. */
enum oribi_h2_code {
    ORIBI_H2_NO_ERROR = 0,
    ORIBI_H2_PROTOCOL_ERROR = 1,
    ORIBI_H2_INTERNAL_ERROR = 2,
    ORIBI_H2_FLOW_CONTROL_ERROR = 3,
    ORIBI_H2_SETTINGS_TIMEOUT = 4,
    ORIBI_H2_STREAM_CLOSED = 5,
    ORIBI_H2_FRAME_SIZE_ERROR = 6,
    ORIBI_H2_REFUSED_STREAM = 7,
    ORIBI_H2_CANCEL = 8,
    ORIBI_H2_COMPRESSION_ERROR = 9,
    ORIBI_H2_CONNECT_ERROR = 10,
    ORIBI_H2_ENHANCE_YOUR_CALM = 11,
    ORIBI_H2_INADEQUATE_SECURITY = 12,
    ORIBI_H2_HTTP_1_1_REQUIRED = 13,
};

/* Borrowed by every session, and must outlive it. */
struct oribi_h2_limits {
    /* head_bytes_max (decoded; each field counts 32 bytes more, RFC 9113 6.5.2), fields_max, target_bytes_max,
     * body_bytes_max, underscores_allow, strict_target. connect_allow is taken for false. */
    struct oribi_limits http;
    uint32_t streams_max;       /* at a time, those that were reset or released excepted; 1 … ORIBI_H2_STREAMS_CAP */
    uint32_t left_max;          /* that were reset and are not released: beyond it no new ones; 1 … the same */
    uint32_t stream_window;     /* bytes of a body that may be under way; ORIBI_H2_WINDOW_MIN … 2^31-1 */
    uint32_t connection_window; /* of all bodies together; the same bounds */
    int64_t head_timeout_ms;    /* for the preface, for a field block, for a frame without DATA; 0: none */
    int64_t write_timeout_ms;   /* how long a window may stand still while data waits for it; 0: none */
    uint32_t resets_max;        /* resets by either side that are the client's doing, at once */
    uint32_t resets_per_s;      /* how fast such resets are forgiven */
    uint32_t frames_max;        /* PING, SETTINGS, empty and other such frames, and again WINDOW_UPDATE, at once */
    uint32_t frames_per_s;      /* how fast, beyond those that the frames of answers pay for (h2_private.h) */
    /* The client is a balancer, whose connection carries the requests of many clients. Its resets are not counted; too
     * many other frames have it wait, until oribi_h2_deadline(); a field block of any length is refused with 431. */
    bool trusted;
    /* The client's dynamic table, 0 … ORIBI_H2_TABLE_BYTES_MAX. Less than the maximum ends connections of clients that
     * do not heed it (RFC 9113 4.3.1). */
    uint32_t table_bytes;
    bool connects_sockets; /* SETTINGS_ENABLE_CONNECT_PROTOCOL: clients may open WebSockets (RFC 8441 3) */
    bool sleeps;           /* oribi_h2_sleep() works; answers are encoded without a dynamic table */
};

/* Fills in the defaults above, and those of oribi_limits_init(). */
void oribi_h2_limits_init(struct oribi_h2_limits *limits);

struct oribi_h2;

struct oribi_h2_stream {
    void *user;          /* the caller's */
    struct oribi_h2 *h2; /* its session; read only */
    uint32_t id;         /* read only */
    /* private: h2_private.h */
};

/* A request whose head is complete. Borrowed: valid during the event. */
struct oribi_h2_request {
    /* As HTTP/1.1: request line, Host first if :authority said it, names in lower case, one Cookie, then what frames
     * the body: Content-Length, or Transfer-Encoding: chunked where the length is not known, or nothing; then the
     * empty line. */
    struct oribi_slice head;
    size_t framing;                  /* where in it the framing field or the empty line begins */
    const struct oribi_head *parsed; /* of `head` */
    int64_t body_len;                /* -1: not known */
    bool ended;                      /* no byte of a body will come; the event `end` follows at once */
    bool https;                      /* :scheme */
    bool socket;                     /* a handshake of a WebSocket */
    uint8_t urgency;                 /* RFC 9218: 0 (first) … 7 */
    bool incremental;
};

#define ORIBI_H2_PULL_FAILED SIZE_MAX /* of oribi_h2_events.pull */

/* Events of a session. Within an event every function that takes a stream may be called, also oribi_h2_release(). */
struct oribi_h2_events {
    void (*request)(void *self, struct oribi_h2_stream *stream, const struct oribi_h2_request *request);

    /* The request is not to be served: answer it with oribi_error_status(error). Comes in the place of `request`, or
     * after it (a body that is too long, trailers that are) unless the answer has ended. No more data, trailers or end
     * come. `fault` is borrowed and may be NULL; is_head: the answer has no body. */
    /* oribi_h2_request_line() and oribi_h2_refused_head() tell what was asked, where no request came before. */
    void (*refused)(void *self, struct oribi_h2_stream *stream, int error, const struct oribi_fault *fault,
                    bool is_head);

    /* No request, and no stream to answer: it is not well-formed (RFC 9113 8.1.1) and is reset. For the log; `reason`
     * is static words. */
    void (*malformed)(void *self, uint32_t id, const char *reason);

    /* The next bytes of the body, borrowed. Say oribi_h2_stored() when they are stored. */
    void (*data)(void *self, struct oribi_h2_stream *stream, const char *p, size_t n);

    /* Lines "name: value" with CRLF, as oribi_trailers_read() takes them; borrowed. */
    void (*trailers)(void *self, struct oribi_h2_stream *stream, struct oribi_slice lines);

    /* The request is complete. */
    void (*end)(void *self, struct oribi_h2_stream *stream);

    /* The stream is over before its answer was: `code` is the client's, or why the session reset it. Not told of
     * streams that oribi_h2_reset() has reset. */
    void (*reset)(void *self, struct oribi_h2_stream *stream, uint32_t code);

    /* Writes the next bytes of the answer's body to [dst, dst+cap) and returns how many; *last with or after the last
     * ones. Nothing, and not *last: there is nothing now, and oribi_h2_ready() will tell of more. cap may be 0, while a
     * window is closed: then nothing is written, and the result is how many bytes there are (1 is as good as more).
     * ORIBI_H2_PULL_FAILED: the rest cannot be had; the stream is reset, INTERNAL_ERROR, and `reset` tells of it. May
     * call no function of the session but oribi_h2_trailers() for this stream. */
    size_t (*pull)(void *self, struct oribi_h2_stream *stream, char *dst, size_t cap, bool *last);
};

/* Gives a session, or NULL when out of memory. `limits` and `events` are borrowed and must outlive it, `self` is passed
 * to the events. Times are of a monotonic clock, in milliseconds. */
struct oribi_h2 *oribi_h2_create(const struct oribi_h2_limits *limits, const struct oribi_h2_events *events, void *self,
                                 int64_t now_ms);

/* Frees it with all its streams, also those not released; no event comes. NULL is allowed. */
void oribi_h2_destroy(struct oribi_h2 *h2);

/* Takes the next bytes of the client, all of them, and tells the events. 0; or ORIBI_ECLOSED when the connection is
 * over, by an error (the output then ends with a GOAWAY that names it) or by the end of a shutdown: send what is left,
 * and close. */
int oribi_h2_feed(struct oribi_h2 *h2, const char *p, size_t n, int64_t now_ms);

/* False while much is unsent, and while a trusted client has to wait: then read nothing from the client (it has a
 * window of its own, TCP's). */
bool oribi_h2_wants_input(const struct oribi_h2 *h2);

/* Bytes to be sent now: all there are but DATA, then DATA until `want` bytes are reached. Borrowed, until the next
 * call of any function. The less wanted at a time, the better the order in which urgent streams go first. */
struct oribi_slice oribi_h2_output(struct oribi_h2 *h2, size_t want, int64_t now_ms);

/* The first n bytes of it have been sent. */
void oribi_h2_sent(struct oribi_h2 *h2, size_t n);

/* Ends what takes too long. Call it when oribi_h2_deadline() is reached, or at any time. */
void oribi_h2_tick(struct oribi_h2 *h2, int64_t now_ms);

/* When oribi_h2_tick() has something to do; INT64_MAX: never. */
int64_t oribi_h2_deadline(const struct oribi_h2 *h2);

/* Streams that are not released. */
uint32_t oribi_h2_streams(const struct oribi_h2 *h2);

/* True when the connection is over: by an error, or because a shutdown was begun and every stream is reset or released.
 * What oribi_h2_output() still gives is to be sent before the socket is closed. */
bool oribi_h2_is_over(const struct oribi_h2 *h2);

/* Why it is over: what the GOAWAY said, and static words; ORIBI_H2_NO_ERROR and NULL when there was no error. */
uint32_t oribi_h2_error(const struct oribi_h2 *h2, const char **reason);

/* Begins to end the connection without a loss (RFC 9113 6.8): a GOAWAY that allows all streams and a PING; with its
 * answer, or ORIBI_H2_GOAWAY_MS later, the GOAWAY that says which stream was the last. */
void oribi_h2_shutdown(struct oribi_h2 *h2, int64_t now_ms);

/* Ends it at once, with a GOAWAY. */
void oribi_h2_fail(struct oribi_h2 *h2, uint32_t code);

/* The session lets go of all memory but 850 bytes and what the client's dynamic table holds (table_bytes at the most),
 * and takes it again when the client speaks. Needs limits.sleeps, no stream, nothing half read and nothing unsent.
 * Returns whether it sleeps. */
bool oribi_h2_sleep(struct oribi_h2 *h2);

/* ---- a stream's answer: each returns 0; ORIBI_ECLOSED when the stream is over, which is no mistake; ORIBI_EAPP for a
 * status, name or value that may not be sent, of which nothing is sent; or ORIBI_ENOMEM ---- */

/* An interim answer: 100 … 199, not 101 (RFC 9113 8.6). Left out are the fields that oribi_h2_answer() leaves out.
 * ORIBI_ELIMIT, and nothing is sent, while more than ORIBI_INTERIM_UNSENT_BYTES_MAX of the session are unsent. */
int oribi_h2_interim(struct oribi_h2_stream *stream, int status, const struct oribi_field *fields, uint32_t count);

/* The head: 200 … 999. Names become lower case; Connection, what it names, Keep-Alive, Proxy-Connection,
 * Transfer-Encoding, Upgrade and TE are left out (RFC 9113 8.2.2), and the Content-Length of 204 and of interim answers
 * (RFC 9110 8.6). `last`: there is no body, which 204, 304 and answers to HEAD have to say. A body that is longer or
 * shorter than its Content-Length ends with a reset (INTERNAL_ERROR). */
int oribi_h2_answer(struct oribi_h2_stream *stream, int status, const struct oribi_field *fields, uint32_t count,
                    bool last);

/* Fields that follow the body's last byte; copied. To be called before `pull` says *last. */
int oribi_h2_trailers(struct oribi_h2_stream *stream, const struct oribi_field *fields, uint32_t count);

/* Whether the end of the answer is in the output, or the stream is over: nothing more is pulled. */
bool oribi_h2_is_answered(const struct oribi_h2_stream *stream);

/* There is something to pull, or the end of it. */
void oribi_h2_ready(struct oribi_h2_stream *stream);

/* So many bytes that came by `data` are stored: the client may send as many more. */
void oribi_h2_stored(struct oribi_h2_stream *stream, size_t n);

/* So many of them are kept in memory that is bounded otherwise: other streams may send as many more, this one must not
 * yet. oribi_h2_stored() follows when they are stored, and takes those that were kept first. */
void oribi_h2_kept(struct oribi_h2_stream *stream, size_t n);

/* Ends the stream: RST_STREAM unless both sides have ended. Nothing more comes of it but its release. */
void oribi_h2_reset(struct oribi_h2_stream *stream, uint32_t code);

/* Takes the stream: its call has ended, and oribi_h2_is_answered(). Before its answer's end this resets it with CANCEL.
 * Not in `pull`. */
void oribi_h2_release(struct oribi_h2_stream *stream);

/* In the event `refused` of a head: writes "GET /path HTTP/2.0" to dst as far as that has come, cut at cap. Returns the
 * length; 0: it has not. */
size_t oribi_h2_request_line(const struct oribi_h2 *h2, char *dst, size_t cap);

/* There as well: what is known of the head (oribi_parser_head()); NULL: nothing. Borrowed, until the event ends. */
const struct oribi_head *oribi_h2_refused_head(const struct oribi_h2 *h2);

#endif
