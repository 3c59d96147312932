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
    struct oribi__arrival
        *shakes_first; /* handshakes of TLS whose next step can be made, in the order of their coming */
    struct oribi__arrival *shakes_last;
    uint32_t shakes_count;
};

void oribi__arrive_turn(struct oribi__frontend *frontend);
void oribi__arrive(struct oribi__frontend *frontend, uint32_t index, int fd,
                   const struct sockaddr_storage *from);             /* takes fd */
uint32_t oribi__arrive_held(const struct oribi__frontend *frontend); /* connections of all kinds */
/* Closes the one that has rested longest. False: none may be closed, as oribi_reactor_make_room() has it. */
bool oribi__arrive_make_room(struct oribi__frontend *frontend);
/* A few steps of handshakes, behind all else of a turn: so a flood of them delays nobody by more than these. */
void oribi__arrive_shake(struct oribi__frontend *frontend);
/* So many handshakes wait that this listener's next clients are to wait in the kernel. */
bool oribi__arrive_is_full(const struct oribi__frontend *frontend, uint32_t index);
void oribi__arrive_close_all(struct oribi__frontend *frontend);

#endif
