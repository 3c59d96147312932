/* An address of the supervisor's own, beside those of the application: options status and agent. A successor of an
 * upgrade opens it when its predecessor has left it, which it does when it hears that the successor serves. */
#ifndef ORIBI_OBSERVE_SIDE_LISTENER_H
#define ORIBI_OBSERVE_SIDE_LISTENER_H

#include "oribi/config/listen.h"
#include "oribi/event/dispatcher.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    /* between two tries of a successor to open the address of its predecessor; after an accept that has failed */
    ORIBI__SIDE_RETRY_MS = 100,
    ORIBI__SIDE_TRIES_SAID = 50, /* after so many tries the log says so */
};

struct oribi__observe;

struct oribi__side_listener {
    struct oribi__observe *observe;
    const char *option;  /* its name, for log lines; static storage */
    const char *address; /* as the option gives it; borrowed */
    int fd;              /* -1: none */
    bool is_unix;
    struct oribi_socket_file file; /* where is_unix */
    uint32_t tries;
    struct oribi_watcher watcher; /* newcomers */
    struct oribi_timer retry;     /* to open the address, or to accept again */
};

/* No listener yet. */
void oribi__side_init(struct oribi__side_listener *side, const char *option);

/* Opens `address` (borrowed for the listener's life), or in a successor once it is free. From then on
 * newcomer(observe, …) is called while a connection waits. 0 or a code with `error` (ORIBI_ERROR_TEXT_CAP). A unix
 * socket is this process's user's alone; with a mode or umask in the address it is that of `user` and `group`, as those
 * of `bind` are. A stale file is removed. */
int oribi__side_open(struct oribi__observe *observe, struct oribi__side_listener *side, const char *address,
                     void (*newcomer)(void *owner, uint8_t ready), char *error);

/* Gives the next connection. False: none waits, or descriptors are out, which pauses the listener for a moment. */
bool oribi__side_accept(struct oribi__side_listener *side, int *fd);

/* In a child that shares the descriptor: closes it and does nothing else. */
void oribi__side_let_go(struct oribi__side_listener *side);

/* Closes; `unlink_path` removes the socket file if it is ours. */
void oribi__side_close(struct oribi__side_listener *side, bool unlink_path);

#endif
