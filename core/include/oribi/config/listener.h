/* Listening sockets (listener.c), and those that the environment hands down (inherited.c). */
#ifndef ORIBI_CONFIG_LISTENER_H
#define ORIBI_CONFIG_LISTENER_H

#include "oribi/config/address.h"
#include "oribi/config/listen.h"
#include "oribi/config/options.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- listener ---- */

/* Listening sockets: parse an address, open or inherit it, describe it. Never calls shutdown() on one: inherited
 * sockets are shared. */

enum { ORIBI_LISTENERS_MAX = 64 };

/* Where a socket comes from; also the letter that stands for it in ORIBI_LISTEN (listener.h). */
enum oribi_listener_origin {
    ORIBI_ORIGIN_OWN = 'o',     /* opened here, or by the process that we replace */
    ORIBI_ORIGIN_STARTER = 's', /* SERVER_STARTER_PORT */
    ORIBI_ORIGIN_SYSTEMD = 'd', /* LISTEN_FDS */
    ORIBI_ORIGIN_FD = 'f',      /* bind fd://N */
};

struct oribi_listener {
    int fd; /* non-blocking, CLOEXEC */
    bool is_unix;
    bool inherited; /* not ours to unlink */
    bool proxy;     /* trusted peers begin with a PROXY header */
    bool frontend;  /* a frontend accepts here, and no worker */
    bool tls;       /* the frontend speaks TLS; `text` is that of tcp:// all the same */
    enum oribi_listener_origin origin;
    /* "tcp://127.0.0.1:9292", "tcp://[::1]:9292", "unix:///run/x.sock": for logs and matching */
    char text[ORIBI_ADDRESS_TEXT_CAP];
    char shown[ORIBI_ADDRESS_TEXT_CAP]; /* the same, "tls://…" where tls; oribi_listener_shown() */
    /* as asked for, canonical: "tcp://localhost:0"; text again where no bind asked for it */
    char spec[ORIBI_ADDRESS_TEXT_CAP];
    /* SERVER_NAME when the request has none, brackets around IPv6; "localhost" for unix */
    char host[ORIBI_ADDRESS_TEXT_CAP];
    char port[8]; /* decimal; "" for unix */
    char *path;   /* unix: file to unlink by its owner at the end, else NULL */
    /* private */
    bool fresh;                    /* opened by this call, not taken over */
    struct oribi_socket_file file; /* that `path` was, so that a successor's under the same name stays */
};

/* Its address, for eyes. */
static inline const char *oribi_listener_shown(const struct oribi_listener *item)
{
    return item->shown[0] ? item->shown : item->text;
}

struct oribi_listeners {
    struct oribi_listener items[ORIBI_LISTENERS_MAX];
    uint32_t count;
};

/* Opens every address of options->bind, taking over descriptors that the environment hands down (listener.h):
 *
 *   SERVER_STARTER_PORT   all of them, and bind opens none, as with the other servers that run under it; it says which
 *                         of them have a frontend, and asking for one with any other address is an error
 *   LISTEN_FDS            all of them when no bind was given, else those that a bind asks for
 *   ORIBI_LISTEN          those that a bind asks for and all that came from outside; the rest is closed
 *
 * A certificate, or what is asked of clients' certificates, is an error where no address speaks TLS.
 *
 * A stale unix socket file is replaced, one that answers is "in use". Port 0 gets a free port, seen in text. On
 * success the variables are removed from the environment (but SERVER_STARTER_PORT, which programs may look for), and
 * signals are held until the process installs its handlers (signals.h), so that a stop meets a process that cleans
 * up. 0, or ORIBI_EINVAL / ORIBI_ESYS with one line in `error` (ORIBI_ERROR_TEXT_CAP) and everything opened closed
 * again. */
int oribi_listeners_open(struct oribi_listeners *listeners, const struct oribi_options *options, char *error);

/* Whether `address` is [::] and IPv4 is meant by it too: it is not asked for with ipv6only, and no bind of the options
 * names an IPv4 address or a host with its port. Sockets are opened for both families then. */
bool oribi_listeners_take_ipv4_too(const struct oribi_options *options, const struct oribi_address *address);

/* Closes the descriptors; `unlink_paths` removes unix socket files that are ours. */
void oribi_listeners_close(struct oribi_listeners *listeners, bool unlink_paths);

/* Closes one listener in the same way; the caller then takes it out of its list. */
void oribi_listener_close(struct oribi_listener *item, bool unlink_path);

/* Removes the unix socket files that are ours, and forgets their names. */
void oribi_listeners_unlink(struct oribi_listeners *listeners);

/* Adds the listening socket fd as it is. Takes fd, also on failure. 0, or ORIBI_EINVAL with one line in `error`. For
 * sockets that a program hands over by a call (listen_sock of a Perl handler). `spec` NULL: its own address. */
int oribi_listeners_adopt(struct oribi_listeners *listeners, int fd, enum oribi_listener_origin origin,
                          const char *spec, char *error);

/* ---- inherited ---- */

/* Listening sockets that the environment hands down. One source counts, the first of:
 *
 *   ORIBI_LISTEN          our own, written by oribi_inherited_format(): a line "fd letter spec" for each socket
 *   SERVER_STARTER_PORT   "host:port=fd;port=fd;[v6]:port=fd;/path=fd"
 *   LISTEN_FDS            with LISTEN_PID and LISTEN_FDNAMES: descriptors from 3 on, if LISTEN_PID is this
 *                         process (sd_listen_fds(3))
 */

enum { ORIBI_INHERITED_NAME_CAP = 64, ORIBI_INHERITED_TEXT_CAP = ORIBI_LISTENERS_MAX * (ORIBI_ADDRESS_TEXT_CAP + 16) };

struct oribi_inherited_item {
    int fd; /* open, not looked at yet */
    enum oribi_listener_origin origin;
    bool taken;                          /* the caller's mark */
    char name[ORIBI_INHERITED_NAME_CAP]; /* of LISTEN_FDNAMES, else "" */
    char spec[ORIBI_ADDRESS_TEXT_CAP];   /* of ORIBI_LISTEN, else "" */
};

struct oribi_inherited {
    struct oribi_inherited_item items[ORIBI_LISTENERS_MAX];
    uint32_t count;
};

/* Reads the environment; count 0 when nothing is handed down. 0, or ORIBI_EINVAL with one line in `error` for a
 * variable that cannot be read or names a descriptor that is not open. */
int oribi_inherited_read(struct oribi_inherited *inherited, char *error);

/* Writes ORIBI_LISTEN's value for these listeners; ORIBI_INHERITED_TEXT_CAP bytes always suffice. NUL-terminated.
 * Returns its length. */
size_t oribi_inherited_format(const struct oribi_listeners *listeners, char *dst, size_t cap);

/* Removes ORIBI_LISTEN and systemd's variables, so that programs started later do not take the sockets for theirs. */
void oribi_inherited_clear(void);

#endif
