/* The layer between a connection and its socket: none as a rule; TLS in the frontend. Each function behaves as the
 * function of base/os/os.h that it stands in for, so a connection need not know which it has.
 *
 * A transport is owned by its connection (struct oribi_conn: transport, set between oribi_conn_open() and
 * oribi_conn_start(); NULL: the socket itself) and does not own the descriptor. Where it holds bytes back that the
 * socket has not taken (records), it has accepted at least one byte less than it was given, so that whoever writes
 * comes again. Where it holds bytes that it has read and not given, its last read filled all the room it had. */
#ifndef ORIBI_EVENT_TRANSPORT_H
#define ORIBI_EVENT_TRANSPORT_H

#include "oribi/base/os/os.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

struct oribi_transport {
    ssize_t (*read)(struct oribi_transport *self, void *dst, size_t n); /* oribi_os_read() */
    ssize_t (*send_vec)(struct oribi_transport *self, const struct iovec *vec, size_t count, bool more);
    ssize_t (*send_file)(struct oribi_transport *self, int in_fd, int64_t *offset, int64_t n);
    void (*shut)(struct oribi_transport *self);    /* says that no more is sent (close_notify), before shutdown(2) */
    void (*release)(struct oribi_transport *self); /* frees it; the descriptor is closed afterwards by its owner */
};

/* The system's way where there is no transport. */
static inline ssize_t oribi_transport_read(struct oribi_transport *transport, int fd, void *dst, size_t n)
{
    return __builtin_expect(transport != NULL, 0) ? transport->read(transport, dst, n) : oribi_os_read(fd, dst, n);
}

static inline ssize_t oribi_transport_send(struct oribi_transport *transport, int fd, const struct iovec *vec,
                                           size_t count, bool more)
{
    if (__builtin_expect(transport != NULL, 0))
        return transport->send_vec(transport, vec, count, more);
    return more ? oribi_os_send_vec_more(fd, vec, count) : oribi_os_send_vec(fd, vec, count);
}

static inline ssize_t oribi_transport_send_file(struct oribi_transport *transport, int fd, int in_fd, int64_t *offset,
                                                int64_t n)
{
    if (__builtin_expect(transport != NULL, 0))
        return transport->send_file(transport, in_fd, offset, n);
    return oribi_os_send_file(fd, in_fd, offset, n);
}

#endif
