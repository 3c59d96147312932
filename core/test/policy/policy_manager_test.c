/* A program that starts and stops of its own accord: against a fake clock. */
#include "policy/policy_manager.c"

#include "policy/policy_world.h"

/* --- a program that starts and stops of its own accord --- */

static void start_patient(uint32_t workers)
{
    begin(workers);
    w.policy.config.patient = true;
    just(ORIBI_EVENT_START);
    settle();
}

static void test_a_pause_signals_everybody_and_spawns_nobody(void)
{
    start_patient(3);
    pause_with(SIGTERM, 0);
    ok_eq(count_signalled(SIGTERM), 3);
    settle();
    ok_eq(oribi_policy_alive(&w.policy), 0);
    pass_ms(60000);
    ok_eq(w.spawns, 3);
    ok_eq(w.exits, 0);
}

static void test_a_pause_without_a_signal_leaves_everybody(void)
{
    start_patient(3);
    pause_with(0, 0);
    event_exit(worker(0), 0);
    pass_ms(60000);
    ok_eq(count_signalled(SIGTERM), 0);
    ok_eq(oribi_policy_alive(&w.policy), 2);
}

static void test_a_paced_signal_passes_over_the_dead(void)
{
    start_patient(3);
    w.workers_obey = false;
    pause_with(SIGTERM, 2000);
    ok_eq(count_signalled(SIGTERM), 1);
    event_exit(worker(1), 0);
    pass_ms(1999);
    ok_eq(count_signalled(SIGTERM), 1);
    pass_ms(1);
    ok_eq(count_signalled(SIGTERM), 2);
    ok_eq(worker(1)->terms, 1); /* the third of those there were */
    pass_ms(10000);
    ok_eq(count_signalled(SIGTERM), 2);
}

static void test_a_resume_fills_up_as_workers_of_before_leave(void)
{
    start_patient(3);
    w.workers_obey = false;
    pause_with(SIGTERM, 0);
    just(ORIBI_EVENT_RESUME);
    settle();
    ok_eq(w.spawns, 3);
    ok_eq(w.mold_starts, 1); /* the same one */
    event_exit(worker(0), 0);
    settle();
    ok_eq(w.spawns, 4);
    ok_eq(oribi_policy_alive(&w.policy), 3);
    ok_eq(worker(2)->generation, 2);
    pass_ms(20000);
    ok_eq(count_signalled(SIGTERM), 3); /* nobody was stopped for the others' sake */
}

static void test_a_failure_of_an_earlier_generation_holds_nobody_up(void)
{
    start_patient(2);
    pause_with(0, 0);
    just(ORIBI_EVENT_RESUME);
    event_exit(worker(0), 1 << 8);
    settle();
    ok_eq(w.spawns, 3);
    event_exit(worker(1), 1 << 8); /* of the current one */
    settle();
    ok_eq(w.spawns, 3);
    pass_ms(1000);
    ok_eq(w.spawns, 4);
}

static void test_what_the_program_asked_to_end_is_no_failure_and_has_shutdown_timeout(void)
{
    start_patient(2);
    struct proc *one = worker(0);
    oribi_policy_signalled(&w.policy, one->slot, SIGTERM, w.now);
    event_exit(one, SIGTERM);
    settle();
    ok_eq(w.spawns, 3);
    one = worker(0);
    one->undead = true;
    oribi_policy_signalled(&w.policy, one->slot, SIGTERM, w.now);
    pass_ms(30000);
    ok_eq(one->kills, 0);
    pass_ms(ORIBI_KILL_MS);
    ok_eq(one->kills, 1);
}

static void test_asked_to_end_before_its_report_is_read(void)
{
    begin(1);
    w.policy.config.patient = true;
    w.workers_boot = false;
    just(ORIBI_EVENT_START);
    settle();
    event_forked(worker(0));
    worker(0)->undead = true;
    pause_with(SIGTERM, 0);
    event_ready(worker(0));
    pass_ms(30000 + ORIBI_KILL_MS);
    ok_eq(worker(0)->kills, 1);
}

static void test_a_patient_one_never_gives_up(void)
{
    begin(1);
    w.policy.config.patient = true;
    w.workers_boot = false;
    just(ORIBI_EVENT_START);
    settle();
    for (int i = 0; i < 6; i++) {
        feed((struct oribi_policy_event){.type = ORIBI_EVENT_WORKER_FORKED,
                                         .slot = worker(0)->slot,
                                         .ticket = worker(0)->ticket,
                                         .pid = -1,
                                         .text = "no memory"});
        worker(0)->alive = false;
        pass_ms(ORIBI_RESPAWN_DELAY_MS_MAX);
    }
    ok_eq(w.spawns, 7);
    ok_eq(w.exits, 0);
}

static void test_a_reload_replaces_those_left_alone_too(void)
{
    start_patient(2);
    pause_with(0, 0);
    just(ORIBI_EVENT_RESUME);
    just(ORIBI_EVENT_RELOAD);
    settle();
    ok(w.fresh);
    ok_eq(w.reloads_done, 1);
    ok_eq(oribi_policy_serving(&w.policy), 2);
    ok_eq(worker(0)->generation, 3);
}

static void test_a_program_that_waits_for_its_workers_needs_no_mold(void)
{
    start_patient(2);
    struct proc *own = mold();
    feed((struct oribi_policy_event){.type = ORIBI_EVENT_RELEASE_MOLDS, .pid = own->pid});
    just(ORIBI_EVENT_RELOAD);
    settle();
    struct proc *fresh = mold_of(2);
    ok(own != fresh && oribi_policy_molds_beside(&w.policy, own->pid) == 1);
    feed((struct oribi_policy_event){.type = ORIBI_EVENT_RELEASE_MOLDS, .pid = own->pid});
    ok(!fresh->socket_closed); /* workers may be wanted at any time */
    pause_with(SIGTERM, 0);
    feed((struct oribi_policy_event){.type = ORIBI_EVENT_RELEASE_MOLDS, .pid = own->pid});
    ok(fresh->socket_closed);
    settle();
    ok_eq(oribi_policy_molds_beside(&w.policy, own->pid), 0);
    just(ORIBI_EVENT_RESUME);
    settle();
    ok_eq(oribi_policy_serving(&w.policy), 2);
}

static void test_a_reload_ends_when_the_program_waits_for_its_workers(void)
{
    start_patient(1);
    int32_t own = mold()->pid;
    w.molds_load = false;
    just(ORIBI_EVENT_RELOAD);
    report_mold(mold_of(2));
    pause_with(0, 0);
    feed((struct oribi_policy_event){.type = ORIBI_EVENT_RELEASE_MOLDS, .pid = own});
    ok_eq(w.reloads_failed, 1);
    ok(logged("the program waits for the end of its workers"));
    ok(mold_of(2)->socket_closed && mold_of(2)->terms == 1);
}

int main(void)
{
    test_a_pause_signals_everybody_and_spawns_nobody();
    test_a_pause_without_a_signal_leaves_everybody();
    test_a_paced_signal_passes_over_the_dead();
    test_a_resume_fills_up_as_workers_of_before_leave();
    test_a_failure_of_an_earlier_generation_holds_nobody_up();
    test_what_the_program_asked_to_end_is_no_failure_and_has_shutdown_timeout();
    test_asked_to_end_before_its_report_is_read();
    test_a_patient_one_never_gives_up();
    test_a_reload_replaces_those_left_alone_too();
    test_a_program_that_waits_for_its_workers_needs_no_mold();
    test_a_reload_ends_when_the_program_waits_for_its_workers();
    return done_testing();
}
