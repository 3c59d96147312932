/* The supervisor's decisions. Two halves: feed() takes note of what happened and touches nothing but the state; next() compares the state
 * with what is wanted and returns one action at a time, changing the state as if it had been carried out. What follows from the state
 * (who is to be stopped, killed, spawned) is never stored as a to-do list, so it cannot go stale; only what an event causes once (log
 * lines, a worker's exit report) waits in a small queue. */
#include "process/supervisor_private.h"

#include <assert.h>
#include <signal.h>
#include <string.h>

void oribi_supervisor_init(struct oribi_supervisor *sup, const struct oribi_supervisor_config *config,
                           const struct oribi_slot *slots, uint32_t slot_count)
{
    assert(slot_count <= ORIBI_SLOTS_MAX && config->workers <= config->workers_max);
    assert(slot_count >= 2 * config->workers_max);
    memset(sup, 0, sizeof(*sup));
    sup->config = *config;
    sup->slots = slots;
    sup->slot_count = slot_count;
    sup->target = config->workers;
    sup->spawned_at = -1;
}

void oribi_supervisor_feed(struct oribi_supervisor *sup, const struct oribi_event *event, int64_t now_ms)
{
    assert(sup->queue_len == 0); /* the caller has taken what the last event caused */
    sup->text_len = 0;
    oribi__sup_note(sup, event, now_ms);
}

bool oribi_supervisor_next(struct oribi_supervisor *sup, int64_t now_ms, struct oribi_action *action)
{
    if (sup->queue_len == 0) {
        sup->text_len = 0;
        if (!oribi__sup_step(sup, now_ms))
            return false;
    }
    *action = sup->queue[sup->queue_head];
    sup->queue_head = (sup->queue_head + 1) % ORIBI_SUPERVISOR_QUEUE_CAP;
    sup->queue_len--;
    return true;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t earlier_set(int64_t a, int64_t b)
{
    return b ? earlier(a, b) : a;
}

int64_t oribi_supervisor_deadline(const struct oribi_supervisor *sup, int64_t now_ms)
{
    if (sup->queue_len > 0)
        return now_ms;
    int64_t at = INT64_MAX;
    if (sup->exited || !sup->started)
        return at;
    bool alive = false;
    for (uint32_t i = 0; i < sup->slot_count; i++) {
        const struct oribi_place *place = &sup->places[i];
        if (place->state != ORIBI_PLACE_FREE)
            at = earlier_set(at, place->until);
        alive |= oribi__has_process(place->state);
    }
    for (uint32_t i = 0; i < ORIBI_MOLDS_MAX; i++)
        if (sup->molds[i].state != ORIBI_MOLD_IS_FREE)
            at = earlier_set(at, sup->molds[i].until);
    if (alive && sup->config.watch)
        at = earlier(at, sup->watched_at + ORIBI_WATCH_MS);
    if (!sup->stopping)
        at = earlier_set(at, sup->stop_at);
    at = earlier_set(earlier_set(at, sup->upgrade_until), sup->refork_until);
    if (oribi__sup_tally(sup).current < oribi__sup_wanted(sup) && sup->mold_not_before > now_ms)
        at = earlier(at, sup->mold_not_before);
    if (sup->send_signal && sup->send_at > now_ms)
        at = earlier(at, sup->send_at);
    if (sup->spawned_at >= 0 && !oribi__sup_spawn_paced(sup, now_ms))
        at = earlier(at, sup->spawned_at + sup->config.spawn_interval_ms);
    return at > now_ms ? at : now_ms;
}

uint32_t oribi_supervisor_serving(const struct oribi_supervisor *sup)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < sup->slot_count; i++)
        count += sup->places[i].state == ORIBI_PLACE_SERVING;
    return count;
}

uint32_t oribi_supervisor_alive(const struct oribi_supervisor *sup)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < sup->slot_count; i++)
        count += oribi__has_process(sup->places[i].state);
    return count;
}

void oribi_supervisor_told(struct oribi_supervisor *sup, uint32_t slot, int signal, int64_t now_ms)
{
    struct oribi_place *place = &sup->places[slot];
    assert(slot < sup->slot_count && oribi__has_process(place->state));
    if (signal != SIGTERM && signal != SIGQUIT && signal != SIGINT && signal != SIGKILL)
        return;
    if (!place->cause)
        place->cause = oribi__cause_asked;
    if (place->state == ORIBI_PLACE_SERVING && !place->until)
        place->until = oribi__sup_stop_deadline(sup, now_ms);
}

bool oribi_supervisor_has_process(const struct oribi_supervisor *sup, uint32_t slot)
{
    return slot < sup->slot_count && oribi__has_process(sup->places[slot].state);
}
