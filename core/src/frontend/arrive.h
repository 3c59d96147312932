/* A client until it is known what it speaks. */
#ifndef ORIBI_FRONTEND_ARRIVE_H
#define ORIBI_FRONTEND_ARRIVE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct oribi__arrival;
struct oribi__frontend;

struct oribi__arrivals {
    struct oribi__arrival *first; /* the newest */
    struct oribi__arrival *last;
    struct oribi__arrival *closed;
    struct oribi__arrival *shakes_first; /* the handshake of TLS whose step is made next */
    struct oribi__arrival *shakes_last;
    uint32_t shakes_count;
};

void oribi__arrive_turn(struct oribi__frontend *frontend);
void oribi__arrive(struct oribi__frontend *frontend, uint32_t index, int fd,
                   const struct sockaddr_storage *from);             /* takes fd */
uint32_t oribi__arrive_held(const struct oribi__frontend *frontend); /* connections of all kinds */
/* Closes the one that has rested longest. False: none may be closed, as oribi_reactor_make_room() has it. */
bool oribi__arrive_make_room(struct oribi__frontend *frontend);
/* Makes four steps of handshakes at most. It is called behind all else of a turn, so that nobody waits for more. */
void oribi__arrive_shake(struct oribi__frontend *frontend);
/* True while 64 handshakes wait: the listener takes no further client, and new ones stay in the kernel's backlog. */
bool oribi__arrive_is_full(const struct oribi__frontend *frontend, uint32_t index);
void oribi__arrive_close_all(struct oribi__frontend *frontend);

#endif
