/* Socket of a client, with or without TLS; or a stream of HTTP/2 that a WebSocket or a tunnel has. */
#ifndef ORIBI_FRONTEND_PEER_H
#define ORIBI_FRONTEND_PEER_H

#include "frontend/tls.h"
#include "oribi/event/conn.h"
#include "oribi/event/loop.h"

#include <stdbool.h>
#include <stdint.h>

struct oribi__peer {
    int fd; /* -1: a stream, whose transport is that of streams_h2_socket.c */
    struct oribi_transport *transport;
    const struct oribi_tls_info *tls; /* of the transport's session; NULL: none */
    uint32_t listener;                /* in config->listeners */
    bool proxy_tls;                   /* a PROXY header has said that the client speaks TLS */
    uint8_t addr_len;
    uint8_t port_len;
    char addr[ORIBI_CONN_ADDR_CAP];
    char port[ORIBI_CONN_PORT_CAP];
};

/* Watches it, for reading. 0 or a code of base/os/os.h. */
int oribi__peer_watch(const struct oribi__peer *peer, struct oribi_loop *loop, struct oribi_watch *watch);
void oribi__peer_unwatch(const struct oribi__peer *peer, struct oribi_loop *loop, struct oribi_watch *watch);

/* The watch wants ORIBI_READ, and ORIBI_WRITE or not. */
void oribi__peer_await(const struct oribi__peer *peer, struct oribi_loop *loop, struct oribi_watch *watch,
                       uint8_t interest);

ssize_t oribi__peer_read(const struct oribi__peer *peer, void *dst, size_t n);
ssize_t oribi__peer_send(const struct oribi__peer *peer, const struct iovec *vec, size_t count);

/* Tells the client that nothing more is sent. */
void oribi__peer_shut(const struct oribi__peer *peer);

/* Closes the socket. `shut`: a client of TLS is told the end of its session first. */
void oribi__peer_close(struct oribi__peer *peer, bool shut);

#endif
