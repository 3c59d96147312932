/* The status listener: a few connections at a time, one request on each, answered by the supervisor between its
 * other work. Nothing here waits: a handler accepts, reads or sends what is there, and makes one answer at most.
 *
 *            ┌─── read ◄───┐                     ┌──────────► closed
 *   accept ──┴► head not whole ── whole ──► answer made ── all sent: our side is shut ──► the client's side is closed
 *                    └── a mistake ────────────────┘
 *
 * Whatever a client does, its connection ends after ORIBI__STATUS_MS. A newcomer that finds all of them taken takes
 * the place of the oldest, unless that one's request has just come, which is answered first. */
#ifndef ORIBI_OBSERVE_STATUS_LISTENER_H
#define ORIBI_OBSERVE_STATUS_LISTENER_H

#include "oribi/base/buf.h"
#include "observe/side_listener.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    ORIBI__STATUS_CLIENTS_MAX = 16,
    ORIBI__STATUS_HEAD_BYTES_MAX = 8192,
    ORIBI__STATUS_BODY_BYTES_MAX = 4 * 1024 * 1024, /* of a POST with the token: a message, and its escapes */
    ORIBI__STATUS_MS = 5000,                        /* a connection, from its beginning to its end */
};

struct oribi__observe;
struct oribi_head;

struct oribi__status_client {
    struct oribi__observe *observe;
    int fd;         /* -1: none */
    uint32_t asked; /* question about stacks whose answer it waits for; 0: none */
    size_t wanted;  /* bytes of its request, once a body is known to belong to it; 0: it is a head */
    bool ended;     /* the answer is sent: only the client's close is waited for */
    struct oribi_watcher watcher;
    struct oribi_timer until; /* closes it whatever it does */
    struct oribi_buf in;
    struct oribi_buf out;
    size_t sent; /* bytes of out */
};

struct oribi__status_listener {
    struct oribi__side_listener side;
    struct oribi__status_client clients[ORIBI__STATUS_CLIENTS_MAX];
};

/* All-zero becomes: no listener, no client. */
void oribi__status_init(struct oribi__status_listener *status);

/* Opens the address of the option `status` and begins the history; does nothing without it. A successor of an upgrade
 * opens the address later, when its predecessor has left it. Handlers and timers of the dispatcher do the rest. 0 or a
 * code with `error` (ORIBI_ERROR_TEXT_CAP). */
int oribi__status_open(struct oribi__observe *observe, char *error);

/* The question about stacks is answered: those who wait for it get their answers. */
void oribi__status_stacks(struct oribi__observe *observe);

/* In a child that shares the descriptors: closes them and does nothing else. */
void oribi__status_let_go(struct oribi__status_listener *status);

/* Closes everything; `unlink_path` removes the socket file if it is ours. */
void oribi__status_close(struct oribi__observe *observe, bool unlink_path);

/* status_answer.c: reads one request (borrowed) and appends the answer to it, head and body. True when there is an
 * answer; false when more bytes are wanted (*wanted in all, unless it is 0), or the workers are being asked: then
 * *asked, which is 0 at first, is the question, and the call comes again with it once that is answered. */
bool oribi__status_answer(struct oribi__observe *observe, const char *request, size_t n, uint32_t *asked,
                          size_t *wanted, struct oribi_buf *out);

/* Has the request the token of status_token (Authorization: Bearer)? False without the option. */
bool oribi__status_has_token(const struct oribi__observe *observe, const struct oribi_head *head);

/* status_publish.c: POST /publish. Gives the status, and a line in `text` (ORIBI_ERROR_TEXT_CAP); 0: the body is not
 * there yet, and *wanted says how many bytes the request has. `body`: what stands behind the head. */
int oribi__status_publish(const struct oribi__observe *observe, const struct oribi_head *head, struct oribi_slice body,
                          size_t head_bytes, size_t *wanted, char *text);

#endif
