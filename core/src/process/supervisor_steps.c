/* What follows from the state. Each step queues the actions of one thing to do and says so, or has nothing to do. */
#include "process/supervisor_private.h"

#include "oribi/base/log.h"

#include <signal.h>
#include <stdio.h>

#define push oribi__sup_push
#define say  oribi__sup_say

/* --- deadlines --- */

static bool place_expired(struct oribi_supervisor *sup, struct oribi_place *place, int64_t now_ms)
{
    uint32_t number = oribi__sup_number(sup, place);
    struct oribi_mold_place *mold;
    switch (place->state) {
    case ORIBI_PLACE_HELD:
    case ORIBI_PLACE_LOST:
        place->state = ORIBI_PLACE_FREE;
        return false; /* no action by itself */
    case ORIBI_PLACE_SPAWNING:
        mold = oribi__sup_mold_of_pid(sup, place->mold_pid);
        place->state = ORIBI_PLACE_LOST;
        place->until = now_ms + ORIBI_LOST_MS;
        if (!mold || mold->state == ORIBI_MOLD_IS_KILLED)
            return false;
        say(sup, ORIBI_LOG_ERROR, "mold (pid %d) did not fork worker %u within boot_timeout: killed", mold->pid,
            number);
        oribi__sup_kill_mold(sup, mold, now_ms);
        if (mold->generation == sup->next_generation)
            oribi__sup_reload_failed(sup, "its mold forks no workers");
        return true;
    case ORIBI_PLACE_BOOTING:
        say(sup, ORIBI_LOG_ERROR, "worker %u (pid %d) was not ready within boot_timeout: killed", number, place->pid);
        oribi__sup_kill(sup, place, oribi__cause_boot_timeout, now_ms);
        return true;
    case ORIBI_PLACE_LEAVING:
    case ORIBI_PLACE_STOPPING:
        if (!place->interrupted)
            say(sup, ORIBI_LOG_WARN, "worker %u (pid %d) did not end within shutdown_timeout: killed", number,
                place->pid);
        oribi__sup_kill(sup, place, place->interrupted ? oribi__cause_asked : oribi__cause_shutdown_timeout, now_ms);
        return true;
    case ORIBI_PLACE_KILLED:
        place->until = 0;
        say(sup, ORIBI_LOG_ERROR, "worker %u (pid %d) was killed and does not end", number, place->pid);
        return true;
    case ORIBI_PLACE_SERVING: /* the program asked it to end */
        say(sup, ORIBI_LOG_WARN, "worker %u (pid %d) did not end within shutdown_timeout: killed", number, place->pid);
        oribi__sup_kill(sup, place, oribi__cause_shutdown_timeout, now_ms);
        return true;
    case ORIBI_PLACE_FREE:
        break;
    }
    place->until = 0;
    return false;
}

static bool mold_expired(struct oribi_supervisor *sup, struct oribi_mold_place *mold, int64_t now_ms)
{
    static const char too_long[] = "the application did not load within boot_timeout";
    mold->until = 0;
    if (mold->state == ORIBI_MOLD_IS_LOADING) {
        oribi__sup_kill_mold(sup, mold, now_ms);
        if (mold->generation == sup->next_generation) {
            oribi__sup_reload_failed(sup, too_long);
            return true;
        }
        say(sup, ORIBI_LOG_ERROR, "%s", too_long);
        sup->mold_not_before = now_ms + oribi__sup_backoff_ms(sup, ++sup->mold_failures);
        if (!sup->up)
            oribi__sup_begin_stop(sup, 1);
    } else if (mold->state == ORIBI_MOLD_IS_STOPPING) {
        oribi__sup_kill_mold(sup, mold, now_ms);
    } else if (mold->state == ORIBI_MOLD_IS_KILLED) {
        say(sup, ORIBI_LOG_ERROR, "mold (pid %d) was killed and does not end", mold->pid);
    } else {
        return false;
    }
    return true;
}

