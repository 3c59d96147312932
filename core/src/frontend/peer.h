/* Socket of a client, with or without TLS. */
#ifndef ORIBI_FRONTEND_PEER_H
#define ORIBI_FRONTEND_PEER_H

#include "frontend/tls.h"
#include "oribi/event/conn.h"

#include <stdbool.h>
#include <stdint.h>

struct oribi__peer {
    int fd;
    struct oribi_transport *transport;
    const struct oribi_tls_info *tls; /* of the transport's session; NULL: none */
    uint32_t listener;                /* in config->listeners */
    bool proxy_tls;                   /* a PROXY header has said that the client speaks TLS */
    uint8_t addr_len;
    uint8_t port_len;
    char addr[ORIBI_CONN_ADDR_CAP];
    char port[ORIBI_CONN_PORT_CAP];
};

ssize_t oribi__peer_read(const struct oribi__peer *peer, void *dst, size_t n);
ssize_t oribi__peer_send(const struct oribi__peer *peer, const struct iovec *vec, size_t count);

/* Closes the socket. `shut`: a client of TLS is told the end of its session first. */
void oribi__peer_close(struct oribi__peer *peer, bool shut);

#endif
