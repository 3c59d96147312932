/* Actions that follow from the state. Each step queues the actions of one thing to do and says so, or has nothing to
 * do. */
#include "policy/policy_private.h"

#include "oribi/base/log.h"

#include <signal.h>
#include <stdio.h>

#define push oribi__policy_push
#define say  oribi__policy_say
#define of   oribi__policy_of

/* --- deadlines --- */

static void say_late(struct oribi_policy *policy, const struct oribi_worker_record *record)
{
    const char *call = oribi__policy_call_text(policy, record);
    of(policy, record,
       say(policy, ORIBI_LOG_WARN, "worker %u (pid %d) did not end within shutdown_timeout: killed%s",
           oribi__policy_number(policy, record), record->pid, call),
       call[0]);
}

static bool record_expired(struct oribi_policy *policy, struct oribi_worker_record *record, int64_t now_ms)
{
    uint32_t number = oribi__policy_number(policy, record);
    struct oribi_mold_record *mold;
    switch (record->state) {
    case ORIBI_RECORD_HELD:
    case ORIBI_RECORD_LOST:
        record->state = ORIBI_RECORD_FREE;
        return false; /* no action by itself */
    case ORIBI_RECORD_SPAWNING:
        mold = oribi__policy_mold_of_pid(policy, record->mold_pid);
        record->state = ORIBI_RECORD_LOST;
        record->until = now_ms + ORIBI_LOST_MS;
        if (!mold || mold->state == ORIBI_MOLD_IS_KILLED)
            return false;
        say(policy, ORIBI_LOG_ERROR, "mold (pid %d) did not fork worker %u within boot_timeout: killed", mold->pid,
            number);
        oribi__policy_kill_mold(policy, mold, now_ms);
        if (mold->generation == policy->next_generation)
            oribi__policy_reload_failed(policy, "its mold forks no workers");
        return true;
    case ORIBI_RECORD_BOOTING:
        of(policy, record,
           say(policy, ORIBI_LOG_ERROR, "worker %u (pid %d) was not ready within boot_timeout: killed", number,
               record->pid),
           false);
        oribi__policy_kill(policy, record, oribi__cause_boot_timeout, now_ms);
        return true;
    case ORIBI_RECORD_LEAVING:
    case ORIBI_RECORD_STOPPING:
        if (!record->interrupted)
            say_late(policy, record);
        oribi__policy_kill(policy, record, record->interrupted ? oribi__cause_asked : oribi__cause_shutdown_timeout,
                           now_ms);
        return true;
    case ORIBI_RECORD_KILLED:
        record->until = 0;
        of(policy, record,
           say(policy, ORIBI_LOG_ERROR, "worker %u (pid %d) was killed and does not end", number, record->pid), false);
        return true;
    case ORIBI_RECORD_SERVING: /* the program asked it to end */
        say_late(policy, record);
        oribi__policy_kill(policy, record, oribi__cause_shutdown_timeout, now_ms);
        return true;
    case ORIBI_RECORD_FREE:
        break;
    }
    record->until = 0;
    return false;
}

static bool mold_expired(struct oribi_policy *policy, struct oribi_mold_record *mold, int64_t now_ms)
{
    static const char too_long[] = "the application did not load within boot_timeout";
    mold->until = 0;
    if (mold->state == ORIBI_MOLD_IS_LOADING) {
        oribi__policy_kill_mold(policy, mold, now_ms);
        if (mold->generation == policy->next_generation) {
            oribi__policy_reload_failed(policy, too_long);
            return true;
        }
        say(policy, ORIBI_LOG_ERROR, "%s", too_long);
        policy->mold_not_before = now_ms + oribi__policy_backoff_ms(policy, ++policy->mold_failures);
        if (!policy->up)
            oribi__policy_begin_stop(policy, 1);
    } else if (mold->state == ORIBI_MOLD_IS_STOPPING) {
        oribi__policy_kill_mold(policy, mold, now_ms);
    } else if (mold->state == ORIBI_MOLD_IS_KILLED) {
        say(policy, ORIBI_LOG_ERROR, "mold (pid %d) was killed and does not end", mold->pid);
    } else {
        return false;
    }
    return true;
}

static bool own_deadline_expired(struct oribi_policy *policy, int64_t now_ms)
{
    if (policy->stop_at && !policy->stopping && now_ms >= policy->stop_at) {
        say(policy, ORIBI_LOG_INFO, "stopping: %u worker%s to finish what has begun", oribi_policy_alive(policy),
            oribi_log_plural(oribi_policy_alive(policy)));
        oribi__policy_begin_drain(policy, now_ms);
        return true;
    }
    if (policy->hurry_at && !policy->stopping_now && now_ms >= policy->hurry_at) {
        oribi__policy_stop_asked(policy, true, now_ms);
        return true;
    }
    if (policy->frontends_end && policy->stop_until && now_ms >= policy->stop_until) {
        say(policy, ORIBI_LOG_WARN, "frontends did not end within shutdown_timeout: workers end without them");
        oribi__policy_frontends_ended(policy);
        return true;
    }
    if (oribi__policy_upgrade_expired(policy, now_ms))
        return true;
    if (policy->refork_until && now_ms >= policy->refork_until) {
        policy->reforked = 0;
        policy->refork_until = 0;
    }
    return false;
}