static bool own_deadline_expired(struct oribi_supervisor *sup, int64_t now_ms)
{
    if (sup->stop_at && !sup->stopping && now_ms >= sup->stop_at) {
        say(sup, ORIBI_LOG_INFO, "stopping: %u worker%s to finish what has begun", oribi_supervisor_alive(sup),
            oribi_log_plural(oribi_supervisor_alive(sup)));
        oribi__sup_begin_stop(sup, 0);
        return true;
    }
    if (sup->upgrade_until && now_ms >= sup->upgrade_until) {
        oribi__sup_signal(sup, sup->upgrade_pid, SIGKILL);
        if (!sup->stopping)
            oribi__sup_upgrade_failed(sup, "the successor did not come up in twice boot_timeout");
        sup->upgrade_pid = 0;
        sup->upgrade_until = 0;
        return true;
    }
    if (sup->refork_until && now_ms >= sup->refork_until) {
        sup->reforked = 0;
        sup->refork_until = 0;
    }
    return false;
}

static bool step_deadlines(struct oribi_supervisor *sup, int64_t now_ms)
{
    for (uint32_t i = 0; i < sup->slot_count; i++) {
        struct oribi_place *place = &sup->places[i];
        if (place->state != ORIBI_PLACE_FREE && place->until && place->until <= now_ms &&
            place_expired(sup, place, now_ms))
            return true;
    }
    for (uint32_t i = 0; i < ORIBI_MOLDS_MAX; i++) {
        struct oribi_mold_place *mold = &sup->molds[i];
        if (mold->state != ORIBI_MOLD_IS_FREE && mold->until && mold->until <= now_ms &&
            mold_expired(sup, mold, now_ms))
            return true;
    }
    return own_deadline_expired(sup, now_ms);
}

/* --- ending --- */

static bool step_give_up(struct oribi_supervisor *sup)
{
    if (sup->up || sup->stopping || sup->config.patient || sup->boot_failures < ORIBI_BOOT_FAILURES_MAX)
        return false;
    for (uint32_t i = 0; i < sup->slot_count; i++)
        if (sup->places[i].state == ORIBI_PLACE_SPAWNING || sup->places[i].state == ORIBI_PLACE_BOOTING)
            return false;
    (void)snprintf(sup->exit_text, sizeof(sup->exit_text), "giving up: no worker came up, %u attempts",
                   sup->boot_failures); /* fits */
    oribi__sup_begin_stop(sup, 1);
    return true;
}

static bool interrupt_one(struct oribi_supervisor *sup, int64_t now_ms)
{
    for (uint32_t i = 0; i < sup->slot_count; i++) {
        struct oribi_place *place = &sup->places[i];
        if (place->interrupted || !oribi__has_process(place->state) || place->state == ORIBI_PLACE_KILLED)
            continue;
        place->interrupted = true;
        place->state = ORIBI_PLACE_STOPPING;
        place->until = now_ms + ORIBI_KILL_MS;
        place->cause = oribi__cause_asked;
        oribi__sup_signal(sup, place->pid, SIGINT);
        return true;
    }
    return false;
}

/* True while something of ours may still be alive. A process that kill -9 does not end is left to init. */
static bool anything_left(const struct oribi_supervisor *sup)
{
    for (uint32_t i = 0; i < sup->slot_count; i++) {
        const struct oribi_place *place = &sup->places[i];
        bool hopeless = place->state == ORIBI_PLACE_KILLED && !place->until;
        if (place->state == ORIBI_PLACE_SPAWNING || (oribi__has_process(place->state) && !hopeless))
            return true;
    }
    for (uint32_t i = 0; i < ORIBI_MOLDS_MAX; i++)
        if (sup->molds[i].state != ORIBI_MOLD_IS_FREE &&
            !(sup->molds[i].state == ORIBI_MOLD_IS_KILLED && !sup->molds[i].until))
            return true;
    return false;
}

