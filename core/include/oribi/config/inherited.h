/* Listening sockets that the environment hands down. One source counts, the first of:
 *
 *   ORIBI_LISTEN          our own, written by oribi_inherited_format(): a line "fd letter spec" for each socket
 *   SERVER_STARTER_PORT   "host:port=fd;port=fd;[v6]:port=fd;/path=fd"
 *   LISTEN_FDS            with LISTEN_PID and LISTEN_FDNAMES: descriptors from 3 on, if LISTEN_PID is this
 *                         process (sd_listen_fds(3))
 */
#ifndef ORIBI_CONFIG_INHERITED_H
#define ORIBI_CONFIG_INHERITED_H

#include "oribi/config/listener.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
