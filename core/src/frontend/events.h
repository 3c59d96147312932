/* Event streams: server-sent events that a frontend sends to a client while no worker has its request. A worker has
 * answered with a record (oribi/http/event_stream.h); from then on the upstream request has no channel, and gets its
 * answer from topics (topics.h), by the same functions as from a worker. So its client may speak HTTP/1.1 or HTTP/2. */
#ifndef ORIBI_FRONTEND_EVENTS_H
#define ORIBI_FRONTEND_EVENTS_H

#include "oribi/base/buf.h"
#include "oribi/event/timers.h"
#include "oribi/http/response_head.h"

#include <stdbool.h>
#include <stdint.h>

struct oribi__event_stream;
struct oribi__frontend;
struct oribi__message;
struct oribi__upstream_request;

struct oribi__events {
    struct oribi__event_stream *first; /* written to longest ago */
    struct oribi__event_stream *last;
    struct oribi__event_stream *behind; /* those that get what they have missed as fast as they read */
    struct oribi__event_stream *told;   /* the one to which something is sent; NULL: it has ended meanwhile */
    struct oribi_timer timer;
    struct oribi_buf body;             /* of `message`, as an event */
    struct oribi_buf whole;            /* an id and `body` */
    struct oribi__message *message;    /* kept during a turn */
    struct oribi__message *identified; /* `whole` is this one's for streams of its channel alone */
    struct oribi_buf missed;           /* events that a stream gets at once */
    int64_t drain_since_ms;
    int64_t drain_step_us; /* between the ends of two streams; 0: no drain, or all at once */
    uint64_t drained;
    uint64_t turn; /* number of this turn of the frontend */
};

/* Does this answer of a worker make the request an event stream? */
bool oribi__events_accepts(const struct oribi__upstream_request *call, const struct oribi_answer *answer);

/* Makes the request one, in the place of ops->begin(). Its channel is free. */
void oribi__events_begin(struct oribi__upstream_request *call, struct oribi_answer *answer);

/* The client has closed its sending side, or all of it: something is sent, so that the latter is found out. */
void oribi__events_half_closed(struct oribi__upstream_request *call);

/* The request ends: so does its stream. */
void oribi__events_discard(struct oribi__upstream_request *call);

/* Ends all streams within frontend_drain, one after another. */
void oribi__events_drain(struct oribi__frontend *frontend);

void oribi__events_turn(struct oribi__frontend *frontend); /* its end: forgets what was written in it */
void oribi__events_deinit(struct oribi__frontend *frontend);

#endif
