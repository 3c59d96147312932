/* The epoll source. Streams are registered once, edge-triggered, for reading; interest in reading that comes and
 * goes costs nothing. EPOLLOUT is added while the owner wants to write, which is after a short write only, and removed
 * afterwards: a TCP socket reports room only after a short write, but a unix socket wakes its epoll with EPOLLOUT every
 * time the peer has read, which is once a request. Adding it reports room that is already there,
 * as any EPOLL_CTL_MOD does, so no edge is missed. */
#include "event/loop_source.h"
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"

#include <errno.h>
#include <sys/epoll.h>

#ifndef EPOLLEXCLUSIVE
#define EPOLLEXCLUSIVE (1u << 28)
#endif

static int source_open(struct oribi_loop *loop)
{
    loop->fd = oribi_os_lift(epoll_create1(EPOLL_CLOEXEC));
    return loop->fd < 0 ? oribi_os_fail() : 0;
}

static void source_close(struct oribi_loop *loop)
{
    oribi_os_close(loop->fd);
}

static bool wants_write(const struct oribi_watch *watch)
{
    return watch->interest & ORIBI_WRITE;
}

static uint32_t stream_events(const struct oribi_watch *watch)
{
    return EPOLLIN | EPOLLRDHUP | EPOLLET | (wants_write(watch) ? EPOLLOUT : 0);
}

static int source_add(struct oribi_loop *loop, struct oribi_watch *watch)
{
    struct epoll_event event = {.data.ptr = watch};
    switch (watch->kind) {
    case ORIBI_WATCH_STREAM:
    case ORIBI_WATCH_PEER:
        event.events = stream_events(watch);
        watch->registered = wants_write(watch);
        break;
    case ORIBI_WATCH_LISTENER:
        event.events = EPOLLIN | EPOLLEXCLUSIVE;
        break;
    default:
        event.events = EPOLLIN;
    }
    return epoll_ctl(loop->fd, EPOLL_CTL_ADD, watch->fd, &event) < 0 ? oribi_os_fail() : 0;
}

/* epoll watches the open file and the number together (epoll(7), questions and answers), so this fails when the number
 * has become another file's. */
static bool source_remove(struct oribi_loop *loop, struct oribi_watch *watch)
{
    struct epoll_event unused = {0};
    return epoll_ctl(loop->fd, EPOLL_CTL_DEL, watch->fd, &unused) == 0;
}

static bool source_holds(struct oribi_loop *loop, struct oribi_watch *watch)
{
    struct epoll_event event = {.events = stream_events(watch), .data.ptr = watch};
    return epoll_ctl(loop->fd, EPOLL_CTL_MOD, watch->fd, &event) == 0;
}

static void source_interest(struct oribi_loop *loop, struct oribi_watch *watch)
{
    if (!oribi__watch_remembers(watch) || watch->registered == wants_write(watch))
        return;
    struct epoll_event event = {.events = stream_events(watch), .data.ptr = watch};
    (void)epoll_ctl(loop->fd, EPOLL_CTL_MOD, watch->fd, &event); /* takes no memory: fails only if it was not there */
    watch->registered = wants_write(watch);
}

static void source_rotate(struct oribi_loop *loop, struct oribi_watch *watch)
{
    (void)source_remove(loop, watch); /* source_add() fails too */
    if (source_add(loop, watch) < 0)
        watch->added = false;
}

static uint8_t ready_of(uint32_t events)
{
    uint8_t ready = 0;
    if (events & EPOLLIN)
        ready |= ORIBI_READ;
    if (events & EPOLLOUT)
        ready |= ORIBI_WRITE;
    if (events & EPOLLRDHUP)
        ready |= ORIBI_HANGUP | ORIBI_READ;
    if (events & (EPOLLHUP | EPOLLERR))
        ready |= ORIBI_HANGUP | ORIBI_READ | ORIBI_WRITE;
    return ready;
}

static int deliver(const struct epoll_event *native, int count, struct oribi_event *events)
{
    int found = 0;
    for (int i = 0; i < count; i++) {
        struct oribi_watch *watch = native[i].data.ptr;
        uint8_t ready = ready_of(native[i].events);
        if (oribi__watch_ready(watch, ready))
            events[found++] = (struct oribi_event){watch, ready};
    }
    return found;
}

/* Alike on purpose with os_kqueue.c: a build has one of the two, and what they shared would be called through pointers
 * in each turn.
 *
 * EBADF: the descriptor is closed; EINVAL: it is another file. Neither ends by itself: a caller that took it for a
 * time-out would call again at once, for ever. */
static int wait_events(struct oribi_loop *loop, struct epoll_event *native, int max, int timeout_ms)
{
    int count = epoll_wait(loop->fd, native, max, timeout_ms);
    if (count < 0 && errno != EINTR)
        atomic_store_explicit(&loop->lost, true, memory_order_relaxed);
    return count;
}

static int source_poll(struct oribi_loop *loop, int timeout_ms, struct oribi_event *events, int max)
{
    struct epoll_event native[ORIBI_LOOP_EVENTS_MAX];
    if (max > ORIBI_LOOP_EVENTS_MAX)
        max = ORIBI_LOOP_EVENTS_MAX;
    return deliver(native, wait_events(loop, native, max, timeout_ms), events);
}

static void source_sleep(struct oribi_loop *loop, int timeout_ms)
{
    if (!loop->slept)
        loop->slept = oribi_mem_alloc(ORIBI_LOOP_EVENTS_MAX, sizeof(struct epoll_event));
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
};
const struct oribi_loop_ops *const oribi__loop_native = &ops;
