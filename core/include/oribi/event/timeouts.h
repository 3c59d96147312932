/* Deadlines. All timeouts of one class are equally long, so each class is a FIFO list: arming appends, expiry looks
 * at the head only. O(1) everywhere, no heap, and nothing per request but two pointer moves. */
#ifndef ORIBI_EVENT_TIMEOUTS_H
#define ORIBI_EVENT_TIMEOUTS_H

#include <stdatomic.h>
#include <stdint.h>

enum oribi_timeout_class {
    ORIBI_TIMEOUT_NONE,
    ORIBI_TIMEOUT_FIRST,  /* accepted, nothing received yet */
    ORIBI_TIMEOUT_HEAD,   /* the whole head, from its first byte */
    ORIBI_TIMEOUT_BODY,   /* between two reads of a body */
    ORIBI_TIMEOUT_IDLE,   /* between requests */
    ORIBI_TIMEOUT_WRITE,  /* between two moments at which the peer takes bytes of an answer */
    ORIBI_TIMEOUT_LINGER, /* waiting for the peer to close, or to go on sending */
    ORIBI_TIMEOUT_CLASSES
};

/* Embedded in the struct that times out. All-zero is disarmed. */
struct oribi_timeout {
    struct oribi_timeout *prev;
    struct oribi_timeout *next;
    int64_t armed_ms;
    uint8_t timeout_class;
};

struct oribi_timeouts {
    struct {
        struct oribi_timeout *first;
        struct oribi_timeout *last;
        int64_t length_ms; /* 0: this class never expires */
    } classes[ORIBI_TIMEOUT_CLASSES];
    _Atomic uint32_t *armed; /* timers of each class, NULL: not counted; oribi_timeouts_count_in() */
};

void oribi_timeouts_init(struct oribi_timeouts *timeouts);

/* From here on counts[class] is the number of timers armed in a class, always; before, nothing is counted. Any thread
 * or process may read the ORIBI_TIMEOUT_CLASSES numbers; whoever arms is their one writer. Only while no timer is
 * armed. Borrows counts for the life of `timeouts`, and sets them to 0. */
void oribi_timeouts_count_in(struct oribi_timeouts *timeouts, _Atomic uint32_t *counts);

/* Sets the length of a class; only while no timer is armed in it. */
void oribi_timeouts_set(struct oribi_timeouts *timeouts, enum oribi_timeout_class timeout_class, int64_t length_ms);

/* (Re)arms `timer` in a class from now_ms on; now_ms never goes back between calls. ORIBI_TIMEOUT_NONE disarms. */
void oribi_timeouts_arm(struct oribi_timeouts *timeouts, struct oribi_timeout *timer,
                        enum oribi_timeout_class timeout_class, int64_t now_ms);

/* Disarms and gives one expired timer, its class in *timeout_class; NULL when none has expired. */
struct oribi_timeout *oribi_timeouts_expired(struct oribi_timeouts *timeouts, int64_t now_ms,
                                             enum oribi_timeout_class *timeout_class);

/* Milliseconds until the next expiry (0: a timer has expired), or -1 when no timer is armed. */
int64_t oribi_timeouts_next_ms(const struct oribi_timeouts *timeouts, int64_t now_ms);

/* The timer armed longest in a class, or NULL. */
struct oribi_timeout *oribi_timeouts_oldest(const struct oribi_timeouts *timeouts,
                                            enum oribi_timeout_class timeout_class);

#endif
