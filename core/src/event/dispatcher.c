/* Descriptors and timers with their handlers; see the header. */
#include "oribi/event/dispatcher.h"

#include "oribi/base/clock.h"
#include "oribi/base/os/os.h"

#include <assert.h>
#include <limits.h>
#include <stddef.h>

int oribi_dispatcher_init(struct oribi_dispatcher *dispatcher)
{
    *dispatcher = (struct oribi_dispatcher){.now_ms = oribi_clock_ms()};
    oribi_timers_init(&dispatcher->timers);
    int code = oribi_timers_try_reserve(&dispatcher->timers, ORIBI_DISPATCHER_TIMERS);
    if (code < 0) {
        (void)oribi_os_fail_saying("out of memory");
        return code;
    }
    code = oribi_loop_create(ORIBI_LOOP_POLL, &dispatcher->loop);
    if (code < 0)
        oribi_timers_deinit(&dispatcher->timers);
    return code;
}

void oribi_dispatcher_deinit(struct oribi_dispatcher *dispatcher)
{
    if (dispatcher->loop)
        oribi_loop_destroy(dispatcher->loop);
    dispatcher->loop = NULL;
    oribi_timers_deinit(&dispatcher->timers);
}

static struct oribi_watcher *watcher_of(struct oribi_watch *watch)
{
    return (struct oribi_watcher *)((char *)watch - offsetof(struct oribi_watcher, watch));
}

int oribi_dispatcher_watch(struct oribi_dispatcher *dispatcher, struct oribi_watcher *watcher, int fd, uint8_t interest)
{
    assert(watcher->ready);
    if (watcher->watch.added && watcher->watch.fd == fd) {
        oribi_loop_interest(dispatcher->loop, &watcher->watch, interest);
        return 0;
    }
    oribi_dispatcher_forget(dispatcher, watcher);
    return oribi_loop_add(dispatcher->loop, &watcher->watch, fd, ORIBI_WATCH_SIGNAL, interest);
}

/* Voids what the last look has found of the watcher: its number may be another file's before the handler is called. */
void oribi_dispatcher_forget(struct oribi_dispatcher *dispatcher, struct oribi_watcher *watcher)
{
    for (int i = dispatcher->next; i < dispatcher->count; i++)
        if (dispatcher->events[i].watch == &watcher->watch)
            dispatcher->events[i].watch = NULL;
    (void)oribi_loop_remove(dispatcher->loop, &watcher->watch); /* the owner closes its descriptor either way */
}

void oribi_dispatcher_arm(struct oribi_dispatcher *dispatcher, struct oribi_timer *timer, int64_t at_ms)
{
    assert(timer->expired || at_ms == INT64_MAX);
    oribi_timers_arm(&dispatcher->timers, timer, at_ms);
}

/* True when a handler was called. An interest may have gone since the look. */
static bool call_ready(struct oribi_dispatcher *dispatcher)
{
    while (dispatcher->next < dispatcher->count) {
        struct oribi_event *event = &dispatcher->events[dispatcher->next++];
        if (!event->watch || !event->watch->added || !(event->ready & (event->watch->interest | ORIBI_HANGUP)) ||
            !event->watch->interest)
            continue;
        struct oribi_watcher *watcher = watcher_of(event->watch);
        watcher->ready(watcher->owner, event->ready);
        return true;
    }
    return false;
}

static bool call_expired(struct oribi_dispatcher *dispatcher)
{
    struct oribi_timer *timer = oribi_timers_expired(&dispatcher->timers, dispatcher->now_ms);
    if (!timer)
        return false;
    timer->expired(timer->owner);
    return true;
}

/* Forgets the readiness of before: these descriptors are asked anew each time. */
static void look(struct oribi_dispatcher *dispatcher, int timeout_ms)
{
    dispatcher->next = 0;
    dispatcher->count = oribi_loop_poll(dispatcher->loop, timeout_ms, dispatcher->events, ORIBI_DISPATCHER_EVENTS);
    for (int i = 0; i < dispatcher->count; i++)
        dispatcher->events[i].watch->ready = 0;
    dispatcher->now_ms = oribi_clock_ms();
}

bool oribi_dispatcher_next(struct oribi_dispatcher *dispatcher)
{
    if (call_ready(dispatcher) || call_expired(dispatcher))
        return true;
    look(dispatcher, 0);
    return call_ready(dispatcher) || call_expired(dispatcher);
}

static int64_t left_ms(const struct oribi_dispatcher *dispatcher, int64_t max_ms)
{
    int64_t at_ms = oribi_timers_next_at(&dispatcher->timers);
    if (at_ms == INT64_MAX)
        return max_ms;
    int64_t ms = at_ms - oribi_clock_ms();
    if (ms < 0)
        ms = 0;
    return oribi_shorter(max_ms, ms);
}

void oribi_dispatcher_wait(struct oribi_dispatcher *dispatcher, int64_t max_ms)
{
    if (dispatcher->next < dispatcher->count)
        return; /* there is something to do already */
    int64_t ms = left_ms(dispatcher, max_ms);
    look(dispatcher, ms > INT_MAX ? INT_MAX : (int)ms);
}
