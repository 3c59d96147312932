/* Reload, recycling and refork: against a fake clock. */
#include "policy/policy_reload.c"

#include "policy/policy_world.h"

/* --- reload --- */

static void test_reload_replaces_mold_and_workers(void)
{
    start(4);
    just(ORIBI_EVENT_RELOAD);
    ok_eq(w.reloadings, 1);
    ok(w.fresh);
    settle();
    ok_eq(w.commits, 1);
    ok_eq(w.reloads_done, 1);
    ok_eq(serving_of(2), 4);
    ok_eq(serving_of(1), 0);
    ok(!mold_of(1));
    ok(mold_of(2) != NULL);
    ok_eq(w.ups, 1);
}

static void test_reload_never_has_fewer_workers_and_few_more(void)
{
    start(8);
    w.policy.config.roll_max = 2;
    w.molds_load = w.workers_boot = false;
    just(ORIBI_EVENT_RELOAD);
    report_mold(mold_of(2));
    feed((struct oribi_policy_event){.type = ORIBI_EVENT_MOLD_READY, .pid = mold_of(2)->pid});
    uint32_t least = 8;
    uint32_t most = 8;
    for (int i = 0; i < 100 && w.reloads_done == 0; i++) {
        for (uint32_t k = 0; k < w.proc_count; k++) {
            struct proc *proc = &w.procs[k];
            if (!proc->alive || proc->is_mold || proc->ready || proc->terms)
                continue;
            event_forked(proc);
            event_ready(proc);
            break; /* one at a time */
        }
        uint32_t serving = oribi_policy_serving(&w.policy);
        least = serving < least ? serving : least;
        most = serving > most ? serving : most;
        settle();
    }
    ok_eq(w.reloads_done, 1);
    ok_eq(least, 8);
    ok(most <= 10);
}

static void test_reload_with_code_that_does_not_load_changes_nothing(void)
{
    start(3);
    w.molds_load = false;
    just(ORIBI_EVENT_RELOAD);
    struct proc *proc = mold_of(2);
    report_mold(proc);
    feed((struct oribi_policy_event){.type = ORIBI_EVENT_MOLD_FAILED, .pid = proc->pid, .text = "syntax error"});
    event_exit(proc, 1 << 8);
    settle();
    ok_eq(w.reloads_failed, 1);
    ok_eq(serving_of(1), 3);
    ok_eq(count_signalled(SIGTERM), 0);
    ok_eq(w.exits, 0);
    ok(logged("the application did not load: syntax error"));
    ok(logged("reload failed, generation 1 goes on serving"));
    ok(mold_of(1) != NULL);
}

static void test_reload_whose_command_ends_at_once_changes_nothing(void)
{
    start(3);
    w.molds_load = false;
    just(ORIBI_EVENT_RELOAD);
    report_mold(mold_of(2));
    event_exit(mold_of(2), 1 << 8);
    ok_eq(w.reloads_failed, 1);
    ok(logged("ended while it loaded the application: exit code 1"));
    ok_eq(serving_of(1), 3);
}

static void test_reload_whose_first_worker_fails_changes_nothing(void)
{
    start(3);
    just(ORIBI_EVENT_RELOAD);
    w.workers_boot = false;
    settle();
    struct proc *proc = worker(3);
    ok_eq(proc->generation, 2);
    event_forked(proc);
    event_exit(proc, 1 << 8);
    settle();
    ok_eq(w.reloads_failed, 1);
    ok_eq(w.commits, 0);
    ok_eq(serving_of(1), 3);
    ok(!mold_of(2));
    ok_eq(oribi_policy_alive(&w.policy), 3);
}

static void test_reload_whose_first_worker_hangs_changes_nothing(void)
{
    start(3);
    just(ORIBI_EVENT_RELOAD);
    w.workers_boot = false;
    settle();
    event_forked(worker(3));
    pass_ms(61000);
    ok_eq(w.reloads_failed, 1);
    ok_eq(serving_of(1), 3);
    ok(!mold_of(2));
}