/* An operator sees that a start goes on, and until when it may. */
static bool tell_of_loading(struct oribi_policy *policy, struct oribi_mold_record *mold, int64_t now_ms)
{
    int64_t loading_ms = now_ms - mold->started_at;
    if (mold->state != ORIBI_MOLD_IS_LOADING || !mold->tell_at || mold->tell_at > now_ms)
        return false;
    mold->tell_at = mold->started_at + (loading_ms / ORIBI_LOADING_TOLD_AGAIN_MS + 1) * ORIBI_LOADING_TOLD_AGAIN_MS;
    say(policy, ORIBI_LOG_INFO,
        "generation %u: the application has been loading for %lld s (mold, pid %d)%s%s; waiting", mold->generation,
        (long long)(loading_ms / 1000), mold->pid, mold->place[0] ? ", it stands at " : "", mold->place);
    return true;
}

bool oribi__policy_step_deadlines(struct oribi_policy *policy, int64_t now_ms)
{
    for (uint32_t i = 0; i < policy->slot_count; i++) {
        struct oribi_worker_record *record = &policy->records[i];
        if (record->state != ORIBI_RECORD_FREE && record->until && record->until <= now_ms &&
            record_expired(policy, record, now_ms))
            return true;
    }
    for (uint32_t i = 0; i < ORIBI_MOLDS_MAX; i++) {
        struct oribi_mold_record *mold = &policy->molds[i];
        if (mold->state != ORIBI_MOLD_IS_FREE && mold->until && mold->until <= now_ms &&
            mold_expired(policy, mold, now_ms))
            return true;
        if (tell_of_loading(policy, mold, now_ms))
            return true;
    }
    return own_deadline_expired(policy, now_ms);
}

/* --- ending --- */

bool oribi__policy_step_give_up(struct oribi_policy *policy)
{
    if (policy->up || policy->stopping || policy->config.patient || policy->boot_failures < ORIBI_BOOT_FAILURES_MAX)
        return false;
    for (uint32_t i = 0; i < policy->slot_count; i++)
        if (policy->records[i].state == ORIBI_RECORD_SPAWNING || policy->records[i].state == ORIBI_RECORD_BOOTING)
            return false;
    (void)snprintf(policy->exit_text, sizeof(policy->exit_text), "giving up: no worker came up, %u attempts",
                   policy->boot_failures); /* fits */
    oribi__policy_begin_stop(policy, 1);
    return true;
}

static bool interrupt_one(struct oribi_policy *policy, int64_t now_ms)
{
    for (uint32_t i = 0; i < policy->slot_count; i++) {
        struct oribi_worker_record *record = &policy->records[i];
        if (record->interrupted || !oribi__has_process(record->state) || record->state == ORIBI_RECORD_KILLED)
            continue;
        record->interrupted = true;
        record->state = ORIBI_RECORD_STOPPING;
        record->until = now_ms + ORIBI_KILL_MS;
        record->cause = oribi__cause_asked;
        oribi__policy_signal(policy, record->pid, SIGINT);
        return true;
    }
    return false;
}

/* True while something of ours may still be alive. A process that kill -9 does not end is left to init. */
static bool anything_left(const struct oribi_policy *policy)
{
    for (uint32_t i = 0; i < policy->slot_count; i++) {
        const struct oribi_worker_record *record = &policy->records[i];
        bool hopeless = record->state == ORIBI_RECORD_KILLED && !record->until;
        if (record->state == ORIBI_RECORD_SPAWNING || (oribi__has_process(record->state) && !hopeless))
            return true;
    }
    for (uint32_t i = 0; i < ORIBI_MOLDS_MAX; i++)
        if (policy->molds[i].state != ORIBI_MOLD_IS_FREE &&
            !(policy->molds[i].state == ORIBI_MOLD_IS_KILLED && !policy->molds[i].until))
            return true;
    return false;
}

/* Workers that reloads have replaced may have had no deadline until the server stops (reload_waits). */
static void bound_all(struct oribi_policy *policy, int64_t now_ms)
{
    for (uint32_t i = 0; i < policy->slot_count; i++) {
        struct oribi_worker_record *record = &policy->records[i];
        if ((record->state == ORIBI_RECORD_STOPPING || record->state == ORIBI_RECORD_LEAVING) && !record->until)
            record->until = oribi__policy_stop_deadline(policy, now_ms);
    }
}

