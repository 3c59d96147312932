/* Functions of a readiness source (os_epoll.c or os_kqueue.c, and loop_poll.c; loop_none_portable.c: no other); private
 * to the loop. */
#ifndef ORIBI_EVENT_LOOP_SOURCE_H
#define ORIBI_EVENT_LOOP_SOURCE_H

#include "oribi/event/loop.h"

#include <stdatomic.h>

struct oribi_loop_ops {
    int (*open)(struct oribi_loop *loop);
    void (*close)(struct oribi_loop *loop);
    int (*add)(struct oribi_loop *loop, struct oribi_watch *watch);
    bool (*remove)(struct oribi_loop *loop, struct oribi_watch *watch);
    bool (*holds)(struct oribi_loop *loop, struct oribi_watch *watch);
    void (*interest)(struct oribi_loop *loop, struct oribi_watch *watch);
    void (*rotate)(struct oribi_loop *loop, struct oribi_watch *watch);
    int (*poll)(struct oribi_loop *loop, int timeout_ms, struct oribi_event *events, int max);
    /* Both NULL where no thread can wait while another thread uses the source. */
    void (*sleep)(struct oribi_loop *loop, int timeout_ms);
    int (*collect)(struct oribi_loop *loop, struct oribi_event *events, int max);
    bool wakes_all; /* that sleep on one listener */
};

struct oribi_loop {
    const struct oribi_loop_ops *ops;
    int fd;           /* epoll's or kqueue's, or -1 */
    atomic_bool lost; /* fd is not ours any more; also set by a thread that sleeps */
    /* epoll and kqueue source */
    void *slept; /* events of oribi_loop_sleep(); belongs to the thread that sleeps, then to the loop's owner */
    int slept_count;
    /* poll source */
    struct pollfd *fds;
    struct oribi_watch **watches; /* same index */
    struct oribi_fd_mark *marks;  /* same index: the files that are watched */
    uint32_t count;
    uint32_t cap;
    uint32_t next; /* index where the last poll stopped, so that no descriptor starves behind `max` */
};

extern const struct oribi_loop_ops oribi__loop_poll;
extern const struct oribi_loop_ops *const oribi__loop_native; /* NULL where there is none but poll */

/* Is its readiness remembered, and its registration that of a stream? */
static inline bool oribi__watch_remembers(const struct oribi_watch *watch)
{
    return watch->kind == ORIBI_WATCH_STREAM || watch->kind == ORIBI_WATCH_PEER;
}

/* Merges newly seen readiness into the watch; true if it is to be delivered. */
static inline bool oribi__watch_ready(struct oribi_watch *watch, uint8_t ready)
{
    watch->ready |= ready;
    return (watch->ready & (watch->interest | ORIBI_HANGUP)) != 0;
}

#endif
