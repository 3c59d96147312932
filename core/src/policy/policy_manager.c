/* Policy of a manager (prefork.h) alone: a loop that ends and begins again, and signals that the program sends to its
 * workers. */
#include "policy/policy_private.h"

#include <assert.h>
#include <signal.h>

void oribi__policy_pause(struct oribi_policy *policy, const struct oribi_policy_event *event, int64_t now_ms)
{
    policy->paused = true;
    if (!event->status)
        return;
    /* a signal that is still being sent would reach the same workers as this one */
    policy->send_signal = event->status;
    policy->send_interval_ms = event->bytes;
    policy->send_at = now_ms;
    policy->send_after = 0;
    policy->send_upto = policy->last_ticket;
}

/* The mold is the process that goes on, so that it needs no loading: it serves the new generation as it served the
 * one before. */
void oribi__policy_resume(struct oribi_policy *policy)
{
    if (policy->stopping || !policy->paused)
        return;
    policy->paused = false;
    if (policy->next_generation) {
        policy->reload_again = false;
        oribi__policy_reload_failed(policy, "the program starts a generation of its own");
    }
    struct oribi_mold_record *mold = oribi__policy_mold_of_generation(policy, policy->own_generation);
    policy->rolling = false;
    policy->boot_failures = 0;
    policy->mold_failures = 0;
    policy->mold_not_before = 0;
    policy->left_generation = policy->generation;
    policy->generation = policy->own_generation = ++policy->last_generation;
    if (mold)
        mold->generation = policy->generation;
    for (uint32_t i = 0; i < policy->slot_count; i++)
        if (policy->records[i].state == ORIBI_RECORD_HELD)
            policy->records[i].state = ORIBI_RECORD_FREE; /* the failure was another generation's */
}

/* The mold of a reload has loaded the program as it was started anew; after RESUME the manager is the mold. A reload
 * that is under way comes to nothing. */
void oribi__policy_release_molds(struct oribi_policy *policy, int32_t beside, int64_t now_ms)
{
    if (policy->stopping || !policy->paused)
        return;
    if (policy->next_generation) {
        policy->reload_again = false;
        oribi__policy_reload_failed(policy, "the program waits for the end of its workers");
    }
    for (uint32_t i = 0; i < ORIBI_MOLDS_MAX; i++) {
        struct oribi_mold_record *mold = &policy->molds[i];
        bool there = mold->state == ORIBI_MOLD_IS_LOADING || mold->state == ORIBI_MOLD_IS_READY;
        if (there && mold->pid != beside)
            oribi__policy_stop_mold(policy, mold, now_ms);
    }
}

/* The next one in the order of their starts: a worker that is gone meanwhile is passed over, one that is still being
 * forked is waited for. */
bool oribi__policy_step_send(struct oribi_policy *policy, int64_t now_ms)
{
    struct oribi_worker_record *next = NULL;
    if (!policy->send_signal || now_ms < policy->send_at)
        return false;
    for (uint32_t i = 0; i < policy->slot_count; i++) {
        struct oribi_worker_record *record = &policy->records[i];
        bool there = record->state == ORIBI_RECORD_SPAWNING || oribi__has_process(record->state);
        if (there && record->state != ORIBI_RECORD_KILLED && record->ticket > policy->send_after &&
            record->ticket <= policy->send_upto && (!next || record->ticket < next->ticket))
            next = record;
    }
    if (!next)
        policy->send_signal = 0;
    if (!next || next->state == ORIBI_RECORD_SPAWNING)
        return false;
    policy->send_after = next->ticket;
    policy->send_at = now_ms + policy->send_interval_ms;
    oribi_policy_signalled(policy, oribi__policy_number(policy, next), policy->send_signal, now_ms);
    oribi__policy_signal(policy, next->pid, policy->send_signal);
    return true;
}

void oribi_policy_signalled(struct oribi_policy *policy, uint32_t slot, int signal, int64_t now_ms)
{
    struct oribi_worker_record *record = &policy->records[slot];
    assert(slot < policy->slot_count && oribi__has_process(record->state));
    if (signal != SIGTERM && signal != SIGQUIT && signal != SIGINT && signal != SIGKILL)
        return;
    if (!record->cause)
        record->cause = oribi__cause_asked;
    if (record->state == ORIBI_RECORD_SERVING && !record->until)
        record->until = oribi__policy_stop_deadline(policy, now_ms);
}