bool oribi__policy_step_stop(struct oribi_policy *policy, int64_t now_ms)
{
    bound_all(policy, now_ms);
    for (uint32_t i = 0; i < ORIBI_MOLDS_MAX; i++) {
        struct oribi_mold_record *mold = &policy->molds[i];
        if (mold->state == ORIBI_MOLD_IS_LOADING || mold->state == ORIBI_MOLD_IS_READY) {
            oribi__policy_stop_mold(policy, mold, now_ms);
            return true;
        }
        if (policy->stopping_now && mold->state == ORIBI_MOLD_IS_STOPPING && mold->until > now_ms + ORIBI_KILL_MS)
            mold->until = now_ms + ORIBI_KILL_MS;
    }
    if (policy->stopping_now && interrupt_one(policy, now_ms))
        return true;
    if (anything_left(policy))
        return false;
    policy->exited = true;
    struct oribi_policy_action *action = push(policy, ORIBI_ACTION_EXIT);
    action->code = policy->exit_code;
    action->text = policy->exit_text[0] ? policy->exit_text : NULL;
    return true;
}

/* --- too many --- */

/* The member of that role to stop next: one that is merely held, else of the earliest generation the one with the
 * highest number that has a process, and unless serving_too one that does not serve yet. NULL when all of them are
 * still being forked: they are stopped when they are. */
static struct oribi_worker_record *pick_surplus(struct oribi_policy *policy, enum oribi__role role, bool serving_too)
{
    struct oribi_worker_record *pick = NULL;
    for (uint32_t i = 0; i < policy->slot_count; i++) {
        struct oribi_worker_record *record = &policy->records[i];
        if (!oribi__is_member(record->state) || oribi__policy_role(policy, record) != role)
            continue;
        if (record->state == ORIBI_RECORD_HELD)
            return record;
        if (record->state == ORIBI_RECORD_SERVING && !serving_too)
            continue;
        if (record->state != ORIBI_RECORD_SPAWNING && (!pick || record->generation <= pick->generation))
            pick = record;
    }
    return pick;
}

static bool stop_surplus(struct oribi_policy *policy, enum oribi__role role, bool serving_too, uint32_t count,
                         int64_t now_ms)
{
    for (; count > 0; count--) {
        struct oribi_worker_record *record = pick_surplus(policy, role, serving_too);
        if (!record)
            return false;
        if (record->state != ORIBI_RECORD_HELD) {
            oribi__policy_stop(policy, record, now_ms);
            return true;
        }
        record->state = ORIBI_RECORD_FREE;
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

/* Old ones go as new ones come. Of the new ones that have not come yet, a few may be there beside what is wanted:
 * more of them are left when fewer workers are wanted than before, and all those that serve are old. */
bool oribi__policy_step_surplus(struct oribi_policy *policy, int64_t now_ms)
{
    struct oribi__tally tally = oribi__policy_tally(policy);
    uint32_t wanted = oribi__policy_wanted(policy);
    uint32_t old_allowed = beyond(wanted, tally.current_serving + tally.left);
    uint32_t coming_surplus = tally.old > 0 ? beyond(members(&tally), wanted + oribi__policy_roll_max(policy)) : 0;
    return stop_surplus(policy, ORIBI__ODD, true, tally.odd, now_ms) ||
           stop_surplus(policy, ORIBI__CURRENT, true, beyond(tally.current + tally.left, wanted), now_ms) ||
           stop_surplus(policy, ORIBI__OLD, true, beyond(tally.old, old_allowed), now_ms) ||
           stop_surplus(policy, ORIBI__CURRENT, false, coming_surplus, now_ms);
}

bool oribi__policy_step_old_molds(struct oribi_policy *policy, int64_t now_ms)
{
    for (uint32_t i = 0; i < ORIBI_MOLDS_MAX; i++) {
        struct oribi_mold_record *mold = &policy->molds[i];
        bool stays = mold->generation == policy->generation || mold->generation == policy->next_generation;
        if (!stays && (mold->state == ORIBI_MOLD_IS_LOADING || mold->state == ORIBI_MOLD_IS_READY)) {
            oribi__policy_stop_mold(policy, mold, now_ms);
            return true;
        }
    }
    return false;
}

/* --- too few --- */

bool oribi__policy_start_mold(struct oribi_policy *policy, uint32_t generation, bool fresh)
{
    for (uint32_t i = 0; i < ORIBI_MOLDS_MAX; i++) {
        if (policy->molds[i].state != ORIBI_MOLD_IS_FREE)
            continue;
        policy->molds[i] = (struct oribi_mold_record){.state = ORIBI_MOLD_IS_ASKED, .generation = generation};
        struct oribi_policy_action *action = push(policy, ORIBI_ACTION_START_MOLD);
        action->generation = generation;
        action->fresh = fresh;
        return true;
    }
    return false; /* killed ones that do not end take all the room: nothing to do but wait */
}

/* Where workers that reloads have replaced may stay as long as they like (reload_waits): the oldest ends when they use
 * all records. One at a time: it leaves its record when it has ended. */
static bool make_room(struct oribi_policy *policy, int64_t now_ms)
{
    struct oribi_worker_record *oldest = NULL;
    for (uint32_t i = 0; i < policy->slot_count; i++) {
        struct oribi_worker_record *record = &policy->records[i];
        if (record->state == ORIBI_RECORD_KILLED && record->until)
            return false;
        if ((record->state == ORIBI_RECORD_STOPPING || record->state == ORIBI_RECORD_LEAVING) &&
            (!oldest || record->generation < oldest->generation))
            oldest = record;
    }
    if (!oldest)
        return false;
    of(policy, oldest,
       say(policy, ORIBI_LOG_WARN,
           "worker %u (pid %d) of generation %u is still in a call, and there is no room for more: "
           "killed",
           oribi__policy_number(policy, oldest), oldest->pid, oldest->generation),
       true);
    oribi__policy_kill(policy, oldest, oribi__cause_shutdown_timeout, now_ms);
    return true;
}

bool oribi__policy_spawn(struct oribi_policy *policy, struct oribi_mold_record *mold, int64_t now_ms)
{
    for (uint32_t i = 0; i < policy->slot_count; i++) {
        struct oribi_worker_record *record = &policy->records[i];
        if (record->state != ORIBI_RECORD_FREE)
            continue;
        *record = (struct oribi_worker_record){.state = ORIBI_RECORD_SPAWNING,
                                               .generation = mold->generation,
                                               .ticket = ++policy->last_ticket,
                                               .mold_pid = mold->pid,
                                               .until = oribi__deadline_in(policy->config.boot_timeout_ms, now_ms),
                                               .deaths_paid_at = record->deaths_paid_at};
        policy->spawned_at = now_ms;
        struct oribi_policy_action *action = push(policy, ORIBI_ACTION_SPAWN);
        action->pid = mold->pid;
        action->generation = mold->generation;
        action->slot = i;
        action->ticket = record->ticket;
        return true;
    }
    return policy->config.reload_waits && make_room(policy, now_ms); /* workers that are leaving use all records */
}

/* Commands the mold has not carried out yet; more would only fill its socket. */
static bool mold_busy(const struct oribi_policy *policy, const struct oribi_mold_record *mold)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < policy->slot_count; i++)
        count += policy->records[i].state == ORIBI_RECORD_SPAWNING && policy->records[i].mold_pid == mold->pid;
    return count >= ORIBI_SPAWNS_PENDING_MAX;
}

