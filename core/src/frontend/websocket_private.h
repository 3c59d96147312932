/* A WebSocket, as its own sources share it: websocket.c (its life), websocket_read.c (frames of the client) and
 * websocket_calls.c (the application). */
#ifndef ORIBI_FRONTEND_WEBSOCKET_PRIVATE_H
#define ORIBI_FRONTEND_WEBSOCKET_PRIVATE_H

#include "frontend/answers.h"
#include "frontend/frontend.h"
#include "frontend/peer.h"
#include "frontend/websocket.h"

#include "oribi/base/buf.h"
#include "oribi/event/loop.h"
#include "oribi/event/timers.h"
#include "oribi/http/socket_call.h"
#include "oribi/http/websocket.h"

#include <stdbool.h>
#include <stdint.h>

struct oribi__upstream_request;

enum { ORIBI__WEBSOCKET_SCRATCH_BYTES = 64 * 1024 };

enum oribi__websocket_life {
    ORIBI__WEBSOCKET_WAITING,
    ORIBI__WEBSOCKET_OPEN,
    ORIBI__WEBSOCKET_CLOSING,
    ORIBI__WEBSOCKET_ENDED,
};

struct oribi__websocket {
    struct oribi_watch watch; /* first: the handler casts */
    struct oribi__frontend *frontend;
    struct oribi__websocket *prev;
    struct oribi__websocket *next;
    struct oribi__websocket *posted_next;
    struct oribi__peer peer;
    struct oribi_websocket reader;
    struct oribi_timer timer; /* the first of its deadlines, or earlier: look() finds out */
    struct oribi_buf in;      /* read, and not fed: the begin of a frame, or what came before a call */
    struct oribi_buf message; /* that comes, or that a call is about */
    struct oribi_buf out;     /* that the client has not taken */
    struct oribi_buf answer;  /* of the call, as far as it has come; before that the record */
    struct oribi_buf state;   /* JSON of the application's */
    struct oribi__upstream_request *call;
    char *close_reason; /* NULL: none; 123 bytes are too many for sockets that do not end */
    char *text;         /* handler, protocol, kept values and path, one behind the other */
    uint16_t kept_len;
    uint8_t handler_len;
    uint8_t protocol_len;
    uint8_t path_len;
    uint8_t life; /* enum oribi__websocket_life */
    uint8_t wants;
    uint8_t pings;        /* sent since the client was heard */
    bool heard_close : 1; /* the client's Close frame has come */
    bool open_called : 1;
    bool close_due : 1; /* on_close is to be called */
    bool posted : 1;    /* in websockets->posted */
    bool starved : 1;   /* `in` is fed, and needs more bytes behind it */
    bool feeding : 1;   /* feed() goes on by itself */
    bool shut : 1;      /* nothing more is sent */
    bool over_h2 : 1;
    bool deaf : 1; /* a fault was found: what the client still sends is dropped */
    uint16_t code; /* 0: open */
    uint8_t close_len;
    uint16_t drain_code; /* 0: no drain */
    char id[ORIBI__ID_LEN];
    int64_t opened_us;
    int64_t heard_ms;   /* when bytes came last, or could have come first */
    int64_t message_ms; /* since when a message is on its way; 0: none is */
    int64_t message_in; /* bytes read since then */
    int64_t stalled_ms; /* since when the client takes nothing; 0: nothing waits */
    int64_t end_ms;     /* CLOSING: when the connection ends. OPEN: when a drain closes it; 0: no drain */
    uint32_t second;    /* the one in which messages are counted */
    uint32_t second_count;
    uint64_t messages[2]; /* from the client, to it */
    uint64_t bytes[2];
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
    return oribi_slice(socket->text + socket->handler_len + socket->protocol_len + socket->kept_len, socket->path_len);
}

/* ---- its life (websocket.c) ---- */

/* Writes a line of the error log about a fault of the client's, or of a worker's. */
void oribi__websocket_say(struct oribi__websocket *socket, const char *what, uint16_t code);

/* Are frames of the client read now? */
bool oribi__websocket_reads(const struct oribi__websocket *socket);

/* Sets the timer: to the first deadline; or so that it comes at this time at the latest. */
void oribi__websocket_arm(struct oribi__websocket *socket);
void oribi__websocket_arm_by(struct oribi__websocket *socket, int64_t at_ms);

/* When the message on its way must have gone on; INT64_MAX: none is. */
int64_t oribi__websocket_message_deadline(const struct oribi__websocket *socket);

/* Appends a frame. False: out of memory, and the connection has ended. */
bool oribi__websocket_put(struct oribi__websocket *socket, enum oribi_websocket_opcode opcode, struct oribi_slice data);

/* Sends what waits, as far as the client takes it. The connection may end. */
void oribi__websocket_flush(struct oribi__websocket *socket);

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

/* ---- frames of the client (websocket_read.c) ---- */

void oribi__websocket_read_on(struct oribi__websocket *socket);

/* ---- the application (websocket_calls.c) ---- */

/* One call is out at a time. Without memory the socket is closed as if the call had failed. */
void oribi__websocket_call(struct oribi__websocket *socket, enum oribi_socket_event event);

/* Forgets the call and what has come of its answer. */
void oribi__websocket_end_call(struct oribi__websocket *socket);

#endif