static void test_reload_that_loads_too_long_changes_nothing(void)
{
    start(2);
    w.molds_load = false;
    just(ORIBI_EVENT_RELOAD);
    report_mold(mold_of(2));
    pass_ms(60000);
    ok_eq(w.reloads_failed, 1);
    ok_eq(serving_of(1), 2);
    ok(!mold_of(2));
    w.molds_load = true; /* and the next one may be better */
    just(ORIBI_EVENT_RELOAD);
    settle();
    ok_eq(w.reloads_done, 1);
    ok_eq(serving_of(3), 2);
}

static void test_a_second_reload_waits_for_the_first(void)
{
    start(2);
    just(ORIBI_EVENT_RELOAD);
    just(ORIBI_EVENT_RELOAD);
    just(ORIBI_EVENT_RELOAD);
    settle();
    ok_eq(w.reloads_done, 2); /* what was asked for meanwhile is one more */
    ok_eq(serving_of(3), 2);
    ok_eq(w.mold_starts, 3);
}

static void test_reload_takes_the_new_config(void)
{
    start(2);
    struct oribi_policy_config config = w.policy.config;
    config.workers = 5;
    config.shutdown_timeout_ms = 7000;
    w.next_config = &config;
    just(ORIBI_EVENT_RELOAD);
    settle();
    ok_eq(serving_of(2), 5);
    ok_eq(w.policy.config.shutdown_timeout_ms, 7000);
}

static void resize(int32_t delta)
{
    feed((struct oribi_policy_event){.type = ORIBI_EVENT_RESIZE, .delta = delta});
    settle();
}

static void test_reload_keeps_the_number_of_workers_that_was_asked_for(void)
{
    start(3);
    resize(1);
    just(ORIBI_EVENT_RELOAD);
    settle();
    ok_eq(serving_of(2), 4);
    ok(logged("workers: 4 as asked for, not the 3 of the configuration, which has not changed"));
    resize(-3);
    just(ORIBI_EVENT_RELOAD);
    settle();
    ok_eq(serving_of(3), 1);
}

static void test_a_successor_keeps_the_number_of_workers_unless_its_configuration_has_another(void)
{
    static const struct oribi_slot slots[2 * 4];
    struct oribi_policy_config config = {.workers = 3, .workers_max = 4};
    struct oribi_policy policy;
    oribi_policy_init(&policy, &config, slots, 8);
    ok(!oribi_policy_keep_workers(&policy, 0, 0));
    ok_eq(policy.target, 3);
    ok(!oribi_policy_keep_workers(&policy, 1, 2)); /* the configuration had 2, and has 3 now */
    ok_eq(policy.target, 3);
    ok(oribi_policy_keep_workers(&policy, 1, 3));
    ok_eq(policy.target, 1);
    ok(oribi_policy_keep_workers(&policy, 9, 3)); /* there is room for 4 */
    ok_eq(policy.target, 4);
}

static void test_reload_with_another_number_of_workers_takes_that(void)
{
    start(3);
    resize(1);
    struct oribi_policy_config config = w.policy.config;
    config.workers = 2;
    w.next_config = &config;
    just(ORIBI_EVENT_RELOAD);
    settle();
    ok_eq(serving_of(2), 2);
    just(ORIBI_EVENT_RELOAD);
    settle();
    ok_eq(serving_of(3), 2);
}

static void test_reload_with_more_workers_than_there_is_room_for(void)
{
    start(2);
    struct oribi_policy_config config = w.policy.config;
    config.workers = SLOTS;
    w.next_config = &config;
    just(ORIBI_EVENT_RELOAD);
    settle();
    ok_eq(serving_of(2), SLOTS / 2);
    ok(logged("the most that this server has room for"));
}

