/* Listening sockets: parse an address, open or inherit it, describe it. Never calls shutdown() on one: inherited sockets are shared. */
#ifndef ORIBI_SERVER_LISTENER_H
#define ORIBI_SERVER_LISTENER_H

#include "oribi/server/address.h"
#include "oribi/server/options.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ORIBI_LISTENERS_MAX = 64 };

struct oribi_listener {
    int fd; /* non-blocking, CLOEXEC */
    bool is_unix;
    bool inherited;                     /* not ours to unlink */
    char text[ORIBI_ADDRESS_TEXT_CAP];  /* "tcp://127.0.0.1:9292", "tcp://[::1]:9292", "unix:///run/x.sock": for logs and matching */
    char host[ORIBI_ADDRESS_TEXT_CAP];  /* SERVER_NAME when the request has none; "localhost" for unix */
    char port[8];                       /* decimal; "" for unix */
    char *path;                         /* unix: file to unlink by its owner at the end, else NULL */
};

struct oribi_listeners {
    struct oribi_listener items[ORIBI_LISTENERS_MAX];
    uint32_t count;
};

/* Opens every address of options->bind, taking over descriptors that the environment hands down (inherited.h) where the address matches, or
 * all of them when no bind was given. A stale unix socket file is replaced, one that answers is "in use". Port 0 gets a free port, seen in
 * text. 0, or ORIBI_EINVAL / ORIBI_ESYS with one line in `error` (ORIBI_OPTIONS_ERROR_CAP) and everything opened closed again. */
int oribi_listeners_open(struct oribi_listeners *listeners, const struct oribi_options *options, char *error);

/* Closes the descriptors; `unlink_paths` removes unix socket files that are ours. */
void oribi_listeners_close(struct oribi_listeners *listeners, bool unlink_paths);

#endif
