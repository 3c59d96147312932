/* Descriptors that an application has taken from us; see the header. Nothing tells a process that one of its
 * descriptors was closed. It is seen where a call on it fails, and by a look at all of them, which costs a system
 * call for each: once a second while calls are made, and once after the last. */
#include "oribi/worker/fd_guard.h"

#include "oribi/base/log.h"
#include "worker/worker_private.h"

#include <assert.h>
#include <unistd.h>

void oribi__fd_guard_add(struct oribi__fd_guard *own, int fd, const char *what)
{
    if (fd < 0)
        return;
    assert(own->count < ORIBI__FD_GUARD_MAX);
    struct oribi__fd_guard_item *item = &own->items[own->count++];
    item->fd = fd;
    item->what = what;
    oribi_os_mark(fd, &item->mark);
}

void oribi__fd_guard_drop(struct oribi__fd_guard *own, int fd)
{
    for (uint32_t i = 0; i < own->count; i++) {
        if (own->items[i].fd != fd)
            continue;
        own->items[i] = own->items[--own->count];
        return;
    }
}

void oribi__fd_guard_add_wake(struct oribi__fd_guard *own, const struct oribi_wake *wake, const char *what)
{
    oribi__fd_guard_add(own, wake->read_fd, what);
    if (wake->write_fd != wake->read_fd)
        oribi__fd_guard_add(own, wake->write_fd, what);
}

void oribi__fd_guard_drop_wake(struct oribi__fd_guard *own, const struct oribi_wake *wake)
{
    oribi__fd_guard_drop(own, wake->read_fd);
    if (wake->write_fd != wake->read_fd)
        oribi__fd_guard_drop(own, wake->write_fd);
}

bool oribi__fd_guard_has(const struct oribi__fd_guard *own, int fd)
{
    for (uint32_t i = 0; i < own->count; i++)
        if (own->items[i].fd == fd)
            return oribi_os_is_marked(fd, &own->items[i].mark);
    return false;
}

const struct oribi__fd_guard_item *oribi__fd_guard_lost(const struct oribi__fd_guard *own)
{
    for (uint32_t i = 0; i < own->count; i++)
        if (!oribi_os_is_marked(own->items[i].fd, &own->items[i].mark))
            return &own->items[i];
    return NULL;
}

/* --- a worker --- */

/* Passes on all connections but that of the call: their requests go on elsewhere. Needs the loop and the hand-off
 * queue. */
static uint32_t pass_all(struct oribi_worker *w)
{
    uint32_t passed = 0;
    for (struct oribi_conn *c = w->reactor.conns; c; c = c->next)
        if (c->state != ORIBI_CONN_CALL && c->state != ORIBI_CONN_CLOSED &&
            oribi_loop_holds(w->reactor.loop, &c->watch))
            passed += oribi__pass_conn(w, c);
    return passed;
}

static _Noreturn void end_worker(struct oribi_worker *w, int fd, const char *what)
{
    uint32_t passed = 0;
    if (atomic_exchange(&w->deadline.dying, true))
        _exit(ORIBI_EXIT_DESCRIPTORS); /* another thread was about to end the process for a late call */
    if (!oribi_loop_lost(w->reactor.loop) && oribi__fd_guard_has(&w->fd_guard, w->placement.queue.give_fd))
        passed = pass_all(w);
    oribi_log(ORIBI_LOG_ERROR,
              "descriptor %d (%s) is not the server's any more: the application has closed it, at the latest in %s; "
              "%u connections passed on, the worker ends",
              fd, what, w->slot->line[0] ? w->slot->line : "its start", passed);
    if (oribi_access_log_intact(w->setup.access_log))
        oribi_access_log_flush(w->setup.access_log);
    _exit(ORIBI_EXIT_DESCRIPTORS);
}

void oribi__fd_guard_check(struct oribi_worker *w)
{
    w->own_due = false;
    w->own_checked_us = w->reactor.now_us;
    atomic_store_explicit(&w->own_doubted, false, memory_order_relaxed);
    if (oribi_loop_lost(w->reactor.loop))
        end_worker(w, oribi_loop_fd(w->reactor.loop), "event loop");
    const struct oribi__fd_guard_item *lost = oribi__fd_guard_lost(&w->fd_guard);
    if (lost)
        end_worker(w, lost->fd, lost->what);
    if (!oribi_access_log_intact(w->setup.access_log))
        end_worker(w, oribi_access_log_fd(w->setup.access_log), "access log");
    if (!oribi_log_intact())
        end_worker(w, oribi_log_fd(), "error log");
}

void oribi__fd_guard_begin(struct oribi_worker *w)
{
    oribi__fd_guard_add(&w->fd_guard, oribi_loop_fd(w->reactor.loop), "event loop");
    oribi__fd_guard_add_wake(&w->fd_guard, &w->wake, "wake");
    oribi__fd_guard_add(&w->fd_guard, w->setup.life_fd, "supervisor's end");
    oribi__fd_guard_add(&w->fd_guard, w->placement.queue.take_fd, "connections of siblings");
    oribi__fd_guard_add(&w->fd_guard, w->placement.queue.give_fd, "connections for siblings");
    if (w->setup.report_fd)
        oribi__fd_guard_add(&w->fd_guard, w->setup.report_fd, "reports to the supervisor");
    for (uint32_t i = 0; i < w->acceptor.watch_count; i++)
        oribi__fd_guard_add(&w->fd_guard, w->acceptor.watches[i].listener->fd, w->acceptor.watches[i].listener->text);
    w->own_checked_us = w->reactor.now_us;
}
