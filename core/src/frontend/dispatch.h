/* Queue of complete requests, first come, first served, and the choice of the worker that gets the next one. */
#ifndef ORIBI_FRONTEND_DISPATCH_H
#define ORIBI_FRONTEND_DISPATCH_H

#include <stdbool.h>
#include <stdint.h>

struct oribi__channel;
struct oribi__frontend;
struct oribi__upstream_request;

/* A worker as its frontend knows it. */
struct oribi__dispatch_worker {
    uint32_t out;             /* calls of ours on channels that it has */
    uint32_t average_us;      /* of its calls; UINT32_MAX: not known */
    uint32_t samples_us[2];   /* the last two that it is made of */
    int64_t ended_us;         /* when the last call of ours ended, oribi_clock_us() */
    int64_t shunned_until_ms; /* it has ended in a call of ours: nothing is given to it until then */
    int64_t looked_us;        /* the turn in which its own count was read last, and what that was: */
    uint64_t call_count;
    uint64_t calls_us;
};

struct oribi__dispatch {
    struct oribi__upstream_request *first;
    struct oribi__upstream_request *last;
    struct oribi__dispatch_worker *workers; /* by slot + 1 */
    uint32_t out_waiting;                   /* calls of ours in the hand-off queue, as far as we know */
    int64_t woken_us;                       /* when a worker was last woken for one */
};

int oribi__dispatch_init(struct oribi__frontend *frontend); /* 0 or ORIBI_ENOMEM */
void oribi__dispatch_deinit(struct oribi__frontend *frontend);

/* Puts the request into the queue, at its head (`first`) or at its end; takes it out. */
void oribi__dispatch_add(struct oribi__upstream_request *call, bool first);
void oribi__dispatch_remove(struct oribi__upstream_request *call);

void oribi__dispatch_give_up(struct oribi__frontend *frontend); /* answers all that wait with 503 */

/* Gives requests that wait to workers that are free. */
void oribi__dispatch(struct oribi__frontend *frontend);

/* A call of ours has ended in this worker (slot + 1). */
void oribi__dispatch_note_end(struct oribi__frontend *frontend, uint16_t owner);

/* The worker (slot + 1; 0: none) has ended in a call of ours, or is stopped: nothing is given to it for a while. */
void oribi__dispatch_shun(struct oribi__frontend *frontend, uint16_t owner);

/* The channel's call is over, and another may go out on it. */
void oribi__dispatch_idle(struct oribi__channel *channel);

/* Calls that workers can make now and soon. */
uint32_t oribi__dispatch_capacity(const struct oribi__frontend *frontend);

/* Is there any worker that serves? */
bool oribi__dispatch_serves(const struct oribi__frontend *frontend);

#endif
