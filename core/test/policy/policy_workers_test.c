/* Start and size, death and respawn, giving up, molds that die: against a fake clock. */
#include "policy/policy_events.c"

#include "policy/policy_world.h"

/* --- start and size --- */

static void test_start_makes_one_mold_and_all_workers(void)
{
    start(4);
    ok_eq(w.mold_starts, 1);
    ok_eq(w.spawns, 4);
    ok_eq(oribi_policy_serving(&w.policy), 4);
    ok_eq(w.ups, 1);
    ok_eq(w.exits, 0);
}

static void test_no_worker_before_the_mold_is_ready(void)
{
    begin(3);
    w.molds_load = false;
    just(ORIBI_EVENT_START);
    feed((struct oribi_policy_event){.type = ORIBI_EVENT_MOLD_STARTED, .generation = 1, .pid = MOLD_PID_FIRST});
    settle();
    ok_eq(w.spawns, 0);
    feed((struct oribi_policy_event){.type = ORIBI_EVENT_MOLD_READY, .pid = MOLD_PID_FIRST});
    ok_eq(w.spawns, 3);
}

static void test_spawn_interval_paces_the_start(void)
{
    begin(3);
    w.policy.config.spawn_interval_ms = 500;
    just(ORIBI_EVENT_START);
    settle();
    ok_eq(w.spawns, 1);
    pass_ms(499);
    ok_eq(w.spawns, 1);
    pass_ms(1);
    ok_eq(w.spawns, 2);
    pass_ms(500);
    ok_eq(w.spawns, 3);
    pass_ms(5000);
    ok_eq(w.spawns, 3);
}

static void test_ready_before_the_forks_report(void)
{
    begin(1);
    w.workers_boot = false;
    just(ORIBI_EVENT_START);
    settle();
    event_ready(worker(0));
    event_forked(worker(0));
    ok_eq(oribi_policy_serving(&w.policy), 1);
}

static void test_workers_are_added_up_to_the_most_and_removed_down_to_one(void)
{
    start(2);
    feed((struct oribi_policy_event){.type = ORIBI_EVENT_RESIZE, .delta = 1});
    settle();
    ok_eq(oribi_policy_serving(&w.policy), 3);
    for (int i = 0; i < SLOTS; i++) {
        feed((struct oribi_policy_event){.type = ORIBI_EVENT_RESIZE, .delta = 1});
        settle();
    }
    ok_eq(oribi_policy_serving(&w.policy), SLOTS / 2);
    ok(logged("that is the most"));
    for (int i = 0; i < SLOTS; i++) {
        feed((struct oribi_policy_event){.type = ORIBI_EVENT_RESIZE, .delta = -1});
        settle();
    }
    ok_eq(oribi_policy_serving(&w.policy), 1);
    ok(logged("that is the least"));
}

static void test_winch_stops_every_worker_and_ttin_brings_one_back(void)
{
    start(3);
    just(ORIBI_EVENT_WINCH);
    settle();
    ok_eq(oribi_policy_alive(&w.policy), 0);
    ok_eq(w.exits, 0);
    feed((struct oribi_policy_event){.type = ORIBI_EVENT_RESIZE, .delta = 1});
    settle();
    ok_eq(oribi_policy_serving(&w.policy), 1);
}

/* --- death and respawn --- */

static void test_a_worker_that_served_and_died_is_replaced_at_once(void)
{
    start(2);
    event_exit(worker(0), SIGKILL); /* no moment after it came up, too */
    settle();
    is_str(w.last_reason, "signal 9");
    ok_eq(w.spawns, 3);
    ok_eq(oribi_policy_serving(&w.policy), 2);
    ok(logged("worker 0 (pid 2000) ended: signal 9; replacing it\n"));
}

