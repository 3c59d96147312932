/* Requests that nobody takes; see the header.
 *
 * A frontend gives a worker with short calls several requests at a time. When one of these calls turns out long, what
 * lies behind it waits for the worker's helper, which may be parked. The ring says whether a request was begun, and the
 * one who takes it back has it alone (base/ring.h), so that its method does not matter. A worker that is in no call and
 * takes nothing is stopped; it is given nothing for a while.
 *
 * The kernel wakes one worker for a request in the hand-off queue. A worker that a signal stops may take this wake-up
 * along: when the queue keeps the request although a worker is idle, another one is woken. */
#include "frontend/untaken.h"
#include "frontend/channel.h"
#include "frontend/dispatch.h"
#include "frontend/frontend.h"
#include "frontend/upstream_request.h"

#include <stdatomic.h>

enum { STOPPED_US = 100 * 1000 }; /* until a worker that is in no call, and takes nothing, counts as stopped */

/* Will nobody look at the ring for a while? *stopped: since its worker is. */
static bool lies(const struct oribi__channel *channel, int64_t now_us, bool *stopped)
{
    const struct oribi_scoreboard *board = &channel->frontend->config->board;
    uint16_t owner = oribi__channel_owner(channel);
    if (owner == 0 || owner > board->count)
        return false;
    const struct oribi_slot *slot = &board->slots[owner - 1u];
    int64_t started_us = atomic_load_explicit(&slot->call_started_us, memory_order_relaxed);
    *stopped = started_us == 0;
    if (*stopped)
        return now_us - channel->sent_us >= STOPPED_US;
    return atomic_load_explicit(&slot->threads, memory_order_relaxed) <= 1 &&
           now_us - started_us >= ORIBI__UNTAKEN_MS * 1000;
}

void oribi__untaken_look(struct oribi__channel *channel)
{
    struct oribi__frontend *frontend = channel->frontend;
    struct oribi__upstream_request *call = channel->call;
    int64_t now_us = frontend->reactor.now_us;
    uint16_t owner = channel->owner;
    bool stopped = false;
    if (now_us - channel->sent_us < ORIBI__UNTAKEN_MS * 1000)
        return;
    /* A worker that has answered has begun the request, whatever its ring says. */
    if (channel->answered || !oribi_channel_ring_unread(channel->ring)) {
        channel->taken = true;
        frontend->channels->untaken_count--;
        return;
    }
    if (!lies(channel, now_us, &stopped) || !oribi_channel_ring_take_back(channel->ring))
        return;
    if (stopped)
        oribi__dispatch_shun(frontend, owner);
    oribi__channel_close(channel);
    oribi__dispatch_add(call, true);
}

static bool any_is_idle(const struct oribi_scoreboard *board)
{
    for (uint32_t i = 0; i < board->count; i++)
        if (atomic_load_explicit(&board->slots[i].state, memory_order_relaxed) == ORIBI_SLOT_IDLE)
            return true;
    return false;
}

/* May a stopped worker have the wake-up for what lies in the hand-off queue? */
static bool lies_in_queue(const struct oribi__frontend *frontend)
{
    return frontend->dispatch->out_waiting > 0 && any_is_idle(&frontend->config->board);
}

void oribi__untaken_turn(struct oribi__frontend *frontend)
{
    int64_t now_us = frontend->reactor.now_us;
    int64_t complete_us;
    if (now_us - frontend->dispatch->woken_us < STOPPED_US || !lies_in_queue(frontend))
        return;
    frontend->dispatch->woken_us = now_us;
    if (oribi_handoff_waiting(&frontend->config->handoff, &complete_us))
        oribi_handoff_notify(&frontend->config->handoff);
}

int64_t oribi__untaken_due_ms(const struct oribi__frontend *frontend)
{
    if (frontend->channels->untaken_count > 0)
        return frontend->reactor.now_ms + ORIBI__UNTAKEN_MS;
    if (lies_in_queue(frontend))
        return (frontend->dispatch->woken_us + STOPPED_US) / 1000 + 1;
    return INT64_MAX;
}