static bool step_stop(struct oribi_supervisor *sup, int64_t now_ms)
{
    for (uint32_t i = 0; i < ORIBI_MOLDS_MAX; i++) {
        struct oribi_mold_place *mold = &sup->molds[i];
        if (mold->state == ORIBI_MOLD_IS_LOADING || mold->state == ORIBI_MOLD_IS_READY) {
            oribi__sup_stop_mold(sup, mold, now_ms);
            return true;
        }
        if (sup->stopping_now && mold->state == ORIBI_MOLD_IS_STOPPING && mold->until > now_ms + ORIBI_KILL_MS)
            mold->until = now_ms + ORIBI_KILL_MS;
    }
    if (sup->stopping_now && interrupt_one(sup, now_ms))
        return true;
    if (anything_left(sup))
        return false;
    sup->exited = true;
    struct oribi_action *action = push(sup, ORIBI_ACTION_EXIT);
    action->code = sup->exit_code;
    action->text = sup->exit_text[0] ? sup->exit_text : NULL;
    return true;
}

/* --- too many --- */

/* The member of that role to stop next: one that is merely held, else of the earliest generation the one with the highest number that has a
 * process, and unless serving_too one that does not serve yet. NULL when all of them are still being forked: they are stopped when they are. */
static struct oribi_place *pick_surplus(struct oribi_supervisor *sup, enum oribi__role role, bool serving_too)
{
    struct oribi_place *pick = NULL;
    for (uint32_t i = 0; i < sup->slot_count; i++) {
        struct oribi_place *place = &sup->places[i];
        if (!oribi__is_member(place->state) || oribi__sup_role(sup, place) != role)
            continue;
        if (place->state == ORIBI_PLACE_HELD)
            return place;
        if (place->state == ORIBI_PLACE_SERVING && !serving_too)
            continue;
        if (place->state != ORIBI_PLACE_SPAWNING && (!pick || place->generation <= pick->generation))
            pick = place;
    }
    return pick;
}

static bool stop_surplus(struct oribi_supervisor *sup, enum oribi__role role, bool serving_too, uint32_t count,
                         int64_t now_ms)
{
    for (; count > 0; count--) {
        struct oribi_place *place = pick_surplus(sup, role, serving_too);
        if (!place)
            return false;
        if (place->state != ORIBI_PLACE_HELD) {
            oribi__sup_stop(sup, place, now_ms);
            return true;
        }
        place->state = ORIBI_PLACE_FREE;
    }
    return false;
}

static uint32_t beyond(uint32_t count, uint32_t allowed)
{
    return count > allowed ? count - allowed : 0;
}

/* All that serve now or will, but for a trial's and what is on its way out. */
static uint32_t members(const struct oribi__tally *tally)
{
    return tally->current + tally->old + tally->left;
}

/* Old ones go as new ones come. Of the new ones that have not come yet, a few may be there beside what is wanted: more of them are left when fewer
 * workers are wanted than before, and all those that serve are old. */
static bool step_surplus(struct oribi_supervisor *sup, int64_t now_ms)
{
    struct oribi__tally tally = oribi__sup_tally(sup);
    uint32_t wanted = oribi__sup_wanted(sup);
    uint32_t old_allowed = beyond(wanted, tally.current_serving + tally.left);
    uint32_t coming_surplus = tally.old > 0 ? beyond(members(&tally), wanted + oribi__sup_roll_max(sup)) : 0;
    return stop_surplus(sup, ORIBI__ODD, true, tally.odd, now_ms) ||
           stop_surplus(sup, ORIBI__CURRENT, true, beyond(tally.current + tally.left, wanted), now_ms) ||
           stop_surplus(sup, ORIBI__OLD, true, beyond(tally.old, old_allowed), now_ms) ||
           stop_surplus(sup, ORIBI__CURRENT, false, coming_surplus, now_ms);
}

static bool step_old_molds(struct oribi_supervisor *sup, int64_t now_ms)
{
    for (uint32_t i = 0; i < ORIBI_MOLDS_MAX; i++) {
        struct oribi_mold_place *mold = &sup->molds[i];
        bool stays = mold->generation == sup->generation || mold->generation == sup->next_generation;
        if (!stays && (mold->state == ORIBI_MOLD_IS_LOADING || mold->state == ORIBI_MOLD_IS_READY)) {
            oribi__sup_stop_mold(sup, mold, now_ms);
            return true;
        }
    }
    return false;
}

/* --- too few --- */