static void test_the_log_names_the_request_that_a_worker_died_of(void)
{
    start(1);
    atomic_store(&w.slots[0].call_started_us, w.now * 1000);
    snprintf(w.slots[0].line, sizeof(w.slots[0].line), "GET /exit?now");
    event_exit(worker(0), 3 << 8);
    ok(logged("worker 0 (pid 2000) ended: exit code 3 during GET /exit?now; replacing it\n"));
    is_str(w.last_reason, "exit code 3");
    settle();
    atomic_store(&w.slots[0].threads_busy, 3);
    event_exit(worker(0), 0); /* not in order: a call was under way */
    ok(logged("worker 0 (pid 2001) ended: exit code 0 during 3 calls, one of them GET /exit?now; replacing it\n"));
    settle();
    atomic_store(&w.slots[0].call_started_us, 0);
    event_exit(worker(0), 1 << 8);
    ok(logged("worker 0 (pid 2002) ended: exit code 1; replacing it\n"));
}

/* Kills whoever serves in that slot for `ms`, every 10 ms. How many died. */
static int storm(uint32_t slot, int64_t ms)
{
    int count = 0;
    for (int64_t i = 0; i < ms / 10; i++) {
        for (uint32_t k = 0; k < w.proc_count; k++) {
            struct proc *proc = &w.procs[k];
            if (proc->is_mold || !proc->alive || !proc->ready || proc->slot != slot)
                continue;
            event_exit(proc, SIGSEGV);
            count++;
        }
        pass_ms(10);
    }
    return count;
}

static void test_a_storm_of_deaths_is_bounded_in_its_slot_and_no_other(void)
{
    start(3);
    ok_eq(storm(1, 10000), ORIBI_DEATHS_AT_ONCE + 10);
    int before = w.spawns;
    event_exit(worker(0), SIGKILL);
    settle();
    ok_eq(w.spawns, before + 1);
    pass_ms(1000);
    ok_eq(oribi_policy_serving(&w.policy), 3);
    pass_ms(10000); /* what a slot owes is forgotten in time */
    ok_eq(storm(1, 10), 1);
    ok_eq(oribi_policy_serving(&w.policy), 3);
}

static void test_a_storm_in_every_slot_does_not_pause_the_server(void)
{
    start(2);
    int idle = 0, longest = 0;
    for (int i = 0; i < 500; i++) {
        for (uint32_t k = 0; k < w.proc_count; k++)
            if (!w.procs[k].is_mold && w.procs[k].alive && w.procs[k].ready)
                event_exit(&w.procs[k], SIGSEGV);
        pass_ms(10);
        idle = oribi_policy_serving(&w.policy) ? 0 : idle + 10;
        longest = idle > longest ? idle : longest;
    }
    ok_named(longest <= ORIBI_LAST_RESPAWN_MS, "nobody served for %d ms", longest);
    ok_named(w.spawns <= 2 * (ORIBI_DEATHS_AT_ONCE + 5 * (1000 / ORIBI_LAST_RESPAWN_MS)), "%d forks in 5 s", w.spawns);
}

static void test_a_death_is_no_failed_start(void)
{
    start(1);
    for (int i = 0; i < 3 * ORIBI_BOOT_FAILURES_MAX; i++) {
        event_exit(worker(0), SIGSEGV);
        pass_ms(2000);
    }
    w.workers_boot = false;
    event_exit(worker(0), SIGSEGV);
    pass_ms(0);
    int before = w.spawns;
    event_forked(worker(0));
    event_exit(worker(0), 1 << 8);
    pass_ms(999);
    ok_eq(w.spawns, before);
    pass_ms(1); /* the first failed start, however many workers died before */
    ok_eq(w.spawns, before + 1);
}

static void test_a_worker_that_leaves_in_order_is_replaced_at_once(void)
{
    start(2);
    event_exit(worker(1), 0);
    settle();
    ok_eq(w.spawns, 3);
    ok_eq(oribi_policy_serving(&w.policy), 2);
}

static void test_a_worker_that_drains_by_itself_is_replaced_before_it_is_gone(void)
{
    start(2);
    struct proc *proc = worker(0);
    feed((struct oribi_policy_event){
        .type = ORIBI_EVENT_WORKER_LEAVING, .slot = proc->slot, .ticket = proc->ticket, .pid = proc->pid});
    settle();
    ok_eq(oribi_policy_serving(&w.policy), 2);
    ok_eq(oribi_policy_alive(&w.policy), 3);
    pass_ms(30999);
    ok_eq(proc->kills, 0);
    pass_ms(1);
    ok_eq(proc->kills, 1);
    settle();
    ok_eq(oribi_policy_alive(&w.policy), 2);
}

