/* A WebSocket, as its own sources share it: websocket.c (its life), websocket_read.c (frames of the client) and
 * websocket_calls.c (the application). */
#ifndef ORIBI_FRONTEND_WEBSOCKET_PRIVATE_H
#define ORIBI_FRONTEND_WEBSOCKET_PRIVATE_H

#include "frontend/answers.h"
#include "frontend/frontend.h"
#include "frontend/peer.h"
#include "frontend/topics.h"
#include "frontend/websocket.h"

#include "oribi/base/buf.h"
#include "oribi/event/loop.h"
#include "oribi/event/timers.h"
#include "oribi/http/socket_call.h"
#include "oribi/http/websocket.h"
#include "oribi/worker/logs/request_log.h"

#include <stdbool.h>
#include <stdint.h>

struct oribi__upstream_request;

enum {
    ORIBI__WEBSOCKET_SCRATCH_BYTES = 64 * 1024,
    ORIBI__WEBSOCKET_ID_BYTES = 16,
    ORIBI__WEBSOCKET_SHORT_BYTES = 4096, /* a message up to this has room, and its buffer stays between two of them */
};

enum oribi__websocket_life {
    ORIBI__WEBSOCKET_WAITING,
    ORIBI__WEBSOCKET_OPEN,
    ORIBI__WEBSOCKET_CLOSING,
    ORIBI__WEBSOCKET_ENDED,
};

/* A message that waits for the client. */
struct oribi__websocket_wait {
    struct oribi__message *message;
    uint32_t room; /* bytes that may still be appended to its frames */
    bool framed;   /* its data are whole frames */
};

/* The part of a socket that it has only while something is under way: a message, a call, output, a close, a drain. An
 * idle socket gives it back, so that it holds struct oribi__websocket alone. */
struct oribi__websocket_work {
    struct oribi__websocket_work *spare_next;
    struct oribi__websocket *posted_next;
    struct oribi_websocket reader;
    struct oribi_timer timer;            /* the first of its deadlines, or earlier: look() finds out */
    struct oribi_buf in;                 /* read, and not fed: the begin of a frame, or what came before a call */
    struct oribi_buf message;            /* that comes, or that a call is about */
    struct oribi_buf out;                /* that the client has not taken; before what `waits` has */
    struct oribi_buf answer;             /* of the call, as far as it has come */
    size_t out_at;                       /* bytes of `out` that it has */
    struct oribi__websocket_wait *waits; /* [wait_first, wait_first + wait_count) of wait_cap */
    uint32_t wait_first;
    uint32_t wait_count;
    uint32_t wait_cap;
    size_t wait_sent;      /* bytes of the first one's frame that the client has */
    size_t wait_bytes;     /* of all their frames, those that were sent too */
    size_t own_bytes;      /* memory of those that are frames of this socket alone */
    size_t owed_bytes;     /* of wait_bytes, at most: what a resume has delivered, beyond websocket_pending_max too */
    size_t answered_bytes; /* at most: what calls have sent. Messages of channels may wait beside it */
    struct oribi__upstream_request *call;
    char *close_reason; /* NULL: none; 123 bytes are too many for sockets that do not end */
    int64_t heard_ms;   /* when bytes came last, or could have come first */
    int64_t message_ms; /* since when a message is on its way; 0: none is */
    int64_t message_in; /* bytes read since then */
    int64_t stalled_ms; /* since when the client takes nothing; 0: nothing waits */
    int64_t end_ms;     /* CLOSING: when the connection ends. OPEN: when a drain closes it; 0: no drain */
    uint16_t drain_code;
    uint8_t close_len;
    bool heard_close : 1; /* the client's Close frame has come */
    bool posted : 1;      /* in websockets->posted */
    bool starved : 1;     /* `in` is fed, and needs more bytes behind it */
    bool feeding : 1;     /* feed() goes on by itself */
    bool shut : 1;        /* nothing more is sent */
    bool deaf : 1;        /* a fault was found: what the client still sends is dropped */
    bool resumes : 1;     /* what is delivered was missed, and more follows */
    bool crowded : 1;     /* the last read had many short frames: fewer bytes are read at a time */
    bool pongs : 1;       /* are put, and not sent yet */
    bool explained : 1;   /* the call has failed, and the body of its answer is the reason for the client */
    uint32_t charged;     /* of the frontend's budget: bytes of its buffers */
};

