/* Upgrade: against a fake clock. */
#include "policy/policy_upgrade.c"

#include "policy/policy_world.h"

/* --- upgrade --- */

static struct proc *begin_upgrade(void)
{
    just(ORIBI_EVENT_UPGRADE);
    struct proc *proc = add_proc(600, true, 0);
    proc->ready = proc->reported = true;
    feed((struct oribi_policy_event){.type = ORIBI_EVENT_UPGRADE_STARTED, .pid = 600});
    return proc;
}

static void test_upgrade_leaves_when_the_successor_serves(void)
{
    start(2);
    begin_upgrade();
    settle();
    ok_eq(w.upgrades_asked, 1);
    ok_eq(oribi_policy_serving(&w.policy), 2);
    just(ORIBI_EVENT_UPGRADE_READY);
    settle();
    ok_eq(w.upgrades_done, 1);
    ok_eq(w.exits, 1);
    ok_eq(w.exit_code, 0);
    ok_eq(proc_of(600)->terms, 0);
}

static void upgrade_past_a_call(bool frontends)
{
    start(1);
    w.policy.config.call_timeout_ms = 60000;
    w.policy.config.frontends = frontends;
    w.workers_obey = false;
    begin_upgrade();
    settle();
    just(ORIBI_EVENT_UPGRADE_READY);
    settle();
}

static void test_after_an_upgrade_workers_have_the_time_of_a_call(void)
{
    upgrade_past_a_call(false);
    pass_ms(64999);
    ok_eq(count_signalled(SIGKILL), 0);
    pass_ms(1);
    ok_eq(count_signalled(SIGKILL), 1);
    ok_eq(w.exits, 1);
}

static void test_after_an_upgrade_frontends_have_it_too(void)
{
    upgrade_past_a_call(true);
    ok_eq(w.frontend_ends, 1);
    pass_ms(63999);
    ok_eq(count_signalled(SIGTERM), 0);
    pass_ms(1);
    ok_eq(count_signalled(SIGTERM), 1);
    ok(logged("frontends did not end within call_timeout"));
    pass_ms(1000);
    ok_eq(count_signalled(SIGKILL), 1);
    ok_eq(w.exits, 1);
}

static void test_a_stop_after_an_upgrade_is_now(void)
{
    upgrade_past_a_call(false);
    just(ORIBI_EVENT_STOP);
    settle();
    pass_ms(1000);
    ok_eq(w.exits, 1);
}

static void test_upgrade_that_fails_leaves_everything(void)
{
    start(2);
    event_exit(begin_upgrade(), 1 << 8);
    settle();
    ok_eq(w.upgrades_failed, 1);
    ok_eq(oribi_policy_serving(&w.policy), 2);
    ok(logged("upgrade failed, this server goes on: the successor ended: exit code 1"));
    begin_upgrade(); /* it may be tried again */
    ok_eq(w.upgrades_asked, 2);
}

static void test_upgrade_that_hangs_is_ended(void)
{
    start(2);
    struct proc *proc = begin_upgrade();
    proc->undead = true;
    pass_ms(129999);
    ok_eq(proc->kills, 0);
    pass_ms(1);
    ok_eq(proc->kills, 1);
    ok_eq(w.upgrades_failed, 1);
    ok_eq(oribi_policy_serving(&w.policy), 2);
}

static void test_one_upgrade_at_a_time(void)
{
    start(2);
    begin_upgrade();
    just(ORIBI_EVENT_UPGRADE);
    ok_eq(w.upgrades_asked, 1);
    ok_eq(w.upgrades_refused, 1);
    ok_eq(w.upgrades_failed, 0);
    ok(logged("no upgrade: one is under way"));
}

static void test_process_1_does_not_leave(void)
{
    start(2);
    w.policy.config.is_init = true;
    just(ORIBI_EVENT_UPGRADE);
    ok_eq(w.upgrades_asked, 0);
    ok_eq(w.upgrades_refused, 1);
    ok(logged("no upgrade: this server is process 1, with which its container ends: reload it (HUP), or start "));
    just(ORIBI_EVENT_RELOAD);
    settle();
    ok_eq(w.reloads_done, 1);
}

static void test_stop_during_an_upgrade_stops_the_successor_too(void)
{
    start(1);
    struct proc *proc = begin_upgrade();
    just(ORIBI_EVENT_STOP);
    ok_eq(proc->terms, 1);
    settle();
    ok_eq(w.exits, 1);
}

static void test_a_successor_that_outlasts_a_stop_is_ended_in_silence(void)
{
    start(1);
    struct proc *proc = begin_upgrade();
    proc->undead = worker(0)->undead = true;
    w.policy.config.shutdown_timeout_ms = 0;
    just(ORIBI_EVENT_STOP);
    pass_ms(130000);
    ok_eq(proc->kills, 1);
    ok_eq(w.upgrades_failed, 0);
    ok(!logged("this server goes on"));
}

int main(void)
{
    test_upgrade_leaves_when_the_successor_serves();
    test_after_an_upgrade_workers_have_the_time_of_a_call();
    test_after_an_upgrade_frontends_have_it_too();
    test_a_stop_after_an_upgrade_is_now();
    test_upgrade_that_fails_leaves_everything();
    test_upgrade_that_hangs_is_ended();
    test_one_upgrade_at_a_time();
    test_process_1_does_not_leave();
    test_stop_during_an_upgrade_stops_the_successor_too();
    test_a_successor_that_outlasts_a_stop_is_ended_in_silence();
    return done_testing();
}
