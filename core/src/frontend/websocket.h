/* WebSockets: a frontend holds them, and asks the application once for each message
 * (doc/internals/websocket-calls.md). */
#ifndef ORIBI_FRONTEND_WEBSOCKET_H
#define ORIBI_FRONTEND_WEBSOCKET_H

#include "frontend/peer.h"
#include "oribi/base/buf.h"
#include "oribi/config/options.h"
#include "oribi/event/timers.h"
#include "oribi/http/head.h"
#include "oribi/http/response_head.h"
#include "oribi/http/socket_call.h"
#include "oribi/http/status.h"

#include <stdbool.h>
#include <stdint.h>

struct oribi__frontend;
struct oribi__message;
struct oribi__upstream_request;
struct oribi__websocket;
struct oribi__handshake;
struct oribi__websocket_work;

/* Lists of sockets, see websocket_idle.c. */
enum {
    ORIBI__WEBSOCKETS_IDLE,
    ORIBI__WEBSOCKETS_FRESH,
    ORIBI__WEBSOCKETS_FRESH_COUNT = 16,
    ORIBI__WEBSOCKETS_BUSY = ORIBI__WEBSOCKETS_FRESH + ORIBI__WEBSOCKETS_FRESH_COUNT,
    ORIBI__WEBSOCKETS_CLOSED,
    ORIBI__WEBSOCKETS_LISTS
};

struct oribi__websocket_list {
    struct oribi__websocket *first;
    struct oribi__websocket *last;
};

struct oribi__websockets {
    struct oribi__websocket_list lists[ORIBI__WEBSOCKETS_LISTS];
    struct oribi__websocket *posted; /* a turn has not read all that is there */
    struct oribi__websocket_work *spare;
    uint32_t spare_count;
    struct oribi_timer pings;          /* of idle sockets */
    struct oribi_buf record;           /* that goes out with a call, until its head is written */
    struct oribi_buf marks;            /* of its channels, until the record is written */
    char *scratch;                     /* bytes of a client */
    struct oribi__message *wrapped_of; /* that a socket with ids has missed; until the turn ends */
    struct oribi__message *wrapped;    /* as they get it */
    uint64_t random;
};

void oribi__websockets_deinit(struct oribi__frontend *frontend); /* closes all */
void oribi__websockets_turn(struct oribi__frontend *frontend);   /* frees those that have ended */
void oribi__websockets_trim(struct oribi__websockets *sockets);  /* frees what is kept for the next one's work */
bool oribi__websockets_are_over(const struct oribi__frontend *frontend); /* none is left, and no call of one */

/* Closes all within frontend_drain; with 1001 where the addresses end (`last`), else with 1012. */
void oribi__websockets_drain(struct oribi__frontend *frontend, bool last);

/* websocket_rows.c: writes rows of them to an empty file (oribi/worker/frontend_socket_rows.h). False: no memory, or
 * the file takes nothing. */
bool oribi__websockets_write_rows(const struct oribi__frontend *frontend, int fd);

/* ---- the handshake (websocket_handshake.c) ---- */

/* Is this request, as HTTP/1.1 has it, a handshake that may be offered? ORIBI_REFUSAL_OTHER, and *offered
 * says so; else why it is refused, and *reason is a few words for the log. */
enum oribi_refusal oribi__websocket_check(const struct oribi__frontend *frontend, const struct oribi_head *head,
                                          bool *offered, const char **reason);

/* Is there room for one more socket? */
bool oribi__websocket_room(const struct oribi__frontend *frontend);

/* May a page of this origin open a socket at this host and port? `origins`: those of the option. Pure. */
bool oribi__websocket_origin_allowed(struct oribi_slice origin, struct oribi_slice host, struct oribi_slice port,
                                     const struct oribi_text_list *origins);

/* Has the application accepted the handshake with this answer? */
bool oribi__websocket_accepts(const struct oribi_answer *answer);

/* Is it that of a call that has failed, with the reason of the close as its body? */
bool oribi__websocket_explains(const struct oribi_answer *answer);

/* Is this field of an accepting answer not the client's? `tunnel`: the answer is that of an application that speaks the
 * protocol itself. */
bool oribi__websocket_drops(const struct oribi_header *header, bool tunnel);

/* Appends the head of the answer to a client of HTTP/1.1: 101, with the application's own fields. 0, ORIBI_ENOMEM or
 * ORIBI_EBAD. */
int oribi__websocket_write_answer(struct oribi__frontend *frontend, const struct oribi_head *head,
                                  const struct oribi_answer *answer, struct oribi_buf *out);

/* ---- a socket's life (websocket.c) ---- */

/* Makes the socket of a handshake that the application has accepted, as far as it is before the application's record is
 * whole. `path`: of the request. NULL: no memory. */
struct oribi__handshake *oribi__websocket_create(struct oribi__frontend *frontend, struct oribi_slice path);

/* The answer 101 goes out first, when the socket starts. 0, ORIBI_ENOMEM, or ORIBI_EBAD: it cannot be sent. */
int oribi__websocket_answer(struct oribi__handshake *handshake, const struct oribi_head *head,
                            const struct oribi_answer *answer);

/* Takes a part of the record. `last`: it is whole now. 0 or ORIBI_EBAD. */
int oribi__websocket_take_record(struct oribi__handshake *handshake, struct oribi_slice part, bool last);

/* Takes the handshake, and the peer, a socket or a stream; the WebSocket lives, or, out of memory, the peer is closed.
 * `early`: bytes behind the handshake, copied. */
void oribi__websocket_start(struct oribi__handshake *handshake, const struct oribi__peer *peer,
                            struct oribi_slice early);

/* Frees one that was not started. */
void oribi__websocket_discard(struct oribi__handshake *handshake);

/* The close code for a call that was not answered with 200. */
uint16_t oribi__websocket_code_of(int status);

#endif
