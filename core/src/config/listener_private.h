/* Shared by listener.c (one socket) and listener_open.c (opening and taking them). */
#ifndef ORIBI_SRC_CONFIG_LISTENER_PRIVATE_H
#define ORIBI_SRC_CONFIG_LISTENER_PRIVATE_H

#include "oribi/config/listener.h"

/* Adds a copy of the item, whose fd, origin, inherited and fresh are set; the rest is filled in from the socket.
 * `spec` is the address that was asked for (NULL or "": the socket's own), `asked_host` a host name that becomes
 * SERVER_NAME, or NULL. Takes the fd, also on failure. 0, or ORIBI_EINVAL with one line in `error`. */
int oribi__listener_add(struct oribi_listeners *listeners, struct oribi_listener *item, const char *spec,
                        const char *asked_host, char *error);

/* Writes the address that the socket is bound to, "tcp://127.0.0.1:9292"; "" when it is of a kind that we do not
 * know. Borrows fd. */
void oribi__listener_text(int fd, char text[ORIBI_ADDRESS_TEXT_CAP]);

#endif
