/* A request's part in an event stream: the record that goes to the frontend. */
#ifndef ORIBI_WORKER_EVENTS_PRIVATE_H
#define ORIBI_WORKER_EVENTS_PRIVATE_H

#include "oribi/worker/events.h"

#include "oribi/http/response.h"

struct oribi__exchange;

/* Answers a request that has become an event stream, where the status is 200. As oribi_reply(). */
int oribi__events_reply(struct oribi__exchange *exchange, const struct oribi_header *headers, uint32_t header_count);

/* Of a request that may become one: is this head none that may be sent? Logs why. */
bool oribi__events_refuse_head(struct oribi__exchange *exchange, int status, const struct oribi_header *headers,
                               uint32_t header_count);

/* Has the frontend been told? It writes the line of the access log. */
bool oribi__events_told(const struct oribi__exchange *exchange);

void oribi__events_free(struct oribi__exchange *exchange);

#endif
