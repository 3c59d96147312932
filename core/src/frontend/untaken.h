/* Requests that lie in the rings of workers: where the worker's call turns out long, or the worker is stopped, a
 * request that it has not begun to read is taken back and goes to another worker. */
#ifndef ORIBI_FRONTEND_UNTAKEN_H
#define ORIBI_FRONTEND_UNTAKEN_H

#include <stdbool.h>

struct oribi__frontend;

enum { ORIBI__UNTAKEN_MS = 2 }; /* after so long a request may be taken back, behind a call that is as old */

/* Once a turn, before requests are given to workers. */
void oribi__untaken_turn(struct oribi__frontend *frontend);

/* Is there a request that its worker may not have begun to read? Then the next turn comes within ORIBI__UNTAKEN_MS. */
bool oribi__untaken_waits(const struct oribi__frontend *frontend);

#endif