/* Beside old workers only a few new ones come up at a time; without, as many as are missing. */
bool oribi__policy_step_missing(struct oribi_policy *policy, int64_t now_ms)
{
    struct oribi__tally tally = oribi__policy_tally(policy);
    if (policy->paused || tally.current + tally.left >= oribi__policy_wanted(policy))
        return false;
    uint32_t roll_max = oribi__policy_roll_max(policy);
    if (tally.old > 0 && (tally.current - tally.current_serving >= roll_max ||
                          members(&tally) >= oribi__policy_wanted(policy) + roll_max))
        return false;
    struct oribi_mold_record *mold = oribi__policy_mold_of_generation(policy, policy->generation);
    if (!mold)
        return now_ms >= policy->mold_not_before &&
               oribi__policy_start_mold(policy, policy->generation, policy->generation != policy->own_generation);
    if (mold->state != ORIBI_MOLD_IS_READY || mold_busy(policy, mold))
        return false;
    return oribi__policy_spawn_paced(policy, now_ms) && oribi__policy_spawn(policy, mold, now_ms);
}

/* --- logs --- */

/* USR1 goes to processes that have a handler for it: a worker's signals wait until its handlers are installed; a mold
 * that still loads would die of it. */
bool oribi__policy_step_reopen(struct oribi_policy *policy)
{
    if (policy->config.no_reopen)
        return false;
    for (uint32_t i = 0; i < policy->slot_count; i++) {
        struct oribi_worker_record *record = &policy->records[i];
        if (!record->reopen || !oribi__has_process(record->state) || record->state == ORIBI_RECORD_KILLED)
            continue;
        record->reopen = false;
        oribi__policy_signal(policy, record->pid, SIGUSR1);
        return true;
    }
    for (uint32_t i = 0; i < ORIBI_MOLDS_MAX; i++) {
        struct oribi_mold_record *mold = &policy->molds[i];
        if (!mold->reopen || mold->state != ORIBI_MOLD_IS_READY)
            continue;
        mold->reopen = false;
        oribi__policy_signal(policy, mold->pid, SIGUSR1);
        return true;
    }
    return false;
}
