/* Events of molds and workers, and commands of the operator: the state after each. policy_steps.c decides what to do
 * about them; only what cannot wait is decided here. */
#include "policy/policy_private.h"

#include "oribi/base/log.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define push      oribi__policy_push
#define say       oribi__policy_say
#define of        oribi__policy_of
#define record_of oribi__policy_record_of_ticket

const char *oribi__policy_text_of(const struct oribi_policy_event *event)
{
    return event->text && event->text[0] ? event->text : "no reason given";
}

/* --- molds --- */

/* Consequence of a mold that will never be ready: the end of a start, the end of a reload, or another try later. */
static void mold_lost(struct oribi_policy *policy, uint32_t generation, const char *reason, int64_t now_ms)
{
    if (generation == policy->next_generation) {
        oribi__policy_reload_failed(policy, reason);
        return;
    }
    policy->mold_not_before = now_ms + oribi__policy_backoff_ms(policy, ++policy->mold_failures);
    if (!policy->up)
        oribi__policy_begin_stop(policy, 1);
}

void oribi__policy_mold_started(struct oribi_policy *policy, const struct oribi_policy_event *event, int64_t now_ms)
{
    for (uint32_t i = 0; i < ORIBI_MOLDS_MAX; i++) {
        struct oribi_mold_record *mold = &policy->molds[i];
        if (mold->state != ORIBI_MOLD_IS_ASKED || mold->generation != event->generation)
            continue;
        *mold = (struct oribi_mold_record){.state = ORIBI_MOLD_IS_LOADING,
                                           .generation = event->generation,
                                           .pid = event->pid,
                                           .started_at = now_ms,
                                           .tell_at = now_ms + ORIBI_LOADING_TOLD_MS,
                                           .until = oribi__deadline_in(policy->config.boot_timeout_ms, now_ms)};
        if (event->pid >= 0)
            return;
        mold->state = ORIBI_MOLD_IS_FREE;
        say(policy, ORIBI_LOG_ERROR, "cannot fork a process to load the application: %s", oribi__policy_text_of(event));
        if (policy->up || policy->mold_failures + 1 >= ORIBI_BOOT_FAILURES_MAX)
            mold_lost(
                policy, event->generation,
                oribi__policy_keep(policy, "no process to load the application: %s", oribi__policy_text_of(event)),
                now_ms);
        else
            policy->mold_not_before = now_ms + oribi__policy_backoff_ms(policy, ++policy->mold_failures);
        return;
    }
}

void oribi__policy_mold_ready(struct oribi_policy *policy, const struct oribi_policy_event *event, int64_t now_ms)
{
    struct oribi_mold_record *mold = oribi__policy_mold_of_pid(policy, event->pid);
    if (!mold || mold->state != ORIBI_MOLD_IS_LOADING)
        return;
    int64_t took_ms = now_ms - mold->started_at;
    mold->state = ORIBI_MOLD_IS_READY;
    mold->until = 0;
    const char *with = event->text && event->text[0] ? event->text : NULL;
    struct oribi_policy_action *said =
        say(policy, ORIBI_LOG_INFO, "generation %u: the application has loaded in %lld.%02lld s%s%s%s",
            mold->generation, (long long)(took_ms / 1000), (long long)(took_ms % 1000 / 10), with ? " (" : "",
            with ? with : "", with ? ")" : "");
    said->loaded = true;
    said->loaded_ms = took_ms;
    policy->mold_failures = 0;
    if (mold->generation != policy->next_generation || !event->config)
        return;
    policy->next_config = *event->config;
    policy->has_next_config = true;
}

void oribi__policy_mold_failed(struct oribi_policy *policy, const struct oribi_policy_event *event, int64_t now_ms)
{
    struct oribi_mold_record *mold = oribi__policy_mold_of_pid(policy, event->pid);
    if (!mold || mold->state != ORIBI_MOLD_IS_LOADING)
        return;
    mold->state = ORIBI_MOLD_IS_STOPPING; /* it is on its way out */
    mold->until = now_ms + ORIBI_MOLD_STOP_MS;
    const char *what = event->refused ? "the new configuration cannot be taken over" : "the application did not load";
    say(policy, ORIBI_LOG_ERROR, "%s: %s", what, oribi__policy_text_of(event));
    oribi__policy_keep_why(policy, mold->generation, event);
    mold_lost(policy, mold->generation, what, now_ms);
}

void oribi__policy_mold_at(struct oribi_policy *policy, const struct oribi_policy_event *event)
{
    struct oribi_mold_record *mold = oribi__policy_mold_of_pid(policy, event->pid);
    if (mold && mold->state == ORIBI_MOLD_IS_LOADING)
        (void)snprintf(mold->place, sizeof(mold->place), "%s", event->text ? event->text : "");
}

