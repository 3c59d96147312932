/* Clients of HTTP/2: their sockets, sessions (h2.h) and deadlines. */
#ifndef ORIBI_FRONTEND_CLIENTS_H2_H
#define ORIBI_FRONTEND_CLIENTS_H2_H

#include "frontend/h2.h"
#include "frontend/peer.h"
#include "oribi/event/loop.h"
#include "oribi/event/timers.h"
#include "oribi/http/fields.h"

#include <stdbool.h>
#include <stdint.h>

struct oribi__frontend;
struct oribi__stream;
struct oribi__stream_bytes;

struct oribi__client {
    struct oribi_watch watch; /* first: the handler casts */
    struct oribi__frontend *frontend;
    struct oribi__client *prev;
    struct oribi__client *next;
    struct oribi__client *dirty_next;
    struct oribi__client *rest_prev; /* without a stream, the one that has rested longest first */
    struct oribi__client *rest_next;
    struct oribi__peer peer;
    struct oribi_h2 *h2;
    struct oribi__stream *streams;
    struct oribi__stream *ended; /* may be released once their answers have left */
    struct oribi_timer timer;    /* at the latest then it is looked at */
    int64_t idle_since_ms;
    int64_t stuck_since_ms; /* the socket takes nothing; 0: it does */
    bool has_blocked;       /* streams whose workers wait */
    bool dirty;
    bool asleep;
    bool rests;
    uint32_t left_count;    /* streams that were reset, and whose calls run on */
    bool waits;             /* each of its requests waits for a worker */
    uint32_t stream_count;  /* of `streams` */
    uint32_t waiting_count; /* of them, those that wait for a worker */
    uint32_t open_count;    /* of them, WebSockets and tunnels */
    bool holds;             /* all are */
    bool over;              /* to be closed once all is sent */
    bool lingers;           /* all is sent, and the socket shut: what the client had sent before is read and dropped */
    int64_t linger_since_ms;
    int64_t linger_until_ms;
    uint32_t linger_left; /* bytes */
};

struct oribi__h2_clients {
    struct oribi__client *first;
    struct oribi__client *dirty;         /* have something to send, or to be looked at */
    struct oribi__client *resting_first; /* without a stream, the one that has rested longest first */
    struct oribi__client *resting_last;
    struct oribi__stream_bytes *told; /* streams_h2_socket.c: have something for who reads or writes them */
    struct oribi_h2_limits limits;
    struct oribi_h2_limits trusted; /* the same of balancers, which trusted_proxies names */
    struct oribi_field fields[ORIBI_RESPONSE_FIELDS_MAX + 1];
};

void oribi__h2_init(struct oribi__frontend *frontend); /* its limits */

/* Takes peer. `first`: bytes that were read from it. */
void oribi__h2_begin(struct oribi__frontend *frontend, struct oribi__peer *peer, struct oribi_slice first);
void oribi__h2_turn(struct oribi__frontend *frontend);

/* How long the client without a stream that has rested longest has; -1: there is none. */
int64_t oribi__h2_rested_ms(const struct oribi__frontend *frontend);

/* Closes that client for a new one, with a GOAWAY. False: it had sent a request. */
bool oribi__h2_make_room(struct oribi__frontend *frontend);
void oribi__h2_drain(struct oribi__frontend *frontend);
void oribi__h2_close_all(struct oribi__frontend *frontend);

/* Something of the client is to be sent or looked at, in this turn. */
void oribi__client_dirty(struct oribi__client *client);

/* It has a stream, or none any longer: as client->streams says. */
void oribi__client_rests(struct oribi__client *client);

/* Its requests wait for workers, or not all of them any longer; it has WebSockets alone: as its counts say. */
void oribi__client_waits(struct oribi__client *client);

#endif
