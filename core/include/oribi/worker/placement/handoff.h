/* The hand-off queue, through which workers pass connections on to siblings that sleep: one SOCK_SEQPACKET pair shared
 * by all workers of a server, made by the supervisor before any fork. Every holder has both ends.
 * doc/internals/placement.md says who sends when, and what a death at each step leaves. */
#ifndef ORIBI_WORKER_PLACEMENT_HANDOFF_H
#define ORIBI_WORKER_PLACEMENT_HANDOFF_H

#include "oribi/base/buf.h"
#include "oribi/base/limits.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum {
    ORIBI_HANDOFF_BYTES_MAX = 72 * 1024, /* in a message: the longest head by default, with what is added to it */
    /* in a file: the longest head there may be, with what is added to it, and trailers */
    ORIBI_HANDOFF_LONG_BYTES_MAX = ORIBI_HEAD_BYTES_CAP + 128 * 1024,
    ORIBI_HANDOFF_VECS_MAX = 9,
    ORIBI_CHANNELS_MAX = 4096, /* of all frontends: numbers 1 … ORIBI_CHANNELS_MAX */
};

/* Descriptors: non-blocking, CLOEXEC. All -1: no queue. */
struct oribi_handoff {
    int take_fd;
    int give_fd;
};

/* One connection on its way. */
struct oribi_handoff_item {
    int fd;                 /* the socket */
    int body_fd;            /* the spooled body of the request in `bytes`, or -1 */
    int ring_fd;            /* the memory of a channel (channel_ring.h); 0: none */
    int64_t body_len;       /* its length */
    int64_t complete_us;    /* oribi_clock_us() when the request was complete; 0: there is no complete request */
    bool proxy_awaited;     /* its PROXY header has not been read yet */
    uint16_t channel;       /* of a frontend, by its number; 0: a client's connection */
    bool proxy_tls;         /* it said that the client speaks TLS */
    uint32_t request_count; /* begun on this connection before the one in `bytes` */
    uint32_t listener;      /* index and hash of the listener that accepted it */
    uint32_t listener_hash;
    uint8_t addr_len;
    uint8_t port_len;
    char addr[INET6_ADDRSTRLEN];
    char port[6];
    struct oribi_slice bytes; /* read and not answered */
    char *long_bytes; /* of one that was taken: owned, `bytes` lie there and came in a file; NULL: in the room */
};

/* Gives a queue. 0 or ORIBI_ESYS. */
int oribi_handoff_create(struct oribi_handoff *queue);

/* Closes both ends. What is in the queue stays there as long as another process holds it. */
void oribi_handoff_close(struct oribi_handoff *queue);

/* For a child about to exec: writes "take,give" to dst (cap >= 24), and lets the descriptors pass (or not, as it is
 * after create). */
void oribi_handoff_export(const struct oribi_handoff *queue, char *dst, size_t cap);
void oribi_handoff_set_inheritable(const struct oribi_handoff *queue, bool on);

/* In the program started by it: takes the descriptors that `text` names. 0, or ORIBI_EINVAL when it names none that
 * are open. */
int oribi_handoff_import(struct oribi_handoff *queue, const char *text);

/* Puts one connection into the queue. Borrows item, whose `bytes` are ignored: they are in vec (at most
 * ORIBI_HANDOFF_VECS_MAX). The caller closes its own descriptors afterwards. 0; ORIBI_AGAIN: full; ORIBI_ELIMIT: too
 * many bytes; ORIBI_ESYS. After anything but 0 nothing was sent. */
int oribi_handoff_give(const struct oribi_handoff *queue, const struct oribi_handoff_item *item,
                       const struct iovec *vec, size_t count);

/* As oribi_handoff_give(), with the bytes in a file, which may be ORIBI_HANDOFF_LONG_BYTES_MAX. Also ORIBI_EFULL or
 * ORIBI_ESTORE: no file. */
int oribi_handoff_give_long(const struct oribi_handoff *queue, const struct oribi_handoff_item *item,
                            const struct iovec *vec, size_t count);

enum { ORIBI_HANDOFF_WAKEUP = 1 };

/* Takes the oldest one out. Gives its descriptors and `long_bytes`; other `bytes` point into room [buf, cap),
 * cap > ORIBI_HANDOFF_BYTES_MAX + 1024. 0; ORIBI_HANDOFF_WAKEUP: a wake-up and nothing else, see
 * oribi_handoff_notify(); ORIBI_AGAIN: empty; ORIBI_EBAD: a message of another version, or one whose bytes are out of
 * reach (no memory, a file that is not what was said), dropped; ORIBI_ELIMIT: descriptors are out, and what is left of
 * the message is given: `body_fd` is -1, bytes that came in a file are missing, and `fd` is the socket, or -1 when that
 * did not come either and its client is cut; ORIBI_ESYS. Look before with oribi_os_can_open(): a message has up to
 * four descriptors, with neither a ring nor a file of bytes two. */
int oribi_handoff_take(const struct oribi_handoff *queue, char *buf, size_t cap, struct oribi_handoff_item *item);

/* True unless the queue is empty. Gives the time when the oldest request in it was complete (oribi_clock_us()); 0: the
 * first message is no request. Takes nothing out and wakes no worker. */
bool oribi_handoff_waiting(const struct oribi_handoff *queue, int64_t *complete_us);

/* Wakes a worker that sleeps, which takes the oldest message there is and looks at its listeners: called after a
 * wake-up for a message or a newcomer may have gone to a worker that died, or that can take neither. */
void oribi_handoff_notify(const struct oribi_handoff *queue);

/* When no worker is left and none will come: closes everything in the queue, after a 503 where a request has begun.
 * Returns the number of those. */
uint32_t oribi_handoff_refuse(const struct oribi_handoff *queue);

#endif