static void mold_exited(struct oribi_policy *policy, struct oribi_mold_record *mold, int status, int64_t now_ms)
{
    /* Its commands may have died with it, or the fork was done and the report is on its way: the supervisor cannot know
     * for a while. */
    for (uint32_t i = 0; i < policy->slot_count; i++) {
        struct oribi_worker_record *record = &policy->records[i];
        if (record->state == ORIBI_RECORD_SPAWNING && record->mold_pid == mold->pid) {
            record->state = ORIBI_RECORD_LOST;
            record->until = now_ms + ORIBI_LOST_MS;
        }
    }
    enum oribi_mold_state state = mold->state;
    mold->state = ORIBI_MOLD_IS_FREE;
    if (oribi_policy_ends(policy))
        return;
    if (state == ORIBI_MOLD_IS_LOADING) {
        const char *reason = oribi__policy_keep(policy, "mold (pid %d) ended while it loaded the application: %s",
                                                mold->pid, oribi__policy_status_text(policy, status));
        if (mold->generation != policy->next_generation)
            say(policy, ORIBI_LOG_ERROR, "%s", reason);
        mold_lost(policy, mold->generation, reason, now_ms);
    } else if (state == ORIBI_MOLD_IS_READY) {
        say(policy, ORIBI_LOG_WARN, "mold (pid %d) ended: %s; its workers live on", mold->pid,
            oribi__policy_status_text(policy, status));
        if (mold->generation == policy->next_generation)
            oribi__policy_reload_failed(policy, "its mold ended");
    }
}

static struct oribi_mold_record *free_mold(struct oribi_policy *policy)
{
    for (uint32_t i = 0; i < ORIBI_MOLDS_MAX; i++)
        if (policy->molds[i].state == ORIBI_MOLD_IS_FREE)
            return &policy->molds[i];
    return NULL;
}

/* A mold made of a warm worker replaces the one that loaded the generation; its workers replace the others
 * as at a reload. One that comes too late is stopped like every mold of a generation that is not wanted. */
void oribi__policy_mold_promoted(struct oribi_policy *policy, const struct oribi_policy_event *event, int64_t now_ms)
{
    struct oribi_mold_record *mold = free_mold(policy);
    bool welcome = mold && !policy->stopping && event->generation == policy->generation;
    if (!welcome) {
        push(policy, ORIBI_ACTION_STOP_MOLD)->pid = event->pid;
        return;
    }
    struct oribi_mold_record *before = oribi__policy_mold_of_generation(policy, policy->generation);
    if (before && before->state != ORIBI_MOLD_IS_ASKED)
        oribi__policy_stop_mold(policy, before, now_ms);
    *mold =
        (struct oribi_mold_record){.state = ORIBI_MOLD_IS_READY, .generation = event->generation, .pid = event->pid};
    policy->reforking = true;
    policy->refork_until = 0;
    for (uint32_t i = 0; i < policy->slot_count; i++) {
        struct oribi_worker_record *record = &policy->records[i];
        if (oribi__is_member(record->state) && record->generation == policy->generation && !record->retire)
            record->retire = oribi__cause_refork;
    }
    say(policy, ORIBI_LOG_INFO, "refork: workers of generation %u come from a warm mold (pid %d) now",
        event->generation, event->pid);
}

/* --- workers --- */

void oribi__policy_worker_forked(struct oribi_policy *policy, const struct oribi_policy_event *event, int64_t now_ms)
{
    struct oribi_worker_record *record = record_of(policy, event);
    if (!record || (record->state != ORIBI_RECORD_SPAWNING && record->state != ORIBI_RECORD_LOST))
        return; /* the intermediate and the worker both report; the second report is no news */
    if (event->pid < 0) {
        of(policy, record,
           say(policy, ORIBI_LOG_ERROR, "cannot fork worker %u: %s", event->slot, oribi__policy_text_of(event)), false);
        policy->boot_failed_at = now_ms;
        if (record->generation == policy->next_generation)
            oribi__policy_reload_failed(policy, "no worker could be forked");
        oribi__policy_hold(policy, record, oribi__policy_backoff_ms(policy, ++policy->boot_failures), now_ms);
        return;
    }
    record->pid = event->pid;
    bool lost = record->state == ORIBI_RECORD_LOST;
    record->state = ORIBI_RECORD_BOOTING;
    record->until = oribi__deadline_in(policy->config.boot_timeout_ms, now_ms);
    if (lost)
        oribi__policy_kill(policy, record, oribi__cause_mold_ended, now_ms); /* its successor was ordered already */
}

