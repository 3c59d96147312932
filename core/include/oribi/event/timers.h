/* Deadlines of any length in one heap. Arming, moving and stopping a timer costs O(log n), the next deadline O(1).
 * Where all deadlines of a kind are equally long, timeouts.h is cheaper. */
#ifndef ORIBI_EVENT_TIMERS_H
#define ORIBI_EVENT_TIMERS_H

#include <stdbool.h>
#include <stdint.h>

/* Embedded in the struct that has the deadline. All-zero is a timer that is not armed. */
struct oribi_timer {
    /* Function that the dispatcher (dispatcher.h) calls with `owner` once the deadline has passed. The timer is not
     * armed then; the function may arm any timer, itself included. NULL where oribi_timers_expired() is used. */
    void (*expired)(void *owner);
    void *owner;
    /* private */
    int64_t at_ms;
    uint32_t place; /* index in the heap + 1; 0: not armed */
};

struct oribi_timers {
    struct oribi_timer **heap; /* each timer is not later than its two children at 2i + 1 and 2i + 2 */
    uint32_t len;
    uint32_t cap;
};

void oribi_timers_init(struct oribi_timers *timers);

/* Frees the heap. The timers stay with their owners, who may no longer arm or stop them. */
void oribi_timers_deinit(struct oribi_timers *timers);

/* Makes room for `count` armed timers in all. Returns 0, or ORIBI_ENOMEM and nothing has changed. For owners whose
 * number a peer can choose. */
int oribi_timers_try_reserve(struct oribi_timers *timers, uint32_t count);

/* Arms `timer` for at_ms on oribi_clock_ms(), or moves it there. INT64_MAX stops it. Borrows timer until it is stopped
 * or has expired. Without room the heap grows, and the process ends when memory is out (base/mem.h). */
void oribi_timers_arm(struct oribi_timers *timers, struct oribi_timer *timer, int64_t at_ms);

/* Does nothing to a timer that is not armed. */
void oribi_timers_stop(struct oribi_timers *timers, struct oribi_timer *timer);

/* The deadline of an armed timer on oribi_clock_ms(); INT64_MAX: it is not armed. */
int64_t oribi_timer_at(const struct oribi_timer *timer);

/* Stops and gives the timer with the earliest deadline when that is not later than now_ms; else NULL. */
struct oribi_timer *oribi_timers_expired(struct oribi_timers *timers, int64_t now_ms);

/* The earliest deadline; INT64_MAX: no timer is armed. */
int64_t oribi_timers_next_at(const struct oribi_timers *timers);

#endif
