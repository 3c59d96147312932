/* The supervisor's decisions. Two halves: feed() takes note of what happened and touches nothing but the state;
 * next() compares the state with what is wanted and returns one action at a time, changing the state as if it had
 * been carried out. What follows from the state (which workers to stop, kill, spawn) is never stored as a to-do
 * list, so it cannot go stale; only what an event causes once (log lines, a worker's exit report) waits in a small
 * queue. */
#include "policy/policy_private.h"
#include "oribi/base/clock.h"

#include "oribi/policy/policy.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

void oribi_policy_init(struct oribi_policy *policy, const struct oribi_policy_config *config,
                       const struct oribi_slot *slots, uint32_t slot_count)
{
    assert(slot_count <= ORIBI_SLOTS_MAX && config->workers <= config->workers_max);
    assert(slot_count >= 2 * config->workers_max);
    memset(policy, 0, sizeof(*policy));
    policy->config = *config;
    policy->slots = slots;
    policy->slot_count = slot_count;
    policy->target = config->workers;
    policy->spawned_at = -1;
}

bool oribi_policy_keep_workers(struct oribi_policy *policy, uint32_t asked, uint32_t before)
{
    if (asked == 0 || policy->config.workers != before)
        return false;
    policy->target = asked < policy->config.workers_max ? asked : policy->config.workers_max;
    return policy->target != before;
}

/* --- the map: what happened, and what follows from the state --- */

static void note_event(struct oribi_policy *policy, const struct oribi_policy_event *event, int64_t now_ms)
{
    switch (event->type) {
    case ORIBI_EVENT_TICK:
        break;
    case ORIBI_EVENT_START:
        policy->started = true;
        policy->generation = policy->last_generation = policy->own_generation = 1;
        break;
    case ORIBI_EVENT_MOLD_STARTED:
        oribi__policy_mold_started(policy, event, now_ms);
        break;
    case ORIBI_EVENT_MOLD_READY:
        oribi__policy_mold_ready(policy, event, now_ms);
        break;
    case ORIBI_EVENT_MOLD_FAILED:
        oribi__policy_mold_failed(policy, event, now_ms);
        break;
    case ORIBI_EVENT_MOLD_AT:
        oribi__policy_mold_at(policy, event);
        break;
    case ORIBI_EVENT_MOLD_PROMOTED:
        oribi__policy_mold_promoted(policy, event, now_ms);
        break;
    case ORIBI_EVENT_WORKER_FORKED:
        oribi__policy_worker_forked(policy, event, now_ms);
        break;
    case ORIBI_EVENT_WORKER_READY:
        oribi__policy_worker_ready(policy, event, now_ms);
        break;
    case ORIBI_EVENT_WORKER_FAILED:
        oribi__policy_worker_failed(policy, event, now_ms);
        break;
    case ORIBI_EVENT_WORKER_LEAVING:
        oribi__policy_worker_leaving(policy, event, now_ms);
        break;
    case ORIBI_EVENT_EXITED:
        oribi__policy_exited(policy, event, now_ms);
        break;
    case ORIBI_EVENT_STOP:
    case ORIBI_EVENT_STOP_NOW:
        oribi__policy_stop_asked(policy, event->type == ORIBI_EVENT_STOP_NOW, now_ms);
        break;
    case ORIBI_EVENT_INTERRUPT:
        oribi__policy_interrupted(policy, now_ms);
        break;
    case ORIBI_EVENT_FRONTENDS_ENDED:
        oribi__policy_frontends_ended(policy);
        break;
    case ORIBI_EVENT_RESIZE:
        oribi__policy_resize(policy, event->delta);
        break;
    case ORIBI_EVENT_WINCH:
        oribi__policy_say(policy, ORIBI_LOG_INFO, "workers: 0, were %u", policy->target);
        policy->target = 0;
        break;
    case ORIBI_EVENT_REOPEN:
        oribi__policy_reopen(policy);
        break;
    case ORIBI_EVENT_MEASURED:
        oribi__policy_measured(policy, event);
        break;
    case ORIBI_EVENT_RELOAD:
        oribi__policy_reload(policy);
        break;
    case ORIBI_EVENT_UPGRADE:
        oribi__policy_upgrade(policy);
        break;
    case ORIBI_EVENT_UPGRADE_STARTED:
        oribi__policy_upgrade_started(policy, event, now_ms);
        break;
    case ORIBI_EVENT_UPGRADE_READY:
        oribi__policy_upgrade_ready(policy, now_ms);
        break;
    case ORIBI_EVENT_PAUSE:
        oribi__policy_pause(policy, event, now_ms);
        break;
    case ORIBI_EVENT_RESUME:
        oribi__policy_resume(policy);
        break;
    case ORIBI_EVENT_RELEASE_MOLDS:
        oribi__policy_release_molds(policy, event->pid, now_ms);
        break;
    }
}

/* The first of these that has something to do does one thing. */
static bool next_step(struct oribi_policy *policy, int64_t now_ms)
{
    if (policy->exited || !policy->started)
        return false;
    return oribi__policy_step_deadlines(policy, now_ms) || oribi__policy_step_watch(policy, now_ms) ||
           oribi__policy_step_give_up(policy) || oribi__policy_step_surplus(policy, now_ms) ||
           (oribi_policy_ends(policy) && oribi__policy_step_stop(policy, now_ms)) ||
           oribi__policy_step_old_molds(policy, now_ms) || oribi__policy_step_missing(policy, now_ms) ||
           oribi__policy_step_trial(policy, now_ms) || oribi__policy_step_rolled(policy) ||
           oribi__policy_step_send(policy, now_ms) || oribi__policy_step_reopen(policy);
}