void oribi__policy_worker_ready(struct oribi_policy *policy, const struct oribi_policy_event *event, int64_t now_ms)
{
    oribi__policy_worker_forked(policy, event, now_ms); /* when the intermediate was slower than the worker */
    struct oribi_worker_record *record = record_of(policy, event);
    if (!record || record->state != ORIBI_RECORD_BOOTING)
        return;
    record->state = ORIBI_RECORD_SERVING;
    /* the program has asked it to end already */
    record->until = record->cause ? oribi__policy_stop_deadline(policy, now_ms) : 0;
    record->ready_at = now_ms;
    if (!policy->config.patient && record->generation == policy->generation)
        policy->boot_failures = 0;
    if (policy->up)
        return;
    policy->up = true;
    push(policy, ORIBI_ACTION_UP);
}

void oribi__policy_worker_failed(struct oribi_policy *policy, const struct oribi_policy_event *event, int64_t now_ms)
{
    oribi__policy_worker_forked(policy, event, now_ms);
    struct oribi_worker_record *record = record_of(policy, event);
    if (!record || record->state != ORIBI_RECORD_BOOTING)
        return;
    of(policy, record,
       say(policy, ORIBI_LOG_ERROR, "worker %u (pid %d) could not start: %s", event->slot, event->pid,
           oribi__policy_text_of(event)),
       false);
    oribi__policy_keep_why(policy, record->generation, event);
}

void oribi__policy_worker_leaving(struct oribi_policy *policy, const struct oribi_policy_event *event, int64_t now_ms)
{
    struct oribi_worker_record *record = record_of(policy, event);
    if (!record || record->state != ORIBI_RECORD_SERVING)
        return;
    record->state = ORIBI_RECORD_LEAVING;
    record->until = oribi__policy_stop_deadline(policy, now_ms);
}

/* Counts starts that failed, in a row. Where workers are always ready at once (patient), one that lasts less than a
 * second is one of them. */
static bool count_failed_start(struct oribi_policy *policy, const struct oribi_worker_record *record, bool failed,
                               const char *reason, int64_t now_ms)
{
    bool in_vain = record->ready_at == 0 && (failed || reason == oribi__cause_boot_timeout);
    bool early = policy->config.patient && failed && now_ms - record->ready_at < ORIBI_EARLY_EXIT_MS;
    bool long_ago = now_ms - policy->boot_failed_at > 2 * ORIBI_RESPAWN_DELAY_MS_MAX;
    if (long_ago || (policy->config.patient && !in_vain && !early))
        policy->boot_failures = 0;
    if (!in_vain && !early)
        return false;
    policy->boot_failures++;
    policy->boot_failed_at = now_ms;
    return true;
}

/* How long the slot of a worker that has ended stays empty. A worker that served and died holds up nothing but its
 * own slot, and that only when deaths there become a series. */
static int64_t respawn_wait_ms(struct oribi_policy *policy, struct oribi_worker_record *record, bool failed,
                               const char *reason, int64_t now_ms)
{
    if (record->generation != policy->generation)
        return 0;
    if (count_failed_start(policy, record, failed, reason, now_ms))
        return oribi__policy_backoff_ms(policy, policy->boot_failures);
    if (!failed)
        return 0;
    return policy->config.patient ? policy->config.err_respawn_interval_ms
                                  : oribi__policy_death_wait_ms(policy, record, now_ms);
}

static void say_ended(struct oribi_policy *policy, const struct oribi_worker_record *record, bool failed,
                      const char *what, int64_t wait_ms, bool call)
{
    const char *then = "";
    if (failed && record->generation == policy->generation && !oribi_policy_ends(policy))
        then = wait_ms ? oribi__policy_keep(policy, "; replacing it in %lld ms", (long long)wait_ms) : "; replacing it";
    of(policy, record, say(policy, failed ? ORIBI_LOG_WARN : ORIBI_LOG_DEBUG, "%s%s", what, then), call);
}

static void worker_exited(struct oribi_policy *policy, struct oribi_worker_record *record, int status, int64_t now_ms)
{
    uint32_t number = oribi__policy_number(policy, record);
    bool never_ready = record->ready_at == 0;
    if (!record->cause && !never_ready && WIFEXITED(status) && WEXITSTATUS(status) == ORIBI_EXIT_CALL_DEADLINE)
        record->cause = oribi__cause_call_deadline; /* it has said why, and the next one is wanted at once */
    const char *call = record->cause || never_ready ? "" : oribi__policy_call_text(policy, record);
    bool failed = !record->cause && (status != 0 || never_ready || (call[0] && !policy->config.patient));
    const char *reason = record->cause ? record->cause : oribi__policy_status_text(policy, status);
    const char *what = oribi__policy_keep(policy, "worker %u (pid %d) ended%s: %s%s", number, record->pid,
                                          never_ready && failed ? " before it was ready" : "", reason, call);
    int64_t wait_ms = respawn_wait_ms(policy, record, failed, reason, now_ms);
    say_ended(policy, record, failed, what, wait_ms, call[0]);
    struct oribi_policy_action *action = push(policy, ORIBI_ACTION_WORKER_EXIT);
    action->pid = record->pid;
    action->status = status;
    action->slot = number;
    action->generation = record->generation;
    action->text = reason;
    oribi__policy_hold(policy, record, wait_ms, now_ms);
    record->pid = 0;
    if (record->generation == policy->next_generation && (failed || never_ready))
        oribi__policy_reload_failed(policy, what);
}

