/* Streams of HTTP/2 as upstream requests. */
#ifndef ORIBI_FRONTEND_STREAMS_H2_H
#define ORIBI_FRONTEND_STREAMS_H2_H

#include "frontend/h2.h"

#include <stdint.h>

struct oribi__client;
struct oribi__frontend;
struct oribi_transport;
struct oribi_watch;
struct oribi__stream; /* a request, from its head until its answer has left */

/* Events of sessions whose `self` is the client. */
extern const struct oribi_h2_events oribi__stream_events;

/* Frees what belongs to the stream; its h2 stream is released or gone. */
void oribi__stream_destroy(struct oribi__stream *stream);

/* After output: lets workers go on, releases what has been answered. */
void oribi__streams_turn(struct oribi__client *client);

/* Until when a body has to go on, INT64_MAX: none is on its way; resets those that are late. */
int64_t oribi__streams_deadline(struct oribi__client *client, int64_t now_ms);

/* Calls the handlers of WebSockets and tunnels whose streams have something for them (streams_h2_socket.c). */
void oribi__streams_tell(struct oribi__frontend *frontend);

/* The watch, which is in no loop, tells the owner of this transport, a stream's. */
void oribi__stream_watch(struct oribi_transport *transport, struct oribi_watch *watch);

/* The call that a stream has left (oribi__channel_abandon) has ended in its worker. */
void oribi__h2_left_ended(struct oribi_h2_stream *h2);

#endif
