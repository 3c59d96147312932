/* Event streams (server-sent events) as the bindings see them. An application gives the request to the frontend, which
 * sends the events of channels to the client while no worker is occupied: oribi_events_stream(), and an answer with the
 * status 200, of which the headers count. Any other answer is an ordinary one. Threads: as in req.h. */
#ifndef ORIBI_WORKER_EVENTS_H
#define ORIBI_WORKER_EVENTS_H

#include "oribi/worker/req.h"

#include <stdbool.h>
#include <stdint.h>

/* May the request become an event stream, as far as the client is concerned: a GET that accepts text/event-stream? True
 * also where no frontend holds the client, so that oribi_events_stream() says what is missing. */
static inline bool oribi_events_asked(const struct oribi_req *req)
{
    return __builtin_expect(req->head->wants_events, 0);
}

struct oribi_events_wish {
    const struct oribi_slice *channels; /* at least 1 */
    uint32_t channel_count;
    int64_t retry_ms;         /* -1: the client's own */
    struct oribi_slice since; /* the id of the last event that the client has; n 0: none */
};

/* Makes the request an event stream, as the next answer with 200 says. 0; ORIBI_EINVAL, and `error`
 * (ORIBI_ERROR_TEXT_CAP) says why; ORIBI_ENOMEM. The second time replaces the first. */
int oribi_events_stream(struct oribi_req *req, const struct oribi_events_wish *wish, char *error);

/* Is it one? Then an answer with 200 has no body. */
bool oribi_events_streams(const struct oribi_req *req);

/* The value of Last-Event-ID; n 0: none. As long as the request. */
struct oribi_slice oribi_events_last_id(const struct oribi_req *req);

#endif
