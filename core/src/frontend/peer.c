/* Socket of a client: reads and sends with its transport, or without one. */
#include "frontend/peer.h"

#include "oribi/base/os/os.h"

ssize_t oribi__peer_read(const struct oribi__peer *peer, void *dst, size_t n)
{
    return oribi_transport_read(peer->transport, peer->fd, dst, n);
}

ssize_t oribi__peer_send(const struct oribi__peer *peer, const struct iovec *vec, size_t count)
{
    return oribi_transport_send(peer->transport, peer->fd, vec, count, false);
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
