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
};

void oribi__arrive_turn(struct oribi__frontend *frontend);
void oribi__arrive(struct oribi__frontend *frontend, uint32_t index, int fd,
                   const struct sockaddr_storage *from);             /* takes fd */
uint32_t oribi__arrive_held(const struct oribi__frontend *frontend); /* connections of all kinds */
/* Closes the one that has rested longest. False: none may be closed, as oribi_reactor_make_room() has it. */
bool oribi__arrive_make_room(struct oribi__frontend *frontend);
void oribi__arrive_close_all(struct oribi__frontend *frontend);

#endif
