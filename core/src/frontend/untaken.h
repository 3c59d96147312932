/* Requests that lie in the rings of workers: where the worker's call turns out long, or the worker is stopped, a
 * request that it has not begun to read is taken back and goes to another worker. For one that lies in the hand-off
 * queue another worker is woken. */
#ifndef ORIBI_FRONTEND_UNTAKEN_H
#define ORIBI_FRONTEND_UNTAKEN_H

#include <stdint.h>

struct oribi__channel;
struct oribi__frontend;

enum { ORIBI__UNTAKEN_MS = 2 }; /* after so long a request may be taken back, behind a call that is as old */

/* Once a turn for each channel that is out and not taken, the last that went out first: so the oldest request becomes
 * the first in the queue. The channel may be closed by it. */
void oribi__untaken_look(struct oribi__channel *channel);

/* Once a turn, before requests are given to workers: wakes another worker for what lies in the hand-off queue. */
void oribi__untaken_turn(struct oribi__frontend *frontend);

/* When the next turn has to come for a request that no worker may have begun to read; INT64_MAX: there is none. */
int64_t oribi__untaken_due_ms(const struct oribi__frontend *frontend);

#endif
