/* The end of the listeners when the server ends, and no successor takes them over.
 *
 *   stop ─► new connections are refused ─► workers accept those in the queue ─► the queue is empty: shutdown(2)
 *
 * Addresses of frontends end first, in the same way, and their frontends with them; workers serve on for what frontends
 * have, and accept at their own addresses those who have connected before.
 *
 * Closing our copies would not do: workers have theirs, and one in a long call keeps the socket open, so that
 * new clients connect into a queue that no worker serves. shutdown(2) ends a socket for all processes, but resets
 * connections that wait to be accepted. Sockets that were handed down, or that a successor or predecessor of
 * ours serves, are only closed. */
#include "supervisor/supervisor_private.h"

#include "oribi/base/clock.h"

/* The kernel holds a connection back for a second until its client has sent something (listener.c), counted by a
 * timer of its own that a busy machine runs late. The rest of this time is for that: a connection that comes out of
 * the kernel's hands is closed in order, one that does not is reset. */
enum { LOOK_MS = 10, HELD_MS = 1250 };

/* True when the socket is over. */
static bool end_one(struct oribi_listener *item, bool held)
{
    if (oribi_os_listen_awaits(item->fd, held))
        return false;
    oribi_os_listen_end(item->fd);
    return true;
}

void oribi__listening_turn(struct oribi__context *context)
{
    struct oribi_listeners *listeners = context->process.listeners;
    int64_t now_ms = oribi_clock_ms();
    uint32_t left = 0;
    bool more = false;
    if (!context->shutdown.look_at || now_ms < context->shutdown.look_at)
        return;
    for (uint32_t i = 0; i < listeners->count; i++) {
        struct oribi_listener *item = &listeners->items[i];
        bool ends = item->frontend || !context->shutdown.frontends_only;
        if (ends && end_one(item, now_ms < context->shutdown.held_until)) {
            oribi_os_close(item->fd);
            continue;
        }
        more |= ends;
        listeners->items[left++] = *item;
    }
    listeners->count = left;
    context->shutdown.look_at = more ? now_ms + LOOK_MS : 0;
}

/* The others are closed here. */
static void keep_own(struct oribi_listeners *listeners)
{
    uint32_t own = 0;
    for (uint32_t i = 0; i < listeners->count; i++) {
        struct oribi_listener *item = &listeners->items[i];
        if (item->inherited)
            oribi_listener_close(item, false);
        else
            listeners->items[own++] = *item;
    }
    listeners->count = own;
}

/* True when there is nothing more to end. */
static bool begin(struct oribi__context *context, bool handed_over)
{
    struct oribi_listeners *listeners = context->process.listeners;
    if (handed_over || context->upgrade.predecessor_fd >= 0) {
        oribi__close_listeners(context, !handed_over);
        return true;
    }
    keep_own(listeners);
    oribi_listeners_unlink(listeners);
    context->shutdown.look_at = oribi_clock_ms();
    if (!context->shutdown.held_until)
        context->shutdown.held_until = context->shutdown.look_at + HELD_MS;
    return false;
}

/* A unix socket whose file is gone lets nobody in: it is shut down when its workers are told to stop, who find out by
 * that that its queue stays empty. */
void oribi__end_newcomers(struct oribi__context *context, bool handed_over)
{
    struct oribi_listeners *listeners = context->process.listeners;
    if (begin(context, handed_over))
        return;
    context->shutdown.frontends_only = true;
    for (uint32_t i = 0; i < listeners->count; i++)
        if (listeners->items[i].frontend || !listeners->items[i].is_unix)
            oribi_os_listen_stop_accepting(listeners->items[i].fd);
}

void oribi__end_listening(struct oribi__context *context, bool handed_over)
{
    struct oribi_listeners *listeners = context->process.listeners;
    if (begin(context, handed_over))
        return;
    context->shutdown.frontends_only = false;
    for (uint32_t i = 0; i < listeners->count; i++)
        oribi_os_listen_stop_accepting(listeners->items[i].fd);
    for (uint32_t i = 0; i < context->process.board.count; i++)
        atomic_store(&context->process.board.slots[i].stop_soon, ORIBI_STOP_LAST);
} /* the first look follows in the same turn, oribi_supervisor_take() */