/* Numbers and texts that the end's line of the log, a message and `ctl sockets` need. */
struct oribi__websocket {
    struct oribi_watch watch; /* first: the handler casts. fd -1: a stream of HTTP/2 */
    struct oribi__frontend *frontend;
    struct oribi__websocket *prev; /* in its list, see `list` */
    struct oribi__websocket *next;
    struct oribi_transport *transport;  /* owned; NULL: the socket itself, or it is closed */
    struct oribi__websocket_work *work; /* NULL: it is idle */
    struct oribi__subscriber subscriber;
    char *state;          /* JSON of the application's; NULL: none */
    uint64_t messages[2]; /* from the client, to it */
    uint64_t bytes[2];
    int64_t opened_us;
    uint8_t id[ORIBI__WEBSOCKET_ID_BYTES]; /* its digits as bytes */
    uint32_t quiet_ms; /* since when it is idle and no Ping was sent; of a clock that wraps around after 49 days */
    uint32_t second;   /* the one in which messages are counted */
    uint32_t second_count;
    uint16_t state_len;
    uint16_t kept_len;
    uint16_t code;    /* 0: open */
    uint8_t listener; /* in config->listeners */
    uint8_t handler_len;
    uint8_t protocol_len;
    uint8_t path_len;
    uint8_t addr_len;
    uint8_t list;      /* in websockets->lists */
    uint8_t life : 2;  /* enum oribi__websocket_life */
    uint8_t pings : 2; /* sent since the client was heard */
    uint8_t port_len : 3;
    bool tls : 1; /* the client speaks TLS, to us or to a proxy */
    uint8_t wants : 2;
    bool ids : 1; /* messages of channels are sent as JSON, with their positions */
    bool open_called : 1;
    bool close_due : 1; /* on_close is to be called */
    char text[];        /* handler, protocol, kept values, path, the peer's address and port, one behind the other */
};

static inline const struct oribi_options *options_of(const struct oribi__websocket *socket)
{
    return socket->frontend->config->options;
}

static inline int64_t now_ms(const struct oribi__websocket *socket)
{
    return socket->frontend->reactor.now_ms;
}

static inline struct oribi_slice handler_of(const struct oribi__websocket *socket)
{
    return oribi_slice(socket->text, socket->handler_len);
}

static inline struct oribi_slice protocol_of(const struct oribi__websocket *socket)
{
    return oribi_slice(socket->text + socket->handler_len, socket->protocol_len);
}

static inline struct oribi_slice kept_of(const struct oribi__websocket *socket)
{
    return oribi_slice(socket->text + socket->handler_len + socket->protocol_len, socket->kept_len);
}

static inline struct oribi_slice path_of(const struct oribi__websocket *socket)
{
    struct oribi_slice kept = kept_of(socket);
    return oribi_slice(kept.p + kept.n, socket->path_len);
}

static inline struct oribi_slice address_of(const struct oribi__websocket *socket)
{
    struct oribi_slice path = path_of(socket);
    return oribi_slice(path.p + path.n, socket->addr_len);
}

static inline struct oribi_slice port_of(const struct oribi__websocket *socket)
{
    struct oribi_slice address = address_of(socket);
    return oribi_slice(address.p + address.n, socket->port_len);
}

/* Bytes that the client has not taken. */
static inline size_t oribi__websocket_waiting(const struct oribi__websocket *socket)
{
    const struct oribi__websocket_work *work = socket->work;
    return work ? work->out.len - work->out_at + work->wait_bytes - work->wait_sent : 0;
}

/* ---- idle sockets (websocket_idle.c) ---- */

/* The socket's work, taken where it has none; NULL: out of memory. */
struct oribi__websocket_work *oribi__websocket_work(struct oribi__websocket *socket);

/* Gives the work back, where nothing is under way: whatever an event has begun ends with this. */
void oribi__websocket_rest(struct oribi__websocket *socket);

/* Frees the work, if there is any. */
void oribi__websocket_end_work(struct oribi__websocket *socket);

/* Puts a socket into a list as the last: it was in none, or leaves its own; or takes it out. */
void oribi__websocket_enlist(struct oribi__websocket *socket, uint8_t list);
void oribi__websocket_move(struct oribi__websocket *socket, uint8_t list);
void oribi__websocket_leave(struct oribi__websocket *socket);

/* A new socket is idle: its first Ping comes at a time that others do not have. */
void oribi__websocket_spread(struct oribi__websocket *socket);

/* ---- its life (websocket.c) ---- */

/* Writes a line of the error log about a fault of the client's, or of a worker's. */
void oribi__websocket_say(struct oribi__websocket *socket, const char *what, uint16_t code);

/* Are frames of the client read now? */
bool oribi__websocket_reads(const struct oribi__websocket *socket);

/* Makes the reader and the timer of work that was taken. */
void oribi__websocket_work_init(struct oribi__websocket *socket);

/* An event is over: the socket rests, or waits for its next deadline. */
void oribi__websocket_go_on(struct oribi__websocket *socket);

/* Arms the timer of its work for the next Ping. */
void oribi__websocket_await_silence(struct oribi__websocket *socket);

/* The id's text. */
void oribi__websocket_id(const struct oribi__websocket *socket, char text[ORIBI__ID_LEN]);

/* Keeps a copy. 0 or ORIBI_ENOMEM. */
int oribi__websocket_set_state(struct oribi__websocket *socket, struct oribi_slice state);

/* As oribi__peer_send(), and counts. */
ssize_t oribi__websocket_send_vec(struct oribi__websocket *socket, const struct iovec *vec, size_t count);

/* The client was silent for websocket_ping: a Ping, or the end. */
void oribi__websocket_ping(struct oribi__websocket *socket);

/* The client was heard, or could not be: its silence begins. */
void oribi__websocket_note_heard(struct oribi__websocket *socket);

