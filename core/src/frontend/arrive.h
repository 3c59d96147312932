/* A client until it is known what it speaks. */
#ifndef ORIBI_FRONTEND_ARRIVE_H
#define ORIBI_FRONTEND_ARRIVE_H

#include "frontend/frontend_private.h"

enum { ORIBI__PREFACE_BYTES = 24 }; /* of HTTP/2, RFC 9113 3.4 */

struct oribi__arrival {
    struct oribi_watch watch; /* first: the handler casts */
    struct oribi__frontend *frontend;
    struct oribi__arrival *prev;
    struct oribi__arrival *next;
    struct oribi__peer peer;
    struct oribi_tls_session *session; /* NULL: without TLS, or its PROXY header has not come */
    bool proxy_awaited;
    struct oribi_buf proxy; /* the part of the PROXY header that has come */
    int64_t since_ms;
    int64_t deadline_ms;
    uint32_t len; /* bytes of a preface that have come */
    char first[ORIBI__PREFACE_BYTES];
};

static inline const struct oribi_frontend_listener *oribi__arrival_listener(const struct oribi__arrival *arrival)
{
    return &arrival->frontend->config->listeners[arrival->peer.listener];
}

/* The handler of its watch. */
void oribi__arrival_on_ready(void *self, struct oribi_watch *watch);

/* Goes on with what the client has sent. */
void oribi__arrival_go_on(struct oribi__arrival *arrival);

/* Closes it; it is freed at the end of the turn. */
void oribi__arrival_drop(struct oribi__arrival *arrival);

#endif
