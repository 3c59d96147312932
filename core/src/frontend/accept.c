/* The door's listeners, from the first client to the last: accepting, pauses, and the end, with a supervisor and
 * without. */
#include "frontend/frontend_private.h"

#include "oribi/base/error.h"
#include "oribi/base/os/os.h"

#include <sys/socket.h>

enum {
    ACCEPT_BATCH = 64,
    ORPHANS_MAX = 4096, /* connections that a listener may have at its end */
};

static void pause_accepting(struct oribi__door *door)
{
    if (!door->accepting)
        return;
    for (uint32_t i = 0; i < door->config->listener_count; i++)
        if (door->config->listeners[i].listener.fd >= 0)
            (void)oribi_loop_remove(door->reactor.loop, &door->listener_watches[i]);
    door->accepting = false;
    door->accept_pause_until_ms = door->reactor.now_ms + ORIBI__DOOR_PAUSE_MS;
}

static void close_listener(struct oribi__door *door, uint32_t index)
{
    struct oribi_listener *listener = &door->config->listeners[index].listener;
    if (listener->fd < 0)
        return;
    if (door->accepting)
        (void)oribi_loop_remove(door->reactor.loop, &door->listener_watches[index]);
    oribi_os_close(listener->fd);
    listener->fd = -1;
}

/* One connection makes way, for a reason that the log is told of in time. */
static bool evict(struct oribi__door *door)
{
    if (!oribi__arrive_make_room(door))
        return false;
    oribi_door_slot_count(&door->slot->evicted_count, 1);
    return true;
}

/* Without descriptors, and no connection that rests: those that have come wait in the kernel's queue. */
static bool has_no_descriptor(struct oribi__door *door, uint32_t index)
{
    if (oribi_log_limit_allows(&door->log_limit, door->reactor.now_ms))
        oribi_log(ORIBI_LOG_ERROR, "door: cannot accept from %s: %s", door->config->listeners[index].listener.text,
                  oribi_os_error_text());
    return !evict(door);
}

/* 0: there may be more. ORIBI_AGAIN: there is none. Another code: not now, or never (a listener that has ended). */
static int accept_one(struct oribi__door *door, uint32_t index)
{
    uint32_t max = door->config->options->connections_max;
    struct sockaddr_storage from;
    socklen_t len = sizeof(from);
    int fd;
    if (max && oribi__arrive_held(door) >= max && !evict(door)) {
        pause_accepting(door);
        return ORIBI_ELIMIT;
    }
    int code = oribi_os_accept(door->config->listeners[index].listener.fd, &fd, &from, &len);
    if (code == ORIBI_ECLOSED)
        return 0;
    if (code == 0)
        oribi__arrive(door, index, fd, &from);
    else if (code == ORIBI_ELIMIT && !has_no_descriptor(door, index))
        return 0;
    else if (code == ORIBI_ELIMIT || code == ORIBI_ENOMEM)
        pause_accepting(door);
    else if (code != ORIBI_AGAIN && door->draining)
        close_listener(door, index); /* the supervisor has ended it: nobody waits there */
    else if (code != ORIBI_AGAIN) {
        if (oribi_log_limit_allows(&door->log_limit, door->reactor.now_ms))
            oribi_log(ORIBI_LOG_ERROR, "door: cannot accept from %s: %s", door->config->listeners[index].listener.text,
                      oribi_os_error_text());
        pause_accepting(door);
    }
    return code;
}

static void on_listener(void *self, struct oribi_watch *watch)
{
    struct oribi__door *door = self;
    uint32_t index = (uint32_t)(watch - door->listener_watches);
    for (int i = 0; i < ACCEPT_BATCH && door->accepting; i++)
        if (door->config->listeners[index].listener.fd < 0 || accept_one(door, index) < 0)
            return;
}

static int listen_on(struct oribi__door *door)
{
    door->accepting = true;
    for (uint32_t i = 0; i < door->config->listener_count; i++) {
        door->listener_watches[i].handler = on_listener;
        if (door->config->listeners[i].listener.fd < 0)
            continue;
        if (oribi_loop_add(door->reactor.loop, &door->listener_watches[i], door->config->listeners[i].listener.fd,
                           ORIBI_WATCH_LISTENER, ORIBI_READ) < 0)
            return ORIBI_ESYS;
    }
    return 0;
}

int oribi__door_accept_init(struct oribi__door *door)
{
    return listen_on(door);
}

void oribi__door_accept_turn(struct oribi__door *door)
{
    if (!door->accepting && door->reactor.now_ms >= door->accept_pause_until_ms)
        (void)listen_on(door); /* tried again with the next pause */
    for (uint32_t i = 0; i < door->config->listener_count && door->draining; i++)
        if (door->accepting) /* TCP: that it has ended is told by accept(2) */
            on_listener(door, &door->listener_watches[i]);
}

void oribi__door_accept_stop(struct oribi__door *door, bool last)
{
    for (uint32_t i = 0; i < door->config->listener_count; i++)
        if (!last || door->config->listeners[i].listener.inherited)
            close_listener(door, i);
}

/* One that a successor or a predecessor serves as well is only closed. */
void oribi__door_accept_end(struct oribi__door *door)
{
    bool sole = atomic_load_explicit(&door->slot->sole, memory_order_relaxed);
    for (uint32_t i = 0; i < door->config->listener_count; i++) {
        const struct oribi_listener *listener = &door->config->listeners[i].listener;
        bool own = sole && !listener->inherited;
        for (int left = ORPHANS_MAX; own && left > 0 && accept_one(door, i) >= 0; left--)
            continue;
        if (own && listener->fd >= 0)
            (void)shutdown(listener->fd, SHUT_RDWR); /* for all who have a copy; one that is over already fails */
        close_listener(door, i);
    }
}

bool oribi__door_accept_listens(const struct oribi__door *door)
{
    for (uint32_t i = 0; i < door->config->listener_count; i++)
        if (door->config->listeners[i].listener.fd >= 0)
            return true;
    return false;
}