static void test_reload_brings_workers_back_after_winch(void)
{
    start(3);
    just(ORIBI_EVENT_WINCH);
    settle();
    just(ORIBI_EVENT_RELOAD);
    settle();
    ok_eq(serving_of(2), 3);
}

static void test_reload_with_spawn_interval_is_slow(void)
{
    start(3);
    w.policy.config.spawn_interval_ms = 1000;
    pass_ms(5000);
    just(ORIBI_EVENT_RELOAD);
    settle();
    ok_eq(serving_of(2), 1);
    ok_eq(serving_of(1), 2);
    pass_ms(1000);
    ok_eq(serving_of(2), 2);
    ok_eq(serving_of(1), 1);
    pass_ms(1000);
    ok_eq(serving_of(2), 3);
    ok_eq(w.reloads_done, 1);
}

static void test_an_old_worker_that_dies_while_the_next_code_loads_is_replaced_by_an_old_one(void)
{
    start(3);
    pass_ms(5000);
    w.molds_load = false;
    just(ORIBI_EVENT_RELOAD);
    report_mold(mold_of(2));
    event_exit(worker(0), SIGKILL);
    pass_ms(1000);
    ok_eq(serving_of(1), 3);
}

static void test_stop_during_a_reload_ends_everything(void)
{
    start(2);
    w.molds_load = false;
    just(ORIBI_EVENT_RELOAD);
    report_mold(mold_of(2));
    just(ORIBI_EVENT_STOP);
    ok_eq(mold_of(2)->terms, 1);
    event_exit(mold_of(2), 1 << 8);
    settle();
    ok_eq(w.exits, 1);
    ok_eq(w.exit_code, 0);
}

static void test_a_mold_of_a_later_generation_is_started_afresh(void)
{
    start(1);
    just(ORIBI_EVENT_RELOAD);
    settle();
    pass_ms(5000);
    event_exit(mold_of(2), SIGKILL);
    w.fresh = false;
    event_exit(worker(0), 0);
    settle();
    ok(w.fresh);
    ok_eq(serving_of(2), 1);
}

/* --- recycling --- */

static void test_a_worker_over_memory_max_is_replaced_before_it_goes(void)
{
    start(2);
    w.policy.config.memory_max = 100;
    w.workers_boot = false;
    struct proc *proc = worker(0);
    event_measured(proc, 100);
    ok_eq(w.spawns, 2);
    event_measured(proc, 101);
    ok_eq(w.spawns, 3);
    ok_eq(proc->terms, 0); /* its successor is not there yet */
    w.workers_boot = true;
    settle();
    ok_eq(proc->terms, 1);
    is_str(w.last_reason, "memory_max");
    ok_eq(oribi_policy_serving(&w.policy), 2);
}

/* Replacements of the dead come up, those that serve become due for recycling, and then fewer are wanted: they must
 * serve on until others do, but not beside all who come up. */
static void test_fewer_wanted_while_some_come_up_and_the_rest_is_due(void)
{
    start(4);
    w.policy.config.memory_max = 100;
    w.workers_boot = false;
    event_exit(worker(0), 0);
    event_exit(worker(0), 0);
    event_measured(worker(0), 101);
    event_measured(worker(1), 101);
    event_forked(worker(2));
    event_forked(worker(3));
    ok_eq(oribi_policy_alive(&w.policy), 4);
    feed((struct oribi_policy_event){.type = ORIBI_EVENT_RESIZE, .delta = -2});
    settle();
    ok_eq(oribi_policy_serving(&w.policy), 2);
    ok_eq(oribi_policy_alive(&w.policy), 3); /* two, and the one that a roll may have */
    w.workers_boot = true;
    settle();
    ok_eq(oribi_policy_serving(&w.policy), 2);
    ok_eq(oribi_policy_alive(&w.policy), 2);
    ok_eq(w.spawns, 7); /* four, the two for the dead, and one for the recycled beside the one that was kept */
}

