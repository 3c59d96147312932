/* Chooses the readiness source and forwards to it. */
#include "oribi/event/loop.h"

#include "event/loop_source.h"
#include "oribi/base/error.h"
#include "oribi/base/mem.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

static const struct oribi_loop_ops *choose(enum oribi_loop_source source)
{
    if (source == ORIBI_LOOP_BEST) {
        const char *name = getenv("ORIBI_EVENT_SOURCE");
        if (name && strcmp(name, "poll") == 0)
            return &oribi__loop_poll;
        return oribi__loop_native ? oribi__loop_native : &oribi__loop_poll;
    }
    return source == ORIBI_LOOP_NATIVE ? oribi__loop_native : &oribi__loop_poll;
}

int oribi_loop_create(enum oribi_loop_source source, struct oribi_loop **out)
{
    const struct oribi_loop_ops *ops = choose(source);
    if (!ops)
        return ORIBI_ESYS;
    struct oribi_loop *loop = oribi_mem_alloc(1, sizeof(*loop));
    loop->ops = ops;
    loop->fd = -1;
    int result = ops->open(loop);
    if (result < 0) {
        oribi_mem_free(loop);
        return result;
    }
    *out = loop;
    return 0;
}

void oribi_loop_destroy(struct oribi_loop *loop)
{
    loop->ops->close(loop);
    oribi_mem_free(loop->slept);
    oribi_mem_free(loop);
}

int oribi_loop_fd(const struct oribi_loop *loop)
{
    return loop->fd;
}

int oribi_loop_add(struct oribi_loop *loop, struct oribi_watch *watch, int fd, enum oribi_watch_kind kind,
                   uint8_t interest)
{
    watch->fd = fd;
    watch->kind = (uint8_t)kind;
    watch->interest = interest;
    watch->ready = 0;
    watch->lost = false;
    int result = loop->ops->add(loop, watch);
    watch->added = result == 0;
    return result;
}

bool oribi_loop_remove(struct oribi_loop *loop, struct oribi_watch *watch)
{
    if (!watch->added)
        return true;
    watch->added = false;
    return loop->ops->remove(loop, watch);
}

bool oribi_loop_holds(struct oribi_loop *loop, struct oribi_watch *watch)
{
    return !watch->added || !oribi__watch_remembers(watch) || loop->ops->holds(loop, watch);
}

bool oribi_loop_lost(const struct oribi_loop *loop)
{
    return atomic_load_explicit(&loop->lost, memory_order_relaxed);
}

void oribi_loop_interest(struct oribi_loop *loop, struct oribi_watch *watch, uint8_t interest)
{
    if (watch->interest == interest)
        return;
    watch->interest = interest;
    if (watch->added)
        loop->ops->interest(loop, watch);
}

void oribi_loop_rotate(struct oribi_loop *loop, struct oribi_watch *watch)
{
    if (watch->added)
        loop->ops->rotate(loop, watch);
}

int oribi_loop_poll(struct oribi_loop *loop, int timeout_ms, struct oribi_event *events, int max)
{
    return loop->ops->poll(loop, timeout_ms, events, max);
}

void oribi_loop_sleep(struct oribi_loop *loop, int timeout_ms)
{
    enum { NAP_MS = 1 };
    if (loop->ops->sleep)
        loop->ops->sleep(loop, timeout_ms);
    else
        (void)poll(NULL, 0, timeout_ms < 0 || timeout_ms > NAP_MS ? NAP_MS : timeout_ms); /* the caller polls then */
}

int oribi_loop_collect(struct oribi_loop *loop, struct oribi_event *events, int max)
{
    return loop->ops->collect ? loop->ops->collect(loop, events, max) : 0;
}
