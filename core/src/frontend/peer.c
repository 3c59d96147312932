/* Peers: a socket is read and sent with its transport, or without one; a stream of HTTP/2 is a transport alone. */
#include "frontend/peer.h"

#include "frontend/streams_h2.h"

#include "oribi/base/os/os.h"

#include <sys/socket.h>

int oribi__peer_watch(const struct oribi__peer *peer, struct oribi_loop *loop, struct oribi_watch *watch)
{
    if (peer->fd >= 0)
        return oribi_loop_add(loop, watch, peer->fd, ORIBI_WATCH_PEER, ORIBI_READ);
    oribi__stream_watch(peer->transport, watch);
    return 0;
}

void oribi__peer_unwatch(const struct oribi__peer *peer, struct oribi_loop *loop, struct oribi_watch *watch)
{
    if (peer->fd >= 0)
        (void)oribi_loop_remove(loop, watch); /* ours */
}

/* A stream tells of both by itself. */
void oribi__peer_await(const struct oribi__peer *peer, struct oribi_loop *loop, struct oribi_watch *watch,
                       uint8_t interest)
{
    if (peer->fd >= 0)
        oribi_loop_interest(loop, watch, interest);
}

ssize_t oribi__peer_read(const struct oribi__peer *peer, void *dst, size_t n)
{
    return oribi_transport_read(peer->transport, peer->fd, dst, n);
}

ssize_t oribi__peer_send(const struct oribi__peer *peer, const struct iovec *vec, size_t count)
{
    return oribi_transport_send(peer->transport, peer->fd, vec, count, false);
}

void oribi__peer_shut(const struct oribi__peer *peer)
{
    if (peer->transport)
        peer->transport->shut(peer->transport);
    if (peer->fd >= 0)
        (void)shutdown(peer->fd, SHUT_WR); /* fails only if the client has gone, which reading tells */
}

void oribi__peer_close(struct oribi__peer *peer, bool shut)
{
    if (peer->transport && shut)
        peer->transport->shut(peer->transport);
    if (peer->transport)
        peer->transport->release(peer->transport);
    peer->transport = NULL;
    oribi_os_close(peer->fd);
    peer->fd = -1;
}
