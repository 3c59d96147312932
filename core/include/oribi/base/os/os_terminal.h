/* A terminal that a program draws on: its size, and keys that come one by one without being shown. */
#ifndef ORIBI_BASE_OS_OS_TERMINAL_H
#define ORIBI_BASE_OS_OS_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>
#include <termios.h>

struct oribi_terminal {
    int fd;
    bool is_saved; /* private, as the next */
    struct termios saved;
};

/* Is the descriptor a terminal? */
bool oribi_terminal_is(int fd);

/* Is the descriptor a terminal whose user and kind want colours? NO_COLOR (no-color.org) and TERM=dumb say no. */
bool oribi_terminal_shows_colours(int fd);

/* The terminal's size in characters. Where it is not known 24 x 80. */
void oribi_terminal_size(int fd, uint32_t *rows, uint32_t *columns);

/* Is there a key to be read, or has the terminal hung up? */
bool oribi_terminal_has_input(int fd);

/* Can a short text be written without waiting? Where the terminal is full, because its user has stopped it (Ctrl-S) or
 * its other side reads no more, first drops what it has not shown yet and lets it go on. */
bool oribi_terminal_ready(int fd);

/* From now on keys come one by one and are not shown; those that make signals still do. Called again it only does so
 * again: what the first call found is what end puts back. Borrows terminal->fd. 0 or a code of os.h: the terminal is
 * gone. */
int oribi_terminal_begin(struct oribi_terminal *terminal);

/* The terminal as it was. Does nothing without a begin. */
void oribi_terminal_end(struct oribi_terminal *terminal);

/* Stops this process as the terminal's stop key does (SIGTSTP as it is handled now), until another continues it. */
void oribi_terminal_stop(void);

#endif
