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
#include "supervisor/actions.h"

#include "supervisor/context.h"
#include "supervisor/upgrade.h"
#include "oribi/config/listener.h"

#include "oribi/base/clock.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"

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

struct oribi__shutdown {
    struct oribi_timer look;
    int64_t held_until;  /* until then connections that the kernel holds back are waited for */
    bool frontends_only; /* those of frontends end, and those of workers only let nobody in */
};

static void look(void *owner)
{
    struct oribi__context *context = owner;
    struct oribi__shutdown *shutdown = context->shutdown;
    struct oribi_listeners *listeners = context->process.listeners;
    int64_t now_ms = oribi_clock_ms();
    uint32_t left = 0;
    bool more = false;
    for (uint32_t i = 0; i < listeners->count; i++) {
        struct oribi_listener *item = &listeners->items[i];
        bool ends = item->frontend || !shutdown->frontends_only;
        if (ends && end_one(item, now_ms < shutdown->held_until)) {
            oribi_os_close(item->fd);
            continue;
        }
        more |= ends;
        listeners->items[left++] = *item;
    }
    listeners->count = left;
    if (more)
        oribi_dispatcher_arm(&context->dispatcher, &shutdown->look, now_ms + LOOK_MS);
}

/* A successor that never served leaves the socket files to its predecessor, which goes on, but for those that it has
 * opened itself. */
void oribi__close_listeners(struct oribi__context *context, bool unlink_paths)
{
    struct oribi_listeners *listeners = context->process.listeners;
    for (uint32_t i = 0; oribi__upgrade_is_successor(context) && i < listeners->count; i++) {
        if (listeners->items[i].fresh)
            continue;
        oribi_mem_free(listeners->items[i].path);
        listeners->items[i].path = NULL;
    }
    oribi_listeners_close(listeners, unlink_paths);
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
static bool begin_end(struct oribi__context *context, bool handed_over)
{
    struct oribi_listeners *listeners = context->process.listeners;
    if (handed_over || oribi__upgrade_is_successor(context)) {
        oribi__close_listeners(context, !handed_over);
        return true;
    }
    keep_own(listeners);
    oribi_listeners_unlink(listeners);
    if (!context->shutdown->held_until)
        context->shutdown->held_until = oribi_clock_ms() + HELD_MS;
    oribi_dispatcher_arm(&context->dispatcher, &context->shutdown->look, 0);
    return false;
}

/* A unix socket whose file is gone lets nobody in: it is shut down when its workers are told to stop, who find out by
 * that that its queue stays empty. */
void oribi__end_newcomers(struct oribi__context *context, bool handed_over)
{
    struct oribi_listeners *listeners = context->process.listeners;
    if (begin_end(context, handed_over))
        return;
    context->shutdown->frontends_only = true;
    for (uint32_t i = 0; i < listeners->count; i++)
        if (listeners->items[i].frontend || !listeners->items[i].is_unix)
            oribi_os_listen_stop_accepting(listeners->items[i].fd);
}

void oribi__end_listening(struct oribi__context *context, bool handed_over)
{
    struct oribi_listeners *listeners = context->process.listeners;
    if (begin_end(context, handed_over))
        return;
    context->shutdown->frontends_only = false;
    for (uint32_t i = 0; i < listeners->count; i++)
        oribi_os_listen_stop_accepting(listeners->items[i].fd);
    for (uint32_t i = 0; i < context->process.board.count; i++)
        atomic_store(&context->process.board.slots[i].stop_soon, ORIBI_STOP_LAST);
}

/* --- the module --- */

static void init(struct oribi__context *context)
{
    context->shutdown->look = (struct oribi_timer){.expired = look, .owner = context};
}

static void end(struct oribi__context *context)
{
    oribi_dispatcher_arm(&context->dispatcher, &context->shutdown->look, INT64_MAX);
}

const struct oribi__module oribi__shutdown_module = {
    .bytes = sizeof(struct oribi__shutdown),
    .init = init,
    .end = end,
};
