/* yield - leaves the CPU to a neighbour before a wait, while that brings several events at once.
 *
 * Two processes on one CPU that answer each other, a frontend and a worker, wake each other with each message, and the
 * one that is woken runs at once: two switches for a request. Who yields first lets the other go on, and finds together
 * what it has written meanwhile; and as it is not asleep, none of that has to wake it.
 *
 * A yield is worth its system call only then, and beside a process that computes it costs a turn of that process. So
 * what the last one brought decides when the next is due: after fewer than two events not in the next 1, 3, 7 … 255
 * waits, and after more than half a millisecond not within a quarter of a second.
 *
 * Of one thread, or under the owner's lock. No function here fails. */
#ifndef ORIBI_BASE_YIELD_H
#define ORIBI_BASE_YIELD_H

#include <stdbool.h>
#include <stdint.h>

enum {
    ORIBI_YIELD_SKIPS_MAX = 255,
    ORIBI_YIELD_SLOW_US = 500,
    ORIBI_YIELD_PAUSE_US = 250 * 1000,
};

/* All zero: the next wait yields. */
struct oribi_yield {
    int64_t paused_until_us;
    uint16_t skips; /* waits to come without */
    uint16_t step;  /* how many it was the last time */
};

/* Is one due before this wait, of which there is one call each? */
bool oribi_yield_due(struct oribi_yield *yield, int64_t now_us);

/* Yields; how long that took, in microseconds. */
int64_t oribi_yield(void);

/* Notes the result of a yield: how long it took, and the events of the wait after it. */
void oribi_yield_note(struct oribi_yield *yield, int64_t took_us, int64_t now_us, int events);

#endif