static void test_one_kill_a_second_does_not_starve_the_respawn(void)
{
    start(4);
    pass_ms(2000);
    for (int i = 0; i < 20; i++) {
        if (worker(0))
            event_exit(worker(0), SIGKILL);
        pass_ms(1000);
        ok_named(oribi_policy_serving(&w.policy) >= 3, "at least 3 of 4 serve after kill %d", i + 1);
    }
}

static void test_back_off_doubles_up_to_a_cap(void)
{
    start(1);
    w.workers_boot = false;
    event_exit(worker(0), SIGSEGV);
    static const int64_t delays[] = {1000, 2000, 4000, 8000, 16000, 30000, 30000};
    for (size_t i = 0; i < sizeof(delays) / sizeof(delays[0]); i++) {
        int before = w.spawns;
        event_forked(worker(0));
        event_exit(worker(0), 1 << 8);
        pass_ms(delays[i] - 1);
        ok_eq(w.spawns, before);
        pass_ms(1);
        ok_eq(w.spawns, before + 1);
    }
    ok_eq(w.exits, 0);
}

static void test_back_off_is_forgotten_when_a_worker_is_ready(void)
{
    start(1);
    w.workers_boot = false;
    event_exit(worker(0), SIGSEGV);
    for (int i = 0; i < 3; i++) {
        event_forked(worker(0));
        event_exit(worker(0), 1 << 8);
        pass_ms(8000);
    }
    w.workers_boot = true;
    settle();
    w.workers_boot = false;
    event_exit(worker(0), SIGSEGV);
    event_forked(worker(0));
    event_exit(worker(0), 1 << 8);
    int before = w.spawns;
    pass_ms(1000);
    ok_eq(w.spawns, before + 1);
}

static void test_a_failed_fork_waits_and_is_tried_again(void)
{
    begin(1);
    w.workers_boot = false;
    just(ORIBI_EVENT_START);
    settle();
    feed((struct oribi_policy_event){
        .type = ORIBI_EVENT_WORKER_FORKED, .slot = 0, .ticket = 1, .pid = -1, .text = "no memory"});
    ok(logged("cannot fork worker 0: no memory"));
    ok_eq(w.spawns, 1);
    pass_ms(1000);
    ok_eq(w.spawns, 2);
}

static void test_boot_timeout_kills_once(void)
{
    start(1);
    pass_ms(2000);
    w.workers_boot = false;
    event_exit(worker(0), SIGKILL);
    pass_ms(1000);
    struct proc *proc = worker(0);
    event_forked(proc);
    pass_ms(59999);
    ok_eq(proc->kills, 0);
    pass_ms(1);
    ok_eq(proc->kills, 1);
    is_str(w.last_reason, "boot_timeout");
}

/* --- giving up --- */

static void test_a_load_failure_at_the_start_ends_with_1(void)
{
    begin(2);
    w.molds_load = false;
    just(ORIBI_EVENT_START);
    feed((struct oribi_policy_event){.type = ORIBI_EVENT_MOLD_STARTED, .generation = 1, .pid = MOLD_PID_FIRST});
    feed((struct oribi_policy_event){.type = ORIBI_EVENT_MOLD_FAILED, .pid = MOLD_PID_FIRST, .text = "no such file"});
    ok_eq(w.exits, 0);
    event_exit(proc_of(MOLD_PID_FIRST), 1 << 8);
    ok_eq(w.exits, 1);
    ok_eq(w.exit_code, 1);
    ok(logged("the application did not load: no such file"));
    ok_eq(w.ups, 0);
}

