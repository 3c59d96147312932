/* Event loop of a process that serves no application: descriptors and timers, one handler at a time.
 *
 *     while (oribi_dispatcher_next(&dispatcher))   one handler: of a descriptor that is ready, or of a timer
 *         act();                                   what follows from it, before the next handler
 *     oribi_dispatcher_wait(&dispatcher, -1);      until there is one again
 *
 * Descriptors are asked by poll(2), as the supervisor needs it: its children are made by fork, and must share no epoll
 * descriptor. Readiness is not remembered: a descriptor is reported as long as it is ready. */
#ifndef ORIBI_EVENT_DISPATCHER_H
#define ORIBI_EVENT_DISPATCHER_H

#include "oribi/event/loop.h"
#include "oribi/event/timers.h"

/* Embedded in what it watches; the memory must stay as long as the dispatcher, or until the turn after
 * oribi_dispatcher_forget() (oribi_dispatcher_wait() begins a turn). All-zero but for the two is one that watches
 * nothing. */
struct oribi_watcher {
    /* Called with `owner` while `ready` holds a bit of interest or ORIBI_HANGUP. May watch and forget any watcher,
     * itself included. */
    void (*ready)(void *owner, uint8_t ready);
    void *owner;
    struct oribi_watch watch; /* private */
};

enum {
    ORIBI_DISPATCHER_EVENTS = 64,  /* that one look at the descriptors can report */
    ORIBI_DISPATCHER_TIMERS = 256, /* armed at once without a further allocation */
};

struct oribi_dispatcher {
    struct oribi_loop *loop;
    struct oribi_timers timers;
    int64_t now_ms; /* oribi_clock_ms() at the last look */
    /* private: what the last look found and no handler has had yet */
    struct oribi_event events[ORIBI_DISPATCHER_EVENTS];
    int count;
    int next;
};

/* Returns 0, or ORIBI_ENOMEM or a code of base/os/os.h with oribi_os_error_text(); nothing is held then. */
int oribi_dispatcher_init(struct oribi_dispatcher *dispatcher);

/* Also in a forked child, which shares nothing with its parent. Closes no watched descriptor. */
void oribi_dispatcher_deinit(struct oribi_dispatcher *dispatcher);

/* Watches fd for `interest` (ORIBI_READ | ORIBI_WRITE; 0: for nothing until the next call), or, when the watcher has
 * this descriptor already, changes the interest. Returns 0 or a code of base/os/os.h: nothing is watched then. */
int oribi_dispatcher_watch(struct oribi_dispatcher *dispatcher, struct oribi_watcher *watcher, int fd,
                           uint8_t interest);

/* Stops watching; comes before close(fd). The handler is not called any more. Does nothing where nothing is watched. */
void oribi_dispatcher_forget(struct oribi_dispatcher *dispatcher, struct oribi_watcher *watcher);

/* Arms a timer (timers.h), or stops it with INT64_MAX. */
void oribi_dispatcher_arm(struct oribi_dispatcher *dispatcher, struct oribi_timer *timer, int64_t at_ms);

/* Calls one handler: of a descriptor that the last wait found ready, then, once these are done, of a timer whose
 * deadline has passed, then of a descriptor that is ready now. Does not sleep. False: none is left. */
bool oribi_dispatcher_next(struct oribi_dispatcher *dispatcher);

/* Sleeps until a descriptor is ready, a deadline has passed, a signal's handler has run, or max_ms are over (-1: no
 * bound; 0: only looks). Calls no handler. */
void oribi_dispatcher_wait(struct oribi_dispatcher *dispatcher, int64_t max_ms);

#endif
