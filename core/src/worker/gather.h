/* gather - the pieces of an answer on their way into as few sendmsg(2) as there can be.
 *
 * Small pieces are copied one behind the other into the reactor's scratch buffer: each piece that the kernel takes
 * by itself costs it more than such a copy costs us. Large ones go as they are. A gathering is full after
 * ORIBI__VEC_MAX of what is left then, or when the scratch buffer is; it is sent and begins anew, and so any number
 * of pieces is taken. Lives within one function that has the reactor. */
#ifndef ORIBI_WORKER_GATHER_H
#define ORIBI_WORKER_GATHER_H

#include "oribi/event/conn.h"
#include "oribi/event/reactor.h"

#include <sys/uio.h>

enum {
    ORIBI__VEC_MAX = 256,
    ORIBI__GATHERED_BYTES = 512, /* the largest piece that is copied */
};

struct oribi__gathering {
    struct oribi_reactor *reactor; /* borrowed */
    struct oribi_conn *conn;       /* borrowed */
    size_t n;
    char *room;
    char *end;
    struct iovec vec[ORIBI__VEC_MAX];
};

/* Begins one in which the first `used` bytes of the scratch buffer are taken: they are the first piece, if there are
 * any. */
void oribi__gather_begin(struct oribi__gathering *g, struct oribi_reactor *reactor, struct oribi_conn *conn,
                         size_t used);

/* Adds pieces (borrowed until they are sent), sending what is there as often as it is full. 0 or what
 * oribi_conn_send() gives. */
int oribi__gather(struct oribi__gathering *g, const struct iovec *vec, size_t count);

/* Sends what has been gathered; `more`: something else follows at once. Nothing gathered, nothing sent. 0 or what
 * oribi_conn_send() gives. */
int oribi__gather_send(struct oribi__gathering *g, bool more);

#endif