static void test_a_mold_that_dies_while_loading_ends_with_1(void)
{
    begin(2);
    w.molds_load = false;
    just(ORIBI_EVENT_START);
    feed((struct oribi_policy_event){.type = ORIBI_EVENT_MOLD_STARTED, .generation = 1, .pid = MOLD_PID_FIRST});
    event_exit(proc_of(MOLD_PID_FIRST), SIGSEGV);
    ok_eq(w.exits, 1);
    ok_eq(w.exit_code, 1);
    ok(logged("ended while it loaded the application: signal 11"));
}

static void test_loading_is_told_after_5_s_and_each_10_s(void)
{
    begin(2);
    w.molds_load = false;
    just(ORIBI_EVENT_START);
    feed((struct oribi_policy_event){.type = ORIBI_EVENT_MOLD_STARTED, .generation = 1, .pid = MOLD_PID_FIRST});
    pass_ms(4999);
    ok(!logged("has been loading"));
    pass_ms(1);
    ok(logged("generation 1: the application has been loading for 5 s (mold, pid"));
    feed((struct oribi_policy_event){.type = ORIBI_EVENT_MOLD_AT, .pid = MOLD_PID_FIRST + 1, .text = "other.rb:1"});
    feed((struct oribi_policy_event){.type = ORIBI_EVENT_MOLD_AT, .pid = MOLD_PID_FIRST, .text = "a.rb:1"});
    feed((struct oribi_policy_event){.type = ORIBI_EVENT_MOLD_AT, .pid = MOLD_PID_FIRST, .text = "b.rb:7"});
    pass_ms(5000);
    ok(logged("has been loading for 10 s (mold, pid"));
    ok(logged("), it stands at b.rb:7; waiting"));
    pass_ms(9999);
    ok(!logged("has been loading for 20 s") && !logged("for 19 s"));
    pass_ms(1);
    ok(logged("has been loading for 20 s"));
    feed((struct oribi_policy_event){
        .type = ORIBI_EVENT_MOLD_READY, .generation = 1, .pid = MOLD_PID_FIRST, .text = "rack 3"});
    ok(logged("generation 1: the application has loaded in 20.00 s (rack 3)"));
}

static void test_loading_longer_than_boot_timeout_ends_with_1(void)
{
    begin(2);
    w.molds_load = false;
    just(ORIBI_EVENT_START);
    feed((struct oribi_policy_event){.type = ORIBI_EVENT_MOLD_STARTED, .generation = 1, .pid = MOLD_PID_FIRST});
    pass_ms(59999);
    ok_eq(w.exits, 0);
    pass_ms(1);
    ok_eq(w.exits, 1);
    ok_eq(w.exit_code, 1);
    ok(logged("did not load within boot_timeout"));
}

static void test_no_worker_ever_ready_ends_with_1(void)
{
    begin(2);
    w.workers_boot = false;
    just(ORIBI_EVENT_START);
    settle();
    for (int i = 0; i < 3 && w.exits == 0; i++) {
        struct proc *proc = worker(0);
        event_forked(proc);
        feed((struct oribi_policy_event){.type = ORIBI_EVENT_WORKER_FAILED,
                                         .slot = proc->slot,
                                         .ticket = proc->ticket,
                                         .pid = proc->pid,
                                         .text = "no database"});
        event_exit(proc, 1 << 8);
        pass_ms(i == 1 ? 4000 : 0);
    }
    ok_eq(w.exits, 0); /* another one is still on its way up */
    for (struct proc *proc; (proc = worker(0));) {
        event_forked(proc);
        event_exit(proc, 1 << 8);
    }
    settle();
    ok_eq(w.exits, 1);
    ok_eq(w.exit_code, 1);
    ok(logged("could not start: no database"));
    is_str(w.exit_text, "giving up: no worker came up, 4 attempts");
}

static void test_once_up_it_never_gives_up(void)
{
    start(1);
    w.workers_boot = false;
    for (int i = 0; i < 20; i++) {
        if (worker(0)) {
            event_forked(worker(0));
            event_exit(worker(0), 1 << 8);
        }
        pass_ms(40000);
    }
    ok_eq(w.exits, 0);
    ok(w.spawns >= 15);
}

/* --- the mold --- */

