/* Clients of HTTP/1.1, which are connections of the reactor. */
#ifndef ORIBI_FRONTEND_CLIENTS_H1_H
#define ORIBI_FRONTEND_CLIENTS_H1_H

#include "oribi/event/reactor.h"

struct oribi__frontend;

struct oribi__h1_clients {
    char *text; /* ORIBI_RESPONSE_HEAD_BYTES_MAX: heads of answers */
};

int oribi__h1_init(struct oribi__frontend *frontend); /* 0 or ORIBI_ENOMEM */
void oribi__h1_deinit(struct oribi__frontend *frontend);

struct oribi_reactor_hooks oribi__h1_hooks(struct oribi__frontend *frontend);
void oribi__h1_turn(struct oribi__frontend *frontend); /* requests that are complete become calls; output that waits */

#endif
