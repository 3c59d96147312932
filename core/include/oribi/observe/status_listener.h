/* The status listener: a few connections at a time, one GET or HEAD on each, answered by the supervisor between its
 * other work. Nothing here waits; a turn accepts, reads and sends what is there, and makes one answer at most.
 *
 *            ┌─── read ◄───┐                     ┌──────────► closed
 *   accept ──┴► head not whole ── whole ──► answer made ── all sent: our side is shut ──► the client's side is closed
 *                    └── a mistake ────────────────┘
 *
 * Whatever a client does, its connection ends after ORIBI__STATUS_MS; a newcomer that finds all of them taken takes the
 * place of the oldest that waits for its client. */
#ifndef ORIBI_OBSERVE_STATUS_LISTENER_H
#define ORIBI_OBSERVE_STATUS_LISTENER_H

#include "oribi/base/buf.h"
#include "observe/side_listener.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    ORIBI__STATUS_CLIENTS_MAX = 16,
    ORIBI__STATUS_HEAD_BYTES_MAX = 8192,
    ORIBI__STATUS_MS = 5000, /* a connection, from its beginning to its end */
};

struct oribi__observe;

struct oribi__status_client {
    int fd;         /* -1: none */
    int64_t until;  /* when it is closed whatever it does */
    bool unread;    /* bytes may be in `in` that were not looked at, because another answer was made in that turn */
    uint32_t asked; /* question about stacks whose answer it waits for; 0: none */
    bool ended;     /* the answer is sent: only the client's close is waited for */
    struct oribi_buf in;
    struct oribi_buf out;
    size_t sent; /* bytes of out */
};

struct oribi__status_listener {
    struct oribi__side_listener side;
    uint32_t asked; /* of the client whose request is looked at */
    struct oribi__status_client clients[ORIBI__STATUS_CLIENTS_MAX];
};

/* All-zero becomes: no listener, no client. */
void oribi__status_init(struct oribi__status_listener *status);

/* Opens the address of the option `status` and begins the history; does nothing without it. A successor of an upgrade
 * opens the address later, when its predecessor has left it. 0 or a code with `error` (ORIBI_ERROR_TEXT_CAP). */
int oribi__status_open(struct oribi__observe *observe, char *error);

/* Accepts, reads, answers, sends; never waits. */
void oribi__status_turn(struct oribi__observe *observe);

/* Descriptors that the next turn waits for: those to be read (room for 1 + ORIBI__STATUS_CLIENTS_MAX) and those to be
 * written (room for ORIBI__STATUS_CLIENTS_MAX), whose count goes to *out_count; gives the count of the former. */
size_t oribi__status_fds(const struct oribi__observe *observe, int *fds, int *out_fds, size_t *out_count);

/* When a turn is wanted at the latest, oribi_clock_ms(); INT64_MAX: when there is something to read or send. */
int64_t oribi__status_deadline(const struct oribi__observe *observe);

/* Closes everything, and ends the history; `unlink_path` removes the socket file if it is ours. */
void oribi__status_close(struct oribi__observe *observe, bool unlink_path);

/* status_answer.c: reads one request (borrowed) and appends the answer to it, head and body. True when there is an
 * answer; false when more bytes are wanted, or the workers are being asked: then observe->status.asked says what. */
bool oribi__status_answer(struct oribi__observe *observe, const char *request, size_t n, struct oribi_buf *out);

#endif