static void test_workers_outlive_a_killed_mold_and_a_new_one_comes_when_needed(void)
{
    start(3);
    pass_ms(5000);
    event_exit(mold(), SIGKILL);
    settle();
    ok_eq(oribi_policy_serving(&w.policy), 3);
    ok_eq(w.mold_starts, 1);
    event_exit(worker(0), SIGKILL);
    pass_ms(1000);
    ok_eq(w.mold_starts, 2);
    ok_eq(oribi_policy_serving(&w.policy), 3);
}

static void test_a_worker_reported_after_its_mold_died_is_killed(void)
{
    start(1);
    pass_ms(5000);
    w.workers_boot = false;
    event_exit(worker(0), 0);
    struct proc *proc = worker(0);
    event_exit(mold(), SIGKILL);
    settle();
    ok_eq(w.mold_starts, 2);
    ok_eq(w.spawns, 3); /* by the new mold, for another slot */
    event_forked(proc);
    ok_eq(proc->kills, 1);
    ok_eq(oribi_policy_alive(&w.policy), 1);
}

static void test_a_mold_that_does_not_fork_is_killed(void)
{
    start(1);
    pass_ms(5000);
    w.workers_boot = false;
    event_exit(worker(0), 0);
    struct proc *first = mold();
    worker(0)->alive = false;
    pass_ms(59999);
    ok_eq(first->kills, 0);
    pass_ms(1);
    ok_eq(first->kills, 1);
    ok_eq(w.mold_starts, 2);
}

static void test_a_new_mold_that_fails_is_tried_again_later(void)
{
    start(2);
    pass_ms(5000);
    w.molds_load = false;
    event_exit(mold(), SIGKILL);
    event_exit(worker(0), 0);
    settle();
    ok_eq(w.mold_starts, 2);
    int32_t pid = MOLD_PID_FIRST + 1;
    feed((struct oribi_policy_event){.type = ORIBI_EVENT_MOLD_STARTED, .generation = 1, .pid = pid});
    feed((struct oribi_policy_event){.type = ORIBI_EVENT_MOLD_FAILED, .pid = pid, .text = "syntax error"});
    event_exit(proc_of(pid), 1 << 8);
    ok_eq(w.exits, 0);
    pass_ms(999);
    ok_eq(w.mold_starts, 2);
    pass_ms(1);
    ok_eq(w.mold_starts, 3);
}

int main(void)
{
    test_start_makes_one_mold_and_all_workers();
    test_no_worker_before_the_mold_is_ready();
    test_spawn_interval_paces_the_start();
    test_ready_before_the_forks_report();
    test_workers_are_added_up_to_the_most_and_removed_down_to_one();
    test_winch_stops_every_worker_and_ttin_brings_one_back();
    test_a_worker_that_served_and_died_is_replaced_at_once();
    test_the_log_names_the_request_that_a_worker_died_of();
    test_a_storm_of_deaths_is_bounded_in_its_slot_and_no_other();
    test_a_storm_in_every_slot_does_not_pause_the_server();
    test_a_death_is_no_failed_start();
    test_a_worker_that_leaves_in_order_is_replaced_at_once();
    test_a_worker_that_drains_by_itself_is_replaced_before_it_is_gone();
    test_one_kill_a_second_does_not_starve_the_respawn();
    test_back_off_doubles_up_to_a_cap();
    test_back_off_is_forgotten_when_a_worker_is_ready();
    test_a_failed_fork_waits_and_is_tried_again();
    test_boot_timeout_kills_once();
    test_a_load_failure_at_the_start_ends_with_1();
    test_a_mold_that_dies_while_loading_ends_with_1();
    test_loading_is_told_after_5_s_and_each_10_s();
    test_loading_longer_than_boot_timeout_ends_with_1();
    test_no_worker_ever_ready_ends_with_1();
    test_once_up_it_never_gives_up();
    test_workers_outlive_a_killed_mold_and_a_new_one_comes_when_needed();
    test_a_worker_reported_after_its_mold_died_is_killed();
    test_a_mold_that_does_not_fork_is_killed();
    test_a_new_mold_that_fails_is_tried_again_later();
    return done_testing();
}
