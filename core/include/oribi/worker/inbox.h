/* The inbox of a server's publications: a socket pair of records, to which every process of the server writes, and from
 * which the frontend that leads reads. The supervisor keeps both ends, and its successor gets them, so that nothing is
 * lost that lies there. Also the sending and receiving that frontends have among themselves. */
#ifndef ORIBI_WORKER_INBOX_H
#define ORIBI_WORKER_INBOX_H

#include "oribi/base/buf.h"
#include "oribi/http/publication.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

enum { ORIBI_INBOX_WAIT_MS = 1000 }; /* of a publisher, for room */

/* Two connected ends, of which the first is read; neither waits. 0 or a code of os.h. */
int oribi_inbox_pair(int fds[2]);

/* Sends one record, with a copy of `passed` (-1: none), and does not wait. 0, ORIBI_AGAIN: there is no room;
 * ORIBI_ECLOSED: nobody can read it; ORIBI_ESYS. */
int oribi_inbox_send(int fd, const struct iovec *vec, size_t count, int passed);

/* Receives one record of at most `cap` bytes without waiting. `passed`: the descriptor that has come with it, the
 * caller's from now on; -1: none. Gives the number of bytes; 0: the end, or an empty record; ORIBI_AGAIN; ORIBI_EBAD: a
 * record that is longer, or has more than one descriptor. */
ssize_t oribi_inbox_receive(int fd, char *dst, size_t cap, int *passed);

/* Receives what there is of a record, or of a stream; `cut`: the record was longer, or had more than one descriptor. */
ssize_t oribi_inbox_receive_cut(int fd, char *dst, size_t cap, int *passed, bool *cut);

/* Gives sealed memory that holds a copy of the text, of at least one byte. 0 or a code of os.h. */
int oribi_inbox_memory(struct oribi_slice text, int *fd);

/* Appends what such memory of exactly `n` bytes holds, whoever has made it. Takes the descriptor. 0, ORIBI_EBAD: it is
 * no such memory; ORIBI_ENOMEM. */
int oribi_inbox_memory_take(int fd, size_t n, struct oribi_buf *out);

/* Sends a publication that has passed its check. Waits for room at most this long. 0, ORIBI_AGAIN: there was none, or
 * ORIBI_ECLOSED, ORIBI_ENOMEM, ORIBI_ELIMIT, ORIBI_ESYS. */
int oribi_inbox_publish(int fd, const struct oribi_publication *publication, int64_t wait_ms);

/* --- this process's way to the inbox --- */

/* This process belongs to a server; fd: its inbox, which stays open in all that it forks; -1: the server has none.
 * `control`: the option of this name, copied; NULL: the control socket is where the folder says. Leave: it does no
 * longer. */
void oribi_publisher_enter(int fd, const char *control);
void oribi_publisher_leave(void);

enum oribi_publisher {
    ORIBI_PUBLISHER_OUTSIDE, /* the process belongs to no server, or has closed what it had */
    ORIBI_PUBLISHER_NONE,    /* its server has no frontend */
    ORIBI_PUBLISHER_READY,
};

/* Gives what this process has, and the inbox where it is ready: borrowed. */
enum oribi_publisher oribi_publisher_inbox(int *fd);

/* The control socket of the server that this process belongs to, as its option names it; NULL: no option does. */
const char *oribi_publisher_control(void);

#endif
