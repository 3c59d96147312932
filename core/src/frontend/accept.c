/* The frontend's listeners, from the first client to the last: accepting, pauses, and the end, with a supervisor and
 * without. */
#include "frontend/accept.h"
#include "frontend/arrive.h"
#include "frontend/frontend.h"

#include "oribi/base/error.h"
#include "oribi/base/os/os.h"

#include <sys/socket.h>

enum {
    ACCEPT_BATCH = 64,
    PAUSE_MS = 100,     /* of accepting, without descriptors or beyond connections_max */
    ORPHANS_MAX = 4096, /* connections that a listener may have at its end */
};

static void pause_accepting(struct oribi__frontend *frontend)
{
    if (!frontend->accept->accepting)
        return;
    for (uint32_t i = 0; i < frontend->config->listener_count; i++)
        if (frontend->config->listeners[i].listener.fd >= 0)
            (void)oribi_loop_remove(frontend->reactor.loop, &frontend->accept->watches[i]);
    frontend->accept->accepting = false;
    oribi_timers_arm(&frontend->timers, &frontend->accept->pause, frontend->reactor.now_ms + PAUSE_MS);
}

static void close_listener(struct oribi__frontend *frontend, uint32_t index)
{
    struct oribi_listener *listener = &frontend->config->listeners[index].listener;
    if (listener->fd < 0)
        return;
    if (frontend->accept->accepting)
        (void)oribi_loop_remove(frontend->reactor.loop, &frontend->accept->watches[index]);
    oribi_os_close(listener->fd);
    listener->fd = -1;
}

/* One connection makes way, for a reason that the log is told of in time. */
static bool evict(struct oribi__frontend *frontend)
{
    if (!oribi__arrive_make_room(frontend))
        return false;
    oribi_frontend_slot_count(&frontend->slot->evicted_count, 1);
    return true;
}

/* Without descriptors, and no connection that rests: those that have come wait in the kernel's queue. */
static bool has_no_descriptor(struct oribi__frontend *frontend, uint32_t index)
{
    if (oribi_log_limit_allows(&frontend->log_limit, frontend->reactor.now_ms))
        oribi_log(ORIBI_LOG_ERROR, "frontend: cannot accept from %s: %s",
                  frontend->config->listeners[index].listener.text, oribi_os_error_text());
    return !evict(frontend);
}

/* 0: there may be more. ORIBI_AGAIN: there is none. Another code: not now, or never (a listener that has ended). */
static int accept_one(struct oribi__frontend *frontend, uint32_t index)
{
    uint32_t max = frontend->config->options->connections_max;
    struct sockaddr_storage from;
    socklen_t len = sizeof(from);
    int fd;
    if (max && oribi__arrive_held(frontend) >= max && !evict(frontend)) {
        pause_accepting(frontend);
        return ORIBI_ELIMIT;
    }
    int code = oribi_os_accept(frontend->config->listeners[index].listener.fd, &fd, &from, &len);
    if (code == ORIBI_ECLOSED)
        return 0;
    if (code == 0)
        oribi__arrive(frontend, index, fd, &from);
    else if (code == ORIBI_ELIMIT && !has_no_descriptor(frontend, index))
        return 0;
    else if (code == ORIBI_ELIMIT || code == ORIBI_ENOMEM)
        pause_accepting(frontend);
    else if (code != ORIBI_AGAIN && frontend->draining)
        close_listener(frontend, index); /* the supervisor has ended it: nobody waits there */
    else if (code != ORIBI_AGAIN) {
        if (oribi_log_limit_allows(&frontend->log_limit, frontend->reactor.now_ms))
            oribi_log(ORIBI_LOG_ERROR, "frontend: cannot accept from %s: %s",
                      frontend->config->listeners[index].listener.text, oribi_os_error_text());
        pause_accepting(frontend);
    }
    return code;
}

static void on_listener(void *self, struct oribi_watch *watch)
{
    struct oribi__frontend *frontend = self;
    uint32_t index = (uint32_t)(watch - frontend->accept->watches);
    for (int i = 0; i < ACCEPT_BATCH && frontend->accept->accepting && !oribi__arrive_is_full(frontend, index); i++)
        if (frontend->config->listeners[index].listener.fd < 0 || accept_one(frontend, index) < 0)
            return;
}

static int listen_on(struct oribi__frontend *frontend)
{
    frontend->accept->accepting = true;
    for (uint32_t i = 0; i < frontend->config->listener_count; i++) {
        frontend->accept->watches[i].handler = on_listener;
        if (frontend->config->listeners[i].listener.fd < 0)
            continue;
        if (oribi_loop_add(frontend->reactor.loop, &frontend->accept->watches[i],
                           frontend->config->listeners[i].listener.fd, ORIBI_WATCH_LISTENER, ORIBI_READ) < 0)
            return ORIBI_ESYS;
    }
    return 0;
}

static void on_pause_over(void *self)
{
    (void)listen_on(self); /* tried again with the next pause */
}

int oribi__frontend_accept_init(struct oribi__frontend *frontend)
{
    frontend->accept->pause = (struct oribi_timer){.expired = on_pause_over, .owner = frontend};
    return listen_on(frontend);
}

void oribi__frontend_accept_turn(struct oribi__frontend *frontend)
{
    for (uint32_t i = 0; i < frontend->config->listener_count && frontend->draining; i++)
        if (frontend->accept->accepting) /* TCP: that it has ended is told by accept(2) */
            on_listener(frontend, &frontend->accept->watches[i]);
}

void oribi__frontend_accept_stop(struct oribi__frontend *frontend, bool last)
{
    for (uint32_t i = 0; i < frontend->config->listener_count; i++)
        if (!last || frontend->config->listeners[i].listener.inherited)
            close_listener(frontend, i);
}

/* One that a successor or a predecessor serves as well is only closed. */
void oribi__frontend_accept_end(struct oribi__frontend *frontend)
{
    bool sole = atomic_load_explicit(&frontend->slot->sole, memory_order_relaxed);
    for (uint32_t i = 0; i < frontend->config->listener_count; i++) {
        const struct oribi_listener *listener = &frontend->config->listeners[i].listener;
        bool own = sole && !listener->inherited;
        for (int left = ORPHANS_MAX; own && left > 0 && accept_one(frontend, i) >= 0; left--)
            continue;
        if (own && listener->fd >= 0)
            (void)shutdown(listener->fd, SHUT_RDWR); /* for all who have a copy; one that is over already fails */
        close_listener(frontend, i);
    }
}

bool oribi__frontend_accept_listens(const struct oribi__frontend *frontend)
{
    for (uint32_t i = 0; i < frontend->config->listener_count; i++)
        if (frontend->config->listeners[i].listener.fd >= 0)
            return true;
    return false;
}