/* --- feed and next --- */

void oribi_policy_feed(struct oribi_policy *policy, const struct oribi_policy_event *event, int64_t now_ms)
{
    assert(policy->queue_len == 0); /* the caller has taken what the last event caused */
    policy->text_len = 0;
    note_event(policy, event, now_ms);
}

bool oribi_policy_next(struct oribi_policy *policy, int64_t now_ms, struct oribi_policy_action *action)
{
    if (policy->queue_len == 0) {
        policy->text_len = 0;
        if (!next_step(policy, now_ms))
            return false;
    }
    *action = policy->queue[policy->queue_head];
    policy->queue_head = (policy->queue_head + 1) % ORIBI_POLICY_QUEUE_CAP;
    policy->queue_len--;
    return true;
}

static int64_t earlier_set(int64_t a, int64_t b)
{
    return b ? oribi_earlier(a, b) : a;
}

int64_t oribi_policy_deadline(const struct oribi_policy *policy, int64_t now_ms)
{
    if (policy->queue_len > 0)
        return now_ms;
    int64_t at = INT64_MAX;
    if (policy->exited || !policy->started)
        return at;
    bool alive = false;
    for (uint32_t i = 0; i < policy->slot_count; i++) {
        const struct oribi_worker_record *record = &policy->records[i];
        if (record->state != ORIBI_RECORD_FREE)
            at = earlier_set(at, record->until);
        alive |= oribi__has_process(record->state);
    }
    for (uint32_t i = 0; i < ORIBI_MOLDS_MAX; i++)
        if (policy->molds[i].state != ORIBI_MOLD_IS_FREE)
            at = earlier_set(at, policy->molds[i].until);
    for (uint32_t i = 0; i < ORIBI_MOLDS_MAX; i++)
        if (policy->molds[i].state == ORIBI_MOLD_IS_LOADING)
            at = earlier_set(at, policy->molds[i].tell_at);
    if (alive && policy->config.watch)
        at = oribi_earlier(at, policy->watched_at + ORIBI_WATCH_MS);
    if (!policy->stopping)
        at = earlier_set(at, policy->stop_at);
    if (!policy->stopping_now)
        at = earlier_set(at, policy->hurry_at);
    if (policy->frontends_end)
        at = earlier_set(at, policy->stop_until);
    at = earlier_set(earlier_set(at, policy->upgrade_until), policy->refork_until);
    if (oribi__policy_tally(policy).current < oribi__policy_wanted(policy) && policy->mold_not_before > now_ms)
        at = oribi_earlier(at, policy->mold_not_before);
    if (policy->send_signal && policy->send_at > now_ms)
        at = oribi_earlier(at, policy->send_at);
    if (policy->spawned_at >= 0 && !oribi__policy_spawn_paced(policy, now_ms))
        at = oribi_earlier(at, policy->spawned_at + policy->config.spawn_interval_ms);
    return at > now_ms ? at : now_ms;
}

bool oribi_policy_ends(const struct oribi_policy *policy)
{
    return policy->stopping && !policy->frontends_end;
}

uint32_t oribi_policy_serving(const struct oribi_policy *policy)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < policy->slot_count; i++)
        count += policy->records[i].state == ORIBI_RECORD_SERVING;
    return count;
}

uint32_t oribi_policy_alive(const struct oribi_policy *policy)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < policy->slot_count; i++)
        count += oribi__has_process(policy->records[i].state);
    return count;
}

uint32_t oribi_policy_molds_beside(const struct oribi_policy *policy, int32_t pid)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < ORIBI_MOLDS_MAX; i++)
        count += policy->molds[i].state != ORIBI_MOLD_IS_FREE && policy->molds[i].pid != pid &&
                 !(policy->molds[i].state == ORIBI_MOLD_IS_KILLED && !policy->molds[i].until);
    return count;
}

bool oribi_policy_has_process(const struct oribi_policy *policy, uint32_t slot)
{
    return slot < policy->slot_count && oribi__has_process(policy->records[slot].state);
}

/* --- the supervisor's own events --- */

bool oribi__events_push(struct oribi__events *events, const struct oribi_policy_event *event)
{
    if (events->count == ORIBI__EVENTS_MAX)
        return false;
    uint32_t at = (events->first + events->count++) % ORIBI__EVENTS_MAX;
    events->items[at] = *event;
    if (!event->text)
        return true;
    (void)snprintf(events->texts[at], ORIBI__EVENT_TEXT_CAP, "%.*s", ORIBI__EVENT_TEXT_CAP - 1, event->text);
    events->items[at].text = events->texts[at];
    return true;
}

bool oribi__events_pop(struct oribi__events *events, struct oribi_policy_event *event)
{
    if (events->count == 0)
        return false;
    *event = events->items[events->first];
    events->first = (events->first + 1) % ORIBI__EVENTS_MAX;
    events->count--;
    return true;
}