/* --- the operator --- */

void oribi__policy_resize(struct oribi_policy *policy, int32_t delta)
{
    int64_t target = (int64_t)policy->target + delta;
    if (target < 1)
        target = 1;
    if (target > policy->config.workers_max)
        target = policy->config.workers_max;
    if (target == policy->target)
        say(policy, ORIBI_LOG_WARN, "the number of workers stays %u: that is the %s", policy->target,
            delta < 0 ? "least" : "most");
    else
        say(policy, ORIBI_LOG_INFO, "workers: %lld, were %u", (long long)target, policy->target);
    policy->target = (uint32_t)target;
}

void oribi__policy_reopen(struct oribi_policy *policy)
{
    push(policy, ORIBI_ACTION_REOPEN);
    for (uint32_t i = 0; i < policy->slot_count; i++) {
        enum oribi_worker_record_state state = policy->records[i].state;
        policy->records[i].reopen = oribi__is_member(state) || oribi__has_process(state);
    }
    for (uint32_t i = 0; i < ORIBI_MOLDS_MAX; i++)
        policy->molds[i].reopen = policy->molds[i].state != ORIBI_MOLD_IS_FREE;
}

/* The first command to stop is granted gracefully, after drain_delay if there is one; the second at once. */
void oribi__policy_stop_asked(struct oribi_policy *policy, bool now, int64_t now_ms)
{
    now = now || policy->stopping || policy->stop_at;
    if (now) {
        if (!policy->stopping_now)
            say(policy, ORIBI_LOG_INFO, "stopping now");
        policy->stopping_now = true;
        oribi__policy_begin_stop(policy, 0);
    } else if (policy->config.drain_delay_ms > 0 && policy->up) {
        policy->stop_at = now_ms + policy->config.drain_delay_ms;
        say(policy, ORIBI_LOG_INFO, "stopping in %lld ms (drain_delay)", (long long)policy->config.drain_delay_ms);
        push(policy, ORIBI_ACTION_STOP_SOON);
    } else {
        say(policy, ORIBI_LOG_INFO, "stopping: %u worker%s to finish what has begun", oribi_policy_alive(policy),
            oribi_log_plural(oribi_policy_alive(policy)));
        oribi__policy_begin_drain(policy, now_ms);
    }
}

/* Nobody waits for a drain_delay at a terminal. */
void oribi__policy_interrupted(struct oribi_policy *policy, int64_t now_ms)
{
    bool now = policy->stopping || policy->stop_at;
    if (now) {
        oribi__policy_stop_asked(policy, true, now_ms);
        return;
    }
    say(policy, ORIBI_LOG_INFO, "stopping");
    policy->hurry_at = now_ms + ORIBI_INTERRUPT_MS;
    oribi__policy_begin_drain(policy, now_ms);
}

void oribi__policy_exited(struct oribi_policy *policy, const struct oribi_policy_event *event, int64_t now_ms)
{
    struct oribi_mold_record *mold = oribi__policy_mold_of_pid(policy, event->pid);
    struct oribi_worker_record *record = oribi__policy_record_of_pid(policy, event->pid);
    if (mold)
        mold_exited(policy, mold, event->status, now_ms);
    else if (record)
        worker_exited(policy, record, event->status, now_ms);
    else if (event->pid == policy->upgrade_pid && !policy->handed_over)
        oribi__policy_successor_exited(policy, event->status);
    /* Anything else is an intermediate whose mold died, or a child that a worker's child left behind: reaped, and
     * that is all. */
}

void oribi__policy_measured(struct oribi_policy *policy, const struct oribi_policy_event *event)
{
    struct oribi_worker_record *record = record_of(policy, event);
    if (!record || record->state != ORIBI_RECORD_SERVING || record->retire || !policy->config.memory_max ||
        event->bytes <= policy->config.memory_max)
        return;
    record->retire = oribi__cause_memory_max;
    of(policy, record,
       say(policy, ORIBI_LOG_INFO, "worker %u (pid %d) has %lld MB, memory_max is %lld MB: it is replaced", event->slot,
           record->pid, (long long)(event->bytes >> 20), (long long)(policy->config.memory_max >> 20)),
       false);
}