/* The peer, as the modules beside WebSockets have it. */
struct oribi__peer oribi__websocket_peer(const struct oribi__websocket *socket);

/* Sets the timer: to the first deadline; or so that it comes at this time at the latest. */
void oribi__websocket_arm(struct oribi__websocket *socket);
void oribi__websocket_arm_by(struct oribi__websocket *socket, int64_t at_ms);

/* When the message on its way must have gone on; INT64_MAX: none is. */
int64_t oribi__websocket_message_deadline(const struct oribi__websocket *socket);

/* Books what the socket's buffers take now, of the frontend's budget (buffers_memory_max). */
void oribi__websocket_charge(struct oribi__websocket *socket);

/* Appends a frame. False: out of memory, and the connection has ended. */
bool oribi__websocket_put(struct oribi__websocket *socket, enum oribi_websocket_opcode opcode, struct oribi_slice data);

/* False: more would wait than may, and the socket is being closed. */
bool oribi__websocket_has_room(struct oribi__websocket *socket, size_t n);

/* Counts a message to the client. */
void oribi__websocket_count_sent(struct oribi__websocket *socket, size_t n);

/* Sends what waits, as far as the client takes it. The connection may end. */
void oribi__websocket_flush(struct oribi__websocket *socket);

/* The connection ends where there is no memory for what waits for the client. */
void oribi__websocket_afford(struct oribi__websocket *socket);

/* A message of the application's. */
void oribi__websocket_send(struct oribi__websocket *socket, enum oribi_websocket_opcode opcode,
                           struct oribi_slice data);

/* The code and reason of the end, for on_close; the first ones count. */
void oribi__websocket_note_code(struct oribi__websocket *socket, uint16_t code, struct oribi_slice reason);

/* Begins the closing handshake (RFC 6455 7.1.2); nothing where it has begun. */
void oribi__websocket_close_with(struct oribi__websocket *socket, uint16_t code, struct oribi_slice reason);

/* The connection ends. `code`: unless the socket has one. */
void oribi__websocket_finish(struct oribi__websocket *socket, uint16_t code);

/* An ended socket without a call: on_close, where that is due; else it goes. */
void oribi__websocket_after_end(struct oribi__websocket *socket);

/* ---- messages that wait (websocket_output.c) ---- */

/* Bytes that count against websocket_pending_max. */
size_t oribi__websocket_pending(const struct oribi__websocket *socket);

/* True while more than websocket_pending_max waits for the client, as it may when one call has sent much. */
bool oribi__websocket_is_behind(const struct oribi__websocket *socket);

/* Appends a message behind all that waits; takes a reference. 0 or ORIBI_ENOMEM. */
int oribi__websocket_wait(struct oribi__websocket *socket, struct oribi__message *message);

/* Appends a frame, which is copied. */
int oribi__websocket_wait_frame(struct oribi__websocket *socket, struct oribi_slice head, struct oribi_slice data);

enum { ORIBI__WEBSOCKET_VECS = 32, ORIBI__WEBSOCKET_HEADS = 15 };

/* The bytes that wait, as far as they fit; gives how many vectors. The heads of frames are written to `heads`. */
size_t oribi__websocket_gather(const struct oribi__websocket *socket, struct iovec vec[ORIBI__WEBSOCKET_VECS],
                               char heads[ORIBI__WEBSOCKET_HEADS][ORIBI_WEBSOCKET_HEAD_CAP]);

/* Sends a message to a client for which nothing waits; what it does not take waits. The bytes, 0 where some wait, or a
 * code: the connection has broken, or ORIBI_ENOMEM. */
ssize_t oribi__websocket_send_message(struct oribi__websocket *socket, struct oribi__message *message);

/* The client has taken n bytes of messages that wait. */
void oribi__websocket_taken(struct oribi__websocket *socket, size_t n);

void oribi__websocket_forget_waits(struct oribi__websocket *socket);

/* ---- channels (websocket_channels.c) ---- */

void oribi__websockets_forget_wrapped(struct oribi__websockets *sockets);
void oribi__websocket_channels_init(struct oribi__websocket *socket);

/* Is it a list of subscriptions, and not of more than a socket may have? */
bool oribi__websocket_channels_are_valid(struct oribi_slice list);

/* Subscribes as a record's list or an action says. May close the socket. */
void oribi__websocket_subscribe_all(struct oribi__websocket *socket, struct oribi_slice list);
void oribi__websocket_subscribe(struct oribi__websocket *socket, struct oribi_slice channel, struct oribi_slice since);

void oribi__websocket_publish(struct oribi__websocket *socket, const struct oribi_socket_action *action);

/* ---- frames of the client (websocket_read.c) ---- */

void oribi__websocket_read_on(struct oribi__websocket *socket);

/* Queues the socket: the end of this turn reads on. */
void oribi__websocket_post(struct oribi__websocket *socket);

/* ---- the application (websocket_calls.c) ---- */

/* One call is out at a time. Without memory the socket is closed as if the call had failed. */
void oribi__websocket_call(struct oribi__websocket *socket, enum oribi_socket_event event);

/* Forgets the call and what has come of its answer. */
void oribi__websocket_end_call(struct oribi__websocket *socket);

#endif
