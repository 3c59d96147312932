/* What follows from the scoreboard, which is looked at once a second: calls over their deadline, workers grown old, one warm enough to be forked
 * off. Reading order: oribi__sup_step_watch, look, then what each look leads to. */
#include "process/supervisor_private.h"

#include "oribi/base/log.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#define push oribi__sup_push
#define say  oribi__sup_say

/* Remembers since when a worker's call has been over its deadline. A look that comes late (the machine slept, we were stopped) forgives
 * everything: the workers have not run in that time either. */
static void look_at_call(struct oribi_supervisor *sup, struct oribi_place *place, bool jumped, int64_t now_ms)
{
    const struct oribi_slot *slot = &sup->slots[oribi__sup_number(sup, place)];
    /* Pairs with the worker's release stores; a started time of another call than the deadline's only delays us by one look. */
    int64_t deadline = atomic_load_explicit(&slot->call_deadline_us, memory_order_acquire);
    int64_t started = atomic_load_explicit(&slot->call_started_us, memory_order_acquire);
    bool overdue = deadline && started && deadline <= now_ms * 1000;
    if (!overdue || jumped)
        place->overdue_since = 0;
    else if (!place->overdue_since || started != place->call_started || deadline != place->call_deadline)
        place->overdue_since = now_ms;
    place->call_started = started;
    place->call_deadline = deadline;
    bool told = place->state == ORIBI_PLACE_SERVING || place->state == ORIBI_PLACE_STOPPING;
    place->remind = place->overdue_since && told && sup->config.deadline_signal;
}

/* Up to an eighth more, so that workers that were started together do not grow old together. */
static int64_t age_max_of(const struct oribi_supervisor *sup, const struct oribi_place *place)
{
    int64_t spread = (place->ticket * 2654435761u) % 1024;
    return sup->config.age_max_ms + sup->config.age_max_ms / 8 * spread / 1024;
}

static void look_at_age(struct oribi_supervisor *sup, struct oribi_place *place, int64_t now_ms)
{
    if (!sup->config.age_max_ms || place->state != ORIBI_PLACE_SERVING || place->retire)
        return;
    /* It never said that it listens, so that a stop may strike in the middle of a job. */
    if (sup->config.patient && atomic_load(&sup->slots[oribi__sup_number(sup, place)].state) == ORIBI_SLOT_STARTING)
        return;
    if (now_ms - place->ready_at >= age_max_of(sup, place))
        place->retire = "age_max";
}

static void look(struct oribi_supervisor *sup, int64_t now_ms)
{
    bool jumped = now_ms - sup->watched_at > ORIBI_WATCH_JUMP_MS;
    sup->watched_at = now_ms;
    for (uint32_t i = 0; i < sup->slot_count; i++) {
        struct oribi_place *place = &sup->places[i];
        if (!oribi__has_process(place->state))
            continue;
        look_at_call(sup, place, jumped, now_ms);
        look_at_age(sup, place, now_ms);
    }
}

/* A worker's own helper tells it in time; one that has none (no call was long before) hears it from here. */
static bool remind_one(struct oribi_supervisor *sup)
{
    for (uint32_t i = 0; i < sup->slot_count; i++) {
        struct oribi_place *place = &sup->places[i];
        if (!place->remind || !oribi__has_process(place->state))
            continue;
        place->remind = false;
        oribi__sup_signal(sup, place->pid, sup->config.deadline_signal);
        return true;
    }
    return false;
}

static bool kill_overdue(struct oribi_supervisor *sup, int64_t now_ms)
{
    for (uint32_t i = 0; i < sup->slot_count; i++) {
        struct oribi_place *place = &sup->places[i];
        if (!place->overdue_since || now_ms - place->overdue_since < ORIBI_CALL_GRACE_MS ||
            !oribi__has_process(place->state) || place->state == ORIBI_PLACE_KILLED)
            continue;
        char line[ORIBI_SLOT_LINE_CAP];
        memcpy(line, sup->slots[i].line, sizeof(line)); /* may be torn: it is only shown */
        line[sizeof(line) - 1] = '\0';
        say(sup, ORIBI_LOG_ERROR, "worker %u (pid %d) killed, a call is %lld ms old and %lld ms over call_timeout: %s",
            i, place->pid, (long long)(now_ms - place->call_started / 1000),
            (long long)(now_ms - sup->slots[i].call_deadline_us / 1000), line);
        oribi__sup_kill(sup, place, oribi__cause_call_deadline, now_ms);
        return true;
    }
    return false;
}

/* The first worker of a generation to have answered refork_after requests is asked to fork a mold off itself. */
static bool ask_for_refork(struct oribi_supervisor *sup, int64_t now_ms)
{
    if (!sup->config.refork_after || sup->reforked == sup->generation || sup->next_generation || sup->rolling ||
        sup->stopping)
        return false;
    for (uint32_t i = 0; i < sup->slot_count; i++) {
        struct oribi_place *place = &sup->places[i];
        if (place->state != ORIBI_PLACE_SERVING || oribi__sup_role(sup, place) != ORIBI__CURRENT ||
            atomic_load_explicit(&sup->slots[i].request_count, memory_order_relaxed) < sup->config.refork_after)
            continue;
        sup->reforked = sup->generation;
        sup->refork_until = oribi__deadline_in(sup->config.boot_timeout_ms, now_ms);
        push(sup, ORIBI_ACTION_REFORK)->pid = place->pid;
        oribi__sup_signal(sup, place->pid, SIGUSR2);
        return true;
    }
    return false;
}

bool oribi__sup_step_watch(struct oribi_supervisor *sup, int64_t now_ms)
{
    if (!sup->config.watch)
        return false;
    if (now_ms - sup->watched_at >= ORIBI_WATCH_MS)
        look(sup, now_ms);
    return remind_one(sup) || kill_overdue(sup, now_ms) || ask_for_refork(sup, now_ms);
}
