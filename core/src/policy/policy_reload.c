/* A reload, from the command to its end, in the order in which it happens:
 *
 *   RELOAD ─► the next generation loads ─► its first workers come up (trial) ─► it becomes the current one (commit)
 *             ─► old workers are replaced, as those due for recycling are (policy_steps.c) ─► done
 *
 * A failure before the commit ends the reload; the current generation was never touched. */
#include "policy/policy_private.h"

#include "oribi/base/log.h"

#include <stdio.h>
#include <string.h>

#define push oribi__policy_push
#define say  oribi__policy_say

void oribi__policy_reload(struct oribi_policy *policy)
{
    if (policy->stopping || policy->stop_at)
        return;
    if (!policy->up) {
        oribi__policy_say(policy, ORIBI_LOG_WARN, "no reload: the server is not up yet");
        struct oribi_policy_action *action = oribi__policy_push(policy, ORIBI_ACTION_RELOADED);
        action->code = 1;
        action->text = "the server is not up yet";
        return;
    }
    if (policy->next_generation || policy->rolling) {
        policy->reload_again = true;
        oribi__policy_say(policy, ORIBI_LOG_INFO, "a reload is under way; another one follows it");
        return;
    }
    policy->next_generation = ++policy->last_generation;
    policy->next_asked = policy->has_next_config = false;
    policy->why[0] = '\0';
    oribi__policy_say(policy, ORIBI_LOG_INFO, "reload: loading generation %u", policy->next_generation);
    oribi__policy_push(policy, ORIBI_ACTION_RELOADING)->generation = policy->next_generation;
}

/* How many workers there are to be under the next generation: as many as an operator has asked for (TTIN, TTOU), unless
 * the configuration has changed its number. Having none (WINCH) ends with a reload. */
static uint32_t next_workers(const struct oribi_policy *policy)
{
    uint32_t before = policy->config.workers;
    uint32_t next = policy->has_next_config ? policy->next_config.workers : before;
    if (next > policy->config.workers_max)
        next = policy->config.workers_max;
    return next == before && policy->target > 0 ? policy->target : next;
}

static void commit(struct oribi_policy *policy)
{
    uint32_t workers = next_workers(policy);
    policy->generation = policy->next_generation;
    policy->next_generation = 0;
    policy->left_generation = 0;
    policy->rolling = true;
    policy->reforking = false;
    policy->refork_until = 0;
    policy->boot_failures = 0;
    policy->mold_failures = 0;
    if (policy->has_next_config) {
        uint32_t most = policy->config.workers_max; /* as many as there are slots for */
        bool frontends = policy->config.frontends;  /* no reload changes whether there are any */
        policy->config = policy->next_config;
        policy->config.workers_max = most;
        policy->config.frontends = frontends;
        if (policy->config.workers > most) {
            say(policy, ORIBI_LOG_WARN,
                "workers: %u, the most that this server has room for; an upgrade makes room for more", most);
            policy->config.workers = most;
        }
    }
    if (workers != policy->config.workers)
        say(policy, ORIBI_LOG_INFO, ORIBI_POLICY_WORKERS_KEPT, workers, policy->config.workers);
    policy->target = workers;
    say(policy, ORIBI_LOG_INFO, "reload: generation %u serves, replacing the workers before it", policy->generation);
    push(policy, ORIBI_ACTION_COMMITTED)->generation = policy->generation;
}

bool oribi__policy_step_trial(struct oribi_policy *policy, int64_t now_ms)
{
    if (!policy->next_generation)
        return false;
    if (!policy->next_asked)
        return policy->next_asked = oribi__policy_start_mold(policy, policy->next_generation, true);
    struct oribi_mold_record *mold = oribi__policy_mold_of_generation(policy, policy->next_generation);
    if (!mold || mold->state != ORIBI_MOLD_IS_READY)
        return false;
    struct oribi__tally tally = oribi__policy_tally(policy);
    uint32_t workers = next_workers(policy);
    uint32_t trial = oribi__policy_roll_max(policy) < workers ? oribi__policy_roll_max(policy) : workers;
    if (tally.next_serving >= trial) {
        commit(policy);
        return true;
    }
    return tally.next < trial && !policy->paused && oribi__policy_spawn_paced(policy, now_ms) &&
           oribi__policy_spawn(policy, mold, now_ms);
}

static void reload_ended(struct oribi_policy *policy, int code, const char *text)
{
    struct oribi_policy_action *action = oribi__policy_push(policy, ORIBI_ACTION_RELOADED);
    action->code = code;
    action->text = text;
    action->generation = policy->generation;
    if (!policy->reload_again)
        return;
    policy->reload_again = false;
    oribi__policy_reload(policy);
}

static void reload_done(struct oribi_policy *policy)
{
    policy->rolling = false;
    oribi__policy_say(policy, ORIBI_LOG_INFO, "reload done: %u worker%s of generation %u", oribi_policy_serving(policy),
                      oribi_log_plural(oribi_policy_serving(policy)), policy->generation);
    reload_ended(policy, 0, NULL);
}

bool oribi__policy_step_rolled(struct oribi_policy *policy)
{
    if ((!policy->rolling && !policy->reforking) || policy->stopping)
        return false;
    struct oribi__tally tally = oribi__policy_tally(policy);
    if (tally.old > 0 || tally.current_serving < oribi__policy_wanted(policy))
        return false;
    if (policy->reforking) {
        policy->reforking = false;
        push(policy, ORIBI_ACTION_REFORKED)->generation = policy->generation;
    }
    if (policy->rolling)
        reload_done(policy);
    return true;
}

/* The first line of what a process of the next generation says of its failure. The first failure has led to the
 * others. */
void oribi__policy_keep_why(struct oribi_policy *policy, uint32_t generation, const struct oribi_policy_event *event)
{
    if (generation == policy->next_generation && event->text && !policy->why[0])
        /* cut: a hint */
        (void)snprintf(policy->why, sizeof(policy->why), "%.*s", (int)strcspn(event->text, "\n"), event->text);
}

void oribi__policy_reload_failed(struct oribi_policy *policy, const char *reason)
{
    oribi__policy_say(policy, ORIBI_LOG_ERROR, "reload failed, generation %u goes on serving: %s", policy->generation,
                      reason);
    policy->next_generation = 0;
    reload_ended(policy, 1, policy->why[0] ? oribi__policy_keep(policy, "%s: %s", reason, policy->why) : reason);
}
