/* Consequences of the scoreboard, looked at once a second: calls over their deadline, workers grown old, one warm
 * enough to be forked off. Reading order: oribi__policy_step_watch, look, then what each look leads to. */
#include "policy/policy_private.h"

#include "oribi/base/log.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#define push oribi__policy_push
#define say  oribi__policy_say
#define of   oribi__policy_of

/* Remembers since when a worker's call has been over its deadline. A look that comes late (the machine slept,
 * we were stopped) forgives everything: the workers have not run in that time either. */
static void look_at_call(struct oribi_policy *policy, struct oribi_worker_record *record, bool jumped, int64_t now_ms)
{
    const struct oribi_slot *slot = &policy->slots[oribi__policy_number(policy, record)];
    /* Pairs with the worker's release stores; a started time of another call than the deadline's only delays us by
     * one look. */
    int64_t deadline = atomic_load_explicit(&slot->call_deadline_us, memory_order_acquire);
    int64_t started = atomic_load_explicit(&slot->call_started_us, memory_order_acquire);
    bool overdue = deadline && started && deadline <= now_ms * 1000;
    if (!overdue || jumped)
        record->overdue_since = 0;
    else if (!record->overdue_since || started != record->call_started || deadline != record->call_deadline)
        record->overdue_since = now_ms;
    record->call_started = started;
    record->call_deadline = deadline;
    bool gets_signal = record->state == ORIBI_RECORD_SERVING || record->state == ORIBI_RECORD_STOPPING;
    record->remind = record->overdue_since && gets_signal && policy->config.deadline_signal;
}

/* A worker whose threads neither sleep nor make a turn, outside any call. */
static void look_at_turns(struct oribi_policy *policy, struct oribi_worker_record *record, bool jumped, int64_t now_ms)
{
    const struct oribi_slot *slot = &policy->slots[oribi__policy_number(policy, record)];
    uint32_t awake = atomic_load_explicit(&slot->awake, memory_order_relaxed);
    if (!awake || record->call_started || jumped || record->state != ORIBI_RECORD_SERVING)
        record->awake_since = 0;
    else if (!record->awake_since || awake != record->awake)
        record->awake_since = now_ms;
    record->awake = awake;
}

/* Up to an eighth more, so that workers that were started together do not grow old together. */
static int64_t age_max_of(const struct oribi_policy *policy, const struct oribi_worker_record *record)
{
    int64_t spread = (record->ticket * 2654435761u) % 1024;
    return policy->config.age_max_ms + policy->config.age_max_ms / 8 * spread / 1024;
}

static void look_at_age(struct oribi_policy *policy, struct oribi_worker_record *record, int64_t now_ms)
{
    if (!policy->config.age_max_ms || record->state != ORIBI_RECORD_SERVING || record->retire)
        return;
    /* It never said that it listens, so that a stop may cut a job. */
    if (policy->config.patient &&
        atomic_load(&policy->slots[oribi__policy_number(policy, record)].state) == ORIBI_SLOT_STARTING)
        return;
    if (now_ms - record->ready_at >= age_max_of(policy, record))
        record->retire = oribi__cause_age_max;
}

static void look(struct oribi_policy *policy, int64_t now_ms)
{
    bool jumped = now_ms - policy->watched_at > ORIBI_WATCH_JUMP_MS;
    policy->watched_at = now_ms;
    for (uint32_t i = 0; i < policy->slot_count; i++) {
        struct oribi_worker_record *record = &policy->records[i];
        if (!oribi__has_process(record->state))
            continue;
        look_at_call(policy, record, jumped, now_ms);
        look_at_turns(policy, record, jumped, now_ms);
        look_at_age(policy, record, now_ms);
    }
}

/* A worker's own helper tells it in time; one that has none (no call was long before) hears it from here. */
static bool remind_one(struct oribi_policy *policy)
{
    for (uint32_t i = 0; i < policy->slot_count; i++) {
        struct oribi_worker_record *record = &policy->records[i];
        if (!record->remind || !oribi__has_process(record->state))
            continue;
        record->remind = false;
        oribi__policy_signal(policy, record->pid, policy->config.deadline_signal);
        return true;
    }
    return false;
}

static bool kill_overdue(struct oribi_policy *policy, int64_t now_ms)
{
    for (uint32_t i = 0; i < policy->slot_count; i++) {
        struct oribi_worker_record *record = &policy->records[i];
        if (!record->overdue_since || now_ms - record->overdue_since < ORIBI_CALL_GRACE_MS ||
            !oribi__has_process(record->state) || record->state == ORIBI_RECORD_KILLED)
            continue;
        char line[ORIBI_SLOT_LINE_CAP];
        memcpy(line, policy->slots[i].line, sizeof(line)); /* may be torn: it is only shown */
        line[sizeof(line) - 1] = '\0';
        of(policy, record,
           say(policy, ORIBI_LOG_ERROR,
               "worker %u (pid %d) killed: its call is %lld ms old, %lld ms over call_timeout: %s", i, record->pid,
               (long long)(now_ms - record->call_started / 1000),
               (long long)(now_ms - policy->slots[i].call_deadline_us / 1000), line),
           true);
        oribi__policy_kill(policy, record, oribi__cause_call_deadline, now_ms);
        return true;
    }
    return false;
}

static bool kill_hanging(struct oribi_policy *policy, int64_t now_ms)
{
    int64_t allowed_ms = policy->config.call_timeout_ms + ORIBI_CALL_GRACE_MS;
    for (uint32_t i = 0; policy->config.call_timeout_ms && i < policy->slot_count; i++) {
        struct oribi_worker_record *record = &policy->records[i];
        if (!record->awake_since || now_ms - record->awake_since < allowed_ms || record->state != ORIBI_RECORD_SERVING)
            continue;
        of(policy, record,
           say(policy, ORIBI_LOG_ERROR,
               "worker %u (pid %d) killed: it hangs outside any call, for %lld ms now (call_timeout %lld ms)", i,
               record->pid, (long long)(now_ms - record->awake_since), (long long)policy->config.call_timeout_ms),
           false);
        oribi__policy_kill(policy, record, oribi__cause_hang, now_ms);
        return true;
    }
    return false;
}

/* The first worker of a generation to have answered refork_after requests is asked to fork a mold off itself. */
static bool ask_for_refork(struct oribi_policy *policy, int64_t now_ms)
{
    if (!policy->config.refork_after || policy->reforked == policy->generation || policy->next_generation ||
        policy->rolling || policy->stopping)
        return false;
    for (uint32_t i = 0; i < policy->slot_count; i++) {
        struct oribi_worker_record *record = &policy->records[i];
        if (record->state != ORIBI_RECORD_SERVING || oribi__policy_role(policy, record) != ORIBI__CURRENT ||
            atomic_load_explicit(&policy->slots[i].request_count, memory_order_relaxed) < policy->config.refork_after)
            continue;
        policy->reforked = policy->generation;
        policy->refork_until = oribi__deadline_in(policy->config.boot_timeout_ms, now_ms);
        push(policy, ORIBI_ACTION_REFORK)->pid = record->pid;
        oribi__policy_signal(policy, record->pid, SIGUSR2);
        return true;
    }
    return false;
}

bool oribi__policy_step_watch(struct oribi_policy *policy, int64_t now_ms)
{
    if (!policy->config.watch)
        return false;
    if (now_ms - policy->watched_at >= ORIBI_WATCH_MS)
        look(policy, now_ms);
    return remind_one(policy) || kill_overdue(policy, now_ms) || kill_hanging(policy, now_ms) ||
           ask_for_refork(policy, now_ms);
}