static void test_only_a_few_are_recycled_at_a_time(void)
{
    start(10);
    w.policy.config.memory_max = 100;
    w.policy.config.roll_max = 2;
    w.workers_boot = false;
    for (uint32_t i = 0; i < 10; i++)
        event_measured(worker(i), 1000);
    ok_eq(w.spawns, 12);
    ok_eq(oribi_policy_serving(&w.policy), 10);
    w.workers_boot = true;
    settle();
    ok_eq(w.spawns, 20);
    ok_eq(oribi_policy_serving(&w.policy), 10);
    ok_eq(w.serving_max, 10);
}

static void test_old_workers_are_replaced_at_different_times(void)
{
    start(4);
    w.policy.config.age_max_ms = 60000;
    pass_ms(59000);
    ok_eq(w.spawns, 4);
    pass_ms(60000 / 8 + 3000);
    ok_eq(w.spawns, 8);
    is_str(w.last_reason, "age_max");
    ok_eq(oribi_policy_serving(&w.policy), 4);
}

/* --- refork --- */

static void test_a_warm_worker_becomes_the_mold(void)
{
    start(3);
    w.policy.config.refork_after = 50;
    w.slots[worker(1)->slot].request_count = 49;
    pass_ms(2000);
    ok_eq(w.reforks_asked, 0);
    w.slots[worker(1)->slot].request_count = 50;
    pass_ms(2000);
    ok_eq(w.reforks_asked, 1);
    ok_eq(worker(1)->usr2s, 1);
    struct proc *promoted = add_proc(500, true, 1);
    promoted->ready = true;
    feed((struct oribi_policy_event){.type = ORIBI_EVENT_MOLD_PROMOTED, .generation = 1, .pid = 500});
    settle();
    ok(!proc_of(MOLD_PID_FIRST)->alive);
    ok_eq(w.reforks_done, 1);
    ok_eq(w.spawns, 6);
    ok_eq(oribi_policy_serving(&w.policy), 3);
    for (uint32_t i = 0; i < SLOTS; i++)
        w.slots[i].request_count = 1000;
    pass_ms(100000);
    ok_eq(w.reforks_asked, 1); /* once per generation */
}

static void test_a_refork_that_never_comes_is_asked_for_again(void)
{
    start(1);
    w.policy.config.refork_after = 1;
    w.slots[0].request_count = 1;
    pass_ms(2000);
    ok_eq(w.reforks_asked, 1);
    pass_ms(60000);
    ok_eq(w.reforks_asked, 2);
}

int main(void)
{
    test_reload_replaces_mold_and_workers();
    test_reload_never_has_fewer_workers_and_few_more();
    test_reload_with_code_that_does_not_load_changes_nothing();
    test_reload_whose_command_ends_at_once_changes_nothing();
    test_reload_whose_first_worker_fails_changes_nothing();
    test_reload_whose_first_worker_hangs_changes_nothing();
    test_reload_that_loads_too_long_changes_nothing();
    test_a_second_reload_waits_for_the_first();
    test_reload_takes_the_new_config();
    test_reload_keeps_the_number_of_workers_that_was_asked_for();
    test_a_successor_keeps_the_number_of_workers_unless_its_configuration_has_another();
    test_reload_with_another_number_of_workers_takes_that();
    test_reload_with_more_workers_than_there_is_room_for();
    test_reload_brings_workers_back_after_winch();
    test_reload_with_spawn_interval_is_slow();
    test_an_old_worker_that_dies_while_the_next_code_loads_is_replaced_by_an_old_one();
    test_stop_during_a_reload_ends_everything();
    test_a_mold_of_a_later_generation_is_started_afresh();
    test_a_worker_over_memory_max_is_replaced_before_it_goes();
    test_fewer_wanted_while_some_come_up_and_the_rest_is_due();
    test_only_a_few_are_recycled_at_a_time();
    test_old_workers_are_replaced_at_different_times();
    test_a_warm_worker_becomes_the_mold();
    test_a_refork_that_never_comes_is_asked_for_again();
    return done_testing();
}
