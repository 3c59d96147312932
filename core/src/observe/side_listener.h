/* An address of the supervisor's own, beside those of the application: options status and agent. A successor of an
 * upgrade opens it when its predecessor has left it, which it does when it hears that the successor serves. */
#ifndef ORIBI_OBSERVE_SIDE_LISTENER_H
#define ORIBI_OBSERVE_SIDE_LISTENER_H

#include <stdbool.h>
#include <stdint.h>

enum {
    ORIBI__SIDE_RETRY_MS = 100,  /* between two tries of a successor to open the address of its predecessor */
    ORIBI__SIDE_TRIES_SAID = 50, /* after so many tries the log says so */
};

struct oribi__observe;

struct oribi__side_listener {
    const char *option;  /* its name, for log lines; static storage */
    const char *address; /* as the option gives it; borrowed */
    int fd;              /* -1: none */
    bool is_unix;        /* then device and inode are those of its file */
    uint64_t device;     /* of the file, so that another's under the same name stays */
    uint64_t inode;
    int64_t retry_at; /* when to try again to open the address, oribi_clock_ms(); 0: not */
    uint32_t tries;
};

/* No listener yet. */
void oribi__side_init(struct oribi__side_listener *side, const char *option);

/* Opens `address` (borrowed for the listener's life), or in a successor remembers to. 0 or a code with `error`
 * (ORIBI_ERROR_TEXT_CAP). A unix socket is its owner's alone unless the address has a umask; a stale file is removed.
 * */
int oribi__side_open(const struct oribi__observe *observe, struct oribi__side_listener *side, const char *address,
                     char *error);

/* Tries again to open the address, when it is time. */
void oribi__side_turn(const struct oribi__observe *observe, struct oribi__side_listener *side);

/* When a turn is wanted, oribi_clock_ms(); INT64_MAX: never. */
int64_t oribi__side_deadline(const struct oribi__side_listener *side);

/* Closes; `unlink_path` removes the socket file if it is ours. */
void oribi__side_close(struct oribi__side_listener *side, bool unlink_path);

#endif
