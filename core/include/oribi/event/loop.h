/* Readiness source: epoll or kqueue where the system has it, poll(2) always. Nothing above this header knows which one
 * runs.
 *
 * Readiness is remembered, not repeated. A ready bit set in watch->ready stays set until the owner clears it (after
 * EAGAIN or a short read or write, which for stream sockets means the same: epoll(7)). An event is delivered once a
 * ready bit meets an interest bit; interest in reading comes and goes for nothing, so the owner looks at `ready`
 * itself when it becomes interested again. That is what lets epoll run edge-triggered with everything registered
 * once, without an epoll_ctl per request, and poll(2) run the same code. */
#ifndef ORIBI_EVENT_LOOP_H
#define ORIBI_EVENT_LOOP_H

#include <stdbool.h>
#include <stdint.h>

enum {
    ORIBI_READ = 1,
    ORIBI_WRITE = 2,
    ORIBI_HANGUP = 4, /* the peer closed its sending side, or the connection broke; always of interest */
};

enum oribi_watch_kind {
    ORIBI_WATCH_STREAM, /* a connection: remembered readiness as above */
    /* reported as long as connections wait; epoll tells only one of the processes that sleep on it (EPOLLEXCLUSIVE) */
    ORIBI_WATCH_LISTENER,
    ORIBI_WATCH_SIGNAL, /* wake descriptor or pipe: reported as long as it is readable */
    ORIBI_WATCH_PEER,   /* remembered readiness as for a stream, with a handler */
};

/* Embedded in what it watches; the memory must stay until the turn after oribi_loop_remove(). */
struct oribi_watch {
    /* Function that the reactor calls when a watch of another kind than ORIBI_WATCH_STREAM is reported; `self` is its
     * hooks'. Set by the owner before oribi_loop_add(). The reactor moves streams on itself and needs none. */
    void (*handler)(void *self, struct oribi_watch *watch);
    int fd;
    uint8_t kind;
    uint8_t interest; /* ORIBI_READ | ORIBI_WRITE; set through oribi_loop_interest() */
    uint8_t ready;
    bool added;
    bool registered; /* private to the epoll and kqueue sources: for writing */
    /* Told by the poll source with an event of a stream: the descriptor was closed by the application, and may be
     * another file's now. It must be neither read, written nor closed; nothing more is told of the watch. */
    bool lost;
    uint32_t index; /* private to the poll and kqueue sources */
};

struct oribi_event {
    struct oribi_watch *watch;
    uint8_t ready; /* what is new */
};

enum oribi_loop_source { ORIBI_LOOP_BEST, ORIBI_LOOP_NATIVE, ORIBI_LOOP_POLL };

enum { ORIBI_LOOP_EVENTS_MAX = 256 };

struct oribi_loop;

/* Gives a loop; ORIBI_LOOP_BEST takes the system's own, or poll when the environment says ORIBI_EVENT_SOURCE=poll. 0 or
 * a code of base/os/os.h. */
int oribi_loop_create(enum oribi_loop_source source, struct oribi_loop **out);
void oribi_loop_destroy(struct oribi_loop *loop);

/* The descriptor a forked child must close, or -1. */
int oribi_loop_fd(const struct oribi_loop *loop);

/* Starts watching `fd`. Borrows watch until removed. 0 or a code of base/os/os.h. */
int oribi_loop_add(struct oribi_loop *loop, struct oribi_watch *watch, int fd, enum oribi_watch_kind kind,
                   uint8_t interest);

/* Stops watching; must come before close(fd). False when the descriptor is no longer the file that was watched (the
 * application has closed it): then it must not be closed. If a copy of that file is open elsewhere, events may go on
 * to name the watch, so its memory must stay for good. */
bool oribi_loop_remove(struct oribi_loop *loop, struct oribi_watch *watch);

/* Is the descriptor of a watch still the file that is watched? Costs a system call. True without one for a watch that
 * is not added, or not of a connection. */
bool oribi_loop_holds(struct oribi_loop *loop, struct oribi_watch *watch);

/* Has the application closed the loop's own descriptor? Noticed by the next wait on it. */
bool oribi_loop_lost(const struct oribi_loop *loop);

/* Changes which events the owner is told of. A system call only where ORIBI_WRITE comes or goes. */
void oribi_loop_interest(struct oribi_loop *loop, struct oribi_watch *watch, uint8_t interest);

/* Moves a listener to the tail of the kernel's queue of exclusive waiters: they are woken in registration order, and
 * without this the first worker collects nearly all kept-alive connections. A no-op for kqueue and poll(2). */
void oribi_loop_rotate(struct oribi_loop *loop, struct oribi_watch *watch);

/* Waits up to timeout_ms (0: not at all, -1: for ever) and fills `events` with at most `max`. Returns their number;
 * 0 on time-out or interruption by a signal. Changes nothing but the watches' ready bits. */
int oribi_loop_poll(struct oribi_loop *loop, int timeout_ms, struct oribi_event *events, int max);

/* oribi_loop_poll() in two steps, for a thread that sleeps while other threads use the loop. sleep touches no watch;
 * one thread at a time calls it. collect fills `events`, max >= ORIBI_LOOP_EVENTS_MAX; the thread that slept calls it
 * when no other thread uses the loop. Watches removed meanwhile must still be in memory. poll(2) as a source sleeps a
 * millisecond at most and collects nothing: the next oribi_loop_poll() finds the events. */
void oribi_loop_sleep(struct oribi_loop *loop, int timeout_ms);
int oribi_loop_collect(struct oribi_loop *loop, struct oribi_event *events, int max);

#endif
