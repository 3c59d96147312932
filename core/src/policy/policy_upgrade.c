/* An upgrade, in the order in which it happens: the command, the successor that was started, the successor that serves;
 * or the end of one that fails, after which this server goes on. */
#include "policy/policy_private.h"

#include "oribi/base/log.h"

#include <signal.h>

#define push oribi__policy_push
#define say  oribi__policy_say

void oribi__policy_upgrade(struct oribi_policy *policy)
{
    if (policy->stopping || policy->stop_at)
        return;
    const char *reason = !policy->up           ? "the server is not up yet"
                         : policy->upgrade_pid ? "one is under way"
                         : policy->config.is_init
                             ? "this server is process 1, with which its container ends: reload it (HUP), or start "
                               "another container"
                             : NULL;
    if (reason) {
        say(policy, ORIBI_LOG_WARN, "no upgrade: %s", reason);
        push(policy, ORIBI_ACTION_UPGRADE_REFUSED)->text = reason;
        return;
    }
    say(policy, ORIBI_LOG_INFO, "upgrade: starting a successor");
    policy->upgrade_pid = -1;
    push(policy, ORIBI_ACTION_START_UPGRADE);
}

static void upgrade_failed(struct oribi_policy *policy, const char *reason)
{
    policy->upgrade_pid = 0;
    policy->upgrade_until = 0;
    oribi__policy_say(policy, ORIBI_LOG_ERROR, "upgrade failed, this server goes on: %s", reason);
    struct oribi_policy_action *action = oribi__policy_push(policy, ORIBI_ACTION_UPGRADED);
    action->code = 1;
    action->text = reason;
}

void oribi__policy_upgrade_started(struct oribi_policy *policy, const struct oribi_policy_event *event, int64_t now_ms)
{
    if (event->pid < 0) {
        upgrade_failed(policy, oribi__policy_text_of(event));
        return;
    }
    policy->upgrade_pid = event->pid;
    policy->upgrade_until = oribi__deadline_in(policy->config.boot_timeout_ms * 2, now_ms);
    if (policy->upgrade_until)
        policy->upgrade_until += ORIBI_UPGRADE_SPARE_MS;
    if (policy->stopping)
        oribi__policy_signal(policy, event->pid, SIGTERM);
}

void oribi__policy_upgrade_ready(struct oribi_policy *policy, int64_t now_ms)
{
    if (policy->upgrade_pid <= 0 || policy->stopping)
        return;
    say(policy, ORIBI_LOG_INFO, "upgrade: pid %d has taken over; this server ends", policy->upgrade_pid);
    policy->handed_over = true;
    policy->upgrade_until = 0;
    struct oribi_policy_action *action = push(policy, ORIBI_ACTION_UPGRADED);
    action->pid = policy->upgrade_pid;
    oribi__policy_begin_drain(policy, now_ms);
}

void oribi__policy_successor_exited(struct oribi_policy *policy, int status)
{
    if (policy->stopping)
        policy->upgrade_pid = 0, policy->upgrade_until = 0;
    else
        upgrade_failed(
            policy, oribi__policy_keep(policy, "the successor ended: %s", oribi__policy_status_text(policy, status)));
}

bool oribi__policy_upgrade_expired(struct oribi_policy *policy, int64_t now_ms)
{
    if (!policy->upgrade_until || now_ms < policy->upgrade_until)
        return false;
    oribi__policy_signal(policy, policy->upgrade_pid, SIGKILL);
    if (!policy->stopping)
        upgrade_failed(policy, "the successor did not come up in twice boot_timeout");
    policy->upgrade_pid = 0;
    policy->upgrade_until = 0;
    return true;
}
