/* Tunnels: bytes both ways between a client and its worker, after 101. */
#ifndef ORIBI_FRONTEND_TUNNEL_H
#define ORIBI_FRONTEND_TUNNEL_H

#include "frontend/peer.h"

#include <stdbool.h>

struct oribi__frontend;
struct oribi__tunnel;

struct oribi__tunnels {
    struct oribi__tunnel *first;
    struct oribi__tunnel *closed;
    bool posted; /* one has more to move than a turn may */
};

/* Takes the peer and the channel's descriptor; the bytes are copied. */
void oribi__tunnel_begin(struct oribi__frontend *frontend, struct oribi__peer *peer, int channel_fd,
                         struct oribi_slice to_peer, struct oribi_slice to_channel);
void oribi__tunnel_turn(struct oribi__frontend *frontend);
void oribi__tunnel_close_all(struct oribi__frontend *frontend);

#endif