static bool start_mold(struct oribi_supervisor *sup, uint32_t generation, bool fresh)
{
    for (uint32_t i = 0; i < ORIBI_MOLDS_MAX; i++) {
        if (sup->molds[i].state != ORIBI_MOLD_IS_FREE)
            continue;
        sup->molds[i] = (struct oribi_mold_place){.state = ORIBI_MOLD_IS_ASKED, .generation = generation};
        struct oribi_action *action = push(sup, ORIBI_ACTION_START_MOLD);
        action->generation = generation;
        action->fresh = fresh;
        return true;
    }
    return false; /* killed ones that do not end take all the room: nothing to do but wait */
}

static bool spawn(struct oribi_supervisor *sup, struct oribi_mold_place *mold, int64_t now_ms)
{
    for (uint32_t i = 0; i < sup->slot_count; i++) {
        struct oribi_place *place = &sup->places[i];
        if (place->state != ORIBI_PLACE_FREE)
            continue;
        *place = (struct oribi_place){.state = ORIBI_PLACE_SPAWNING,
                                      .generation = mold->generation,
                                      .ticket = ++sup->last_ticket,
                                      .mold_pid = mold->pid,
                                      .until = oribi__deadline_in(sup->config.boot_timeout_ms, now_ms),
                                      .deaths_paid_at = place->deaths_paid_at};
        sup->spawned_at = now_ms;
        struct oribi_action *action = push(sup, ORIBI_ACTION_SPAWN);
        action->pid = mold->pid;
        action->generation = mold->generation;
        action->slot = i;
        action->ticket = place->ticket;
        return true;
    }
    return false; /* every place is taken by workers that are leaving */
}

/* Commands the mold has not carried out yet; more would only fill its socket. */
static bool mold_busy(const struct oribi_supervisor *sup, const struct oribi_mold_place *mold)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < sup->slot_count; i++)
        count += sup->places[i].state == ORIBI_PLACE_SPAWNING && sup->places[i].mold_pid == mold->pid;
    return count >= ORIBI_SPAWNS_PENDING_MAX;
}

/* Beside old workers only a few new ones come up at a time; without, as many as are missing. */
static bool step_missing(struct oribi_supervisor *sup, int64_t now_ms)
{
    struct oribi__tally tally = oribi__sup_tally(sup);
    if (sup->paused || tally.current + tally.left >= oribi__sup_wanted(sup))
        return false;
    uint32_t roll_max = oribi__sup_roll_max(sup);
    if (tally.old > 0 && (tally.current - tally.current_serving >= roll_max ||
                          members(&tally) >= oribi__sup_wanted(sup) + roll_max))
        return false;
    struct oribi_mold_place *mold = oribi__sup_mold_of_generation(sup, sup->generation);
    if (!mold)
        return now_ms >= sup->mold_not_before &&
               start_mold(sup, sup->generation, sup->generation != sup->own_generation);
    if (mold->state != ORIBI_MOLD_IS_READY || mold_busy(sup, mold))
        return false;
    return oribi__sup_spawn_paced(sup, now_ms) && spawn(sup, mold, now_ms);
}

/* --- reload --- */

static void commit(struct oribi_supervisor *sup)
{
    sup->generation = sup->next_generation;
    sup->next_generation = 0;
    sup->left_generation = 0;
    sup->rolling = true;
    sup->reforking = false;
    sup->refork_until = 0;
    sup->boot_failures = 0;
    sup->mold_failures = 0;
    if (sup->has_next_config) {
        uint32_t most = sup->config.workers_max; /* as many as there are places for */
        sup->config = sup->next_config;
        sup->config.workers_max = most;
        if (sup->config.workers > most) {
            say(sup, ORIBI_LOG_WARN, "workers: %u, as many as this server has room for; an upgrade makes more", most);
            sup->config.workers = most;
        }
    }
    sup->target = sup->config.workers;
    say(sup, ORIBI_LOG_INFO, "reload: generation %u serves, replacing the workers before it", sup->generation);
    push(sup, ORIBI_ACTION_COMMITTED)->generation = sup->generation;
}

