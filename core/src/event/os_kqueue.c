/* The kqueue source, with the promises of the epoll source (os_epoll.c). A stream has one filter for reading, EV_CLEAR:
 * it reports what comes, once. The filter for writing is added while the owner wants to write, and deleted afterwards;
 * a filter is asked when it is added, so that room that is already there is reported (kqueue(2), EV_ADD).
 *
 * What differs: a listener wakes every process that sleeps on it, since kqueue has no exclusive waiters; filters
 * go with the last close of their descriptor's number, though a copy of the file stays open; and a child that was
 * forked has no kqueue, whose number is free there. */
#include "event/loop_source.h"
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <sys/event.h>
#include <sys/time.h>

static int source_open(struct oribi_loop *loop)
{
    loop->fd = oribi_os_lift(kqueue());
    if (loop->fd < 0)
        return oribi_os_fail();
    int code = oribi_os_set_cloexec(loop->fd, true);
    if (code < 0)
        oribi_os_close(loop->fd);
    return code;
}

static void source_close(struct oribi_loop *loop)
{
    oribi_os_close(loop->fd);
}

/* Changes one filter of a watch. 0, or -1 with errno: ENOENT when the filter is not there, EBADF when the descriptor is
 * not. */
static int change(const struct oribi_loop *loop, struct oribi_watch *watch, int filter, int flags)
{
    struct kevent one;
    EV_SET(&one, (uintptr_t)watch->fd, filter, flags, 0, 0, (void *)watch);
    int code;
    do
        code = kevent(loop->fd, &one, 1, NULL, 0, NULL);
    while (code < 0 && errno == EINTR);
    return code;
}

static bool wants_write(const struct oribi_watch *watch)
{
    return watch->interest & ORIBI_WRITE;
}

static int source_add(struct oribi_loop *loop, struct oribi_watch *watch)
{
    int flags = oribi__watch_remembers(watch) ? EV_ADD | EV_CLEAR : EV_ADD;
    watch->registered = false;
    if (change(loop, watch, EVFILT_READ, flags) < 0)
        return oribi_os_fail();
    if (!oribi__watch_remembers(watch) || !wants_write(watch))
        return 0;
    if (change(loop, watch, EVFILT_WRITE, EV_ADD | EV_CLEAR) < 0) {
        int code = oribi_os_fail();
        (void)change(loop, watch, EVFILT_READ, EV_DELETE); /* has just been added */
        return code;
    }
    watch->registered = true;
    return 0;
}

static bool source_remove(struct oribi_loop *loop, struct oribi_watch *watch)
{
    if (watch->registered)
        (void)change(loop, watch, EVFILT_WRITE, EV_DELETE); /* not there if the descriptor was closed */
    watch->registered = false;
    return change(loop, watch, EVFILT_READ, EV_DELETE) == 0;
}

/* Enabling what is enabled changes nothing, and fails when it is not there: the number is another file's. */
static bool source_holds(struct oribi_loop *loop, struct oribi_watch *watch)
{
    return change(loop, watch, EVFILT_READ, EV_ENABLE) == 0;
}

static void source_interest(struct oribi_loop *loop, struct oribi_watch *watch)
{
    if (!oribi__watch_remembers(watch) || watch->registered == wants_write(watch))
        return;
    if (!wants_write(watch)) {
        (void)change(loop, watch, EVFILT_WRITE, EV_DELETE); /* not there if the descriptor was closed */
        watch->registered = false;
    } else if (change(loop, watch, EVFILT_WRITE, EV_ADD | EV_CLEAR) == 0) {
        watch->registered = true;
    } else {
        watch->ready |= ORIBI_WRITE; /* out of memory: the owner tries again, and fails if the connection is gone */
    }
}

/* All sleepers are woken: there is no queue to go to the end of. */
static void source_rotate(struct oribi_loop *loop, struct oribi_watch *watch)
{
}

/* EV_EOF: the peer sends no more, and `fflags` holds the socket's error, if it has one (EVFILT_READ); or it reads no
 * more (EVFILT_WRITE). */
static uint8_t ready_of(const struct kevent *event)
{
    bool write = event->filter == EVFILT_WRITE;
    if (event->flags & EV_ERROR)
        return ORIBI_HANGUP | ORIBI_READ | ORIBI_WRITE;
    if (!(event->flags & EV_EOF))
        return write ? ORIBI_WRITE : ORIBI_READ;
    return write || event->fflags != 0 ? ORIBI_HANGUP | ORIBI_READ | ORIBI_WRITE : ORIBI_HANGUP | ORIBI_READ;
}

/* Both filters of one watch become one event: its owner looks at it once. `index` is where the watch stands in this
 * batch, or a number of an earlier one. */
static struct oribi_event *event_of(struct oribi_event *events, int *found, struct oribi_watch *watch)
{
    if (watch->index < (uint32_t)*found && events[watch->index].watch == watch)
        return &events[watch->index];
    watch->index = (uint32_t)*found;
    events[*found] = (struct oribi_event){.watch = watch};
    return &events[(*found)++];
}

static int deliver(const struct kevent *native, int count, struct oribi_event *events)
{
    int found = 0;
    for (int i = 0; i < count; i++) {
        struct oribi_watch *watch = (struct oribi_watch *)native[i].udata;
        uint8_t ready = ready_of(&native[i]);
        if (oribi__watch_ready(watch, ready))
            event_of(events, &found, watch)->ready |= ready;
    }
    return found;
}

/* EBADF: the descriptor is closed, or another file. It does not end by itself: a caller that took it for a time-out
 * would call again at once, for ever. */
static int wait_events(struct oribi_loop *loop, struct kevent *native, int max, int timeout_ms)
{
    struct timespec timeout = {.tv_sec = timeout_ms / 1000, .tv_nsec = timeout_ms % 1000 * 1000000L};
    int count = kevent(loop->fd, NULL, 0, native, max, timeout_ms < 0 ? NULL : &timeout);
    if (count < 0 && errno != EINTR)
        atomic_store_explicit(&loop->lost, true, memory_order_relaxed);
    return count;
}

static int source_poll(struct oribi_loop *loop, int timeout_ms, struct oribi_event *events, int max)
{
    struct kevent native[ORIBI_LOOP_EVENTS_MAX];
    if (max > ORIBI_LOOP_EVENTS_MAX)
        max = ORIBI_LOOP_EVENTS_MAX;
    return deliver(native, wait_events(loop, native, max, timeout_ms), events);
}

static void source_sleep(struct oribi_loop *loop, int timeout_ms)
{
    if (!loop->slept)
        loop->slept = oribi_mem_alloc(ORIBI_LOOP_EVENTS_MAX, sizeof(struct kevent));
    loop->slept_count = wait_events(loop, loop->slept, ORIBI_LOOP_EVENTS_MAX, timeout_ms);
}

/* A watch may have been removed since: then its readiness is noted, and its owner, a closed connection, does
 * nothing. */
static int source_collect(struct oribi_loop *loop, struct oribi_event *events, int max)
{
    int count = loop->slept_count < max ? loop->slept_count : max;
    loop->slept_count = 0;
    return deliver(loop->slept, count, events);
}

static const struct oribi_loop_ops ops = {
    .open = source_open,
    .close = source_close,
    .add = source_add,
    .remove = source_remove,
    .holds = source_holds,
    .interest = source_interest,
    .rotate = source_rotate,
    .poll = source_poll,
    .sleep = source_sleep,
    .collect = source_collect,
    .wakes_all = true,
};
const struct oribi_loop_ops *const oribi__loop_native = &ops;
