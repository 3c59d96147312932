/* Time. Monotonic for every decision, wall clock only for Date and logs. */
#ifndef ORIBI_BASE_CLOCK_H
#define ORIBI_BASE_CLOCK_H

#include <stdint.h>

/* CLOCK_MONOTONIC in microseconds / milliseconds; vDSO, no system call. */
int64_t oribi_clock_us(void);
int64_t oribi_clock_ms(void);

/* CLOCK_REALTIME in whole seconds since the epoch, at most one tick (10 ms) late; the cheapest of all. */
int64_t oribi_clock_wall_s(void);
/* CLOCK_REALTIME in milliseconds since the epoch. */
int64_t oribi_clock_wall_ms(void);

/* The earlier of two moments, or the shorter of two times. */
static inline int64_t oribi_earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The shorter of two bounds of a wait, of which a negative one is no bound. */
static inline int64_t oribi_shorter(int64_t a, int64_t b)
{
    return a < 0 || (b >= 0 && b < a) ? b : a;
}

#endif