static bool step_next(struct oribi_supervisor *sup, int64_t now_ms)
{
    if (!sup->next_generation)
        return false;
    if (!sup->next_asked)
        return sup->next_asked = start_mold(sup, sup->next_generation, true);
    struct oribi_mold_place *mold = oribi__sup_mold_of_generation(sup, sup->next_generation);
    if (!mold || mold->state != ORIBI_MOLD_IS_READY)
        return false;
    struct oribi__tally tally = oribi__sup_tally(sup);
    uint32_t workers = sup->has_next_config ? sup->next_config.workers : sup->config.workers;
    uint32_t trial = oribi__sup_roll_max(sup) < workers ? oribi__sup_roll_max(sup) : workers;
    if (tally.next_serving >= trial) {
        commit(sup);
        return true;
    }
    return tally.next < trial && !sup->paused && oribi__sup_spawn_paced(sup, now_ms) && spawn(sup, mold, now_ms);
}

static bool step_rolled(struct oribi_supervisor *sup)
{
    if ((!sup->rolling && !sup->reforking) || sup->stopping)
        return false;
    struct oribi__tally tally = oribi__sup_tally(sup);
    if (tally.old > 0 || tally.current_serving < oribi__sup_wanted(sup))
        return false;
    if (sup->reforking) {
        sup->reforking = false;
        push(sup, ORIBI_ACTION_REFORKED)->generation = sup->generation;
    }
    if (sup->rolling)
        oribi__sup_reload_done(sup);
    return true;
}

/* --- signals that the program sends --- */

/* The next one in the order of their starts: who is gone meanwhile is passed over, who is still being forked is waited for. */
static bool step_send(struct oribi_supervisor *sup, int64_t now_ms)
{
    struct oribi_place *next = NULL;
    if (!sup->send_signal || now_ms < sup->send_at)
        return false;
    for (uint32_t i = 0; i < sup->slot_count; i++) {
        struct oribi_place *place = &sup->places[i];
        bool there = place->state == ORIBI_PLACE_SPAWNING || oribi__has_process(place->state);
        if (there && place->state != ORIBI_PLACE_KILLED && place->ticket > sup->send_after &&
            place->ticket <= sup->send_upto && (!next || place->ticket < next->ticket))
            next = place;
    }
    if (!next)
        sup->send_signal = 0;
    if (!next || next->state == ORIBI_PLACE_SPAWNING)
        return false;
    sup->send_after = next->ticket;
    sup->send_at = now_ms + sup->send_interval_ms;
    oribi_supervisor_told(sup, oribi__sup_number(sup, next), sup->send_signal, now_ms);
    oribi__sup_signal(sup, next->pid, sup->send_signal);
    return true;
}

/* --- logs --- */

/* Who has handlers for it by now: a worker's signals wait until they are installed, a loading mold would die of it. */
static bool step_reopen(struct oribi_supervisor *sup)
{
    if (sup->config.no_reopen)
        return false;
    for (uint32_t i = 0; i < sup->slot_count; i++) {
        struct oribi_place *place = &sup->places[i];
        if (!place->reopen || !oribi__has_process(place->state) || place->state == ORIBI_PLACE_KILLED)
            continue;
        place->reopen = false;
        oribi__sup_signal(sup, place->pid, SIGUSR1);
        return true;
    }
    for (uint32_t i = 0; i < ORIBI_MOLDS_MAX; i++) {
        struct oribi_mold_place *mold = &sup->molds[i];
        if (!mold->reopen || mold->state != ORIBI_MOLD_IS_READY)
            continue;
        mold->reopen = false;
        oribi__sup_signal(sup, mold->pid, SIGUSR1);
        return true;
    }
    return false;
}

bool oribi__sup_step(struct oribi_supervisor *sup, int64_t now_ms)
{
    if (sup->exited || !sup->started)
        return false;
    return step_deadlines(sup, now_ms) || oribi__sup_step_watch(sup, now_ms) || step_give_up(sup) ||
           step_surplus(sup, now_ms) || (sup->stopping && step_stop(sup, now_ms)) || step_old_molds(sup, now_ms) ||
           step_missing(sup, now_ms) || step_next(sup, now_ms) || step_rolled(sup) || step_send(sup, now_ms) ||
           step_reopen(sup);
}
